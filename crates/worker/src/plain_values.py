"""Comparison of plain values, such as numbers that a function returns."""

import struct

from _warpsmith_floats import ARITHMETIC, CREDIBLE, FACTOR, FEW, ULPS, difference


def plain_difference(one, other, against, moved):
    if one.meta[2] == other.meta[2]:
        return None
    wrong = difference(other.path, f"{other.meta[2]} instead of {one.meta[2]}", True)
    if one.meta[1] not in ("float", "builtins.float"):
        return wrong
    value, got = number(one), number(other)
    if value is None or got is None:
        return wrong
    if value == got or (value != value and got != got):
        return None
    errors = [abs(x - value) for x in (number(leaf) for leaf in [against, *moved] if leaf is not None) if x is not None]
    # A number that fits 32 bits was read from a 32-bit tensor.
    narrow = all(fits_single(x) for x in (value, got))
    allowed = ULPS[4] * (ARITHMETIC if narrow else 2.0**-52) * abs(value)
    likely = [error for error in errors if error <= CREDIBLE * abs(value)]
    allowed += FACTOR * (1 + FEW) * max(likely, default=0.0)
    error = abs(got - value)
    if error <= allowed:
        return None
    wrong["what"] += f" (allowed error {allowed:.3g})"
    wrong["excess"] = ratio(error, allowed)
    return wrong


def number(leaf):
    try:
        return float(leaf.meta[2])
    except ValueError:
        return None


def fits_single(value):
    try:
        return struct.unpack("f", struct.pack("f", value))[0] == value
    except OverflowError:
        return False


def ratio(error, allowed):
    """The error relative to the allowed one; `None` instead of infinity and NaN, which JSON cannot represent."""
    return error / allowed if 0 < allowed and error / allowed < 1e300 else None
