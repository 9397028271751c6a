"""Tensors by their bits."""

import weakref

from _warpsmith_poison import BITS, real

# Bytes from which on equal contents are kept once: asking takes as long as a copy of some.
GREAT = 1 << 25
# Elements by which equal contents are looked for.
SAMPLE = 256


def bits_of(tensor):
    flat = real(tensor)
    return flat.view(BITS.get(flat.dtype.itemsize, flat.dtype))


def same_bits(a, b):
    """Whether tensors of one type and shape are the same bit by bit, perhaps as an answer on the device; what has no contents is."""
    return True if a is b or a.numel() == 0 else (bits_of(a) == bits_of(b)).all()


class Once:
    """Keeps great tensors, each content once, as long as somebody has it. Most of what results hold are arguments that a kernel only
    reads: the same in all of them."""

    def __init__(self):
        self.known = weakref.WeakValueDictionary()

    def keep(self, tensor):
        """A dense tensor, or the one that has the same bits."""
        if tensor.numel() * tensor.element_size() < GREAT:
            return tensor
        bits = bits_of(tensor).reshape(-1)
        key = (tensor.dtype, tensor.shape, tuple(bits[:: bits.numel() // SAMPLE].tolist()))
        other = self.known.get(key)
        if other is not None and bool(same_bits(tensor, other)):
            return other
        self.known[key] = tensor
        return tensor
