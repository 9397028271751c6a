"""A product whose sizes are multiples of its tiles, which are constants of the file."""
# skills: product_tiles grouped_order persistent tile_sizes

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=gemm A=bf16[4096,4096] B=bf16[4096,4096]


TILE_M = 64
TILE_N = 64
TILE_K = 32


@triton.jit
def gemm_kernel(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # one program per output tile, row-major contiguous inputs, sizes are multiples of the tile
    bx = tl.program_id(0)
    by = tl.program_id(1)

    row = by * BM + tl.arange(0, BM)
    col = bx * BN + tl.arange(0, BN)

    acc = tl.zeros([BM, BN], dtype=tl.float32)
    for k0 in range(0, K, BK):
        kk = k0 + tl.arange(0, BK)
        a_tile = tl.load(A + row[:, None] * K + kk[None, :])
        b_tile = tl.load(B + kk[:, None] * N + col[None, :])
        acc += tl.dot(a_tile, b_tile)

    tl.store(C + row[:, None] * N + col[None, :], acc.to(C.dtype.element_ty))


def gemm(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    M, K = A.shape
    _, N = B.shape
    assert M % TILE_M == 0 and N % TILE_N == 0 and K % TILE_K == 0
    A, B = A.contiguous(), B.contiguous()
    C = torch.empty(M, N, dtype=A.dtype, device=A.device)
    grid = (N // TILE_N, M // TILE_M)
    gemm_kernel[grid](A, B, C, M, N, K, TILE_M, TILE_N, TILE_K, num_warps=4, num_stages=2)
    return C
