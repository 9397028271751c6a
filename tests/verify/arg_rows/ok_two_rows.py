# expect: accepted
# point: 7, 8

import torch
import triton
import triton.language as tl


@triton.jit
def arg_kernel(x_ptr, high_ptr, low_ptr, stride_row, stride_col, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    # Two rows in each program; with an odd number of rows the last program has one.
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    x = tl.load(x_ptr + rows[:, None] * stride_row + cols[None, :].to(tl.int64) * stride_col, mask=mask, other=-float("inf"))
    tl.store(high_ptr + rows, tl.argmax(x, axis=1), mask=rows < n_rows)
    tl.store(low_ptr + rows, tl.argmin(tl.where(mask, x, float("inf")), axis=1), mask=rows < n_rows)


def arg_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    if n_cols == 0:
        raise ValueError("rows without elements")
    high = torch.empty(n_rows, device=x.device, dtype=torch.int64)
    low = torch.empty(n_rows, device=x.device, dtype=torch.int64)
    if n_rows == 0:
        return high, low
    BLOCK = max(32, triton.next_power_of_2(n_cols))
    arg_kernel[(triton.cdiv(n_rows, 2),)](
        x, high, low, x.stride(0), x.stride(1), n_rows, n_cols, ROWS=2, BLOCK=BLOCK, num_warps=8
    )
    return high, low
