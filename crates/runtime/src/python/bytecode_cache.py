"""A cache for the bytecode of packages that Python caches nowhere else.

Container images often have no bytecode and disable writing it. Each process then compiles what it imports, and the
import of torch takes three times as long.
"""

import contextlib
import hashlib
import importlib.util
import os
import shutil
import sys


@contextlib.contextmanager
def kept(packages, folder):
    """Caches the bytecode of imports in this context under `folder`, if the first installed one of these packages has
    no bytecode cache of its own."""
    place, writes_none = lacking(packages, folder), sys.dont_write_bytecode
    if place:
        sys.pycache_prefix, sys.dont_write_bytecode = place, False
    try:
        yield place
    finally:
        if place:
            # Later imports may use the bytecode beside their files.
            sys.pycache_prefix, sys.dont_write_bytecode = None, writes_none


def lacking(packages, folder):
    """The folder for the bytecode; None if it is not needed or cannot be used safely."""
    origin = next((spec.origin for spec in map(importlib.util.find_spec, packages) if spec), None)
    if sys.pycache_prefix is not None or not (origin or "").endswith(".py"):
        return None
    package = os.path.dirname(origin)
    keeps = not sys.dont_write_bytecode and os.access(package, os.W_OK)
    if keeps or os.path.exists(importlib.util.cache_from_source(origin)):
        return None
    with contextlib.suppress(OSError):
        return made(os.path.dirname(package), folder)
    return None


def made(packages, folder):
    """Creates the folder for the installed versions of these packages and removes those of other versions. Python
    checks only the time and size of a source file, and all files of an image may have the same time."""
    own = os.path.join(folder, named([os.path.realpath(packages)]))
    place = os.path.join(own, named(sorted(name for name in os.listdir(packages) if name.endswith("-info"))))
    if not os.path.isdir(place):
        os.makedirs(place, mode=0o700, exist_ok=True)
        for other in os.listdir(own):
            if os.path.join(own, other) != place:
                shutil.rmtree(os.path.join(own, other), ignore_errors=True)
    # A folder that others can write to would let them choose the code that this process runs.
    found = [os.stat(one) for one in (os.path.dirname(folder), folder, own, place)]
    return place if all(one.st_uid == os.getuid() and not one.st_mode & 0o002 for one in found) else None


def named(texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def beside(script):
    """The bytecode folder beside the folder of an unpacked program."""
    return os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(script)))), "bytecode")
