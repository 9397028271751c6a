# expect: refused: torch|fallback|operator|launch|work|run|process|output
# point: 11, 13

import torch


@torch.compile(dynamic=True)
def compiled(x, w, b, residual):
    return (torch.nn.functional.gelu(x.float() * w + b) + residual).to(x.dtype)


def fused(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    # Somebody else's compiler does the work.
    n_rows, n_cols = x.shape
    if residual.shape != x.shape or w.shape != (n_cols,) or b.shape != (n_cols,):
        raise ValueError("shapes do not fit")
    return compiled(x, w, b, residual).contiguous()
