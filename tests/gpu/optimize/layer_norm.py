"""Layer norm over the last dimension: mean, variance, normalization, in a pass over the row each."""

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=layer_norm x=f16[16384,8192] weight=f16[8192] bias=f16[8192]


@triton.jit
def layer_norm_kernel(X, Y, W, B, stride, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    X += row * stride
    Y += row * stride
    # Mean
    mean = 0.0
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        a = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        mean += tl.sum(a, axis=0)
    mean = mean / N
    # Variance
    var = 0.0
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        a = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        a = tl.where(cols < N, a - mean, 0.0)
        var += tl.sum(a * a, axis=0)
    var = var / N
    rstd = 1 / tl.sqrt(var + eps)
    # Normalize, scale and shift
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        w = tl.load(W + cols, mask=mask).to(tl.float32)
        b = tl.load(B + cols, mask=mask).to(tl.float32)
        x = tl.load(X + cols, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * w + b
        tl.store(Y + cols, y.to(Y.dtype.element_ty), mask=mask)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5):
    x = x.contiguous()
    y = torch.empty_like(x)
    M, N = x.shape
    BLOCK_SIZE = 512
    layer_norm_kernel[(M,)](x, y, weight, bias, x.stride(0), N, eps, BLOCK_SIZE=BLOCK_SIZE, num_warps=4)
    return y


def reference(x, weight, bias, eps=1e-5):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = (16384, 8192) if device == "cuda" else (5, 1100)
    x = torch.randn(shape, device=device, dtype=torch.float16) * 2 + 1
    weight, bias = (torch.randn(shape[1], device=device, dtype=torch.float16) for _ in range(2))
    error = (layer_norm(x, weight, bias).float() - reference(x.float(), weight.float(), bias.float())).abs().max().item()
    assert error < 2e-2, error
    print(f"layer norm {shape}: largest error {error:.1e}")
