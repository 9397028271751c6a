# expect: accepted
# point: 15

import torch
import triton
import triton.language as tl

PROCESSORS = {}


@triton.jit
def affine_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr,
    n_rows, n_cols,
    stride_xm, stride_xn, stride_w, stride_b,
    BLOCK_N: tl.constexpr,
):
    cols = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols * stride_w, mask=mask, other=0.0)
    b = tl.load(b_ptr + cols * stride_b, mask=mask, other=0.0)
    # Each program goes on with further rows.
    for turn in range(0, tl.cdiv(n_rows, tl.num_programs(0))):
        row = tl.program_id(0).to(tl.int64) + turn * tl.num_programs(0)
        here = mask & (row < n_rows)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=here, other=0.0)
        tl.store(out_ptr + row * n_cols + cols, x * w + b, mask=here)


def processors(device: torch.device) -> int:
    # How many processors a device has does not change.
    if device.index not in PROCESSORS:
        PROCESSORS[device.index] = torch.cuda.get_device_properties(device).multi_processor_count
    return PROCESSORS[device.index]


def affine(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if x.dtype not in (torch.float32, torch.float64) or w.dtype != x.dtype or b.dtype != x.dtype:
        raise ValueError("single precision throughout")
    n_rows, n_cols = x.shape
    if w.shape != (n_cols,) or b.shape != (n_cols,):
        raise ValueError("shapes do not fit")
    out = torch.empty((n_rows, n_cols), device=x.device, dtype=x.dtype)
    if out.numel() == 0:
        return out
    affine_kernel[(min(n_rows, 8 * processors(x.device)), triton.cdiv(n_cols, 1024))](
        x, w, b, out,
        n_rows, n_cols,
        x.stride(0), x.stride(1), w.stride(0), b.stride(0),
        BLOCK_N=1024,
        num_warps=4,
    )
    return out
