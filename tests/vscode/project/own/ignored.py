import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, n):
    tl.store(x_ptr, tl.float32(n) + tl.nope)
