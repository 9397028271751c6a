# expect: refused: output|precision
# point: 9, 15
# subtle: yes

import math

import torch
import triton
import triton.language as tl


@triton.jit
def attend_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr,
    n_keys, dim, width, scale,
    stride_qm, stride_qd, stride_kn, stride_kd, stride_vn, stride_ve,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_E: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    ds = tl.arange(0, BLOCK_D).to(tl.int64)
    es = tl.arange(0, BLOCK_E).to(tl.int64)
    q = tl.load(q_ptr + row * stride_qm + ds * stride_qd, mask=ds < dim, other=0.0) * scale
    highest = tl.full((), -float("inf"), q_ptr.dtype.element_ty)
    total = tl.full((), 0.0, q_ptr.dtype.element_ty)
    acc = tl.zeros((BLOCK_E,), dtype=q_ptr.dtype.element_ty)
    for start in range(0, n_keys, BLOCK_N):
        ns = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        k_ptrs = k_ptr + ns[:, None] * stride_kn + ds[None, :] * stride_kd
        k = tl.load(k_ptrs, mask=(ns < n_keys)[:, None] & (ds < dim)[None, :], other=0.0)
        s = tl.where(ns < n_keys, tl.sum(q[None, :] * k, axis=1), -float("inf"))
        new_highest = tl.maximum(highest, tl.max(s, axis=0))
        finite = tl.where(new_highest == -float("inf"), 0.0, new_highest)
        alpha = tl.exp(highest - finite)
        # Single precision is given up in the weights.
        p = tl.exp(s - finite).to(tl.float16).to(acc.dtype)
        v_ptrs = v_ptr + ns[:, None] * stride_vn + es[None, :] * stride_ve
        v = tl.load(v_ptrs, mask=(ns < n_keys)[:, None] & (es < width)[None, :], other=0.0)
        total = total * alpha + tl.sum(p, axis=0)
        acc = acc * alpha + tl.sum(p[:, None] * v, axis=0)
        highest = new_highest
    tl.store(out_ptr + row * width + es, acc / total, mask=es < width)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    if q.dtype not in (torch.float32, torch.float64) or k.dtype != q.dtype or v.dtype != q.dtype:
        raise ValueError("three matrices of single precision")
    n_rows, dim = q.shape
    n_keys, width = v.shape
    if k.shape != (n_keys, dim):
        raise ValueError("shapes do not fit")
    out = torch.empty((n_rows, width), device=q.device, dtype=q.dtype)
    if out.numel() == 0:
        return out
    scale = 1.0 / math.sqrt(max(dim, 1))
    attend_kernel[(n_rows,)](
        q, k, v, out,
        n_keys, dim, width, scale,
        q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1),
        BLOCK_N=32, BLOCK_D=max(16, triton.next_power_of_2(dim)), BLOCK_E=max(16, triton.next_power_of_2(width)),
        num_warps=4,
    )
    return out
