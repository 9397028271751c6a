# expect: accepted
# point: 9

import torch
import triton
import triton.language as tl


@triton.jit
def sums_kernel(
    x_ptr, out_ptr, stride_row, stride_col, n_rows, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=x_ptr.dtype.element_ty)
    for start in range(0, n_rows, BLOCK_M):
        rows = (start + tl.arange(0, BLOCK_M)).to(tl.int64)
        x_ptrs = x_ptr + rows[:, None] * stride_row + cols[None, :].to(tl.int64) * stride_col
        acc += tl.load(x_ptrs, mask=(rows < n_rows)[:, None] & (cols < n_cols)[None, :], other=0.0)
    tl.store(out_ptr + cols, tl.sum(acc, axis=0), mask=cols < n_cols)


def column_sums(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    out = torch.empty(n_cols, device=x.device, dtype=x.dtype)
    if n_cols == 0:
        return out
    # Taller tiles: other elements are added to each other first.
    sums_kernel[(triton.cdiv(n_cols, 16),)](
        x, out, x.stride(0), x.stride(1), n_rows, n_cols, BLOCK_M=256, BLOCK_N=16, num_warps=8
    )
    return out
