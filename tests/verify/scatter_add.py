"""Rows added to the rows of a result by their numbers; a number beyond the result adds nothing."""

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=scatter_add src=f32[32768,128] idx=i64[32768]<1000 n_out=1000


@triton.jit
def scatter_kernel(
    src_ptr, idx_ptr, out_ptr,
    n_out, n_cols,
    stride_sm, stride_sn, stride_idx,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    index = tl.load(idx_ptr + row * stride_idx).to(tl.int64)
    mask = (index >= 0) & (index < n_out) & (cols < n_cols)
    x = tl.load(src_ptr + row * stride_sm + cols * stride_sn, mask=mask, other=0.0)
    tl.atomic_add(out_ptr + index * n_cols + cols, x, mask=mask)


def scatter_add(src: torch.Tensor, idx: torch.Tensor, n_out: int) -> torch.Tensor:
    if src.dtype not in (torch.float32, torch.float64) or idx.dtype not in (torch.int32, torch.int64) or n_out < 0:
        raise ValueError("rows of single precision")
    n_rows, n_cols = src.shape
    if idx.shape != (n_rows,):
        raise ValueError("shapes do not fit")
    out = torch.zeros((n_out, n_cols), device=src.device, dtype=src.dtype)
    if out.numel() == 0 or n_rows == 0:
        return out
    scatter_kernel[(n_rows,)](
        src, idx, out,
        n_out, n_cols,
        src.stride(0), src.stride(1), idx.stride(0),
        BLOCK=max(32, triton.next_power_of_2(n_cols)),
        num_warps=4,
    )
    return out


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    n_rows, n_cols, n_out = (32768, 128, 1000) if device == "cuda" else (30, 20, 7)
    src = torch.randn((n_rows, n_cols), device=device)
    idx = torch.randint(0, n_out, (n_rows,), device=device)
    reference = torch.zeros((n_out, n_cols), device=device, dtype=torch.float64).index_add_(0, idx, src.double())
    error = (scatter_add(src, idx, n_out) - reference).abs().max().item()
    assert error < 1e-3, error
    print(f"scatter_add {(n_rows, n_cols, n_out)}: largest error {error:.1e}")
