"""Helpers that have to be written in Python: closures that bind as methods, and dispatch modes."""

import collections
import functools
import sys
import types


def patch(cls, name, hook):
    """Replaces a method by `hook(original, self, args, kwargs)`."""
    original = getattr(cls, name)

    @functools.wraps(original)
    def method(self, *args, **kwargs):
        return hook(original, self, args, kwargs)

    setattr(cls, name, method)
    return original


def launchers():
    """The classes whose `__call__` launches compiled kernels, as far as this Triton has them."""
    import importlib

    found = []
    for module, name in (("nvidia", "CudaLauncher"), ("amd", "HIPLauncher")):
        try:
            found.append(getattr(importlib.import_module(f"triton.backends.{module}.driver"), name))
        except Exception:  # a backend that is not installed, or not for this machine
            pass
    return found


def _is_compiling():
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "compiler") and torch.compiler.is_compiling()


def recorded(call, key):
    """A decorator that passes each call of a function to `call(key, function, args, kwargs)`."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            # Code that torch.compile traces must stay traceable.
            if _is_compiling():
                return function(*args, **kwargs)
            return call(key, function, args, kwargs)

        return wrapper

    return decorate


def watch_autograd(key_of, on_call, on_backward):
    """Passes each `apply` of an autograd function that has a key to `on_call`, and its `backward` to `on_backward`."""
    from torch.autograd import Function

    original = Function.apply.__func__
    keys = {}

    def start(cls):
        key = keys[cls] = key_of(cls)
        if key is not None and isinstance(cls.__dict__.get("backward"), staticmethod):
            backward = cls.__dict__["backward"].__func__

            @functools.wraps(backward)
            def wrapper(*args):
                return on_backward(backward, args)

            cls.backward = staticmethod(wrapper)
        return key

    def apply(cls, *args, **kwargs):
        key = keys[cls] if cls in keys else start(cls)
        if key is None or _is_compiling():
            return original(cls, *args, **kwargs)
        return on_call(key, functools.partial(original, cls), args, kwargs)

    Function.apply = classmethod(apply)


def nodes(result):
    """The autograd nodes of the tensors in a result."""
    if isinstance(result, (tuple, list)):
        return [node for item in result for node in nodes(item)]
    node = getattr(result, "grad_fn", None)
    return [] if node is None else [node]


def poison_mode(fill):
    """A dispatch mode that passes every tensor that torch allocates without writing it to `fill(tensor)`."""
    from torch.utils._python_dispatch import TorchDispatchMode

    unwritten = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}

    class Poison(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if func.overloadpacket.__name__ in unwritten:
                fill(out)
            return out

    return Poison()


def watch_mode(seen):
    """A dispatch mode that records the operators that are called, each with the size of the greatest tensor that it
    worked on."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    def most(values, found=0):
        for value in values:
            if isinstance(value, torch.Tensor):
                found = max(found, value.numel())
            elif isinstance(value, (list, tuple)):
                found = most(value, found)
        return found

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if not func.is_view:
                name = str(func.overloadpacket).replace(".", "::")
                seen[name] = max(seen.get(name, 0), most((*args, out)))
            return out

    return Watch()


def wanting(out, above=()):
    """The tensors among results that require a gradient, in an order that does not depend on the operations that
    made them."""
    import torch

    if isinstance(out, torch.Tensor):
        return [out] if out.requires_grad else []
    if any(out is one for one in above):
        return []
    if isinstance(out, (list, tuple, collections.deque)):
        items = out
    elif isinstance(out, (dict, types.SimpleNamespace)) or hasattr(type(out), "__dataclass_fields__"):
        named = out if isinstance(out, dict) else vars(out) if hasattr(out, "__dict__") else fields(out)
        items = [named[key] for key in sorted(named, key=str)]
    else:
        items = ()
    return [tensor for item in items for tensor in wanting(item, (*above, out))]


def fields(out):
    return {name: getattr(out, name) for name in out.__dataclass_fields__ if hasattr(out, name)}


def gradients_ahead(out, inputs):
    """Calls the functions that compute gradients, on tensors without contents."""
    import torch

    results = wanting(out)
    if results and inputs:
        torch.autograd.grad(results, inputs, [torch.empty_like(one) for one in results], allow_unused=True)


def gradients(out, inputs, device, seed, layout):
    """Gradients of the inputs for random gradients of the results that require one; equal for equal seeds."""
    import torch

    results = wanting(out)
    if not results or not inputs:
        return [None] * len(inputs)
    generator = torch.Generator(device)
    generator.manual_seed(seed & 0x7FFFFFFF)
    seeds = [
        torch.randn(result.shape, generator=generator, device=device).to(result.device, result.dtype)
        for result in results
    ]
    if layout == "transposed":
        # The gradients of the results have the memory layout of the arguments.
        seeds = [one.mT.contiguous().mT if one.ndim > 1 else one for one in seeds]
    found = torch.autograd.grad(results, inputs, seeds, allow_unused=True)
    return [None if gradient is None else gradient.detach() for gradient in found]


class FakePointer:
    """Replaces a tensor when a kernel is compiled and not launched."""

    def __init__(self, dtype, address):
        self.dtype = dtype
        self.address = address

    def data_ptr(self):
        return self.address
