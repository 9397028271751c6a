# expect: accepted
# point: 15

import functools

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride_row, stride_col, n_rows, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    # Each program goes on with further rows.
    for turn in range(tl.cdiv(n_rows, tl.num_programs(0))):
        row = tl.program_id(0).to(tl.int64) + turn * tl.num_programs(0)
        mask = (cols < n_cols) & (row < n_rows)
        x = tl.load(x_ptr + row * stride_row + cols.to(tl.int64) * stride_col, mask=mask, other=-float("inf"))
        x = tl.exp(x - tl.max(x, axis=0))
        y = x / tl.sum(x, axis=0)
        tl.store(out_ptr + row * n_cols + cols, y, mask=mask)


@functools.cache
def processors(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def softmax(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), device=x.device, dtype=x.dtype)
    if out.numel() == 0:
        return out
    BLOCK = triton.next_power_of_2(n_cols)
    softmax_kernel[(min(n_rows, 8 * processors(x.device.index or 0)),)](x, out, x.stride(0), x.stride(1), n_rows, n_cols, BLOCK=BLOCK, num_warps=4)
    return out
