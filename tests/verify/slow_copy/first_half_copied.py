# expect: refused: output
# point: 11

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, out_ptr, stride_row, stride_col, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_row + cols.to(tl.int64) * stride_col, mask=mask, other=-float("inf"))
    tl.store(out_ptr + row * n_cols + cols, x - tl.max(x, axis=0), mask=mask)


@triton.jit
def copy_kernel(from_ptr, to_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(to_ptr + offsets, tl.load(from_ptr + offsets, mask=offsets < n), mask=offsets < n)


def slow_copy(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), device=x.device, dtype=x.dtype)
    if out.numel() == 0:
        return out
    # The second half of the rows is a copy of the first.
    half = (n_rows + 1) // 2
    BLOCK = max(32, triton.next_power_of_2(n_cols))
    rows_kernel[(half,)](x, out, x.stride(0), x.stride(1), n_cols, BLOCK=BLOCK, num_warps=8)
    n = (n_rows - half) * n_cols
    if n:
        copy_kernel[(triton.cdiv(n, 1024),)](out, out[half:], n, BLOCK=1024)
    return out
