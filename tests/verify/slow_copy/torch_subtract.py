# expect: refused: torch|fallback|operator|work
# point: 11, 13

import torch
import triton
import triton.language as tl


@triton.jit
def touch_kernel(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, offsets.to(tl.float32))


def slow_copy(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    if x.numel() == 0:
        return torch.empty(x.shape, device=x.device, dtype=x.dtype)
    # The library does the work; a kernel is launched for show.
    touch_kernel[(1,)](torch.empty(32, device=x.device), BLOCK=32)
    return x - x.amax(dim=1, keepdim=True)
