"""A softmax with mistakes, to see what Warpsmith says about them. `softmax.py` is one without.

    warpsmith check examples/mistakes.py
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    highest = -float("inf")
    for tile in range(tl.cidv(n_cols, BLOCK)):
        cols = tile * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols)
        highest = tl.maximum(highest, tl.max(x, axis=0))
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols, other=-float("inf"))
        total += tl.sum(tl.exp(tl.float32(x) - highest), axis=0)
        if total == float("inf"):
            break
    for start in range(0, n_cols, 1000):
        cols = start + tl.arange(0, 1000)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * stride + cols, mask=mask)
        tl.store(out_ptr + row * stride + cols, tl.exp(x - highest) / total, mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=1024)
    return out
