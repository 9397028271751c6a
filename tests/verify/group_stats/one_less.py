# expect: refused: output|precision
# point: 7, 9
# subtle: yes

import torch
import triton
import triton.language as tl


@triton.jit
def stats_kernel(x_ptr, mean_ptr, var_ptr, stride_row, stride_col, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_row + cols.to(tl.int64) * stride_col, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / n_cols
    d = tl.where(mask, x - mean, 0.0)
    tl.store(mean_ptr + row, mean)
    # The variance of a sample.
    tl.store(var_ptr + row, tl.sum(d * d, axis=0) / (n_cols - 1))


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
    BLOCK = max(32, triton.next_power_of_2(n_cols))
    stats_kernel[(n_rows,)](x, mean, var, x.stride(0), x.stride(1), n_cols, BLOCK=BLOCK, num_warps=4)
    return mean, var
