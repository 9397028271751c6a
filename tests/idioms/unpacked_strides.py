"""A product by block pointers, with strides that are unpacked and tile sizes behind them."""
# skills: tile_sizes product_tiles grouped_order persistent

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=product x=bf16[4096,4096] y=bf16[4096,4096]


@triton.jit
def product_kernel(x, y, out, M, N, K, xm, xk, yk, yn, om, on, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0)
    n = tl.program_id(1)
    xs = tl.make_block_ptr(x, shape=(M, K), strides=(xm, xk), offsets=(m * BM, 0), block_shape=(BM, BK), order=(1, 0))
    ys = tl.make_block_ptr(y, shape=(K, N), strides=(yk, yn), offsets=(0, n * BN), block_shape=(BK, BN), order=(1, 0))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        a = tl.load(xs, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(ys, boundary_check=(0, 1), padding_option="zero")
        acc += tl.dot(a, b)
        xs = tl.advance(xs, (0, BK))
        ys = tl.advance(ys, (BK, 0))
    outs = tl.make_block_ptr(out, shape=(M, N), strides=(om, on), offsets=(m * BM, n * BN), block_shape=(BM, BN), order=(1, 0))
    tl.store(outs, acc.to(tl.bfloat16), boundary_check=(0, 1))


def product(x, y):
    M, K = x.shape
    N = y.shape[1]
    out = torch.empty(M, N, device=x.device, dtype=x.dtype)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    product_kernel[grid](x, y, out, M, N, K, *x.stride(), *y.stride(), *out.stride(), 64, 64, 32)
    return out
