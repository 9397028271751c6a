"""Launches with other numbers of warps or other tile sizes than the program chose."""

import importlib

from _warpsmith_shim import patch

# Triton's own default, and the most that it takes.
WARPS, MOST_WARPS = 4, 32
# Smaller powers of two are rather counts than sizes of tiles.
LEAST_TILE = 16
TILE_NAMES = ("block", "tile", "chunk")


class LaunchVariant:
    """Within it, kernels are launched with their numbers of warps times `2 ** warps`, and their tile sizes times
    `2 ** tiles`."""

    def __init__(self, warps, tiles):
        self.warps, self.tiles = warps, tiles
        self.replaced = []

    def __enter__(self):
        for module, name in (("jit", "JITFunction"), ("interpreter", "InterpretedFunction")):
            try:
                cls = getattr(importlib.import_module(f"triton.runtime.{module}"), name)
            except ImportError:  # the interpreter needs numpy
                continue
            hook = lambda original, kernel, args, kwargs: launch(original, kernel, args, kwargs, self.warps, self.tiles)
            self.replaced.append((cls, patch(cls, "run", hook)))

    def __exit__(self, *_):
        for cls, original in reversed(self.replaced):
            cls.run = original
        self.replaced = []


def launch(original, kernel, args, kwargs, warps, tiles):
    kwargs = dict(kwargs)
    if warps:
        kwargs["num_warps"] = int(min(MOST_WARPS, max(1, (kwargs.get("num_warps") or WARPS) * 2.0**warps)))
    if tiles:
        args = list(args)
        read = _Read()
        if callable(kwargs.get("grid")):
            try:
                kwargs["grid"](read.over({**dict(zip(kernel.arg_names, args)), **kwargs}))
            except Exception:  # the launch itself reports what is wrong with its grid
                pass
        for at, name in enumerate(kernel.arg_names):
            where, key = (args, at) if at < len(args) else (kwargs, name)
            if (at < len(args) or name in kwargs) and _is_tile(kernel, name, where[key], read.names):
                where[key] = max(1, int(where[key] * 2.0**tiles))
    return original(kernel, *args, **kwargs)


class _Read(dict):
    """The arguments of a launch, which remember which of them a grid reads."""

    def over(self, arguments):
        self.update(arguments)
        self.names = set()
        return self

    names = frozenset()

    def __getitem__(self, name):
        self.names.add(name)
        return super().__getitem__(name)


def _is_tile(kernel, name, value, read):
    is_power = type(value) is int and value >= LEAST_TILE and value & (value - 1) == 0
    named = name in read or any(word in name.lower() for word in TILE_NAMES)
    return is_power and named and _is_constexpr(kernel, name)


def _is_constexpr(kernel, name):
    function = getattr(kernel, "fn", kernel)
    return "constexpr" in str(getattr(function, "__annotations__", {}).get(name, ""))
