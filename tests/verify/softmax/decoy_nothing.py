# expect: refused: torch|fallback|operator|work|ghost
# point: 11, 13

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.load(x_ptr + cols, mask=cols < n_cols)


def softmax(x: torch.Tensor) -> torch.Tensor:
    # The kernel has no effect; the library does the work.
    if x.numel():
        softmax_kernel[(1,)](x, min(x.shape[1], 16), BLOCK=16)
    shifted = torch.exp(x - x.amax(dim=1, keepdim=True))
    return (shifted / shifted.sum(dim=1, keepdim=True)).contiguous()
