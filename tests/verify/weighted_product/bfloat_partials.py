# expect: refused: output|precision|exact
# point: 9, 10, 15

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
    # Each part of the inner size has a plane of its own, which a second kernel adds up.
    tl.store(sum_ptr + part * M * N + row * N + cols, tl.sum(acc, axis=0), mask=cols < N)


@triton.jit
def finish_kernel(sum_ptr, c_ptr, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=c_ptr.dtype.element_ty)
    for part in range(0, PARTS):
        acc += tl.load(sum_ptr + part.to(tl.int64) * n + offsets, mask=offsets < n, other=0.0)
    tl.store(c_ptr + offsets, acc, mask=offsets < n)


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
    PARTS = 32
    each = triton.cdiv(triton.cdiv(K, 32), PARTS) * 32
    # The sums of the parts are kept in half the width.
    work = torch.empty((PARTS, M, N), device=a.device, dtype=torch.bfloat16)
    split_kernel[(M, triton.cdiv(N, 32), PARTS)](
        a, b, work,
        M, N, K, each,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1),
        BLOCK_N=32, BLOCK_K=32,
        num_warps=4,
    )
    finish_kernel[(triton.cdiv(M * N, 256),)](work, c, M * N, PARTS=PARTS, BLOCK=256)
    return c
