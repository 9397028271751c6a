"""Mean and variance of each row, the variance from the distances to the mean; any strides."""

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=group_stats x=f32[8192,4096]


@triton.jit
def stats_kernel(x_ptr, mean_ptr, var_ptr, stride_row, stride_col, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_row + cols.to(tl.int64) * stride_col, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / n_cols
    d = tl.where(mask, x - mean, 0.0)
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, tl.sum(d * d, axis=0) / n_cols)


def group_stats(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    n_rows, n_cols = x.shape
    if n_cols == 0:
        raise ValueError("rows without elements")
    mean = torch.empty(n_rows, device=x.device, dtype=x.dtype)
    var = torch.empty(n_rows, device=x.device, dtype=x.dtype)
    if n_rows == 0:
        return mean, var
    BLOCK = max(32, triton.next_power_of_2(n_cols))
    stats_kernel[(n_rows,)](x, mean, var, x.stride(0), x.stride(1), n_cols, BLOCK=BLOCK, num_warps=4)
    return mean, var


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = (8192, 4096) if device == "cuda" else (8, 100)
    x = torch.randn(shape, device=device)
    mean, var = group_stats(x)
    wide = x.double()
    error = max((mean - wide.mean(1)).abs().max().item(), (var - wide.var(1, correction=0)).abs().max().item())
    assert error < 1e-5, error
    print(f"group_stats {tuple(shape)}: largest error {error:.1e}")
