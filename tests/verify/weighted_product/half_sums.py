# expect: refused: output|precision|exact
# point: 9, 10, 15

import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr,
    N, K,
    stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    # Sums of half precision.
    acc = tl.zeros((BLOCK_K, BLOCK_N), dtype=tl.float16)
    for start in range(0, K, BLOCK_K):
        ks = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        a = tl.load(a_ptr + row * stride_am + ks * stride_ak, mask=ks < K, other=0.0)
        b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :].to(tl.int64) * stride_bn
        b = tl.load(b_ptrs, mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        acc += (a[:, None] * b).to(tl.float16)
    tl.store(c_ptr + row * N + cols, tl.sum(acc.to(c_ptr.dtype.element_ty), axis=0), mask=cols < N)


def weighted_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.dim() != 2 or b.dim() != 2 or a.dtype != b.dtype or a.dtype not in (torch.float32, torch.float64):
        raise ValueError("two matrices of single precision")
    M, K = a.shape
    if b.shape[0] != K:
        raise ValueError("shapes do not fit")
    N = b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    if c.numel() == 0:
        return c
    product_kernel[(M, triton.cdiv(N, 32))](
        a, b, c,
        N, K,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1),
        BLOCK_N=32, BLOCK_K=32,
        num_warps=4,
    )
    return c
