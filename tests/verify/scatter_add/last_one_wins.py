# expect: refused: output
# point: 12

import torch
import triton
import triton.language as tl


@triton.jit
def scatter_kernel(
    src_ptr, idx_ptr, out_ptr,
    n_out, n_cols,
    stride_sm, stride_sn, stride_idx,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    index = tl.load(idx_ptr + row * stride_idx).to(tl.int64)
    mask = (index >= 0) & (index < n_out) & (cols < n_cols)
    x = tl.load(src_ptr + row * stride_sm + cols * stride_sn, mask=mask, other=0.0)
    # Of several rows with the same number one is kept.
    tl.store(out_ptr + index * n_cols + cols, x, mask=mask)


def scatter_add(src: torch.Tensor, idx: torch.Tensor, n_out: int) -> torch.Tensor:
    if src.dtype not in (torch.float32, torch.float64) or idx.dtype not in (torch.int32, torch.int64) or n_out < 0:
        raise ValueError("rows of single precision")
    n_rows, n_cols = src.shape
    if idx.shape != (n_rows,):
        raise ValueError("shapes do not fit")
    out = torch.zeros((n_out, n_cols), device=src.device, dtype=src.dtype)
    if out.numel() == 0 or n_rows == 0:
        return out
    scatter_kernel[(n_rows,)](
        src, idx, out,
        n_out, n_cols,
        src.stride(0), src.stride(1), idx.stride(0),
        BLOCK=max(32, triton.next_power_of_2(n_cols)),
        num_warps=4,
    )
    return out
