"""The modules of the worker under the names that they have there."""

import importlib.util
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parents[2] / "crates/worker/src"


def load(name):
    full = f"_warpsmith_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, FOLDER / f"{name}.py")
        sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


poison = load("poison")
bits = load("bits")
inputs = load("inputs")
floats = load("floats")
load("plain_values")
compare = load("compare")
contents = load("contents")
argument_needs = load("argument_needs")
load("shim")
launch_variant = load("launch_variant")
