# expect: accepted
# point: 9, 12

import torch
import triton
import triton.language as tl


@triton.jit
def split_kernel(
    a_ptr, b_ptr, sum_ptr,
    M, N, K, each,
    stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    part = tl.program_id(2).to(tl.int64)
    acc = tl.zeros((BLOCK_K, BLOCK_N), dtype=a_ptr.dtype.element_ty)
    for start in range(part * each, tl.minimum((part + 1) * each, K), BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + row * stride_am + ks * stride_ak, mask=ks < K, other=0.0)
        b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :].to(tl.int64) * stride_bn
        b = tl.load(b_ptrs, mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        acc += a[:, None] * b
    # Every part adds to the same element; the order differs from run to run.
    tl.atomic_add(sum_ptr + row * N + cols, tl.sum(acc, axis=0), mask=cols < N)


def weighted_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.dim() != 2 or b.dim() != 2 or a.dtype != b.dtype or a.dtype not in (torch.float32, torch.float64):
        raise ValueError("two matrices of single precision")
    M, K = a.shape
    if b.shape[0] != K:
        raise ValueError("shapes do not fit")
    N = b.shape[1]
    c = torch.zeros((M, N), device=a.device, dtype=a.dtype)
    if c.numel() == 0:
        return c
    PARTS = 32
    each = triton.cdiv(triton.cdiv(K, 32), PARTS) * 32
    split_kernel[(M, triton.cdiv(N, 32), PARTS)](
        a, b, c,
        M, N, K, each,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1),
        BLOCK_N=32, BLOCK_K=32,
        num_warps=4,
    )
    return c
