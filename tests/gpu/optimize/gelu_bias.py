"""gelu(x + bias) in the tanh approximation. The bias has one element for each column."""

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=gelu_bias x=f16[8192,12288] bias=f16[12288]


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def gelu_bias_kernel(
    x_ptr, bias_ptr, y_ptr,
    M, N,
    stride_xm, stride_xn, stride_ym, stride_yn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rm[:, None] < M) & (rn[None, :] < N)

    x = tl.load(x_ptr + rm[:, None] * stride_xm + rn[None, :] * stride_xn, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + rn, mask=rn < N).to(tl.float32)
    h = x + bias[None, :]
    y = 0.5 * h * (1 + tanh(0.7978845608 * (h + 0.044715 * h * h * h)))
    tl.store(y_ptr + rm[:, None] * stride_ym + rn[None, :] * stride_yn, y.to(y_ptr.dtype.element_ty), mask=mask)


def gelu_bias(x, bias):
    M, N = x.shape
    y = torch.empty((M, N), device=x.device, dtype=x.dtype)
    grid = lambda meta: (triton.cdiv(M, meta["BLOCK_M"]), triton.cdiv(N, meta["BLOCK_N"]))
    gelu_bias_kernel[grid](
        x, bias, y,
        M, N,
        x.stride(0), x.stride(1), y.stride(0), y.stride(1),
        BLOCK_M=32, BLOCK_N=32,
    )
    return y


def reference(x, bias):
    return torch.nn.functional.gelu(x + bias, approximate="tanh")


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = (8192, 12288) if device == "cuda" else (37, 75)
    x = torch.randn(shape, device=device, dtype=torch.float16)
    bias = torch.randn(shape[1], device=device, dtype=torch.float16)
    error = (gelu_bias(x, bias).float() - reference(x.float(), bias.float())).abs().max().item()
    assert error < 1e-2, error
    print(f"gelu bias {shape}: largest error {error:.1e}")
