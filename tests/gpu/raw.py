#!/usr/bin/env python3
"""Judges kernels by themselves on a real GPU, where there is no torch and where there is one.

    raw.py --warpsmith BINARY [--python PYTHON] [--only without|with] [--jobs 4] [--seconds 540]

That there is none is brought about by a module `torch` on PYTHONPATH that raises ImportError: everything else of the interpreter
stays as it is, and Triton asks for torch by importing it, as we do. Standard library only. Ends with status 1 when a verdict is
not as expected.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HEAD = "import triton\nimport triton.language as tl\n\n"

# A kernel: its text, and candidates by name: the reason of the refusal (alternatives with |), what is replaced, by what.
ADD = HEAD + """# warpsmith: workload entry=add[cdiv(n,BLOCK)] x=f16[4000037] y=f16[4000037] out=f16[4000037] n=4000037 BLOCK=1024

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)
"""
STORE = "    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)\n"
KEPT = """
class Kept:
    def __init__(self, kernel):
        self.kernel, self.key = kernel, None
    def __getitem__(self, grid):
        def call(**given):
            if given["x"].data_ptr() == self.key:
                given["out"].copy_(self.out)
                return
            self.kernel[grid](**given)
            self.key, self.out = given["x"].data_ptr(), given["out"].clone()
        return call
add = Kept(add)
"""
COPY = """
class Copy:
    def __getitem__(self, grid):
        return lambda **given: given["out"].copy_(given["x"])
add = Copy()
"""
ADDS = {
    "same": ("accepted", "mask = at < n", "mask = at < n"),
    "swapped": ("accepted", "tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask)", "tl.load(y + at, mask=mask) + tl.load(x + at, mask=mask)"),
    "wrong": ("output", "mask=mask) + tl.load", "mask=mask) - tl.load"),
    "one_wrong": ("output", "tl.load(x + at, mask=mask) +", "tl.where(at == 4000000, 0.0, tl.load(x + at, mask=mask)) +"),
    "beyond": ("overrun", "mask = at < n", "mask = at < n + 64"),
    "before": ("overrun", STORE, STORE + "    tl.store(x - 1 - at, 1.0, mask=at < 8)\n"),
    "far_beyond": ("run|died|overrun", STORE, STORE + "    tl.store(out + (1 << 40) + at, 1.0, mask=mask)\n"),
    "sizes": ("overrun|sizes|run", "mask = at < n", "mask = at < 4000037"),
    "unwritten": ("output", "mask = at < n", "mask = (at < n) & (at != 12345)"),
    "values": ("values", STORE, STORE.replace("tl.load(x + at, mask=mask) +", "tl.minimum(tl.load(x + at, mask=mask), 100.0) +")),
    "mutates": ("output", STORE, STORE + "    tl.store(y + at, 1.0, mask=mask)\n"),
    "keeps": ("stale|race", STORE, STORE + KEPT),
    "no_kernel": ("output|no-kernel", STORE, STORE + COPY),
    "compile": ("compile|run", "mask = at < n", "mask = at < undefined_name"),
    "load": ("load", "def add(", "def other("),
    "endless": ("time|died", HEAD, HEAD + "while True: pass\n"),
}

SLOW = HEAD + """# warpsmith: workload entry=scale[cdiv(n,BLOCK)] x=f32[4194304] out=f32[4194304] n=4194304 BLOCK=1024

@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    begin = tl.program_id(0) * BLOCK
    for part in range(0, BLOCK, 32):
        at = begin + part + tl.arange(0, 32)
        tl.store(out + at, tl.load(x + at, mask=at < n) * 3.0, mask=at < n)
"""
LOOP = SLOW[SLOW.index("    begin"):]
FAST = """    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 3.0, mask=at < n)
"""
SLOWS = {"faster": ("faster", LOOP, FAST), "no_faster": ("accepted", "* 3.0", "* 3.0 ")}

SOFTMAX = HEAD + """# warpsmith: workload entry=softmax[rows] x=f32[1024,1000] out=f32[1024,1000] rows=1024 columns=1000 BLOCK=2048

@triton.jit
def softmax(x, out, rows, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < columns
    row = tl.load(x + tl.program_id(0) * columns + at, mask=mask, other=float("-inf"))
    e = tl.exp(row - tl.max(row, 0))
    tl.store(out + tl.program_id(0) * columns + at, e / tl.sum(e, 0), mask=mask)
"""
SOFTMAXES = {
    "base_two": ("accepted", "tl.exp(row - tl.max(row, 0))", "tl.exp2((row - tl.max(row, 0)) * 1.4426950408889634)"),
    "no_maximum": ("values", "tl.exp(row - tl.max(row, 0))", "tl.exp(row)"),
    "tail": ("output|values|sizes", 'other=float("-inf")', "other=0.0"),
    "half": ("output", "e / tl.sum(e, 0)", "(e / tl.sum(e, 0)).to(tl.float16).to(tl.float32)"),
}

MATMUL = HEAD + """# warpsmith: workload entry=matmul[cdiv(n,64),cdiv(n,64)] a=f16[512,512] b=f16[512,512] c=f32[512,512] n=512

@triton.jit
def matmul(a, b, c, n):
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    columns = tl.program_id(1) * 64 + tl.arange(0, 64)
    total = tl.zeros((64, 64), dtype=tl.float32)
    for k in range(0, n, 32):
        inner = k + tl.arange(0, 32)
        x = tl.load(a + rows[:, None] * n + inner[None, :], mask=(rows[:, None] < n) & (inner[None, :] < n), other=0.0)
        y = tl.load(b + inner[:, None] * n + columns[None, :], mask=(inner[:, None] < n) & (columns[None, :] < n), other=0.0)
        total += tl.dot(x, y)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < n) & (columns[None, :] < n))
