"""Layer norm over the last dimension, in three passes over each row.

    python examples/layer_norm.py
"""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride
    out_ptr += row * stride
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n_cols

    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        centred = tl.where(mask, x - mean, 0.0)
        squares += centred * centred
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / n_cols + eps)

    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=mask).to(tl.float32)
        y = (x - mean) * scale * w + b
        tl.store(out_ptr + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    n_rows, n_cols = x.shape
    layer_norm_kernel[(n_rows,)](x, weight, bias, out, x.stride(0), n_cols, eps, BLOCK=256, num_warps=4)
    return out


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = (8_192, 8_192) if device == "cuda" else (4, 700)
    dtype = torch.float16 if device == "cuda" else torch.float32
    x = torch.randn(shape, device=device, dtype=dtype)
    weight = torch.rand(shape[1], device=device, dtype=dtype)
    bias = torch.rand(shape[1], device=device, dtype=dtype)
    out = layer_norm(x, weight, bias)
    reference = torch.nn.functional.layer_norm(x.float(), shape[1:], weight.float(), bias.float(), 1e-5)
    error = (out.float() - reference).abs().max().item()
    assert error < 2e-2, error
    print(f"layer norm {tuple(shape)}: largest error {error:.1e}")
