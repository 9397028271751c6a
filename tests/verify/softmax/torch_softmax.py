# expect: refused: torch|fallback|no kernel|launch|work
# point: 11, 13

import torch


def softmax(x: torch.Tensor) -> torch.Tensor:
    # No kernel of its own: the library does the work.
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise ValueError("rows of single precision")
    return torch.softmax(x, dim=1).contiguous()
