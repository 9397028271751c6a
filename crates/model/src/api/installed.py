"""Prints, as JSON, what the Triton of this interpreter really offers: the counterpart of a table of `config/api/`.

For the tests alone; the server never runs it.
"""

import importlib
import inspect
import json
import sys
import types

import triton
from triton.language import core
from triton.runtime.jit import JITFunction

INTERNAL = ("_builder", "_semantic", "_generator")


def kind(value):
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, core.dtype):
        return "dtype"
    if inspect.isclass(value):
        return "class"
    if isinstance(value, JITFunction):
        return "jit"
    if getattr(value, "__triton_builtin__", False):
        return "builtin"
    return "function" if callable(value) and not isinstance(value, core.constexpr) else "value"


def params(value):
    """Names of the parameters, and whether each has a default; null where Python does not tell."""
    try:
        signature = inspect.signature(value.fn if isinstance(value, JITFunction) else value)
    except (TypeError, ValueError):
        return None
    return [
        [p.name, p.default is not p.empty, p.kind is p.KEYWORD_ONLY]
        for p in signature.parameters.values()
        if p.name not in INTERNAL and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]


def tensor_members():
    """Methods and attributes of run-time values."""
    out = {name: {"kind": "value", "own": True, "params": None} for name in ("handle", "shape", "numel", "type", "dtype", "T")}
    for attribute in dir(core.tensor):
        value = inspect.getattr_static(core.tensor, attribute)
        if attribute.startswith("_") or attribute in out:
            continue
        is_jit = isinstance(value, JITFunction)
        is_value = isinstance(value, property) or not (callable(value) or is_jit)
        told = None if is_value else params(value)
        out[attribute] = {
            "kind": "value" if is_value else "jit" if is_jit else "builtin",
            "own": True,
            "params": told and told[1:],
        }
    return out


def described(name):
    if name == "triton.language.tensor":
        return tensor_members()
    module = importlib.import_module(name)
    out = {}
    for attribute in dir(module):
        value = getattr(module, attribute)
        own = (getattr(value, "__module__", None) or "").startswith("triton")
        out[attribute] = {"kind": kind(value), "own": own, "params": params(value) if own and callable(value) else None}
    return out


def options():
    """The names that each back end's options object has."""
    from triton.backends.compiler import GPUTarget
    from triton.backends.amd.compiler import HIPOptions
    from triton.backends.nvidia.compiler import CUDAOptions

    return sorted({*vars(CUDAOptions()), *vars(HIPOptions(arch="gfx942"))})


print(json.dumps({
    "version": triton.__version__,
    "modules": {name: described(name) for name in sys.argv[1:]},
    "launch_options": options(),
}))
