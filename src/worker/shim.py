"""The little that must be written in Python: closures that bind as methods, and a dispatch mode."""

import functools
import sys


def patch(cls, name, hook):
    """Replaces a method by `hook(original, self, args, kwargs)`."""
    original = getattr(cls, name)

    @functools.wraps(original)
    def method(self, *args, **kwargs):
        return hook(original, self, args, kwargs)

    setattr(cls, name, method)


def _is_compiling():
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "compiler") and torch.compiler.is_compiling()


def recorded(call, key):
    """A decorator that passes each call of a function to `call(key, function, args, kwargs)`."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            # What torch.compile traces must stay traceable.
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
    """The autograd nodes that made the tensors of a result."""
    if isinstance(result, (tuple, list)):
        return [node for item in result for node in nodes(item)]
    node = getattr(result, "grad_fn", None)
    return [] if node is None else [node]


def poison_mode(fill):
    """A mode under which `fill(tensor)` sees every tensor that torch allocates without writing it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    unwritten = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}

    class Poison(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if func.overloadpacket.__name__ in unwritten:
                fill(out)
            return out

    return Poison()


class FakePointer:
    """Stands for a tensor when a kernel is compiled and not launched."""

    def __init__(self, dtype, address):
        self.dtype = dtype
        self.address = address

    def data_ptr(self):
        return self.address
