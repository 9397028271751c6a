# expect: refused: output|unwritten
# point: 2

import torch
import triton
import triton.language as tl


@triton.jit
def split_kernel(
    x_ptr, sum_ptr, stride_row, stride_col, n_rows, n_cols, each, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    part = tl.program_id(1).to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=x_ptr.dtype.element_ty)
    for start in range(part * each, tl.minimum((part + 1) * each, n_rows), BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        x_ptrs = x_ptr + rows[:, None] * stride_row + cols[None, :].to(tl.int64) * stride_col
        acc += tl.load(x_ptrs, mask=(rows < n_rows)[:, None] & (cols < n_cols)[None, :], other=0.0)
    # Every part adds to the same line; the order differs from run to run.
    tl.atomic_add(sum_ptr + cols, tl.sum(acc, axis=0), mask=cols < n_cols)


def column_sums(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    out = torch.empty(n_cols, device=x.device, dtype=x.dtype)
    if n_cols == 0:
        return out
    # What is added to was never set to zero.
    PARTS = 64
    each = triton.cdiv(triton.cdiv(n_rows, 32), PARTS) * 32
    split_kernel[(triton.cdiv(n_cols, 64), PARTS)](
        x, out, x.stride(0), x.stride(1), n_rows, n_cols, each, BLOCK_M=32, BLOCK_N=64, num_warps=4
    )
    return out
