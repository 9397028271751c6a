# expect: refused: output
# point: 10
# subtle: yes

import torch
import triton
import triton.language as tl


@triton.jit
def arg_kernel(x_ptr, high_ptr, low_ptr, stride_row, stride_col, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_row + cols.to(tl.int64) * stride_col, mask=mask, other=-float("inf"))
    # Which of equal elements is found is left open.
    tl.store(high_ptr + row, tl.argmax(x, axis=0, tie_break_left=False))
    tl.store(low_ptr + row, tl.argmin(tl.where(mask, x, float("inf")), axis=0, tie_break_left=False))


def arg_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    if n_cols == 0:
        raise ValueError("rows without elements")
    high = torch.empty(n_rows, device=x.device, dtype=torch.int64)
    low = torch.empty(n_rows, device=x.device, dtype=torch.int64)
    if n_rows == 0:
        return high, low
    BLOCK = max(32, triton.next_power_of_2(n_cols))
    arg_kernel[(n_rows,)](x, high, low, x.stride(0), x.stride(1), n_cols, BLOCK=BLOCK, num_warps=4)
    return high, low
