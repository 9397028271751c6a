# expect: accepted
# point: 9

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
    acc = tl.zeros((BLOCK_K, BLOCK_N), dtype=a_ptr.dtype.element_ty)
    for start in range(0, K, BLOCK_K):
        ks = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        a = tl.load(a_ptr + row * stride_am + ks * stride_ak, mask=ks < K, other=0.0)
        b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :].to(tl.int64) * stride_bn
        b = tl.load(b_ptrs, mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        acc += a[:, None] * b
    tl.store(c_ptr + row * N + cols, tl.sum(acc, axis=0), mask=cols < N)


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
    product_kernel[(M, triton.cdiv(N, 16))](
        a, b, c,
        N, K,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1),
        # More of the inner size at once: sums of other elements, in another order.
        BLOCK_N=16, BLOCK_K=256,
        num_warps=8,
    )
    return c
