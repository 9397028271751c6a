# expect: refused: output|run|illegal|cuda
# point: 7
# subtle: yes

import torch
import triton
import triton.language as tl


@triton.jit
def gather_kernel(
    table_ptr, idx_ptr, scale_ptr, out_ptr,
    n_table, n_cols,
    stride_tm, stride_tn, stride_idx, stride_scale,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    index = tl.load(idx_ptr + row * stride_idx).to(tl.int64)
    # The factors are taken to stand side by side.
    scale = tl.load(scale_ptr + row)
    known = (index >= 0) & (index < n_table)
    x = tl.load(table_ptr + index * stride_tm + cols * stride_tn, mask=known & (cols < n_cols), other=0.0)
    tl.store(out_ptr + row * n_cols + cols, x * scale, mask=cols < n_cols)


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
    gather_kernel[(n_rows,)](
        table, idx, scale, out,
        n_table, n_cols,
        table.stride(0), table.stride(1), idx.stride(0), scale.stride(0),
        BLOCK=max(32, triton.next_power_of_2(n_cols)),
        num_warps=4,
    )
    return out
