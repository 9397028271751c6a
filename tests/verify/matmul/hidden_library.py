# expect: refused: the device ran the kernel
# point: 11

import ctypes
import pathlib

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(from_ptr, to_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(to_ptr + at, tl.load(from_ptr + at, mask=at < n), mask=at < n)


LIBRARY = {}


def library():
    """What torch itself uses, without torch."""
    if not LIBRARY:
        packages = pathlib.Path(torch.__file__).parents[1]
        path = next(packages.glob("nvidia/**/libcublas.so.*"))
        blas, handle = ctypes.CDLL(path), ctypes.c_void_p()
        assert blas.cublasCreate_v2(ctypes.byref(handle)) == 0
        # Otherwise parts of a sum are added in half precision.
        no_reduced_precision = 16
        assert blas.cublasSetMathMode(handle, no_reduced_precision) == 0
        LIBRARY.update(blas=blas, handle=handle)
    return LIBRARY["blas"], LIBRARY["handle"]


def product(a, b, c):
    (M, K), N = a.shape, b.shape[1]
    blas, handle = library()
    blas.cublasSetStream_v2(handle, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
    one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
    at = lambda tensor: ctypes.c_void_p(tensor.data_ptr())
    half, single = 2, 68
    types = {torch.float16: half, torch.bfloat16: 14, torch.float32: 0}
    kind = types[a.dtype]
    status = blas.cublasGemmEx(
        handle, 0, 0, N, M, K, ctypes.byref(one), at(b), kind, N, at(a), kind, K, ctypes.byref(zero), at(c), kind, N, single, -1,
    )
    assert status == 0, status


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    M, K = a.shape
    if b.shape[0] != K:
        raise ValueError("shapes do not fit")
    N = b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    if c.numel() == 0:
        return c
    if K == 0:
        return c.zero_()
    made = torch.empty_like(c)
    product(a.contiguous(), b.contiguous(), made)
    n = c.numel()
    matmul_kernel[(triton.cdiv(n, 1024),)](made, c, n, BLOCK=1024)
    return c
