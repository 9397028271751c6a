#!/usr/bin/env python3
"""Judges and optimizes kernels by themselves on a real GPU, where there is no torch and where there is one.

    torch_free.py --warpsmith BINARY [--python PYTHON] [--only without|with] [--parts add,slow] [--seconds 85]

A line for each case: whether it is as expected, the verdict, how long it took and what was measured. That there is no torch is
brought about by a module `torch` on PYTHONPATH that raises ImportError: everything else of the interpreter stays as it is, and
Triton asks for torch by importing it, as we do. Several originals are judged at once; what is timed has the device alone
nevertheless. What is not done in time has failed. Standard library only. Ends with status 1 when a case is not as expected.
"""

import argparse
import concurrent.futures
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
ADD = HEAD + """# warpsmith: workload entry=add[cdiv(n,BLOCK)] x=f16[300007] y=f16[300007] out=f16[300007] n=300007 BLOCK=1024

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
    "other_block": ("accepted", "BLOCK=1024", "BLOCK=256 num_warps=2"),
    "other_grid": ("output", "entry=add[cdiv(n,BLOCK)]", "entry=add[n//BLOCK]"),
    "wrong": ("output", "mask=mask) + tl.load", "mask=mask) - tl.load"),
    "one_wrong": ("output", "tl.load(x + at, mask=mask) +", "tl.where(at == 300000, 0.0, tl.load(x + at, mask=mask)) +"),
    "beyond": ("overrun", "mask = at < n", "mask = at < n + 64"),
    "before": ("overrun", STORE, STORE + "    tl.store(x - 1 - at, 1.0, mask=at < 8)\n"),
    "far_beyond": ("run|died|overrun", STORE, STORE + "    tl.store(out + (1 << 40) + at, 1.0, mask=mask)\n"),
    "sizes": ("overrun|sizes|run", "mask = at < n", "mask = at < 300007"),
    "unwritten": ("output", "mask = at < n", "mask = (at < n) & (at != 12345)"),
    "values": ("values", STORE, STORE.replace("tl.load(x + at, mask=mask) +", "tl.minimum(tl.load(x + at, mask=mask), 100.0) +")),
    "mutates": ("output", STORE, STORE + "    tl.store(y + at, 1.0, mask=mask)\n"),
    "keeps": ("stale|race", STORE, STORE + KEPT),
    "no_kernel": ("output|no-kernel", STORE, STORE + COPY),
    "compile": ("compile|run", "mask = at < n", "mask = at < undefined_name"),
    "load": ("load", "def add(", "def other("),
    "endless": ("time|died", HEAD, HEAD + "while True: pass\n"),
}

SLOW = HEAD + """# warpsmith: workload entry=scale[cdiv(n,BLOCK)] x=f32[1048576] out=f32[1048576] n=1048576 BLOCK=1024

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

SOFTMAX = HEAD + """# warpsmith: workload entry=softmax[rows] x=f32[256,1000] out=f32[256,1000] rows=256 columns=1000 BLOCK=2048

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

MATMUL = HEAD + """# warpsmith: workload entry=matmul[cdiv(n,64),cdiv(n,64)] a=f16[256,256] b=f16[256,256] c=f32[256,256] n=256

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

