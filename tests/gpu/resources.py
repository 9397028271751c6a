#!/usr/bin/env python3
"""Compares what `warpsmith resources` tells with what a real GPU has.

    resources.py --out measured.json                             on a machine with a GPU, torch and Triton
    resources.py --measured measured.json --warpsmith BINARY     anywhere with Triton of the same release

With `--warpsmith` the first one compares at once. Kernels of `examples/` are launched with several sizes. Registers, local memory
and shared memory are those of the kernels that Triton has loaded; how many programs a multiprocessor holds is asked of the driver.
Ends with status 1 when a number is another.
"""

import argparse
import ctypes
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"

# File, kernel, and for each setting: compile-time parameters and options.
SETTINGS = [
    ("matmul.py", "matmul_kernel", [
        (dict(BLOCK_M=m, BLOCK_N=n, BLOCK_K=k, GROUP_M=8), dict(num_warps=warps, num_stages=stages))
        for m, n, k, warps, stages in [
            (64, 64, 32, 4, 3), (128, 128, 32, 4, 3), (128, 128, 64, 8, 3), (128, 256, 64, 8, 3), (256, 128, 64, 8, 4),
            (64, 256, 32, 4, 4), (128, 64, 64, 4, 2), (32, 32, 32, 1, 1), (16, 16, 16, 1, 3), (128, 256, 64, 8, 6),
        ]
    ]),
    ("attention.py", "attention_kernel", [
        (dict(HEAD_DIM=dim, BLOCK_Q=q, BLOCK_K=k), dict(num_warps=warps, num_stages=stages))
        for dim, q, k, warps, stages in [
            (64, 64, 32, 4, 3), (64, 128, 64, 4, 3), (64, 128, 64, 8, 2), (128, 128, 64, 8, 3), (128, 64, 128, 4, 2), (256, 128, 128, 8, 4),
        ]
    ]),
    ("layer_norm.py", "layer_norm_kernel", [
        (dict(BLOCK=block), dict(num_warps=warps, num_stages=3)) for block, warps in [(256, 4), (1024, 4), (4096, 8), (16384, 4)]
    ]),
    ("softmax.py", "softmax_kernel", [
        (dict(BLOCK=block), dict(num_warps=warps, num_stages=3)) for block, warps in [(1024, 1), (1024, 4), (16384, 8), (32768, 4)]
    ]),
    ("vector_add.py", "add_kernel", [
        (dict(BLOCK=block), dict(num_warps=warps, num_stages=3)) for block, warps in [(1024, 4), (512, 1), (8192, 32), (32768, 4)]
    ]),
]


def loaded(file):
    spec = importlib.util.spec_from_file_location("example_" + file[:-3], EXAMPLES / file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arguments(file, constants):
    """What an example's kernel is launched with at run time, on the GPU, and the grid."""
    import torch
    import triton

    def tensors(count, *shape, dtype):
        return [torch.randn(shape, device="cuda", dtype=dtype) for _ in range(count)]

    if file == "matmul.py":
        tiles = triton.cdiv(1024, constants["BLOCK_M"]) * triton.cdiv(1024, constants["BLOCK_N"])
        return (*tensors(3, 1024, 1024, dtype=torch.bfloat16), 1024, 1024, 1024, 1024, 1, 1024, 1, 1024, 1), (tiles,)
    if file == "attention.py":
        dim = constants["HEAD_DIM"]
        grid = (triton.cdiv(512, constants["BLOCK_Q"]), 4)
        return (*tensors(4, 4, 512, dim, dtype=torch.float16), 512 * dim, dim, 512, dim**-0.5), grid
    if file == "layer_norm.py":
        return (*tensors(4, 256, 1024, dtype=torch.float32), 1024, 1024, 1e-5), (256,)
    if file == "softmax.py":
        return (*tensors(2, 256, 1024, dtype=torch.float32), 1024, 1024, 1024), (256,)
    return (*tensors(3, 1 << 20, dtype=torch.float32), 1 << 20), (triton.cdiv(1 << 20, constants["BLOCK"]),)


def launched(file, name, settings):
    """Compiled kernels, each with its compile-time values and options; for those that do not fit, what Triton says."""
    import torch

    kernel = getattr(loaded(file), name)
    for constants, options in settings:
        values, grid = arguments(file, constants)
        try:
            compiled = kernel[grid](*values, **constants, **options)
        except Exception as error:
            compiled = str(error)
        torch.cuda.synchronize()
        yield compiled, options, constants


def signature(compiled):
    """The comment that says what a kernel was compiled for."""
    source = compiled.src
    names = source.fn.arg_names
    by_place = {place[0] if isinstance(place, tuple) else place: value for place, value in source.constants.items()}
    constants = {names[at] if isinstance(at, int) else at: value for at, value in by_place.items()}
    aligned = {names[place[0]] for place, attrs in source.attrs.items() if ["tt.divisibility", 16] in [list(it) for it in attrs]}
    words = []
    for name in names:
        if name in constants:
            words.append(f"{name}={constants[name]}")
            continue
        word = source.signature[name]
        words.append(f"{name}={word}" + (":16" if name in aligned and not word.startswith("*") else ""))
        if word.startswith("*") and name not in aligned:
            sys.exit(f"{name} is not aligned: no signature says that")
    return " ".join(words)


def programs(compiled):
    """How many programs a multiprocessor holds, as the driver says."""
    driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    status = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        ctypes.byref(count), ctypes.c_void_p(compiled.function), compiled.metadata.num_warps * 32,
        ctypes.c_size_t(compiled.metadata.shared))
    assert status == 0, f"the driver says {status}"
    return count.value


