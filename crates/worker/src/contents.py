"""Contents of tensors: described when a call is recorded, generated when it is made again."""

import ctypes
import json
import math
import random

import torch

MOST_INTEGERS = 1 << 16
MOST_SORTED = 1 << 20
MOST_FLOATS = 64
SOME = 256


def core(tensor):
    """The distinct elements: dimensions of stride 0 count once."""
    for dim in range(tensor.dim()):
        if tensor.stride(dim) == 0 and tensor.size(dim) > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _text(value):
    return value if math.isfinite(value) else str(value)


def describe(tensor):
    """The contents as the protocol's `Data`, in JSON."""
    tensor = core(tensor.detach())
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj().contiguous())
    return json.dumps(_floats(tensor) if tensor.is_floating_point() else _integers(tensor))


def _integers(tensor):
    count = tensor.numel()
    if count == 0:
        return {"range": {"low": 0, "high": 0}}
    wide = tensor.long()
    if count <= MOST_INTEGERS:
        return {"integers": wide.flatten().tolist()}
    is_sorted = wide.dim() > 0 and bool((wide.diff(dim=-1) >= 0).all())
    if is_sorted and count <= MOST_SORTED:
        return {"integers": wide.flatten().tolist()}
    low, high = wide.min().item(), wide.max().item()
    zeros = (wide == 0).float().mean().item()
    return {"range": {"low": low, "high": high, "sorted": is_sorted, "zeros": zeros}}


def _floats(tensor):
    if tensor.numel() == 0:
        return {"normal": {"mean": 0.0, "std": 1.0, "low": -4.0, "high": 4.0}}
    wide = tensor if tensor.dtype == torch.float64 else tensor.float()
    if wide.numel() <= MOST_FLOATS:
        return {"floats": [_text(value) for value in wide.flatten().tolist()]}
    infinite = (wide == -math.inf).float().mean().item()
    finite = wide[wide.isfinite()]
    zeros = (finite == 0).float().mean().item() if finite.numel() else 0.0
    some = finite[finite != 0] if 0.01 <= zeros < 1.0 else finite
    if some.numel() == 0:
        some = wide.new_zeros(1)
    edges = finite if finite.numel() else some
    # The moments of huge elements overflow in their own type.
    mean, std = some.double().mean().item(), some.double().std(correction=0).item()
    low, high = edges.min().item(), edges.max().item()
    kind = _kind(wide, low, high, mean, std, some.numel()) if infinite == 0.0 else "general"
    if kind == "general" and zeros < 0.01:
        zeros = 0.0
    normal = {"mean": mean, "std": std, "low": low, "high": high, "zeros": zeros, "infinite": infinite, "kind": kind}
    return {"normal": normal}


def _kind(wide, low, high, mean, std, count):
    if low >= 0.0 and 0.0 < high <= 1.001 and wide.dim() > 0 and wide.size(-1) > 1:
        sums = wide.sum(-1)
        if bool(((sums - 1.0).abs() < 0.02).all()):
            return "one-hot" if bool(((wide == 0.0) | (wide == 1.0)).all()) else "probabilities"
    span = high - low
    if count >= SOME and span > 0.0 and abs(mean - (low + high) / 2) < 0.05 * span:
        if abs(std * math.sqrt(12.0) / span - 1.0) < 0.05:
            return "uniform"
    return "general"


def _generator_for(view, generators):
    return generators[view.device.type]


def generators(devices, seed):
    """A random number generator for each device, by the device's name."""
    found = {}
    for device in devices:
        found[device.split(":")[0]] = torch.Generator(device).manual_seed(seed)
    return found


def fill_normal(view, mean, std, low, high, zeros, infinite, kind, generators):
    """Fills with floats that are distributed like the recorded ones."""
    view = core(view)
    if view.numel() == 0:
        return
    if view.is_complex():
        parts = [view.real, view.imag]
        for part in parts:
            fill_normal(part, mean, std, low, high, zeros, infinite, kind, generators)
        return
    wide = torch.float64 if view.dtype == torch.float64 else torch.float32
    options = {"dtype": wide, "device": view.device, "generator": _generator_for(view, generators)}
    shape = tuple(view.shape)
    if kind == "uniform":
        made = torch.rand(shape, **options).mul_(high - low).add_(low)
    elif kind == "probabilities" and shape:
        made = torch.randn(shape, **options).softmax(-1)
    elif kind == "one-hot" and shape:
        at = torch.rand(shape, **options).argmax(-1, keepdim=True)
        made = torch.zeros(shape, dtype=wide, device=view.device).scatter_(-1, at, 1.0)
    else:
        limit = torch.finfo(wide).max
        made = torch.empty(shape, dtype=wide, device=view.device)
        made.normal_(mean, std, generator=options["generator"])
        made.clamp_(max(low, -limit), min(high, limit))
        if zeros > 0.0:
            made.masked_fill_(torch.rand(shape, **options) < zeros, 0.0)
    if infinite > 0.0:
        made.masked_fill_(torch.rand(shape, **options) < infinite, -math.inf)
    view.copy_(made)


def fill_range(view, low, high, is_sorted, zeros, generators):
    """Fills with integers between two bounds."""
    view = core(view)
    if view.numel() == 0:
        return
    options = {"device": view.device, "generator": _generator_for(view, generators)}
    shape = tuple(view.shape)
    made = torch.randint(low, min(high + 1, (1 << 63) - 1), shape, dtype=torch.int64, **options)
    expected = 1.0 / (high - low + 1) if low <= 0 <= high else 0.0
    if zeros > 2.0 * expected:
        made.masked_fill_(torch.rand(shape, **options) < zeros, 0)
    elif low == 0 and high == 1 and zeros > 0.0:
        made = (torch.rand(shape, **options) >= zeros).long()
    if is_sorted and shape:
        made = made.sort(-1).values
    view.copy_(made)


