"""layer_norm(x + residual), as in a transformer that normalizes behind each layer: a kernel for the sum, and one for the norm."""

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=add_layer_norm x=f16[8192,4096] residual=f16[8192,4096] weight=f16[4096] bias=f16[4096] eps=1e-5


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    out_ptr += row * stride
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols

    x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centered = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centered * centered, axis=0) / n_cols
    normal = centered * tl.rsqrt(variance + eps)

    weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + cols, (normal * weight + bias).to(out_ptr.dtype.element_ty), mask=mask)


def add_layer_norm(x, residual, weight, bias, eps):
    x, residual = x.contiguous(), residual.contiguous()
    n_rows, n_cols = x.shape

    total = torch.empty_like(x)
    grid = lambda meta: (triton.cdiv(total.numel(), meta["BLOCK_SIZE"]),)
    add_kernel[grid](x, residual, total, total.numel(), BLOCK_SIZE=1024)

    out = torch.empty_like(total)
    layer_norm_kernel[(n_rows,)](
        total, weight, bias, out,
        total.stride(0), n_cols, eps,
        BLOCK=triton.next_power_of_2(n_cols),
        num_warps=8,
    )
    return out


def reference(x, residual, weight, bias, eps):
    return torch.nn.functional.layer_norm(x + residual, (x.shape[1],), weight, bias, eps)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = (8192, 4096) if device == "cuda" else (7, 300)
    x, residual = (torch.randn(shape, device=device, dtype=torch.float16) for _ in range(2))
    weight, bias = (torch.randn(shape[1], device=device, dtype=torch.float16) for _ in range(2))
    ours = add_layer_norm(x, residual, weight, bias, 1e-5).float()
    theirs = reference(x.float(), residual.float(), weight.float(), bias.float(), 1e-5)
    error = ((ours - theirs).norm() / theirs.norm()).item()
    assert error < 1e-2, error
    print(f"add and layer norm {shape}: relative error {error:.1e}")