def measured():
    import torch
    import triton

    major, minor = torch.cuda.get_device_capability()
    rows = []
    for file, name, settings in SETTINGS:
        text = None
        for compiled, options, constants in launched(file, name, settings):
            row = {"file": file, "kernel": name, "constants": constants, "options": options}
            if isinstance(compiled, str):
                row |= {"error": compiled, "signature": text}
            else:
                compiled._init_handles()
                text = signature(compiled)
                row |= {"signature": text, "registers": compiled.n_regs, "spills": compiled.n_spills,
                        "shared": compiled.metadata.shared, "warps": compiled.metadata.num_warps, "programs": programs(compiled)}
            rows.append(row)
    return {"gpu": torch.cuda.get_device_name(), "target": f"cuda:{major}{minor}", "triton": triton.__version__, "rows": rows}


def told(row, target, warpsmith, python):
    """What Warpsmith tells of the same."""
    text = (EXAMPLES / row["file"]).read_text()
    words = [word for word in row["signature"].split() if word.split("=")[0] not in row["constants"]]
    config = f"triton.Config({row['constants']!r}, " + ", ".join(f"{key}={value}" for key, value in row["options"].items()) + ")"
    head = f"# warpsmith: signature {' '.join(words)}\n@triton.autotune([{config}], key=[])\n@triton.jit\ndef {row['kernel']}("
    text, count = re.subn(rf"@triton\.jit\ndef {row['kernel']}\(", lambda _: head, text)
    assert count == 1, row
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "warpsmith.toml").write_text(f"python = {json.dumps(python)}\n")
        (path / "kernel.py").write_text(text)
        command = [warpsmith, "resources", "kernel.py", "--kernel", row["kernel"], "--target", target, "--format", "json"]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    try:
        [ours] = json.loads(ran.stdout)
    except ValueError:
        sys.exit(f"{ran.stdout}\n{ran.stderr}\n{head}")
    return ours


def compare(measured, warpsmith, python):
    """Rows where something is another."""
    wrong = []
    for row in measured["rows"]:
        ours = row["warpsmith"] = told(row, measured["target"], warpsmith, python)
        if "error" in row:
            row["agrees"] = bool(ours["problem"])
        else:
            row["agrees"] = ours["problem"] is None and all(ours[key] == row[key] for key in ("registers", "shared", "warps", "programs"))
            # The driver tells local memory in words of 4 bytes: what is spilled and what else is there.
            row["agrees"] &= ours["stack"] is None or ours["stack"] == 4 * row["spills"]
        wrong += [] if row["agrees"] else [row]
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--measured", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--warpsmith")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    data = json.loads(options.measured.read_text()) if options.measured else measured()
    wrong = compare(data, str(pathlib.Path(options.warpsmith).resolve()), options.python) if options.warpsmith else []
    text = json.dumps(data, indent=1)
    options.out.write_text(text) if options.out else print(text)
    print(f"{len(data['rows'])} compiled kernels, {len(wrong)} where something is another", file=sys.stderr)
    for row in wrong:
        print(json.dumps(row), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
