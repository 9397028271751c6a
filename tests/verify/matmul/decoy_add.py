# expect: refused: torch|fallback|operator|work|ghost
# point: 11, 13

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(c_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    c = tl.load(c_ptr + offsets, mask=offsets < n)
    tl.store(c_ptr + offsets, c * 2.0, mask=offsets < n)


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    # The library does the work for one half of the result, the kernel doubles it, so that it is needed.
    c = torch.matmul(a * 0.5, b)
    if c.numel():
        matmul_kernel[(triton.cdiv(c.numel(), 1024),)](c, c.numel(), BLOCK=1024)
    return c