"""
MATMULS = {
    "same": ("accepted", "total += tl.dot(x, y)", "total += tl.dot(x, y)"),
    "accumulates": ("accepted", "total += tl.dot(x, y)", "total = tl.dot(x, y, total)"),
    "half": ("output", "total += tl.dot(x, y)", "total = (total + tl.dot(x, y)).to(tl.float16).to(tl.float32)"),
}

SUM = HEAD + """# warpsmith: workload entry=total[cdiv(n,BLOCK)] x=bf16[65537] out=f32[1] calls=i32[1] n=65537 BLOCK=512

@triton.jit
def total(x, out, calls, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < n, other=0.0).to(tl.float32), 0))
    tl.atomic_add(calls, 1)
"""
SUMS = {
    "same": ("accepted", "BLOCK + tl.arange", "BLOCK + tl.arange"),
    "race": ("output|race", "    tl.atomic_add(calls, 1)\n", "    tl.store(calls, tl.load(calls) + 1)\n"),
}

TUNED = HEAD + """# warpsmith: workload entry=scale[cdiv(n,BLOCK)] x=f32[2000003] out=f32[2000003] n=2000003

@triton.autotune(configs=[triton.Config({"BLOCK": 256}, num_warps=2), triton.Config({"BLOCK": 2048}, num_warps=8)], key=["n"])
@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)
"""
TUNEDS = {
    "same": ("accepted", "* 2.0", "* 2.0"),
    "wrong": ("output", "* 2.0", "* 2.5"),
    "in_place": ("accepted", 'key=["n"]', 'key=["n"], reset_to_zero=["out"], restore_value=["x"]'),
}

ALL = {
    "add": (ADD, ADDS), "slow": (SLOW, SLOWS), "softmax": (SOFTMAX, SOFTMAXES), "matmul": (MATMUL, MATMULS), "sum": (SUM, SUMS),
    "tuned": (TUNED, TUNEDS),
}


class Session:
    def __init__(self, options):
        self.options, self.failed = options, 0
        self.until = time.monotonic() + options.seconds

    def check(self, name, passed, seen):
        self.failed += not passed
        print("ok  " if passed else "FAIL", name, "-", seen, flush=True)

    def judge(self, name, text, candidates, has_torch):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="warpsmith-raw-"))
        try:
            for made in (".git", "candidates", "first"):
                (folder / made).mkdir()
            if not has_torch:
                (folder / "first/torch.py").write_text("raise ImportError('there is none')\n")
            (folder / "original.py").write_text(text)
            for candidate, (_, old, new) in candidates.items():
                assert text.count(old) == 1, (name, candidate)
                (folder / f"candidates/{candidate}.py").write_text(text.replace(old, new))
            environment = {**os.environ, "PYTHONPATH": str(folder / "first")}
            command = [self.options.warpsmith, "verify", "original.py", "candidates", "--batch", "--json", "--python", self.options.python]
            command += ["--jobs", str(self.options.jobs)]
            ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=max(self.until - time.monotonic(), 1))
            return {pathlib.Path(answer["candidate"]).stem: answer for answer in map(json.loads, ran.stdout.splitlines())}, ran.stderr
        except subprocess.TimeoutExpired as late:
            return {}, f"late: {late}"
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def part(self, name, has_torch):
        text, candidates = ALL[name]
        since = time.monotonic()
        answers, errors = self.judge(name, text, candidates, has_torch)
        where = "with torch" if has_torch else "without"
        print(f"     {name}, {where}: {len(answers)} verdicts in {time.monotonic() - since:.0f} s", flush=True)
        for candidate, (expected, _, _) in candidates.items():
            answer = answers.get(candidate)
            if answer is None:
                self.check(f"{name}/{candidate}, {where}", False, errors[-600:])
                continue
            said = answer["reason"] or answer["verdict"]
            is_right = said == "accepted" and answer["speedup"] > 1.2 if expected == "faster" else said in expected.split("|")
            noted = any("there is no torch" in note for note in answer["notes"])
            if said == "accepted":
                is_right = is_right and noted != has_torch
            seen = f"{said}, {answer['seconds']:.1f} s"
            if answer["speedup"]:
                seen += f", {answer['speedup']:.3f} ({answer['interval'][0]:.3f} to {answer['interval'][1]:.3f}), {answer['objection'] or 'an offer'}"
            if answer["evidence"]:
                seen += f": {answer['evidence'][-300:]!r}"
            if not is_right:
                seen += f" instead of {expected}; {answer['checks']} {answer['stages']}"
            self.check(f"{name}/{candidate}, {where}", is_right, seen)
            if said == "accepted" and candidate in ("same", "faster"):
                measured = answer["measured"][0]
                print(f"         stages {answer['stages']}, warm {measured['warm']}, wall {measured['wall']}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warpsmith", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", choices=("without", "with"))
    parser.add_argument("--parts", default=",".join(ALL))
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=540.0)
    options = parser.parse_args()
    options.warpsmith = str(pathlib.Path(options.warpsmith).resolve())
    options.python = str(pathlib.Path(options.python).absolute())
    session = Session(options)
    for has_torch in (False, True):
        if options.only in (None, "with" if has_torch else "without"):
            for part in options.parts.split(","):
                session.part(part, has_torch)
    print(f"{session.failed} failed" if session.failed else "all as expected", flush=True)
    return 1 if session.failed else 0


if __name__ == "__main__":
    sys.exit(main())
