"""Softmax over many short rows, such as attention over a window."""

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=softmax x=f16[262144,256]


@triton.jit
def _softmax_kernel(out_ptr, in_ptr, in_row_stride, out_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    # one row per program, a row fits into one block
    row_idx = tl.program_id(0)
    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < n_cols

    row = tl.load(in_ptr + row_idx * in_row_stride + col_offsets, mask=mask, other=-float("inf")).to(tl.float32)
    row_minus_max = row - tl.max(row, axis=0)
    numerator = tl.exp(row_minus_max)
    denominator = tl.sum(numerator, axis=0)
    result = numerator / denominator
    tl.store(out_ptr + row_idx * out_row_stride + col_offsets, result.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    n_rows, n_cols = x.shape
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    out = torch.empty_like(x)
    _softmax_kernel[(n_rows,)](out, x, x.stride(0), out.stride(0), n_cols, BLOCK_SIZE=BLOCK_SIZE)
    return out


def reference(x):
    return torch.softmax(x, dim=-1)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = (262_144, 256) if device == "cuda" else (9, 200)
    x = torch.randn(shape, device=device, dtype=torch.float16)
    error = (softmax(x).float() - reference(x.float())).abs().max().item()
    assert error < 1e-3, error
    print(f"softmax {shape}: largest error {error:.1e}")
