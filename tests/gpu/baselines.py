#!/usr/bin/env python3
"""Times a file of `optimize/`, what a search made of it, and its `reference` in torch, eager and compiled. `optimize.py` starts it.

    baselines.py ORIGINAL [OPTIMIZED]

Prints a line of JSON as soon as all but the compiled reference is timed, and another one with that. All are called in turn, each
with a cold L2 cache. Without a GPU it runs as well, in Triton's interpreter; the times mean nothing then.
"""

import ast
import importlib.util
import json
import pathlib
import re
import statistics
import sys
import time

import torch
import triton

TYPES = {
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
}
MODE = "max-autotune-no-cudagraphs"
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
ROUNDS, SEEDS = (100, 2) if CUDA else (3, 2)
# Larger than any L2 cache; and cycles for which the device waits, so that what a call enqueues is there when it begins.
FLUSH = 256 << 20 if CUDA else 1
LEAD = 800_000
# An error that is rounding, whatever the original's is; and one that rounding does not make.
ROUNDING, TOO_MUCH = 1e-6, 2e-2


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call_of(text):
    """The function and the arguments of the first comment that describes a call."""
    body = re.search(r"^# warpsmith: workload (.*)$", text, re.MULTILINE)[1]
    pairs = dict(pair.split("=", 1) for pair in body.split())
    return pairs.pop("entry"), pairs


def argument(text):
    found = re.fullmatch(r"(\w+)\[([\d,]*)\](?:<(\d+))?", text)
    if not found:
        return ast.literal_eval(text)
    dtype, shape = TYPES[found[1]], [int(size) for size in found[2].split(",") if size]
    if dtype.is_floating_point:
        return torch.randn(shape, device=DEVICE, dtype=dtype)
    return torch.randint(0, int(found[3] or 2), shape, device=DEVICE, dtype=dtype)


def arguments(pairs, seed):
    torch.manual_seed(seed)
    return {name: argument(text) for name, text in pairs.items()}


def tensors(value):
    return [value] if torch.is_tensor(value) else [tensor for one in value for tensor in tensors(one)] if isinstance(value, (list, tuple)) else []


def form(results):
    return [[str(one.dtype), *one.shape] for one in tensors(results)]


def error(results, expected):
    """The largest relative error of a result; NaN stays."""
    def one(result, wanted):
        wanted = wanted.float()
        return ((result.float() - wanted).norm() / wanted.norm().clamp(min=1e-30)).item()

    each = [one(*pair) for pair in zip(tensors(results), tensors(expected), strict=True)]
    return float("nan") if any(value != value for value in each) else max(each)


def correctness(calls, reference, pairs):
    """The errors of the original and of the optimized one, as the reference in single precision has it."""
    errors, same_form = {name: 0.0 for name in calls}, True
    for seed in range(SEEDS):
        given = arguments(pairs, seed)
        wide = {name: value.float() if torch.is_tensor(value) and value.is_floating_point() else value for name, value in given.items()}
        expected, forms = reference(**wide), []
        for name, call in calls.items():
            results = call(**given)
            forms.append(form(results))
            value = error(results, expected)
            errors[name] = value if value != value else max(errors[name], value)
            del results
        same_form &= all(one == forms[0] for one in forms)
        del expected
    original = errors["original"]
    optimized = errors.get("optimized", original)
    return {"errors": errors, "correct": same_form and original < TOO_MUCH and optimized <= max(1.5 * original, ROUNDING)}


def timed(calls, given):
    """The times of each, in milliseconds, of rounds in which all are called, beginning with another one in each."""
    flush = torch.empty(FLUSH, dtype=torch.int8, device=DEVICE)
    names, times = list(calls), {name: [] for name in calls}
    for round_ in range(-max(ROUNDS // 5, 1), ROUNDS):
        first = round_ % len(names)
        events = []
        for name in names[first:] + names[:first]:
            if not CUDA:
                begun = time.perf_counter()
                calls[name](**given)
                times[name] += [1e3 * (time.perf_counter() - begun)] if round_ >= 0 else []
                continue
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(LEAD)
            flush.zero_()
            begin.record()
            calls[name](**given)
            end.record()
            events.append((name, begin, end))
        if CUDA:
            torch.cuda.synchronize()
        if round_ >= 0:
            for name, begin, end in events:
                times[name].append(begin.elapsed_time(end))
    return times


def figures(times):
    rows = {}
    for name, each in times.items():
        low, median, high = statistics.quantiles(each, n=4)
        rows[name] = {"median": median, "quartiles": [low, high], "n": len(each)}
    ratios = {name: statistics.median(map(lambda pair: pair[0] / pair[1], zip(times["original"], times[name]))) for name in times}
    return {"times": rows, "ratios": ratios}


def main():
    paths = [pathlib.Path(path) for path in sys.argv[1:]]
    entry, pairs = call_of(paths[0].read_text())
    modules = {name: load(path, name) for name, path in zip(("original", "optimized"), paths)}
    calls = {name: getattr(module, entry) for name, module in modules.items()}
    reference = modules["original"].reference
    given = arguments(pairs, SEEDS)
    moved = sum(one.numel() * one.element_size() for one in [*tensors(list(given.values())), *tensors(calls["original"](**given))])
    row = {
        "bytes": moved, **correctness(calls, reference, pairs),
        "device": torch.cuda.get_device_name() if CUDA else "none", "torch": torch.__version__, "triton": triton.__version__,
    }
    calls["eager"] = reference
    row |= figures(timed(calls, given))
    print(json.dumps(row), flush=True)
    begun = time.monotonic()
    compiled = torch.compile(reference, mode=MODE, dynamic=False)
    try:
        compiled(**given)
        row["compile_seconds"] = round(time.monotonic() - begun, 1)
        row |= figures(timed({**calls, "compiled": compiled}, given))
    except Exception as why:
        row["compile_error"] = f"{type(why).__name__}: {why}"[-1000:]
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
