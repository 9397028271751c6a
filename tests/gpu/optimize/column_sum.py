"""Sum over the first dimension, for instance the gradient of a bias."""

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=column_sum x=f32[16384,4096]


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, n_rows, n_cols, stride_row, BLOCK_COLS: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    mask = cols < n_cols
    acc = tl.zeros((BLOCK_COLS,), dtype=tl.float32)
    for row in range(n_rows):
        acc += tl.load(x_ptr + row * stride_row + cols, mask=mask, other=0.0)
    tl.store(out_ptr + cols, acc, mask=mask)


def column_sum(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    n_rows, n_cols = x.shape
    out = torch.empty(n_cols, device=x.device, dtype=x.dtype)
    grid = lambda meta: (triton.cdiv(n_cols, meta["BLOCK_COLS"]),)
    column_sum_kernel[grid](x, out, n_rows, n_cols, x.stride(0), 32, num_warps=1)
    return out


def reference(x):
    return x.sum(dim=0)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = (16384, 4096) if device == "cuda" else (50, 300)
    x = torch.randn(shape, device=device)
    expected = reference(x.double())
    error = ((column_sum(x) - expected).norm() / expected.norm()).item()
    assert error < 1e-5, error
    print(f"column sum {shape}: relative error {error:.1e}")
