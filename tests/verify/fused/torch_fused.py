# expect: refused: torch|fallback|no kernel|launch|work
# point: 11, 13

import torch


def fused(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    # No kernel of its own: the library does the work.
    n_rows, n_cols = x.shape
    if residual.shape != x.shape or w.shape != (n_cols,) or b.shape != (n_cols,):
        raise ValueError("shapes do not fit")
    return (torch.nn.functional.gelu(x.float() * w + b) + residual).to(x.dtype).contiguous()
