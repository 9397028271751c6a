# expect: accepted
# point: 8, 9

import torch
import triton
import triton.language as tl


@triton.jit
def stats_kernel(x_ptr, mean_ptr, var_ptr, stride_row, stride_col, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_row
    # Two passes over the row in tiles, with a sum in each lane.
    sums = tl.zeros((BLOCK,), dtype=x_ptr.dtype.element_ty)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        sums += tl.load(x_ptr + cols.to(tl.int64) * stride_col, mask=cols < n_cols, other=0.0)
    mean = tl.sum(sums, axis=0) / n_cols
    squares = tl.zeros((BLOCK,), dtype=x_ptr.dtype.element_ty)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols.to(tl.int64) * stride_col, mask=cols < n_cols, other=0.0)
        d = tl.where(cols < n_cols, x - mean, 0.0)
        squares += d * d
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, tl.sum(squares, axis=0) / n_cols)


def group_stats(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    if n_cols == 0:
        raise ValueError("rows without elements")
    mean = torch.empty(n_rows, device=x.device, dtype=x.dtype)
    var = torch.empty(n_rows, device=x.device, dtype=x.dtype)
    if n_rows == 0:
        return mean, var
    BLOCK = 1024
    stats_kernel[(n_rows,)](x, mean, var, x.stride(0), x.stride(1), n_cols, BLOCK=BLOCK, num_warps=4)
    return mean, var
