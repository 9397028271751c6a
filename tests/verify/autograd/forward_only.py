# expect: refused: gradient|requires_grad|output|run|raised
# point: 16

import torch
import triton
import triton.language as tl


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
        # There is no way back.
        return y


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    if x.dim() != 2 or w.shape != x.shape[1:] or x.numel() == 0:
        raise ValueError("shapes do not fit")
    return RmsNorm.apply(x, w, eps)
