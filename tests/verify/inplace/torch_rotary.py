# expect: refused: torch|fallback|no kernel|launch|work
# point: 11, 13

import torch


def rotary_(q: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    # No kernel of its own: the library does the work.
    n_tokens, n_heads, dim = q.shape
    if dim % 2 or cos.shape != (n_tokens, dim // 2) or sin.shape != cos.shape:
        raise ValueError("shapes do not fit")
    x, y = q.float().chunk(2, dim=2)
    c, s = cos[:, None], sin[:, None]
    return q.copy_(torch.cat((x * c - y * s, y * c + x * s), dim=2))
