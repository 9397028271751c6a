# expect: accepted
# point: 7

import torch
import triton
import triton.language as tl


@triton.jit
def gather_kernel(
    table_ptr, idx_ptr, scale_ptr, out_ptr,
    n_table, n_rows, n_cols,
    stride_tm, stride_tn, stride_idx, stride_scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # Tiles of eight rows.
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    index = tl.load(idx_ptr + rows * stride_idx, mask=rows < n_rows, other=-1).to(tl.int64)
    scale = tl.load(scale_ptr + rows * stride_scale, mask=rows < n_rows, other=0.0)
    known = ((index >= 0) & (index < n_table))[:, None]
    x = tl.load(table_ptr + index[:, None] * stride_tm + cols * stride_tn, mask=known & (cols < n_cols), other=0.0)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)
    tl.store(out_ptr + rows[:, None] * n_cols + cols, x * scale[:, None], mask=mask)


def gather_rows(table: torch.Tensor, idx: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    if table.dtype != scale.dtype or table.dtype not in (torch.float32, torch.float64):
        raise ValueError("a table of single precision")
    n_table, n_cols = table.shape
    (n_rows,) = idx.shape
    if scale.shape != (n_rows,) or idx.dtype not in (torch.int32, torch.int64):
        raise ValueError("shapes do not fit")
    out = torch.empty((n_rows, n_cols), device=table.device, dtype=table.dtype)
    if out.numel() == 0:
        return out
    gather_kernel[(triton.cdiv(n_rows, 8), triton.cdiv(n_cols, 256))](
        table, idx, scale, out,
        n_table, n_rows, n_cols,
        table.stride(0), table.stride(1), idx.stride(0), scale.stride(0),
        BLOCK_M=8, BLOCK_N=256,
        num_warps=4,
    )
    return out
