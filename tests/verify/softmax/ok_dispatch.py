# expect: accepted
# point: 7, 15

import torch
import triton
import triton.language as tl


@triton.jit
def tiled_kernel(x_ptr, out_ptr, stride_row, stride_col, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_row
    highest = tl.full((), -float("inf"), x_ptr.dtype.element_ty)
    total = tl.full((), 0.0, x_ptr.dtype.element_ty)
    # General path: long rows in tiles.
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols.to(tl.int64) * stride_col, mask=cols < n_cols, other=-float("inf"))
        new_highest = tl.maximum(highest, tl.max(x, axis=0))
        finite = tl.where(new_highest == -float("inf"), 0.0, new_highest)
        total = total * tl.exp(highest - finite) + tl.sum(tl.exp(x - finite), axis=0)
        highest = new_highest
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols.to(tl.int64) * stride_col, mask=cols < n_cols)
        tl.store(out_ptr + row * n_cols + cols, tl.exp(x - highest) / total, mask=cols < n_cols)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride_row, stride_col, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_row + cols.to(tl.int64) * stride_col, mask=mask, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    y = x / tl.sum(x, axis=0)
    tl.store(out_ptr + row * n_cols + cols, y, mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), device=x.device, dtype=x.dtype)
    if out.numel() == 0:
        return out
    # Rows that fit are done in one tile, longer ones in several.
    if n_cols <= 4096:
        kernel, BLOCK = softmax_kernel, triton.next_power_of_2(n_cols)
    else:
        kernel, BLOCK = tiled_kernel, 2048
    kernel[(n_rows,)](x, out, x.stride(0), x.stride(1), n_cols, BLOCK=BLOCK, num_warps=4)
    return out
