"""Rotary position embedding of queries and keys: the two halves of each head are turned against each other."""

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=apply_rotary q=bf16[4,4096,32,128] k=bf16[4,4096,32,128] cos=f32[4096,64] sin=f32[4096,64]


@triton.jit
def rotary_kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr,
    seq_len, n_heads,
    HALF_DIM: tl.constexpr,
):
    # One program per token and head.
    pid = tl.program_id(0)
    position = (pid // n_heads) % seq_len
    offs = tl.arange(0, HALF_DIM)

    cos = tl.load(cos_ptr + position * HALF_DIM + offs)
    sin = tl.load(sin_ptr + position * HALF_DIM + offs)
    base = pid * 2 * HALF_DIM
    x1 = tl.load(x_ptr + base + offs).to(tl.float32)
    x2 = tl.load(x_ptr + base + HALF_DIM + offs).to(tl.float32)

    dtype = out_ptr.dtype.element_ty
    tl.store(out_ptr + base + offs, (x1 * cos - x2 * sin).to(dtype))
    tl.store(out_ptr + base + HALF_DIM + offs, (x2 * cos + x1 * sin).to(dtype))


def _rotate(x, cos, sin):
    batch, seq_len, n_heads, head_dim = x.shape
    x = x.contiguous()
    out = torch.empty_like(x)
    rotary_kernel[(batch * seq_len * n_heads,)](x, cos, sin, out, seq_len, n_heads, HALF_DIM=head_dim // 2)
    return out


def apply_rotary(q, k, cos, sin):
    """q and k are [batch, seq_len, heads, head_dim], cos and sin [seq_len, head_dim // 2]."""
    assert q.shape[-1] == k.shape[-1] == 2 * cos.shape[-1]
    cos, sin = cos.contiguous(), sin.contiguous()
    return _rotate(q, cos, sin), _rotate(k, cos, sin)


def reference(q, k, cos, sin):
    cos, sin = cos[None, :, None, :], sin[None, :, None, :]

    def rotate(x):
        x1, x2 = x.float().chunk(2, dim=-1)
        return torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1).to(x.dtype)

    return rotate(q), rotate(k)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch, seq_len, heads, head_dim = (4, 4096, 32, 128) if device == "cuda" else (2, 7, 3, 32)
    q, k = (torch.randn((batch, seq_len, heads, head_dim), device=device, dtype=torch.bfloat16) for _ in range(2))
    frequencies = 10000.0 ** (-torch.arange(0, head_dim, 2, device=device) / head_dim)
    angles = torch.arange(seq_len, device=device)[:, None] * frequencies[None, :]
    for ours, theirs in zip(apply_rotary(q, k, angles.cos(), angles.sin()), reference(q.float(), k.float(), angles.cos(), angles.sin())):
        error = ((ours - theirs).norm() / theirs.norm()).item()
        assert error < 1e-2, error
        print(f"rotary {tuple(q.shape)}: relative error {error:.1e}")
