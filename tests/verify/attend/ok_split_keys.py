# expect: accepted
# point: 8, 9

import math

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, highest_ptr, total_ptr, acc_ptr,
    n_keys, each, dim, width, scale,
    stride_qm, stride_qd, stride_kn, stride_kd, stride_vn, stride_ve,
    PARTS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_E: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    ds = tl.arange(0, BLOCK_D).to(tl.int64)
    es = tl.arange(0, BLOCK_E).to(tl.int64)
    q = tl.load(q_ptr + row * stride_qm + ds * stride_qd, mask=ds < dim, other=0.0) * scale
    highest = tl.full((), -float("inf"), q_ptr.dtype.element_ty)
    total = tl.full((), 0.0, q_ptr.dtype.element_ty)
    acc = tl.zeros((BLOCK_E,), dtype=q_ptr.dtype.element_ty)
    for start in range(part * each, tl.minimum((part + 1) * each, n_keys), BLOCK_N):
        ns = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        k_ptrs = k_ptr + ns[:, None] * stride_kn + ds[None, :] * stride_kd
        k = tl.load(k_ptrs, mask=(ns < n_keys)[:, None] & (ds < dim)[None, :], other=0.0)
        s = tl.where(ns < n_keys, tl.sum(q[None, :] * k, axis=1), -float("inf"))
        new_highest = tl.maximum(highest, tl.max(s, axis=0))
        finite = tl.where(new_highest == -float("inf"), 0.0, new_highest)
        alpha = tl.exp(highest - finite)
        p = tl.exp(s - finite)
        v_ptrs = v_ptr + ns[:, None] * stride_vn + es[None, :] * stride_ve
        v = tl.load(v_ptrs, mask=(ns < n_keys)[:, None] & (es < width)[None, :], other=0.0)
        total = total * alpha + tl.sum(p, axis=0)
        acc = acc * alpha + tl.sum(p[:, None] * v, axis=0)
        highest = new_highest
    place = row * PARTS + part
    tl.store(highest_ptr + place, highest)
    tl.store(total_ptr + place, total)
    tl.store(acc_ptr + place * width + es, acc, mask=es < width)


@triton.jit
def combine_kernel(highest_ptr, total_ptr, acc_ptr, out_ptr, width, PARTS: tl.constexpr, BLOCK_E: tl.constexpr):
    # The parts are brought to their common largest score and added up.
    row = tl.program_id(0).to(tl.int64)
    es = tl.arange(0, BLOCK_E).to(tl.int64)
    places = row * PARTS + tl.arange(0, PARTS)
    highest = tl.load(highest_ptr + places)
    of_all = tl.max(highest, axis=0)
    weights = tl.exp(highest - tl.where(of_all == -float("inf"), 0.0, of_all))
    total = tl.sum(tl.load(total_ptr + places) * weights, axis=0)
    acc = tl.load(acc_ptr + places[:, None] * width + es[None, :], mask=(es < width)[None, :], other=0.0)
    tl.store(out_ptr + row * width + es, tl.sum(acc * weights[:, None], axis=0) / total, mask=es < width)


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
    PARTS = 4
    each = triton.cdiv(triton.cdiv(n_keys, 32), PARTS) * 32
    highest, total = (torch.empty((n_rows, PARTS), device=q.device, dtype=q.dtype) for _ in range(2))
    acc = torch.empty((n_rows, PARTS, width), device=q.device, dtype=q.dtype)
    BLOCK_D, BLOCK_E = max(16, triton.next_power_of_2(dim)), max(16, triton.next_power_of_2(width))
    part_kernel[(n_rows, PARTS)](
        q, k, v, highest, total, acc,
        n_keys, each, dim, width, scale,
        q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1),
        PARTS=PARTS, BLOCK_N=32, BLOCK_D=BLOCK_D, BLOCK_E=BLOCK_E,
        num_warps=4,
    )
    combine_kernel[(n_rows,)](highest, total, acc, out, width, PARTS=PARTS, BLOCK_E=BLOCK_E, num_warps=2)
    return out
