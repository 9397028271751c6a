# expect: refused: output|stride|layout|work
# point: 11, 13

import torch


def softmax(x: torch.Tensor) -> torch.Tensor:
    # The mean of every softmax, as a view of one element.
    n_rows, n_cols = x.shape
    return torch.full((1, 1), 1.0 / max(n_cols, 1), device=x.device, dtype=x.dtype).expand(n_rows, n_cols)