def fill_values(view, values):
    """Fills with these values, in the order of the elements."""
    view = core(view)
    if view.is_complex():
        made = torch.view_as_complex(torch.tensor(values, dtype=torch.float64).reshape(*view.shape, 2))
    else:
        made = torch.tensor(values, dtype=torch.float64 if view.is_floating_point() else torch.int64)
    view.copy_(made.reshape(view.shape))


def has_changed(tensor, copy):
    """Whether a tensor differs bitwise from a copy of its storage."""
    before = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    before.set_(copy.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())
    return not torch.equal(_bytes(tensor.detach()), _bytes(before))


def _bytes(tensor):
    return core(tensor).contiguous().flatten().view(torch.uint8)


def storage_bytes(tensor):
    """The storage of a tensor, as bytes."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.detach().untyped_storage())


def is_room_for(size, device):
    """Whether copies of this many bytes leave the program enough device memory."""
    if device.type != "cuda":
        return size <= 4 << 30
    free, _ = torch.cuda.mem_get_info(device)
    return size <= free // 2


GUARD = 64 << 10


def _canary(dtype, index):
    """A pattern of eight bytes for guards: NaN in a float type, and different for each storage, so that a copy from
    one guard into another is detected. Integers are small and negative: an index that is read from a guard leads
    into a guard."""
    mark = (index * 37 + 11) % 61 + 1
    size = dtype.itemsize
    if dtype.is_complex:
        size //= 2
    if dtype.is_floating_point or dtype.is_complex:
        element = {1: 0xFF - 0x80 * (index % 2), 2: 0x7E00 + mark, 4: 0x7FC00000 + mark, 8: (0x7FF8 << 48) + mark}[size]
        if dtype == torch.bfloat16:
            element = 0x7FC0 + mark
    else:
        element = (1 << 8 * size) - 1 - mark
    return int.from_bytes(element.to_bytes(size, "little") * (8 // size), "little", signed=True)


def guarded(size, device, dtype, index, unmarked=False):
    """Bytes with a guard on both sides. With `unmarked` the guards are zero, which detects nothing."""
    words = -(-size // 64) * 8
    whole = torch.full((GUARD // 8 * 2 + words,), 0 if unmarked else _canary(dtype, index), dtype=torch.int64, device=device)
    whole = whole.view(torch.uint8)
    whole[GUARD : GUARD + size] = 0
    return whole


def view(whole, dtype, shape, stride, offset):
    """A tensor over guarded bytes; `offset` counts elements after the front guard."""
    flat = whole.view(dtype)
    return flat.as_strided(shape, stride, GUARD // flat.element_size() + offset)


def _on_host(parts):
    """The bytes of several tensors on the host. They are fetched from the device together, since each wait also
    waits for other processes that use the device."""
    there = [part for part in parts if part.device.type != "cpu"]
    if there:
        gathered = torch.empty(sum(part.numel() for part in there), dtype=torch.uint8, device=there[0].device)
        pieces = gathered.split([part.numel() for part in there])
        for piece, part in zip(pieces, there):
            piece.copy_(part)
        fetched = iter(gathered.cpu().split([part.numel() for part in there]))
        parts = [part if part.device.type == "cpu" else next(fetched) for part in parts]
    return [ctypes.string_at(part.data_ptr(), part.numel()) for part in parts]


def overruns(storages):
    """The overruns of guarded bytes, given with their sizes, dtypes and indices: see `_overrun`."""
    guards = [part for whole, size, _, _ in storages for part in (whole[:GUARD], whole[GUARD + size :])]
    # Compared on the host, since loading each kind of kernel costs a process about 30 ms.
    bytes_ = _on_host(guards)
    given = zip(storages, bytes_[::2], bytes_[1::2])
    return [_overrun(front, back, *known) for (_, *known), front, back in given]


def _overrun(front, back, size, dtype, index):
    """How far after the end, or before the beginning (negative), of guarded bytes memory was written; 0 for no
    overrun."""
    pattern = _canary(dtype, index).to_bytes(8, "little", signed=True) * (GUARD // 8 + 16)
    # Whole elements count: some of their bytes may equal the guard's.
    if front != pattern[:GUARD]:
        first = next(at for at in range(GUARD) if front[at] != pattern[at])
        return (first - GUARD) // dtype.itemsize * dtype.itemsize
    expected = pattern[size % 8 :][: len(back)]
    if back != expected:
        last = max(at for at in range(len(back)) if back[at] != expected[at])
        return (last // dtype.itemsize + 1) * dtype.itemsize
    return 0


def refill(whole, other, size, which, seed):
    """Copies the bytes between the guards from another storage of the same layout: all of them, those in the middle
    third, or a few at random places."""
    first, last = 0, size
    # Whole elements, whatever the type.
    if which == "middle":
        first, last = size // 3 // 16 * 16, size - size // 3 // 16 * 16
    elif which == "few" and size > 16:
        first = random.Random(seed).randrange(size // 16) * 16
        last = first + 16
    whole[GUARD + first : GUARD + last].copy_(other[GUARD + first : GUARD + last])


def take_last(tensor, larger):
    """Copies the contents of a larger tensor: the last part of each dimension that is longer there."""
    tensor, larger = core(tensor.detach()), core(larger.detach())
    for dim, size in enumerate(tensor.shape):
        larger = larger.narrow(dim, larger.shape[dim] - size, size)
    tensor.copy_(larger)
