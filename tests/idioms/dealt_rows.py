"""Backward pass of RMS norm, whose rows a number of programs share."""
# skills: resident launch_options

import math

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=rms_norm_bwd dY=bf16[8192,4096] X=bf16[8192,4096] W=bf16[4096] RSTD=f32[8192]


@triton.jit
def _rms_norm_backward_kernel(
    dY_ptr,
    dY_row_stride,
    dX_ptr,
    dX_row_stride,
    X_ptr,
    X_row_stride,
    W_ptr,
    RSTD_ptr,
    dW_ptr,
    dW_row_stride,
    n_rows,
    n_cols,
    rows_per_program,
    BLOCK_SIZE: tl.constexpr,
):
    """
    dx = (1 / RMS) * [dy * w - (1 / N) * (1 / RMS^2) * ((dy * w) dot x) * x]
    dw = sum(dy * (x / RMS))
    """
    row_block_id = tl.program_id(0).to(tl.int64)
    row_start = row_block_id * rows_per_program
    row_end = min((row_block_id + 1) * rows_per_program, n_rows)
    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < n_cols

    dW_row = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    W_row = tl.load(W_ptr + col_offsets, mask=mask, other=0.0).to(tl.float32)

    for row_idx in range(row_start, row_end):
        dY_row = tl.load(dY_ptr + row_idx * dY_row_stride + col_offsets, mask=mask, other=0.0).to(tl.float32)
        X_row = tl.load(X_ptr + row_idx * X_row_stride + col_offsets, mask=mask, other=0.0).to(tl.float32)
        rstd_row = tl.load(RSTD_ptr + row_idx)

        m = dY_row * W_row
        dX_row = rstd_row * m
        dX_row += rstd_row * (-(1 / n_cols) * rstd_row * rstd_row * tl.sum(m * X_row, axis=0) * X_row)
        dW_row += dY_row * (X_row * rstd_row)

        tl.store(dX_ptr + row_idx * dX_row_stride + col_offsets, dX_row.to(dX_ptr.dtype.element_ty), mask=mask)

    tl.store(dW_ptr + row_block_id * dW_row_stride + col_offsets, dW_row, mask=mask)


NUM_PROGRAMS = 132


def rms_norm_bwd(dY, X, W, RSTD):
    shape = dY.shape
    dim = shape[-1]
    dY = dY.view(-1, dim)
    n_rows, n_cols = dY.shape

    _dW = torch.empty((NUM_PROGRAMS, n_cols), dtype=torch.float32, device=W.device)
    dX = torch.zeros_like(dY)
    rows_per_program = math.ceil(n_rows / NUM_PROGRAMS)

    _rms_norm_backward_kernel[(NUM_PROGRAMS,)](
        dY,
        dY.stride(0),
        dX,
        dX.stride(0),
        X,
        X.stride(0),
        W,
        RSTD,
        _dW,
        _dW.stride(0),
        n_rows,
        n_cols,
        rows_per_program,
        BLOCK_SIZE=triton.next_power_of_2(n_cols),
        num_warps=8,
    )
    dX = dX.view(*shape)
    dW = _dW.sum(dim=0).to(W.dtype)
    return dX, dW
