# expect: accepted
# point: 9

import torch
import triton
import triton.language as tl


@triton.jit
def scatter_kernel(
    src_ptr, idx_ptr, out_ptr,
    n_rows, n_cols,
    stride_sm, stride_sn, stride_idx,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # Each program looks for all rows of one row of the result: nothing is shared, and the order is the same every time.
    target = tl.program_id(0).to(tl.int64)
    cols = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=src_ptr.dtype.element_ty)
    for start in range(0, n_rows, BLOCK_M):
        rows = (start + tl.arange(0, BLOCK_M)).to(tl.int64)
        index = tl.load(idx_ptr + rows * stride_idx, mask=rows < n_rows, other=-1).to(tl.int64)
        mask = (index == target)[:, None] & (cols < n_cols)[None, :]
        acc += tl.load(src_ptr + rows[:, None] * stride_sm + cols[None, :] * stride_sn, mask=mask, other=0.0)
    tl.store(out_ptr + target * n_cols + cols, tl.sum(acc, axis=0), mask=cols < n_cols)


def scatter_add(src: torch.Tensor, idx: torch.Tensor, n_out: int) -> torch.Tensor:
    if src.dtype not in (torch.float32, torch.float64) or idx.dtype not in (torch.int32, torch.int64) or n_out < 0:
        raise ValueError("rows of single precision")
    n_rows, n_cols = src.shape
    if idx.shape != (n_rows,):
        raise ValueError("shapes do not fit")
    out = torch.zeros((n_out, n_cols), device=src.device, dtype=src.dtype)
    if out.numel() == 0 or n_rows == 0:
        return out
    scatter_kernel[(n_out, triton.cdiv(n_cols, 128))](
        src, idx, out,
        n_rows, n_cols,
        src.stride(0), src.stride(1), idx.stride(0),
        BLOCK_M=64, BLOCK_N=128,
        num_warps=8,
    )
    return out
