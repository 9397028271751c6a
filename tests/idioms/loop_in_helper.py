"""Attention whose loop over the keys is in a helper."""
# skills: tile_sizes product_tiles

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=attention q=f16[2,32,4096,128] k=f16[2,32,4096,128] v=f16[2,32,4096,128]


@triton.jit
def over_keys(acc, total, high, q, ks, vs, step, scale, keys, BN: tl.constexpr):
    for start in range(0, keys, BN):
        inside = start + tl.arange(0, BN) < keys
        k = tl.load(ks + start * step, mask=inside[:, None], other=0.0)
        s = tl.where(inside[None, :], tl.dot(q, tl.trans(k)) * scale, float("-inf"))
        new = tl.maximum(high, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(high - new)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(vs + start * step, mask=inside[:, None], other=0.0)
        acc = tl.dot(p.to(tl.float16), v, acc * shrink[:, None])
        high = new
    return acc, total


@triton.jit
def attention_kernel(Q, K, V, O, scale, head, step, N, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    at = tl.program_id(1).to(tl.int64) * head
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    keys = tl.arange(0, BN)
    columns = tl.arange(0, D)
    q = tl.load(Q + at + rows[:, None] * step + columns[None, :], mask=rows[:, None] < N, other=0.0)
    ks = K + at + keys[:, None] * step + columns[None, :]
    vs = V + at + keys[:, None] * step + columns[None, :]
    high = tl.full([BM], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    acc, total = over_keys(acc, total, high, q, ks, vs, step, scale * 1.44269504, N, BN)
    tl.store(O + at + rows[:, None] * step + columns[None, :], (acc / total[:, None]).to(tl.float16), mask=rows[:, None] < N)


def attention(q, k, v):
    B, H, N, D = q.shape
    out = torch.empty_like(q)
    grid = (triton.cdiv(N, 64), B * H)
    attention_kernel[grid](q, k, v, out, D**-0.5, q.stride(1), q.stride(2), N, BM=64, BN=64, D=D)
    return out
