"""The value that unwritten memory is filled with, so that it is known again: no calculation makes this NaN or number."""

import torch

BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

_FLOATS = {2: 0x7EDA, 4: 0x7FC0DEAD, 8: 0x7FF8C0DEDEADBEEF}
_INTEGERS = {1: -91, 2: -24157, 4: -1592913747, 8: -6841512450395832577}
# Other NaNs than a conversion makes, where the type has several.
_SPECIAL = {
    "bfloat16": 0x7FDB,
    "float8_e4m3fn": -1,
    "float8_e4m3fnuz": -128,
    "float8_e5m2": 0x7D,
    "float8_e5m2fnuz": -128,
    "float8_e8m0fnu": -1,
}


def real(tensor):
    """Complex numbers as pairs."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def pattern(dtype):
    """What `dtype` is filled with, as an integer of its size; None when nothing would be odd in it."""
    name = str(dtype).removeprefix("torch.")
    if dtype is torch.bool or dtype.itemsize not in BITS:
        return None
    if name in _SPECIAL:
        return _SPECIAL[name]
    return (_FLOATS if dtype.is_floating_point else _INTEGERS)[dtype.itemsize]


def poison(tensor):
    """Fills a tensor of any type and layout."""
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
    """Where a tensor holds the fill; None where that would say nothing."""
    flat = real(tensor)
    bits = pattern(flat.dtype)
    # Every value of 16 bits and fewer is an integer that a result may well hold.
    if bits is None or not (flat.dtype.is_floating_point or flat.dtype.itemsize >= 4):
        return None
    return flat.view(BITS[flat.dtype.itemsize]) == bits
