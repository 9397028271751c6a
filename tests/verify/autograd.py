"""RMS norm as an autograd function, with a kernel for each direction."""

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=rms_norm x=f16[8192,4096] w=f16[4096] gradients=True

PROGRAMS = 256


@triton.jit
def forward_kernel(x_ptr, w_ptr, y_ptr, scale_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(scale_ptr.dtype.element_ty)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(x.dtype)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(scale_ptr + row, scale)
    tl.store(y_ptr + row * n_cols + cols, (x * scale * w).to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def backward_kernel(
    dy_ptr, x_ptr, w_ptr, scale_ptr, dx_ptr, dw_ptr,
    n_rows, n_cols, rows_each,
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(dw_ptr.dtype.element_ty)
    dw = tl.zeros((BLOCK,), dtype=dw_ptr.dtype.element_ty)
    for row in range(program * rows_each, tl.minimum((program + 1) * rows_each, n_rows)):
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(dw.dtype)
        dy = tl.load(dy_ptr + row * n_cols + cols, mask=mask, other=0.0).to(dw.dtype)
        scale = tl.load(scale_ptr + row)
        normal = x * scale
        dw += dy * normal
        mean = tl.sum(dy * w * normal, axis=0) / n_cols
        dx = (dy * w - normal * mean) * scale
        tl.store(dx_ptr + row * n_cols + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)
    tl.store(dw_ptr + program * n_cols + cols, dw, mask=mask)


class RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, eps):
        x, w = x.contiguous(), w.contiguous()
        n_rows, n_cols = x.shape
        y = torch.empty_like(x)
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        scale = torch.empty(n_rows, device=x.device, dtype=wide)
        BLOCK = triton.next_power_of_2(n_cols)
        forward_kernel[(n_rows,)](x, w, y, scale, n_cols, eps, BLOCK=BLOCK, num_warps=8)
        ctx.save_for_backward(x, w, scale)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, scale = ctx.saved_tensors
        dy = dy.contiguous()
        n_rows, n_cols = x.shape
        programs = min(PROGRAMS, n_rows)
        dx = torch.empty_like(x)
        dw = torch.empty((programs, n_cols), device=x.device, dtype=scale.dtype)
        rows_each = triton.cdiv(n_rows, programs)
        BLOCK = triton.next_power_of_2(n_cols)
        backward_kernel[(programs,)](
            dy, x, w, scale, dx, dw, n_rows, n_cols, rows_each, BLOCK=BLOCK, num_warps=8
        )
        return dx, dw.sum(0).to(w.dtype), None


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    if x.dim() != 2 or w.shape != x.shape[1:] or x.numel() == 0:
        raise ValueError("shapes do not fit")
    return RmsNorm.apply(x, w, eps)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = (8192, 4096) if device == "cuda" else (9, 100)
    x = torch.randn(shape, device=device, dtype=torch.float16, requires_grad=True)
    w = torch.randn(shape[1], device=device, dtype=torch.float16, requires_grad=True)
    y = rms_norm(x, w)
    dy = torch.randn_like(y)
    y.backward(dy)
    wide_x, wide_w = (t.detach().double().requires_grad_() for t in (x, w))
    reference = torch.nn.functional.rms_norm(wide_x, shape[1:], wide_w, 1e-6)
    reference.backward(dy.double())
    for name, ours, theirs in (("y", y, reference), ("dx", x.grad, wide_x.grad), ("dw", w.grad, wide_w.grad)):
        error = ((ours - theirs).norm() / theirs.norm()).item()
        assert error < 1e-3, (name, error)
        print(f"rms norm {tuple(shape)}: relative error of {name} {error:.1e}")
