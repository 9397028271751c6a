# expect: accepted
# point: 7

import torch
import triton
import triton.language as tl


@triton.jit
def rms_kernel(
    x_ptr, w_ptr, out_ptr, stride_row, stride_col, stride_w, n_rows, n_cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    # Two rows share the weights.
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    x = tl.load(x_ptr + rows[:, None] * stride_row + cols[None, :].to(tl.int64) * stride_col, mask=mask, other=0.0)
    w = tl.load(w_ptr + cols.to(tl.int64) * stride_w, mask=cols < n_cols, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / n_cols + eps)
    tl.store(out_ptr + rows[:, None] * n_cols + cols[None, :], x * scale[:, None] * w[None, :], mask=mask)


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
    rms_kernel[(triton.cdiv(n_rows, 2),)](
        x, w, out, x.stride(0), x.stride(1), w.stride(0), n_rows, n_cols, eps, ROWS=2, BLOCK=BLOCK, num_warps=8
    )
    return out
