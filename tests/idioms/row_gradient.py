"""Backward pass of RMS norm, where each row adds to the gradient of the weight."""
# skills: rows_per_program persistent summed_atomics

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=backward dy=bf16[8192,4096] x=bf16[8192,4096] w=bf16[4096] rstd=f32[8192]


@triton.jit
def backward_kernel(dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dw_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    dy = tl.load(dy_ptr + row * stride + at, mask=inside, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * stride + at, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + at, mask=inside, other=0.0).to(tl.float32)
    rstd = tl.load(rstd_ptr + row).to(tl.float32)
    normal = x * rstd
    g = dy * w
    mean = tl.sum(normal * g, axis=0) / columns
    tl.store(dx_ptr + row * stride + at, (g - normal * mean) * rstd, mask=inside)
    tl.atomic_add(dw_ptr + at, dy * normal, mask=inside)


def backward(dy, x, w, rstd):
    dx = torch.empty_like(x)
    dw = torch.zeros(x.shape[1], device=x.device, dtype=torch.float32)
    BLOCK = triton.next_power_of_2(x.shape[1])
    backward_kernel[(x.shape[0],)](dy, x, w, rstd, dx, dw, x.stride(0), x.shape[1], BLOCK=BLOCK)
    return dx, dw.to(w.dtype)
