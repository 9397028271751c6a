# expect: accepted
# point: 13

import torch
import triton
import triton.language as tl


# Other names, helpers of their own, another order in the file.
def row_softmax_out(x, out):
    n_rows, n_cols = x.shape
    rows_kernel[(n_rows,)](out, x, *x.stride(), n_cols, TILE=triton.next_power_of_2(n_cols), num_warps=8)
    return out


def softmax(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    out = x.new_empty(tuple(x.shape))
    return row_softmax_out(x, out) if out.numel() else out


@triton.jit
def normalised(weights):
    return weights / tl.sum(weights, axis=0)


@triton.jit
def rows_kernel(to_ptr, from_ptr, stride_m, stride_n, n_cols, TILE: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    cols = tl.arange(0, TILE).to(tl.int64)
    inside = cols < n_cols
    values = tl.load(from_ptr + row * stride_m + cols * stride_n, mask=inside, other=float("-inf"))
    weights = tl.exp(values - tl.max(values, axis=0))
    tl.store(to_ptr + row * n_cols + cols, normalised(weights), mask=inside)
