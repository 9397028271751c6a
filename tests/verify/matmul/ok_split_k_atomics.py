# expect: accepted
# point: 12

import torch
import triton
import triton.language as tl


@triton.jit
def split_kernel(
    a_ptr, b_ptr, sum_ptr,
    M, N, K, each,
    stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    cols = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    part = tl.program_id(2).to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(part * each, tl.minimum((part + 1) * each, K), BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows * stride_am + ks[None, :] * stride_ak, mask=(rows < M) & (ks[None, :] < K), other=0.0)
        b = tl.load(b_ptr + ks[:, None] * stride_bk + cols * stride_bn, mask=(ks[:, None] < K) & (cols < N), other=0.0)
        acc = tl.dot(a, b, acc)
    mask = (rows < M) & (cols < N)
    # The order of additions differs from run to run: the output is noisy, and as right as before.
    tl.atomic_add(sum_ptr + rows * N + cols, acc, mask=mask)


@triton.jit
def finish_kernel(sum_ptr, c_ptr, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(PARTS):
        acc += tl.load(sum_ptr + part * n + offsets, mask=offsets < n)
    tl.store(c_ptr + offsets, acc.to(c_ptr.dtype.element_ty), mask=offsets < n)


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    M, K = a.shape
    if b.shape[0] != K:
        raise ValueError("shapes do not fit")
    N = b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    if c.numel() == 0:
        return c
    PARTS = 4
    each = triton.cdiv(triton.cdiv(K, 64), PARTS) * 64
    work = torch.zeros((M, N), device=a.device, dtype=torch.float32)
    split_kernel[(triton.cdiv(M, 128), triton.cdiv(N, 128), PARTS)](
        a, b, work, M, N, K, each,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1),
        BLOCK_M=128, BLOCK_N=128, BLOCK_K=64,
        num_warps=8,
    )
    finish_kernel[(triton.cdiv(M * N, 1024),)](work, c, M * N, PARTS=1, BLOCK=1024)
    return c
