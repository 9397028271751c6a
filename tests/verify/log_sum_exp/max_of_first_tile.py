# expect: refused: output
# point: 8
# subtle: yes

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, out_ptr, stride_row, stride_col, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_row
    # The largest element of the first tile stands for that of the row.
    first = tl.arange(0, BLOCK)
    highest = tl.max(
        tl.load(x_ptr + first.to(tl.int64) * stride_col, mask=first < n_cols, other=-float("inf")), axis=0
    )
    finite = tl.where(highest == -float("inf"), 0.0, highest)
    total = tl.full((), 0.0, x_ptr.dtype.element_ty)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols.to(tl.int64) * stride_col, mask=cols < n_cols, other=-float("inf"))
        total += tl.sum(tl.exp(x - finite), axis=0)
    tl.store(out_ptr + row, finite + tl.log(total))


def log_sum_exp(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, device=x.device, dtype=x.dtype)
    if n_rows == 0:
        return out
    rows_kernel[(n_rows,)](x, out, x.stride(0), x.stride(1), n_cols, BLOCK=256, num_warps=4)
    return out
