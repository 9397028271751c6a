"""What float inputs hold besides what was recorded."""

import torch


def apply(view, values, low, high, generator):
    """Fills a tensor with values of a kind."""
    if values == "zeros":
        view.zero_()
    elif values == "constant":
        view.fill_(high)


def jitter(flat, seed):
    """Moves floats by up to one unit in the last place."""
    generator = torch.Generator(flat.device).manual_seed(seed)
    wide = flat.double()
    factor = torch.rand(wide.shape, generator=generator, device=flat.device, dtype=torch.float64)
    wide.mul_(1.0 + (factor - 0.5) * 2.0 * torch.finfo(flat.dtype).eps)
    flat.copy_(wide)
