# expect: accepted
# point: 7, 8, 10

import torch
import triton
import triton.language as tl


@triton.jit
def arg_kernel(x_ptr, high_ptr, low_ptr, stride_row, stride_col, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    most = tl.full((), -float("inf"), x_ptr.dtype.element_ty)
    least = tl.full((), float("inf"), x_ptr.dtype.element_ty)
    high = tl.full((), 0, tl.int32)
    low = tl.full((), 0, tl.int32)
    # Short tiles; an equal element further on does not take the place of an earlier one.
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * stride_row + cols.to(tl.int64) * stride_col, mask=mask, other=-float("inf"))
        value, index = tl.max(x, axis=0, return_indices=True)
        high = tl.where(value > most, start + index, high)
        most = tl.where(value > most, value, most)
        value, index = tl.min(tl.where(mask, x, float("inf")), axis=0, return_indices=True)
        low = tl.where(value < least, start + index, low)
        least = tl.where(value < least, value, least)
    tl.store(high_ptr + row, high)
    tl.store(low_ptr + row, low)


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
    BLOCK = 1024
    arg_kernel[(n_rows,)](x, high, low, x.stride(0), x.stride(1), n_cols, BLOCK=BLOCK, num_warps=4)
    return high, low
