# SwiGLU activation of a gated MLP: silu(gate) * up, row by row.

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=swiglu gate=bf16[16384,11008] up=bf16[16384,11008]


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, stride_gate, stride_up, stride_out, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK_SIZE)
    mask = col < n_cols
    # sigmoid needs single precision
    gate = tl.load(gate_ptr + row * stride_gate + col, mask=mask, other=0).to(tl.float32)
    up = tl.load(up_ptr + row * stride_up + col, mask=mask, other=0)
    out = silu(gate).to(up.dtype) * up
    tl.store(out_ptr + row * stride_out + col, out, mask=mask)


def swiglu(gate: torch.Tensor, up: torch.Tensor):
    n_rows, n_cols = gate.shape
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    swiglu_kernel[(n_rows,)](
        gate, up, out, gate.stride(0), up.stride(0), out.stride(0),
        n_cols=n_cols, BLOCK_SIZE=triton.next_power_of_2(n_cols), num_warps=8,
    )
    return out


def reference(gate, up):
    return torch.nn.functional.silu(gate) * up


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = (16384, 11008) if device == "cuda" else (4, 345)
    # Triton's interpreter does not multiply bf16.
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    gate = torch.randn(shape, device=device, dtype=dtype)
    up = torch.randn(shape, device=device, dtype=dtype)
    expected = reference(gate.float(), up.float())
    error = ((swiglu(gate, up) - expected).norm() / expected.norm()).item()
    assert error < 1e-2, error
    print(f"swiglu {shape}: relative error {error:.1e}")
