"""The little that must be written in Python: closures that bind as methods, and a dispatch mode."""

import functools


def patch(cls, name, hook):
    """Replaces a method by `hook(original, self, args, kwargs)`."""
    original = getattr(cls, name)

    @functools.wraps(original)
    def method(self, *args, **kwargs):
        return hook(original, self, args, kwargs)

    setattr(cls, name, method)


def recorded(call, key):
    """A decorator that passes each call of a function to `call(key, function, args, kwargs)`."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return call(key, function, args, kwargs)

        return wrapper

    return decorate


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
