"""Layer norm in passes whose loops count tiles, with the length of a row as a constant."""
# skills: tile_sizes single_tile rows_per_program persistent

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=layer_norm x=f16[16384,8192] weight=f16[8192] bias=f16[8192]


@triton.jit
def norm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, n: tl.constexpr, eps: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, tl.cdiv(n, BLOCK)):
        at = i * BLOCK + lanes
        total += tl.load(x_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    mean = tl.sum(total) / n
    square = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, tl.cdiv(n, BLOCK)):
        at = i * BLOCK + lanes
        off = tl.where(at < n, tl.load(x_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32) - mean, 0.0)
        square += off * off
    rstd = tl.rsqrt(tl.sum(square) / n + eps)
    for i in range(0, tl.cdiv(n, BLOCK)):
        at = i * BLOCK + lanes
        inside = at < n
        normal = (tl.load(x_ptr + row * n + at, mask=inside, other=0.0).to(tl.float32) - mean) * rstd
        y = normal * tl.load(w_ptr + at, mask=inside) + tl.load(b_ptr + at, mask=inside)
        tl.store(y_ptr + row * n + at, y, mask=inside)


def layer_norm(x, weight, bias, eps=1e-5):
    out = torch.empty_like(x)
    norm_kernel[(x.shape[0],)](x, weight, bias, out, x.shape[1], eps, BLOCK=1024)
    return out
