"""A linear layer on the few tokens of a decoding step: the weights are what is to be read."""

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=linear x=f16[32,8192] weight=f16[8192,8192]


@triton.jit
def linear_kernel(x_ptr, w_ptr, out_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)

    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        # the weight is [N, K], as in nn.Linear
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        acc += tl.dot(x, w)

    tl.store(out_ptr + m[:, None] * N + n[None, :], acc.to(out_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def linear(x, weight):
    x, weight = x.contiguous(), weight.contiguous()
    M, K = x.shape
    N = weight.shape[0]
    out = x.new_empty(M, N)
    BLOCK_M, BLOCK_N, BLOCK_K = 16, 128, 64
    grid = (triton.cdiv(N, BLOCK_N), triton.cdiv(M, BLOCK_M))
    linear_kernel[grid](x, weight, out, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K)
    return out


def reference(x, weight):
    return torch.nn.functional.linear(x, weight)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    M, N, K = (32, 8192, 8192) if device == "cuda" else (21, 150, 200)
    x = torch.randn((M, K), device=device, dtype=torch.float16)
    weight = torch.randn((N, K), device=device, dtype=torch.float16)
    expected = reference(x.float(), weight.float())
    error = ((linear(x, weight).float() - expected).norm() / expected.norm()).item()
    assert error < 1e-2, error
    print(f"linear {M}x{N}x{K}: relative error {error:.1e}")
