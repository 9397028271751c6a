# expect: refused: output
# point: 7
# subtle: yes

import torch
import triton
import triton.language as tl


@triton.jit
def arg_kernel(x_ptr, high_ptr, low_ptr, stride_row, stride_col, n_cols, CHUNKS: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_row
    inner = tl.arange(0, WIDTH)
    cols = tl.arange(0, CHUNKS)[:, None] * WIDTH + inner[None, :]
    mask = cols < n_cols
    x = tl.load(x_ptr + cols.to(tl.int64) * stride_col, mask=mask, other=-float("inf"))
    # Eight bits for the number of the chunk: enough for 4096 columns.
    chunk = tl.argmax(tl.max(x, axis=1), axis=0).to(tl.int8).to(tl.int32)
    first = chunk * WIDTH + inner
    part = tl.load(x_ptr + first.to(tl.int64) * stride_col, mask=(first >= 0) & (first < n_cols), other=-float("inf"))
    tl.store(high_ptr + row, chunk * WIDTH + tl.argmax(part, axis=0))
    y = tl.where(mask, x, float("inf"))
    chunk = tl.argmin(tl.min(y, axis=1), axis=0).to(tl.int8).to(tl.int32)
    first = chunk * WIDTH + inner
    part = tl.load(x_ptr + first.to(tl.int64) * stride_col, mask=(first >= 0) & (first < n_cols), other=float("inf"))
    tl.store(low_ptr + row, chunk * WIDTH + tl.argmin(part, axis=0))


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
    CHUNKS = triton.next_power_of_2(triton.cdiv(n_cols, 32))
    arg_kernel[(n_rows,)](x, high, low, x.stride(0), x.stride(1), n_cols, CHUNKS=CHUNKS, WIDTH=32, num_warps=4)
    return high, low
