# expect: refused: torch|fallback|no kernel|launch|work
# point: 11, 13

import torch


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    # No kernel of its own: the library does the work.
    if x.dim() != 2 or w.shape != x.shape[1:] or x.numel() == 0:
        raise ValueError("shapes do not fit")
    return torch.nn.functional.rms_norm(x, w.shape, w, eps)
