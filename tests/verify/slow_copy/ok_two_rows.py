# expect: accepted
# point: 7, 21

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, out_ptr, stride_row, stride_col, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    # Two rows in each program.
    rows = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    cols = tl.arange(0, BLOCK).to(tl.int64)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * stride_row + cols * stride_col, mask=mask, other=-float("inf"))
    tl.store(out_ptr + rows * n_cols + cols, x - tl.max(x, axis=1)[:, None], mask=mask)


def slow_copy(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), device=x.device, dtype=x.dtype)
    if out.numel() == 0:
        return out
    BLOCK = max(32, triton.next_power_of_2(n_cols))
    rows_kernel[(triton.cdiv(n_rows, 2),)](
        x, out, x.stride(0), x.stride(1), n_rows, n_cols, ROWS=2, BLOCK=BLOCK, num_warps=16
    )
    return out
