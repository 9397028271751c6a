# expect: refused: alias|shared|shares|returned
# point: 13

import torch
import triton
import triton.language as tl


@triton.jit
def rotary_kernel(
    q_ptr, cos_ptr, sin_ptr,
    stride_token, stride_head, stride_dim, stride_cos, stride_cos_dim, stride_sin, stride_sin_dim,
    n_heads, half,
    HEADS: tl.constexpr, HALF: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    dims = tl.arange(0, HALF)[None, :]
    cos = tl.load(cos_ptr + token * stride_cos + dims * stride_cos_dim, mask=dims < half)
    sin = tl.load(sin_ptr + token * stride_sin + dims * stride_sin_dim, mask=dims < half)
    for start in range(0, n_heads, HEADS):
        heads = start + tl.arange(0, HEADS)[:, None]
        mask = (heads < n_heads) & (dims < half)
        first = q_ptr + token * stride_token + heads * stride_head + dims * stride_dim
        second = first + half * stride_dim
        x = tl.load(first, mask=mask).to(cos.dtype)
        y = tl.load(second, mask=mask).to(cos.dtype)
        tl.store(first, (x * cos - y * sin).to(q_ptr.dtype.element_ty), mask=mask)
        tl.store(second, (y * cos + x * sin).to(q_ptr.dtype.element_ty), mask=mask)


def turn(q: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    n_tokens, n_heads, dim = q.shape
    half = dim // 2
    if dim % 2 or cos.shape != (n_tokens, half) or sin.shape != cos.shape or cos.dtype != sin.dtype:
        raise ValueError("shapes do not fit")
    if q.numel() == 0:
        return q
    rotary_kernel[(n_tokens,)](
        q, cos, sin,
        q.stride(0), q.stride(1), q.stride(2), cos.stride(0), cos.stride(1), sin.stride(0), sin.stride(1),
        n_heads, half,
        HEADS=8, HALF=triton.next_power_of_2(half),
        num_warps=4,
    )
    return q


def rotary_(q: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    # The argument is changed as it should be, what is returned is another tensor.
    return turn(q, cos, sin).clone()
