"""Forward pass of attention over tiles of keys, causal or not.

q, k and v are [batch, heads, tokens, head_dim].
"""

import math

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=attention q=f16[2,32,4096,128] k=f16[2,32,4096,128] v=f16[2,32,4096,128] causal=True


@triton.jit
def attn_fwd_kernel(
    Q, K, V, O,
    stride_qb, stride_qh, stride_qm, stride_qd,
    stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    stride_ob, stride_oh, stride_om, stride_od,
    H, M, N, sm_scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr,
):
    start_m = tl.program_id(0) * BLOCK_M
    batch = tl.program_id(1) // H
    head = tl.program_id(1) % H
    Q += batch * stride_qb + head * stride_qh
    K += batch * stride_kb + head * stride_kh
    V += batch * stride_vb + head * stride_vh
    O += batch * stride_ob + head * stride_oh

    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD_DIM)
    q = tl.load(Q + offs_m[:, None] * stride_qm + offs_d[None, :] * stride_qd, mask=offs_m[:, None] < M, other=0.0)

    # running maximum, running sum and output of the online softmax
    m_i = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)

    end_n = tl.minimum(start_m + BLOCK_M, N) if CAUSAL else N
    for start_n in range(0, end_n, BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        k = tl.load(K + offs_n[:, None] * stride_kn + offs_d[None, :] * stride_kd, mask=offs_n[:, None] < N, other=0.0)
        qk = tl.dot(q, tl.trans(k)) * sm_scale
        qk = tl.where(offs_n[None, :] < N, qk, float("-inf"))
        if CAUSAL:
            qk = tl.where(offs_m[:, None] >= offs_n[None, :], qk, float("-inf"))

        m_new = tl.maximum(m_i, tl.max(qk, axis=1))
        p = tl.exp(qk - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        v = tl.load(V + offs_n[:, None] * stride_vn + offs_d[None, :] * stride_vd, mask=offs_n[:, None] < N, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        m_i = m_new

    acc = acc / l_i[:, None]
    out_ptrs = O + offs_m[:, None] * stride_om + offs_d[None, :] * stride_od
    tl.store(out_ptrs, acc.to(O.dtype.element_ty), mask=offs_m[:, None] < M)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False) -> torch.Tensor:
    B, H, M, D = q.shape
    N = k.shape[2]
    o = torch.empty_like(q)
    grid = lambda args: (triton.cdiv(M, args["BLOCK_M"]), B * H)
    attn_fwd_kernel[grid](
        q, k, v, o,
        *q.stride(), *k.stride(), *v.stride(), *o.stride(),
        H, M, N, 1 / math.sqrt(D),
        BLOCK_M=64, BLOCK_N=32, HEAD_DIM=D, CAUSAL=causal,
        num_warps=4, num_stages=2,
    )
    return o


def reference(q, k, v, causal=False):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = (2, 32, 4096, 128) if device == "cuda" else (2, 3, 90, 16)
    q, k, v = (torch.randn(shape, device=device, dtype=torch.float16) for _ in range(3))
    for causal in (False, True):
        out, expected = attention(q, k, v, causal), reference(q.float(), k.float(), v.float(), causal)
        error = (out.float() - expected).abs().max().item()
        assert error < 1e-2, error
        print(f"attention {shape} causal={causal}: largest error {error:.1e}")
