"""The pattern with which unwritten memory is filled, so that it can be recognized: no calculation produces this NaN
or number."""

import torch

BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

_FLOATS = {2: 0x7EDA, 4: 0x7FC0DEAD, 8: 0x7FF8C0DEDEADBEEF}
_INTEGERS = {1: -91, 2: -24157, 4: -1592913747, 8: -6841512450395832577}
# NaNs that conversions do not produce, where the type has several.
_SPECIAL = {
    "bfloat16": 0x7FDB,
    "float8_e4m3fn": -1,
    "float8_e4m3fnuz": -128,
    "float8_e5m2": 0x7D,
    "float8_e5m2fnuz": -128,
    "float8_e8m0fnu": -1,
}


def real(tensor):
    """Complex numbers as pairs of real ones."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def pattern(dtype):
    """The pattern for `dtype`, as an integer of its size; None for types in which no value is unusual."""
    name = str(dtype).removeprefix("torch.")
    if dtype is torch.bool or dtype.itemsize not in BITS:
        return None
    if name in _SPECIAL:
        return _SPECIAL[name]
    return (_FLOATS if dtype.is_floating_point else _INTEGERS)[dtype.itemsize]


def poison(tensor):
    """Fills a tensor of any type and layout with the pattern."""
    if tensor.layout is not torch.strided or tensor.device.type == "meta" or tensor.is_quantized:
        return
    flat = real(tensor.detach())
    bits = pattern(flat.dtype)
    if bits is None or flat.numel() == 0:
        return
    for dim, stride in enumerate(flat.stride()):
        if stride == 0:
            flat = flat.narrow(dim, 0, 1)
    flat.view(BITS[flat.dtype.itemsize]).fill_(bits)


def poisoned(tensor):
    """Where a tensor holds the pattern; None for types in which that would prove nothing."""
    flat = real(tensor)
    bits = pattern(flat.dtype)
    # With 16 bits and fewer, every value is an integer that a result may hold.
    if bits is None or not (flat.dtype.is_floating_point or flat.dtype.itemsize >= 4):
        return None
    return flat.view(BITS[flat.dtype.itemsize]) == bits
