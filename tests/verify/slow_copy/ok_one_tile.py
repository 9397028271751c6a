# expect: accepted
# point: 7, 21

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, out_ptr, stride_row, stride_col, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    # A row in one tile, read once.
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_row + cols.to(tl.int64) * stride_col, mask=mask, other=-float("inf"))
    tl.store(out_ptr + row * n_cols + cols, x - tl.max(x, axis=0), mask=mask)


def slow_copy(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), device=x.device, dtype=x.dtype)
    if out.numel() == 0:
        return out
    BLOCK = max(32, triton.next_power_of_2(n_cols))
    rows_kernel[(n_rows,)](x, out, x.stride(0), x.stride(1), n_cols, BLOCK=BLOCK, num_warps=8)
    return out
