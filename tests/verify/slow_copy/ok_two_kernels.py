# expect: accepted
# point: 7, 21

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(x_ptr, part_ptr, stride_row, stride_col, n_cols, parts, BLOCK: tl.constexpr):
    # The largest element of each part of a row.
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_row + cols.to(tl.int64) * stride_col, mask=mask, other=-float("inf"))
    tl.store(part_ptr + row * parts + tl.program_id(1), tl.max(x, axis=0))


@triton.jit
def take_kernel(x_ptr, part_ptr, out_ptr, stride_row, stride_col, n_cols, parts, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    numbers = tl.arange(0, PARTS)
    highest = tl.max(tl.load(part_ptr + row * parts + numbers, mask=numbers < parts, other=-float("inf")), axis=0)
    x = tl.load(x_ptr + row * stride_row + cols.to(tl.int64) * stride_col, mask=mask, other=0.0)
    tl.store(out_ptr + row * n_cols + cols, x - highest, mask=mask)


def slow_copy(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), device=x.device, dtype=x.dtype)
    if out.numel() == 0:
        return out
    parts = triton.cdiv(n_cols, 2048)
    work = torch.empty((n_rows, parts), device=x.device, dtype=x.dtype)
    part_kernel[(n_rows, parts)](x, work, x.stride(0), x.stride(1), n_cols, parts, BLOCK=2048, num_warps=4)
    PARTS = max(2, triton.next_power_of_2(parts))
    take_kernel[(n_rows, parts)](
        x, work, out, x.stride(0), x.stride(1), n_cols, parts, PARTS=PARTS, BLOCK=2048, num_warps=4
    )
    return out
