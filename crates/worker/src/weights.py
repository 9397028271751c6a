"""Other weights for a model: equal ones for models whose weights have equal names and initial values."""

import hashlib

import torch

# By how much a weight moves, relative to itself; and relative to the others of its tensor, where these have both signs.
STEP = 1 / 16
# The greatest movement of weights that are all zero.
FROM_ZERO = 1 / 8


class Weights:
    """The learned state of a model: its float parameters, and the running statistics of its layers.

    Other buffers are taken for constants, such as masks and tables of positions."""

    def __init__(self, model, names):
        """`names` has another name for each of the model's weights; shared tensors have the same name."""
        learned = {name for name, _ in model.named_parameters(remove_duplicate=False)}
        self.all = []
        for name, tensor in model.state_dict().items():
            is_learned = name in learned or name.rpartition(".")[2].startswith("running_")
            if is_learned and tensor.is_floating_point() and tensor.dtype.itemsize >= 2:
                self.all.append((names[name], tensor, tensor.detach().clone(), _kind(tensor)))

    def set(self, seed):
        """Sets the weights for this seed in place, so that all references to them see the new values."""
        for name, tensor, base, kind in self.all:
            mark = hashlib.blake2s(f"{seed} {name}".encode(), digest_size=7).digest()
            generator = torch.Generator(base.device)
            generator.manual_seed(int.from_bytes(mark, "big"))
            tensor.copy_(_moved(base, kind, generator))


def _kind(tensor):
    """How the weights may be moved, and their size: weights of one sign keep it."""
    wide = tensor.double() if tensor.dtype is torch.float64 else tensor.float()
    wide = wide[wide.isfinite()]
    if wide.numel() == 0 or not bool(wide.any()):
        return "zero", 0.0
    has_both = bool((wide < 0).any()) and bool((wide > 0).any())
    return "both" if has_both else "one", float(wide.square().mean().sqrt())


def _moved(base, kind, generator):
    what, scale = kind

    def noise():
        return torch.rand(base.shape, generator=generator, device=base.device) * 2 - 1

    if what == "zero":
        return noise() * FROM_ZERO
    moved = base * (1 + STEP * noise())
    return moved + STEP * scale * noise() if what == "both" else moved
