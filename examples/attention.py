"""Causal attention over tiles of keys, with an online softmax.

    python examples/attention.py
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr,
    stride_head, stride_row,
    n_rows, scale,
    HEAD_DIM: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    first_row = tl.program_id(0) * BLOCK_Q
    base = head * stride_head
    rows = first_row + tl.arange(0, BLOCK_Q)
    dims = tl.arange(0, HEAD_DIM)
    row_mask = rows[:, None] < n_rows
    q = tl.load(q_ptr + base + rows[:, None] * stride_row + dims[None, :], mask=row_mask, other=0.0)

    highest = tl.full((BLOCK_Q,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_Q,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_Q, HEAD_DIM), dtype=tl.float32)
    last = tl.minimum(first_row + BLOCK_Q, n_rows)
    for start in range(0, last, BLOCK_K):
        keys = start + tl.arange(0, BLOCK_K)
        key_mask = keys[:, None] < n_rows
        k = tl.load(k_ptr + base + keys[:, None] * stride_row + dims[None, :], mask=key_mask, other=0.0)
        v = tl.load(v_ptr + base + keys[:, None] * stride_row + dims[None, :], mask=key_mask, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(keys[None, :] <= rows[:, None], scores, -float("inf"))
        # Key 0 is visible to every row, so the maximum is finite from the first tile on.
        new_highest = tl.maximum(highest, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_highest[:, None])
        decay = tl.exp(highest - new_highest)
        total = total * decay + tl.sum(weights, axis=1)
        acc = acc * decay[:, None] + tl.dot(weights.to(v.dtype), v)
        highest = new_highest

    out = acc / total[:, None]
    offsets = base + rows[:, None] * stride_row + dims[None, :]
    tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=row_mask)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    heads, n_rows, head_dim = q.shape
    out = torch.empty_like(q)
    grid = lambda meta: (triton.cdiv(n_rows, meta["BLOCK_Q"]), heads)
    attention_kernel[grid](
        q, k, v, out,
        q.stride(0), q.stride(1),
        n_rows, head_dim**-0.5,
        HEAD_DIM=head_dim, BLOCK_Q=64, BLOCK_K=32,
        num_warps=4,
    )
    return out


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = (32, 4_096, 64) if device == "cuda" else (2, 100, 16)
    dtype = torch.float16 if device == "cuda" else torch.float32
    q, k, v = (torch.randn(shape, device=device, dtype=dtype) for _ in range(3))
    out = attention(q, k, v)
    reference = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
    error = (out.float() - reference).abs().max().item()
    assert error < 2e-2, error
    print(f"attention {tuple(shape)}: largest error {error:.1e}")
