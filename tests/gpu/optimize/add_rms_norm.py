import torch
import triton
import triton.language as tl

# warpsmith: workload entry=add_rms_norm hidden=bf16[16384,4096] residual=bf16[16384,4096] weight=bf16[4096] eps=1e-6


@triton.jit
def add_rms_norm_kernel(
    hidden_ptr,
    residual_ptr,
    weight_ptr,
    out_ptr,
    new_residual_ptr,
    stride,
    n_cols,
    eps,
    BLOCK: tl.constexpr,
):
    """
    new_residual = hidden + residual
    out = new_residual / rms(new_residual) * weight
    """
    start = tl.program_id(0).to(tl.int64) * stride
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols

    h = tl.load(hidden_ptr + start + offs, mask=mask, other=0.0).to(tl.float32)
    r = tl.load(residual_ptr + start + offs, mask=mask, other=0.0).to(tl.float32)
    s = h + r
    tl.store(new_residual_ptr + start + offs, s.to(new_residual_ptr.dtype.element_ty), mask=mask)

    mean_square = tl.sum(s * s, axis=0) / n_cols
    inv_rms = tl.rsqrt(mean_square + eps)
    w = tl.load(weight_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + start + offs, (s * inv_rms * w).to(out_ptr.dtype.element_ty), mask=mask)


def add_rms_norm(
    hidden: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the normalized sum, and the sum itself, which is the next residual."""
    hidden = hidden.contiguous()
    residual = residual.contiguous()
    n_rows, n_cols = hidden.shape
    out = torch.empty_like(hidden)
    new_residual = torch.empty_like(residual)
    add_rms_norm_kernel[(n_rows,)](
        hidden, residual, weight, out, new_residual,
        hidden.stride(0), n_cols, eps,
        BLOCK=triton.next_power_of_2(n_cols),
        num_warps=4,
    )
    return out, new_residual


def reference(hidden, residual, weight, eps):
    total = hidden.float() + residual.float()
    normal = total * torch.rsqrt(total.square().mean(-1, keepdim=True) + eps)
    return (normal * weight.float()).to(hidden.dtype), total.to(residual.dtype)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = (16384, 4096) if device == "cuda" else (6, 700)
    hidden, residual = (torch.randn(shape, device=device, dtype=torch.bfloat16) for _ in range(2))
    weight = torch.randn(shape[1], device=device, dtype=torch.bfloat16)
    ours = add_rms_norm(hidden, residual, weight, 1e-6)
    theirs = reference(hidden.float(), residual.float(), weight.float(), 1e-6)
    for name, a, b in zip(("out", "residual"), ours, theirs):
        error = ((a - b).norm() / b.norm()).item()
        assert error < 1e-2, (name, error)
        print(f"add rms norm {shape}: relative error of {name} {error:.1e}")
