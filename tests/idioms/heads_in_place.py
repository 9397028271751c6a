"""Rotary embedding in place: a program for each head, strides that are unpacked."""
# skills: rows_per_program

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=apply_rotary q=f16[8,2048,32,128] cos=f16[2048,64] sin=f16[2048,64]


@triton.jit
def rotary_kernel(
    q_ptr,
    cos_ptr,
    sin_ptr,
    stride_qb, stride_qs, stride_qh, stride_qd,
    stride_cs, stride_cd,
    stride_ss, stride_sd,
    half_dim,
    BLOCK_D: tl.constexpr,
):
    # grid: (seq, heads, batch), one head vector per program
    pos = tl.program_id(0)
    head = tl.program_id(1)
    batch = tl.program_id(2)

    q_row = q_ptr + batch.to(tl.int64) * stride_qb + pos * stride_qs + head * stride_qh
    d = tl.arange(0, BLOCK_D)
    mask = d < half_dim

    c = tl.load(cos_ptr + pos * stride_cs + d * stride_cd, mask=mask, other=0.0).to(tl.float32)
    s = tl.load(sin_ptr + pos * stride_ss + d * stride_sd, mask=mask, other=0.0).to(tl.float32)
    x1 = tl.load(q_row + d * stride_qd, mask=mask, other=0.0).to(tl.float32)
    x2 = tl.load(q_row + (d + half_dim) * stride_qd, mask=mask, other=0.0).to(tl.float32)

    # rotate half (neox style)
    o1 = x1 * c - x2 * s
    o2 = x2 * c + x1 * s

    tl.store(q_row + d * stride_qd, o1.to(q_ptr.dtype.element_ty), mask=mask)
    tl.store(q_row + (d + half_dim) * stride_qd, o2.to(q_ptr.dtype.element_ty), mask=mask)


def apply_rotary(q, cos, sin):
    """q: [batch, seq, heads, dim]; rotated IN PLACE and returned."""
    batch, seq, heads, dim = q.shape
    assert cos.shape == sin.shape == (seq, dim // 2)
    rotary_kernel[(seq, heads, batch)](
        q, cos, sin,
        *q.stride(), *cos.stride(), *sin.stride(),
        dim // 2,
        BLOCK_D=triton.next_power_of_2(dim // 2),
        num_warps=1,
    )
    return q
