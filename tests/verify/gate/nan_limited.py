# expect: refused: output
# point: 8
# subtle: yes

import torch
import triton
import triton.language as tl


@triton.jit
def gate_kernel(
    a_ptr, b_ptr, out_ptr,
    n_rows, n_cols,
    stride_am, stride_an, stride_bm, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    rows = (tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    cols = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    a = tl.load(a_ptr + rows * stride_am + cols * stride_an, mask=mask, other=0.0)
    b = tl.load(b_ptr + rows * stride_bm + cols * stride_bn, mask=mask, other=0.0)
    y = a * (1.0 / (1.0 + tl.exp(-b)))
    # Minimum and maximum as they are turn NaN into a limit.
    y = tl.maximum(tl.minimum(y, 1e6), -1e6)
    tl.store(out_ptr + rows * n_cols + cols, y, mask=mask)


def gate(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.dim() != 2 or b.shape != a.shape or a.dtype != b.dtype or a.dtype not in (torch.float32, torch.float64):
        raise ValueError("two matrices of single precision")
    n_rows, n_cols = a.shape
    out = torch.empty((n_rows, n_cols), device=a.device, dtype=a.dtype)
    if out.numel() == 0:
        return out
    gate_kernel[(triton.cdiv(n_rows, 4), triton.cdiv(n_cols, 256))](
        a, b, out,
        n_rows, n_cols,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1),
        BLOCK_M=4, BLOCK_N=256,
        num_warps=4,
    )
    return out
