"""relu(x + y + z), element by element."""

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=add_relu x=f32[67108864] y=f32[67108864] z=f32[67108864]

BLOCK_SIZE = 256


@triton.jit
def add_relu_kernel(x_ptr, y_ptr, z_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    z = tl.load(z_ptr + offsets, mask=mask)
    out = tl.maximum(x + y + z, 0.0)
    tl.store(out_ptr + offsets, out, mask=mask)


def add_relu(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    assert x.shape == y.shape == z.shape
    x, y, z = x.contiguous(), y.contiguous(), z.contiguous()
    out = torch.empty_like(x)
    n_elements = out.numel()
    add_relu_kernel[(triton.cdiv(n_elements, BLOCK_SIZE),)](x, y, z, out, n_elements, BLOCK_SIZE=BLOCK_SIZE)
    return out


def reference(x, y, z):
    return torch.relu(x + y + z)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    n = 67_108_864 if device == "cuda" else 5_001
    x, y, z = (torch.randn(n, device=device) for _ in range(3))
    error = (add_relu(x, y, z) - reference(x, y, z)).abs().max().item()
    assert error < 1e-6, error
    print(f"add relu {n}: largest error {error:.1e}")
