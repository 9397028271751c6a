"""x @ (weight * scale) with int8 weights and one scale for each output channel; the weights are widened tile by tile."""

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=int8_linear x=f16[512,4096] weight=i8[4096,12288]<32 scale=f16[12288]


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 32}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 32}, num_warps=4, num_stages=3),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def int8_linear_kernel(
    x_ptr, weight_ptr, scale_ptr, out_ptr,
    M, N, K,
    stride_xm, stride_xk, stride_wk, stride_wn, stride_om, stride_on,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BLOCK_N)
    pid_m, pid_n = pid // tiles_n, pid % tiles_n
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_m, mask_n = offs_m[:, None] < M, offs_n[None, :] < N

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, K, BLOCK_K):
        offs_k = k0 + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk, mask=mask_m & (offs_k[None, :] < K), other=0.0)
        w = tl.load(weight_ptr + offs_k[:, None] * stride_wk + offs_n[None, :] * stride_wn, mask=mask_n & (offs_k[:, None] < K), other=0)
        acc = tl.dot(x, w.to(x.dtype), acc)

    # The scale is the same for all k, so it can wait until the end.
    scale = tl.load(scale_ptr + offs_n, mask=offs_n < N, other=0.0).to(tl.float32)
    acc *= scale[None, :]
    out_ptrs = out_ptr + offs_m[:, None] * stride_om + offs_n[None, :] * stride_on
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=mask_m & mask_n)


def int8_linear(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    (M, K), N = x.shape, weight.shape[1]
    out = torch.empty((M, N), device=x.device, dtype=x.dtype)
    grid = lambda meta: (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)
    int8_linear_kernel[grid](
        x, weight, scale, out,
        M, N, K,
        x.stride(0), x.stride(1), weight.stride(0), weight.stride(1), out.stride(0), out.stride(1),
    )
    return out


def reference(x, weight, scale):
    return (x @ weight.to(x.dtype)) * scale


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    M, N, K = (512, 12288, 4096) if device == "cuda" else (40, 130, 100)
    if device == "cpu":
        # A processor cannot time the configurations.
        int8_linear_kernel.configs = int8_linear_kernel.configs[:1]
    x = torch.randn((M, K), device=device, dtype=torch.float16)
    weight = torch.randint(-127, 128, (K, N), device=device, dtype=torch.int8)
    scale = torch.rand(N, device=device, dtype=torch.float16) / 127
    expected = reference(x.float(), weight, scale.float())
    error = ((int8_linear(x, weight, scale).float() - expected).norm() / expected.norm()).item()
    assert error < 1e-2, error
    print(f"int8 linear {M}x{N}x{K}: relative error {error:.1e}")
