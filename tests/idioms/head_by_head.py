"""Rotary embedding with a program for each head, and a constant that says that it is one."""
# skills: rows_per_program persistent

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=rotate x=bf16[4,2048,32,128] cos=bf16[2048,128] sin=bf16[2048,128]


@triton.jit
def rotate_kernel(x_ptr, out_ptr, cos_ptr, sin_ptr, tokens, heads, D: tl.constexpr):
    token = tl.program_id(0)
    head = tl.program_id(1)
    half: tl.constexpr = D // 2
    at = tl.arange(0, half)
    start = (token * heads + head) * D
    position = (token % tokens) * D
    a = tl.load(x_ptr + start + at)
    b = tl.load(x_ptr + start + half + at)
    c = tl.load(cos_ptr + position + at)
    s = tl.load(sin_ptr + position + at)
    tl.store(out_ptr + start + at, a * c - b * s)
    tl.store(out_ptr + start + half + at, b * c + a * s)


def rotate(x, cos, sin):
    batch, tokens, heads, D = x.shape
    out = torch.empty_like(x)
    rotate_kernel[(batch * tokens, heads)](x, out, cos, sin, tokens, heads, D=D)
    return out
