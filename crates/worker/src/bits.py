"""Comparison of tensors by their bits."""

import weakref

from _warpsmith_poison import BITS, real

# The size in bytes above which equal contents are kept once: the comparison takes as long as a copy of some.
GREAT = 1 << 25
# The number of elements in the sample by which equal contents are looked up.
SAMPLE = 256


def bits_of(tensor):
    flat = real(tensor)
    return flat.view(BITS.get(flat.dtype.itemsize, flat.dtype))


def same_bits(a, b):
    """Whether tensors of one type and shape are bitwise equal, perhaps as a tensor on the device; tensors without
    elements are equal."""
    return True if a is b or a.numel() == 0 else (bits_of(a) == bits_of(b)).all()


class Once:
    """Keeps large tensors, with equal contents only once, as long as they are referenced. Most results are arguments
    that a kernel only reads, and these are equal in all runs."""

    def __init__(self):
        self.known = weakref.WeakValueDictionary()

    def keep(self, tensor):
        """A dense tensor, or a kept one with the same bits."""
        if tensor.numel() * tensor.element_size() < GREAT:
            return tensor
        bits = bits_of(tensor).reshape(-1)
        key = (tensor.dtype, tensor.shape, tuple(bits[:: bits.numel() // SAMPLE].tolist()))
        other = self.known.get(key)
        if other is not None and bool(same_bits(tensor, other)):
            return other
        self.known[key] = tensor
        return tensor
