"""A product with int8 weights that are scaled in groups; the launch unpacks a dictionary of its numbers."""
# skills: product_tiles tile_sizes launch_options

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=w8a16_gemm x=f16[64,4096] qweight=i8[4096,4096] scales=f16[32,4096]


@triton.jit
def _dequant(q_ptrs, s_ptrs):
    q = tl.load(q_ptrs)
    s = tl.load(s_ptrs)
    return q.to(tl.float16) * s[None, :]


@triton.jit
def w8a16_gemm_kernel(
    x_ptr,
    qw_ptr,
    s_ptr,
    y_ptr,
    M,
    N: tl.constexpr,
    K: tl.constexpr,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)

    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)

    x_ptrs = x_ptr + rm[:, None] * K + rk[None, :]
    qw_ptrs = qw_ptr + rk[:, None] * N + rn[None, :]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = tl.load(x_ptrs, mask=rm[:, None] < M, other=0.0)
        # scales: [K // GROUP, N]
        w = _dequant(qw_ptrs, s_ptr + (k // GROUP) * N + rn)
        acc = tl.dot(x, w, acc)
        x_ptrs += BLOCK_K
        qw_ptrs += BLOCK_K * N

    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc.to(y_ptr.dtype.element_ty), mask=rm[:, None] < M)


def w8a16_gemm(x, qweight, scales, group_size=128):
    """x: [M, K] fp16, qweight: [K, N] int8, scales: [K // group_size, N] fp16"""
    M, K = x.shape
    N = qweight.shape[1]
    assert scales.shape[0] * group_size == K
    assert x.is_contiguous() and qweight.is_contiguous() and scales.is_contiguous()

    config = dict(BLOCK_M=32, BLOCK_N=64, BLOCK_K=64)
    assert group_size % config["BLOCK_K"] == 0 and N % config["BLOCK_N"] == 0

    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, config["BLOCK_M"]), N // config["BLOCK_N"])
    w8a16_gemm_kernel[grid](x, qweight, scales, y, M, N, K, group_size, **config)
    return y
