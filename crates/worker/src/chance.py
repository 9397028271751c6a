"""The generators that code draws random numbers from without naming one: set before each call, looked at after it."""

import hashlib
import random
import sys


def _generators():
    """Those of torch: names and generators."""
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    # Empty until the device is in use.
    devices = torch.cuda.default_generators
    names = ["torch.cuda"] if len(devices) == 1 else [f"torch.cuda {at}" for at in range(len(devices))]
    return [("torch", torch.default_generator), *zip(names, devices)]


def seed(number):
    """Work of the host alone."""
    for _, generator in _generators():
        generator.manual_seed(number)
    random.seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number % (1 << 32))


def states():
    """A mark of what each of them will give next, by its name."""
    found = {name: _mark(bytes(generator.get_state().tolist())) for name, generator in _generators()}
    found["random"] = _mark(repr(random.getstate()).encode())
    if "numpy" in sys.modules:
        kind, keys, *rest = sys.modules["numpy"].random.get_state()
        found["numpy.random"] = _mark(keys.tobytes() + repr((kind, rest)).encode())
    return found


def drawn(before):
    """Of which of them numbers were drawn since their `states` were these, with their marks now."""
    return [(name, mark) for name, mark in states().items() if before.get(name, mark) != mark]


def _mark(state):
    return hashlib.blake2s(state, digest_size=8).hexdigest()
