# expect: accepted
# point: 15

import dataclasses

import torch
import triton
import triton.language as tl

# The sizes of a tile, and nothing else, in an object.
@dataclasses.dataclass(frozen=True)
class Tile:
    rows: int = 2
    cols: int = 512
    warps: int = 4

    def grid(self, n_rows: int, n_cols: int) -> tuple[int, int]:
        return triton.cdiv(n_rows, self.rows), triton.cdiv(n_cols, self.cols)


TILE = Tile()


@triton.jit
def affine_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr,
    n_rows, n_cols,
    stride_xm, stride_xn, stride_w, stride_b,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    rows = (tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    cols = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask, other=0.0)
    w = tl.load(w_ptr + cols * stride_w, mask=cols < n_cols, other=0.0)
    b = tl.load(b_ptr + cols * stride_b, mask=cols < n_cols, other=0.0)
    tl.store(out_ptr + rows * n_cols + cols, x * w + b, mask=mask)


def affine(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if x.dtype not in (torch.float32, torch.float64) or w.dtype != x.dtype or b.dtype != x.dtype:
        raise ValueError("single precision throughout")
    n_rows, n_cols = x.shape
    if w.shape != (n_cols,) or b.shape != (n_cols,):
        raise ValueError("shapes do not fit")
    out = torch.empty((n_rows, n_cols), device=x.device, dtype=x.dtype)
    if out.numel() == 0:
        return out
    affine_kernel[TILE.grid(n_rows, n_cols)](
        x, w, b, out,
        n_rows, n_cols,
        x.stride(0), x.stride(1), w.stride(0), b.stride(0),
        BLOCK_M=TILE.rows, BLOCK_N=TILE.cols,
        num_warps=TILE.warps,
    )
    return out
