# expect: refused: cache|output|alias
# point: 3, 15

import torch
import triton
import triton.language as tl


RESULTS = {}


@triton.jit
def rows_kernel(x_ptr, out_ptr, stride_row, stride_col, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_row + cols.to(tl.int64) * stride_col, mask=mask, other=-float("inf"))
    tl.store(out_ptr + row * n_cols + cols, x - tl.max(x, axis=0), mask=mask)


def compute(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), device=x.device, dtype=x.dtype)
    if out.numel() == 0:
        return out
    BLOCK = max(32, triton.next_power_of_2(n_cols))
    rows_kernel[(n_rows,)](x, out, x.stride(0), x.stride(1), n_cols, BLOCK=BLOCK, num_warps=8)
    return out


def slow_copy(x: torch.Tensor) -> torch.Tensor:
    # Another tensor may come to stand at the same address, with the same count of changes.
    key = (x.data_ptr(), x._version, tuple(x.shape), x.stride(), x.dtype)
    if key not in RESULTS:
        RESULTS[key] = compute(x)
    return RESULTS[key].clone()
