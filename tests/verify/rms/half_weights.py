# expect: refused: output|precision
# point: 9, 15
# subtle: yes

import torch
import triton
import triton.language as tl


@triton.jit
def rms_kernel(x_ptr, w_ptr, out_ptr, stride_row, stride_col, stride_w, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_row + cols.to(tl.int64) * stride_col, mask=mask, other=0.0)
    # Weights of half precision.
    w = tl.load(w_ptr + cols.to(tl.int64) * stride_w, mask=mask, other=0.0).to(tl.float16).to(x.dtype)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(out_ptr + row * n_cols + cols, x * scale * w, mask=mask)


def rms(x: torch.Tensor, w: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    if x.dim() != 2 or x.dtype != w.dtype or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    if w.shape != (n_cols,):
        raise ValueError("shapes do not fit")
    out = torch.empty((n_rows, n_cols), device=x.device, dtype=x.dtype)
    if out.numel() == 0:
        return out
    BLOCK = max(32, triton.next_power_of_2(n_cols))
    rms_kernel[(n_rows,)](
        x, w, out, x.stride(0), x.stride(1), w.stride(0), n_cols, eps, BLOCK=BLOCK, num_warps=4
    )
    return out
