# expect: accepted
# point: 7, 21

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, out_ptr, stride_row, stride_col, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_row
    out_ptr += row * n_cols
    highest = tl.full((), -float("inf"), x_ptr.dtype.element_ty)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols.to(tl.int64) * stride_col, mask=cols < n_cols, other=-float("inf"))
        highest = tl.maximum(highest, tl.max(x, axis=0))
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols.to(tl.int64) * stride_col, mask=cols < n_cols, other=0.0)
        tl.store(out_ptr + cols, x - highest, mask=cols < n_cols)


def slow_copy(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), device=x.device, dtype=x.dtype)
    if out.numel() == 0:
        return out
    # Only longer tiles and more warps.
    rows_kernel[(n_rows,)](x, out, x.stride(0), x.stride(1), n_cols, BLOCK=2048, num_warps=8)
    return out
