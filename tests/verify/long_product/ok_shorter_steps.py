# expect: accepted
# point: 1

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=long_product a=f16[32,65536] b=f16[65536,32]

@triton.jit
def product_kernel(a_ptr, b_ptr, out_ptr, M, N, K, PART, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(part * PART, tl.minimum(part * PART + PART, K), BK):
        at = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + at[None, :], mask=(rows[:, None] < M) & (at[None, :] < K), other=0.0)
        b = tl.load(b_ptr + at[:, None] * N + columns[None, :], mask=(at[:, None] < K) & (columns[None, :] < N), other=0.0)
        total += tl.dot(a, b)
    out = out_ptr + part * M * N + rows[:, None] * N + columns[None, :]
    tl.store(out, total, mask=(rows[:, None] < M) & (columns[None, :] < N))

@triton.jit
def total_kernel(parts_ptr, out_ptr, size, parts, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(0, parts):
        total += tl.load(parts_ptr + part * size + at, mask=at < size, other=0.0)
    tl.store(out_ptr + at, total, mask=at < size)

def long_product(a, b):
    M, K = a.shape
    N = b.shape[1]
    parts = 1
    PART = triton.cdiv(triton.cdiv(K, parts), 32) * 32
    out = torch.empty((parts, M, N), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32), parts)
    product_kernel[grid](a, b, out, M, N, K, PART, BM=32, BN=32, BK=32)
    made = torch.empty((M, N), dtype=a.dtype, device=a.device)
    total_kernel[(triton.cdiv(M * N, 256),)](out, made, M * N, parts, BLOCK=256)
    return made
