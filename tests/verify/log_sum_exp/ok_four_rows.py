# expect: accepted
# point: 7, 9

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, out_ptr, stride_row, stride_col, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    # Several rows in each program.
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    x_ptrs = x_ptr + rows[:, None] * stride_row
    highest = tl.full((ROWS,), -float("inf"), x_ptr.dtype.element_ty)
    total = tl.full((ROWS,), 0.0, x_ptr.dtype.element_ty)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        x = tl.load(x_ptrs + cols[None, :].to(tl.int64) * stride_col, mask=mask, other=-float("inf"))
        new_highest = tl.maximum(highest, tl.max(x, axis=1))
        finite = tl.where(new_highest == -float("inf"), 0.0, new_highest)
        total = total * tl.exp(highest - finite) + tl.sum(tl.exp(x - finite[:, None]), axis=1)
        highest = new_highest
    tl.store(out_ptr + rows, highest + tl.log(total), mask=rows < n_rows)


def log_sum_exp(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, device=x.device, dtype=x.dtype)
    if n_rows == 0:
        return out
    rows_kernel[(triton.cdiv(n_rows, 4),)](
        x, out, x.stride(0), x.stride(1), n_rows, n_cols, ROWS=4, BLOCK=512, num_warps=4
    )
    return out
