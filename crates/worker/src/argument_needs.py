"""The parts of its arguments that a call needs: those that its results depend on.

A call that does not read a part of memory gives the same results whatever that part contains. So where another
content gives another result, every correct implementation has to read that part."""

import random

import torch

from _warpsmith_contents import core
from _warpsmith_poison import real

# Memory is read in sectors of this many bytes.
SECTOR = 32
# The least change that counts, as a share of the usual size of a result: far more than a comparison allows.
LEAST = 1 / 32
# New contents are this many times the greatest value.
FAR = 8.0
# The number of elements that are processed at once.
CHUNK = 1 << 24


def flat(tensor):
    """The distinct elements in the order of memory; None if there are gaps between them."""
    tensor = core(real(tensor.detach()))
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size != 1 and stride != expected:
            return None
        expected *= size
    return tensor.as_strided((tensor.numel(),), (1,), tensor.storage_offset())


def gather(value, found):
    """The tensors in a result."""
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, dict):
        gather(list(value.values()), found)
    elif isinstance(value, (list, tuple)):
        for item in value:
            gather(item, found)
    elif hasattr(value, "__dataclass_fields__"):
        gather([getattr(value, name) for name in value.__dataclass_fields__], found)


def is_float(tensor):
    return tensor.is_floating_point() and tensor.dtype.itemsize >= 2


def can_be_asked(tensor):
    """Whether a tensor can receive other contents. Integers may be indices, which allow only some values."""
    return is_float(real(tensor)) and tensor.numel() > 0 and flat(tensor) is not None


def sectors(tensor, count, seed):
    """Random parts of a tensor: the beginning and the end of each."""
    length = SECTOR // flat(tensor).dtype.itemsize
    total = flat(tensor).numel()
    starts = range(0, total, length)
    chosen = random.Random(seed).sample(starts, count) if len(starts) > count else list(starts)
    return [(start, min(start + length, total)) for start in chosen]


def others(tensor):
    """Contents for a part of a tensor that are far from the present ones."""
    whole = flat(tensor)
    top, low = 0.0, 0.0
    for start in range(0, whole.numel(), CHUNK):
        part = whole[start : start + CHUNK].double()
        part = part[part.isfinite()]
        if part.numel():
            top, low = max(top, float(part.abs().max())), min(low, float(part.min()))
    far = min(FAR * max(top, 1e-3), torch.finfo(whole.dtype).max / 8)
    return [far, -far] if low < 0 else [far]


def put(tensor, start, end, value):
    flat(tensor)[start:end] = value


def chunks(*tensors):
    flats = [real(tensor.detach()).reshape(-1) for tensor in tensors]
    for start in range(0, flats[0].numel(), CHUNK):
        yield [part[start : start + CHUNK] for part in flats]


class Snapshot:
    """The results of a call, and the arguments that it changed."""

    def __init__(self, results, arguments, given):
        self.results = [tensor.detach().clone() for tensor in results]
        self.scales = [scale_of(tensor) for tensor in self.results]
        # The arguments that the call changed.
        self.arguments = {
            at: tensor.detach().clone()
            for at, (tensor, before) in enumerate(zip(arguments, given))
            if differs_at_all(tensor, before)
        }
        self.argument_scales = {at: scale_of(tensor) for at, tensor in self.arguments.items()}
        self.written = [
            written(before, self.arguments[at]) if at in self.arguments else 0 for at, before in enumerate(given)
        ]

    def differs(self, results, arguments, which=None, part=None, value=None):
        """Whether another call gave other results. In the part of argument `which` that was set to `value`, only
        what the call has written counts."""
        if len(results) != len(self.results):
            return True
        for before, after, scale in zip(self.results, results, self.scales):
            if differs(before, after, scale):
                return True
        for at, before in self.arguments.items():
            after, scale = arguments[at], self.argument_scales[at]
            if at != which:
                if differs(before, after, scale):
                    return True
                continue
            before, after = flat(before), flat(after)
            start, end = part
            if differs(before[:start], after[:start], scale) or differs(before[end:], after[end:], scale):
                return True
            here = after[start:end]
            stays = torch.full_like(here, value)
            if bool((apart(before[start:end], here, scale) & apart(stays, here, scale)).any()):
                return True
        return False


def scale_of(tensor):
    if not is_float(real(tensor)):
        return 0.0
    squares = count = 0
    for (part,) in chunks(tensor):
        part = part.double()
        part = torch.where(part.isfinite(), part, 0.0)
        squares, count = squares + part.square().sum(), count + part.numel()
    return float((squares / max(count, 1)) ** 0.5) if count else 0.0


def apart(before, after, scale):
    """Where two tensors differ by more than any rounding."""
    if not is_float(before):
        # Some 8-bit types lack this comparison.
        narrow = before.dtype.itemsize == 1
        return before.view(torch.uint8) != after.view(torch.uint8) if narrow else before != after
    a, b = before.double(), after.double()
    return ((a - b).abs() > LEAST * scale) & a.isfinite() & b.isfinite() & (scale > 0.0)


def differs(before, after, scale):
    if before.shape != after.shape or before.dtype != after.dtype:
        return True
    return any(bool(apart(a, b, scale).any()) for a, b in chunks(before, after))


def differs_at_all(tensor, before):
    return any(bool((a.contiguous().view(torch.uint8) != b.contiguous().view(torch.uint8)).any()) for a, b in chunks(tensor, before))


def written(before, after):
    """The number of bytes that have changed, by more than rounding."""
    count = 0
    for a, b in chunks(before, after):
        if is_float(a):
            a, b = a.double(), b.double()
            changed = ((a - b).abs() > LEAST * (a.abs() + b.abs())) & a.isfinite() & b.isfinite()
        else:
            changed = apart(a, b, 0.0)
        count += int(changed.sum())
    return count * real(before).dtype.itemsize
