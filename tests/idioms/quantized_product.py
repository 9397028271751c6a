"""Bytes that become half precision in a product, whose rows begin anew behind the last."""
# skills: tile_sizes product_tiles descriptors grouped_order

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=linear x=bf16[1024,4096] weight=i8[4096,4096] scale=bf16[4096]


@triton.jit
def linear_kernel(x_ptr, weight_ptr, scale_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    across = tl.cdiv(N, BN)
    m = pid // across
    n = pid % across
    rows = (m * BM + tl.arange(0, BM)) % M
    columns = (n * BN + tl.arange(0, BN)) % N
    depth = tl.arange(0, BK)
    xs = x_ptr + rows[:, None] * K + depth[None, :]
    ws = weight_ptr + columns[None, :] * K + depth[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(xs, mask=depth[None, :] < K - k, other=0.0)
        w = tl.load(ws, mask=depth[:, None] < K - k, other=0)
        acc += tl.dot(x, w.to(x.dtype))
        xs += BK
        ws += BK
    acc = acc * tl.load(scale_ptr + columns)[None, :]
    r = m * BM + tl.arange(0, BM)
    c = n * BN + tl.arange(0, BN)
    tl.store(out_ptr + r[:, None] * N + c[None, :], acc.to(tl.bfloat16), mask=(r[:, None] < M) & (c[None, :] < N))


def linear(x, weight, scale):
    M, K = x.shape
    N = weight.shape[0]
    out = torch.empty((M, N), device=x.device, dtype=torch.bfloat16)
    grid = lambda meta: (triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"]),)
    linear_kernel[grid](x, weight, scale, out, M, N, K, BM=64, BN=64, BK=32)
    return out
