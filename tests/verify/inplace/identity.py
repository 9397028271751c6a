# expect: refused: output|mutation|work|ghost
# point: 11

import torch


def rotary_(q: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    # Nothing is done.
    return q
