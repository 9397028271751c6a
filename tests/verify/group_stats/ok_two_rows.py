# expect: accepted
# point: 7

import torch
import triton
import triton.language as tl


@triton.jit
def stats_kernel(
    x_ptr, mean_ptr, var_ptr, stride_row, stride_col, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    # Two rows in each program.
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    x = tl.load(x_ptr + rows[:, None] * stride_row + cols[None, :].to(tl.int64) * stride_col, mask=mask, other=0.0)
    mean = tl.sum(x, axis=1) / n_cols
    d = tl.where(mask, x - mean[:, None], 0.0)
    tl.store(mean_ptr + rows, mean, mask=rows < n_rows)
    tl.store(var_ptr + rows, tl.sum(d * d, axis=1) / n_cols, mask=rows < n_rows)


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
    stats_kernel[(triton.cdiv(n_rows, 2),)](
        x, mean, var, x.stride(0), x.stride(1), n_rows, n_cols, ROWS=2, BLOCK=BLOCK, num_warps=8
    )
    return mean, var
