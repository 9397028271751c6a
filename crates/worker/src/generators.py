"""The random number generators that are used by default: seeded before each call, examined after it."""

import hashlib
import random
import sys


def _generators():
    """Torch's default generators by name."""
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    # Empty until the device is in use.
    devices = torch.cuda.default_generators
    names = ["torch.cuda"] if len(devices) == 1 else [f"torch.cuda {at}" for at in range(len(devices))]
    return [("torch", torch.default_generator), *zip(names, devices)]


def seed(number):
    """Seeds all generators; this takes work on the host only."""
    for _, generator in _generators():
        generator.manual_seed(number)
    random.seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number % (1 << 32))


def states():
    """The state of each generator as a hash, by its name."""
    found = {name: _mark(bytes(generator.get_state().tolist())) for name, generator in _generators()}
    found["random"] = _mark(repr(random.getstate()).encode())
    if "numpy" in sys.modules:
        kind, keys, *rest = sys.modules["numpy"].random.get_state()
        found["numpy.random"] = _mark(keys.tobytes() + repr((kind, rest)).encode())
    return found


def drawn(before):
    """The generators from which numbers were drawn since they had the states `before`, with their present states."""
    return [(name, mark) for name, mark in states().items() if before.get(name, mark) != mark]


def _mark(state):
    return hashlib.blake2s(state, digest_size=8).hexdigest()
