# expect: accepted
# point: 8, 9

import torch
import triton
import triton.language as tl


@triton.jit
def stats_kernel(x_ptr, mean_ptr, var_ptr, stride_row, stride_col, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_row
    total = tl.full((), 0.0, x_ptr.dtype.element_ty)
    squares = tl.full((), 0.0, x_ptr.dtype.element_ty)
    # One pass: the squares around the mean of each tile are moved to the common mean (Welford, Chan).
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols.to(tl.int64) * stride_col, mask=mask, other=0.0)
        before = start.to(x.dtype)
        here = tl.minimum(n_cols - start, BLOCK).to(x.dtype)
        part = tl.sum(x, axis=0)
        d = tl.where(mask, x - part / here, 0.0)
        delta = part / here - total / tl.maximum(before, 1.0)
        moved = delta * delta * (before * here / (before + here))
        squares += tl.sum(d * d, axis=0) + tl.where(start > 0, moved, 0.0)
        total += part
    tl.store(mean_ptr + row, total / n_cols)
    tl.store(var_ptr + row, squares / n_cols)


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
