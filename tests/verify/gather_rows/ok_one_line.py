# expect: accepted
# point: 7

import torch
import triton
import triton.language as tl


@triton.jit
def gather_kernel(
    table_ptr, idx_ptr, scale_ptr, out_ptr,
    n_table, n_cols, n,
    stride_tm, stride_tn, stride_idx, stride_scale,
    BLOCK: tl.constexpr,
):
    # The result as one line, whatever its shape.
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    row = offsets // n_cols
    col = offsets % n_cols
    index = tl.load(idx_ptr + row * stride_idx, mask=mask, other=-1).to(tl.int64)
    scale = tl.load(scale_ptr + row * stride_scale, mask=mask, other=0.0)
    known = mask & (index >= 0) & (index < n_table)
    x = tl.load(table_ptr + index * stride_tm + col * stride_tn, mask=known, other=0.0)
    tl.store(out_ptr + offsets, x * scale, mask=mask)


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
    gather_kernel[(triton.cdiv(out.numel(), 1024),)](
        table, idx, scale, out,
        n_table, n_cols, out.numel(),
        table.stride(0), table.stride(1), idx.stride(0), scale.stride(0),
        BLOCK=1024,
        num_warps=4,
    )
    return out
