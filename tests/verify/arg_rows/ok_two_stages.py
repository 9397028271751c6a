# expect: accepted
# point: 7, 8

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    x_ptr, most_ptr, high_ptr, least_ptr, low_ptr, stride_row, stride_col, n_cols, parts, BLOCK: tl.constexpr
):
    # The best of each part of a row.
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_row + cols.to(tl.int64) * stride_col, mask=mask, other=-float("inf"))
    most, high = tl.max(x, axis=0, return_indices=True)
    least, low = tl.min(tl.where(mask, x, float("inf")), axis=0, return_indices=True)
    place = row * parts + part
    tl.store(most_ptr + place, most)
    tl.store(high_ptr + place, part * BLOCK + high)
    tl.store(least_ptr + place, least)
    tl.store(low_ptr + place, part * BLOCK + low)


@triton.jit
def best_kernel(most_ptr, part_high_ptr, least_ptr, part_low_ptr, high_ptr, low_ptr, parts, PARTS: tl.constexpr):
    # The best of the parts; of equal ones the first.
    row = tl.program_id(0).to(tl.int64)
    numbers = tl.arange(0, PARTS)
    mask = numbers < parts
    most = tl.load(most_ptr + row * parts + numbers, mask=mask, other=-float("inf"))
    least = tl.load(least_ptr + row * parts + numbers, mask=mask, other=float("inf"))
    # With NaN the best part may be one that is not there.
    high = tl.minimum(tl.argmax(most, axis=0), parts - 1)
    low = tl.minimum(tl.argmin(least, axis=0), parts - 1)
    tl.store(high_ptr + row, tl.load(part_high_ptr + row * parts + high))
    tl.store(low_ptr + row, tl.load(part_low_ptr + row * parts + low))


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
    BLOCK = 1024
    parts = triton.cdiv(n_cols, BLOCK)
    most, least = (torch.empty((n_rows, parts), device=x.device, dtype=x.dtype) for _ in range(2))
    part_high, part_low = (torch.empty((n_rows, parts), device=x.device, dtype=torch.int32) for _ in range(2))
    part_kernel[(n_rows, parts)](
        x, most, part_high, least, part_low, x.stride(0), x.stride(1), n_cols, parts, BLOCK=BLOCK, num_warps=4
    )
    PARTS = max(2, triton.next_power_of_2(parts))
    best_kernel[(n_rows,)](most, part_high, least, part_low, high, low, parts, PARTS=PARTS, num_warps=1)
    return high, low