TUNED = HEAD + """# warpsmith: workload entry=scale[cdiv(n,BLOCK)] x=f32[200003] out=f32[200003] n=200003

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
# Where there is torch the judge is the one that others test: two are enough.
WITH_TORCH = ("add", "tuned")
# What is optimized, and how long.
OPTIMIZED, BUDGET = "slow", 60


class Session:
    def __init__(self, options):
        self.options, self.failed, self.passed = options, 0, 0
        self.since = time.monotonic()

    def left(self):
        return self.options.seconds - (time.monotonic() - self.since)

    def check(self, name, passed, seen):
        self.failed += not passed
        self.passed += passed
        print("ok  " if passed else "FAIL", name, "-", " ".join(seen.split()), flush=True)

    def run(self, files, has_torch, *command):
        """What a command prints, as far as it comes, and what it says beside."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="warpsmith-torch-free-"))
        try:
            (folder / ".git").mkdir()
            hidden = {} if has_torch else {"first/torch.py": "raise ImportError('there is none')\n"}
            settings = f"python = {json.dumps(self.options.python)}\n[evaluator.limits]\nload = 10\n"
            for name, text in {**files, **hidden, "warpsmith.toml": settings}.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text)
            environment = {**os.environ, "PYTHONPATH": str(folder / "first")}
            with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
                ran = subprocess.Popen([self.options.warpsmith, *command], cwd=folder, env=environment, stdout=out, stderr=err)
                late = ""
                try:
                    ran.wait(max(self.left(), 1))
                except subprocess.TimeoutExpired:
                    late = "the time was up; "
                    ran.terminate()
                    try:
                        ran.wait(5)
                    except subprocess.TimeoutExpired:
                        ran.kill()
                        ran.wait()
            return (folder / "out").read_text(), late + (folder / "err").read_text()[-600:]
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def judge(self, name, has_torch):
        text, candidates = ALL[name]
        files = {"original.py": text}
        for candidate, (_, old, new) in candidates.items():
            assert text.count(old) == 1, (name, candidate)
            files[f"candidates/{candidate}.py"] = text.replace(old, new)
        since = time.monotonic()
        jobs = str(self.options.jobs)
        told, errors = self.run(files, has_torch, "verify", "original.py", "candidates", "--batch", "--json", "--jobs", jobs)
        answers = [json.loads(line) for line in told.splitlines(keepends=True) if line.endswith("\n")]
        return name, has_torch, {pathlib.Path(it["candidate"]).stem: it for it in answers}, errors, time.monotonic() - since

    def told(self, name, has_torch, answers, errors, seconds):
        where = "with torch" if has_torch else "without"
        for candidate, (expected, _, _) in ALL[name][1].items():
            answer = answers.get(candidate)
            if answer is None:
                self.check(f"{name}/{candidate}, {where}", False, f"no verdict: {errors}")
                continue
            said = answer["reason"] or answer["verdict"]
            is_right = said == "accepted" and answer["speedup"] > 1.2 if expected == "faster" else said in expected.split("|")
            if said == "accepted":
                is_right = is_right and any("there is no torch" in note for note in answer["notes"]) != has_torch
            seen = f"{said}, {answer['seconds']:.1f} s"
            if answer["speedup"]:
                seen += f", {answer['speedup']:.3f} ({answer['interval'][0]:.3f} to {answer['interval'][1]:.3f}), {answer['objection'] or 'an offer'}"
            if answer["evidence"]:
                seen += f": {answer['evidence'][-300:]!r}"
            if not is_right:
                seen += f" instead of {expected}; {answer['checks']} {answer['stages']} {answer['notes']}"
            self.check(f"{name}/{candidate}, {where}", is_right, seen)
        self.stages(name, where, answers, seconds)

    def stages(self, name, where, answers, seconds):
        """Where the time goes: of all verdicts together."""
        sums = {}
        for answer in answers.values():
            for stage, took in answer["stages"]:
                sums[stage] = sums.get(stage, 0.0) + took
        shown = ", ".join(f"{stage} {took:.1f}" for stage, took in sorted(sums.items(), key=lambda it: -it[1])[:6])
        print(f"     {name}, {where}: {len(answers)} verdicts in {seconds:.0f} s; stages of all, in s: {shown}", flush=True)

    def optimize(self):
        text = ALL[OPTIMIZED][0]
        told, errors = self.run({"original.py": text}, False, "optimize", "original.py", "--budget", f"{BUDGET}s", "--json")
        return told, errors

    def optimized(self, told, errors):
        try:
            outcome = json.loads(told)
        except ValueError:
            return self.check("optimize, without", False, f"{told} {errors}")
        diff = outcome["diff"] or ""
        changed = [line for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]
        is_comment = all(line.startswith("+# warpsmith: workload ") for line in changed)
        self.check("optimize, without", outcome["evaluated"] > 2 and is_comment, outcome["summary"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warpsmith", required=True)
    parser.add_argument("--python", default=sys.executable, help="one with Triton and torch")
    parser.add_argument("--only", choices=("without", "with"))
    parser.add_argument("--parts", help=f"some of {','.join(ALL)}, and optimize")
    parser.add_argument("--jobs", type=int, default=4, help="candidates at once, of each original")
    parser.add_argument("--parallel", type=int, default=4, help="originals at once")
    parser.add_argument("--seconds", type=float, default=85.0)
    options = parser.parse_args()
    options.warpsmith = str(pathlib.Path(options.warpsmith).resolve())
    options.python = str(pathlib.Path(options.python).absolute())
    parts = options.parts.split(",") if options.parts else [*ALL, "optimize"]
    # Those with torch first: it takes long to import.
    jobs = [(part, True) for part in parts if part in (ALL if options.parts else WITH_TORCH) and options.only != "without"]
    jobs += [(part, False) for part in parts if part in ALL and options.only != "with"]
    session = Session(options)
    with concurrent.futures.ThreadPoolExecutor(options.parallel) as pool:
        optimizing = [pool.submit(session.optimize)] if "optimize" in parts and options.only != "with" else []
        judging = [pool.submit(session.judge, *job) for job in jobs]
        for done in concurrent.futures.as_completed(judging):
            session.told(*done.result())
        for done in optimizing:
            session.optimized(*done.result())
    took = f"in {time.monotonic() - session.since:.0f} s"
    print(f"{session.passed} as expected, {session.failed} not, {took}", flush=True)
    return 1 if session.failed else 0


if __name__ == "__main__":
    sys.exit(main())
