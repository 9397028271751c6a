"""Backward pass of RMS norm.

Each program takes some rows: it writes their dx, and its share of dw into a row of its own. A second kernel adds the shares.
"""

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=rms_norm_backward dy=bf16[8192,4096] x=bf16[8192,4096] w=bf16[4096]

ROWS_PER_PROGRAM = 16


@triton.jit
def rms_norm_bwd_kernel(
    dy_ptr, x_ptr, w_ptr, dx_ptr, partial_ptr,
    n_rows, n_cols, eps,
    ROWS_PER_PROGRAM: tl.constexpr, BLOCK_N: tl.constexpr,
):
    pid = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros([BLOCK_N], dtype=tl.float32)

    for i in range(ROWS_PER_PROGRAM):
        row = pid * ROWS_PER_PROGRAM + i
        row_mask = mask & (row < n_rows)
        x = tl.load(x_ptr + row * n_cols + cols, mask=row_mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * n_cols + cols, mask=row_mask, other=0.0).to(tl.float32)
        rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / n_cols + eps)
        x_hat = x * rstd
        wdy = w * dy
        c = tl.sum(x_hat * wdy, axis=0) / n_cols
        dx = (wdy - x_hat * c) * rstd
        tl.store(dx_ptr + row * n_cols + cols, dx.to(dx_ptr.dtype.element_ty), mask=row_mask)
        dw += dy * x_hat

    tl.store(partial_ptr + pid * n_cols + cols, dw, mask=mask)


@triton.jit
def sum_partials_kernel(partial_ptr, dw_ptr, n_partials, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for i in range(0, n_partials, BLOCK_M):
        rows = i + tl.arange(0, BLOCK_M)
        mask = (rows[:, None] < n_partials) & (cols[None, :] < n_cols)
        acc += tl.load(partial_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=0.0)
    tl.store(dw_ptr + cols, tl.sum(acc, axis=0).to(dw_ptr.dtype.element_ty), mask=cols < n_cols)


def rms_norm_backward(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, eps: float = 1e-6):
    dy, x = dy.contiguous(), x.contiguous()
    n_rows, n_cols = x.shape
    dx = torch.empty_like(x)
    dw = torch.empty_like(w)
    n_programs = triton.cdiv(n_rows, ROWS_PER_PROGRAM)
    partial = torch.empty((n_programs, n_cols), dtype=torch.float32, device=x.device)
    rms_norm_bwd_kernel[(n_programs,)](
        dy, x, w, dx, partial,
        n_rows, n_cols, eps,
        ROWS_PER_PROGRAM=ROWS_PER_PROGRAM, BLOCK_N=triton.next_power_of_2(n_cols),
        num_warps=4,
    )
    sum_partials_kernel[(triton.cdiv(n_cols, 128),)](partial, dw, n_programs, n_cols, BLOCK_M=32, BLOCK_N=128)
    return dx, dw


def reference(dy, x, w, eps=1e-6):
    wide_x, wide_dy = x.float(), dy.float()
    rstd = torch.rsqrt(wide_x.square().mean(-1, keepdim=True) + eps)
    x_hat = wide_x * rstd
    wdy = wide_dy * w.float()
    dx = (wdy - x_hat * (x_hat * wdy).mean(-1, keepdim=True)) * rstd
    return dx.to(x.dtype), (wide_dy * x_hat).sum(0).to(w.dtype)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = (8192, 4096) if device == "cuda" else (39, 300)
    dy, x = (torch.randn(shape, device=device, dtype=torch.bfloat16) for _ in range(2))
    w = torch.randn(shape[1], device=device, dtype=torch.bfloat16)
    wide_x, wide_w = x.float().requires_grad_(), w.float().requires_grad_()
    torch.nn.functional.rms_norm(wide_x, shape[1:], wide_w, 1e-6).backward(dy.float())
    for results in (rms_norm_backward(dy, x, w), reference(dy, x, w)):
        for name, ours, theirs in zip(("dx", "dw"), results, (wide_x.grad, wide_w.grad)):
            error = ((ours - theirs).norm() / theirs.norm()).item()
            assert error < 1e-2, (name, error)
    print(f"rms norm backward {shape}: dx and dw agree")
