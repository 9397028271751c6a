#!/usr/bin/env python3
"""Measures on a real GPU what `warpsmith record` costs a training step: the same program with and without it.

    recording.py --warpsmith BINARY [--python PYTHON] [--out RESULTS.json] [--steps 60] --packages FOLDER_OR_WHEEL ...

The program trains a small model of liger-kernel's operators (norm, rotation, activation, loss), whose package lies in the
workspace, so that each of its functions is recorded; a step has some 140 launches of Triton's. Steps are timed by the clock with a
wait for the device after each; the second half counts. Standard library only. Ends with status 1 when a step takes more than twice as
long, or when the program computes another loss.
"""

import argparse
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/verify"), str(ROOT / "tests/gpu")]

import published
import run as suite

TRAIN = '''
import statistics
import sys
import time

import torch
from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
from liger_kernel.ops.rms_norm import LigerRMSNormFunction
from liger_kernel.ops.rope import LigerRopeFunction
from liger_kernel.ops.swiglu import LigerSiLUMulFunction

LAYERS, HEADS, WIDTH, TOKENS, WORDS = 12, 8, 512, 1024, 4096
torch.manual_seed(0)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = (torch.nn.Parameter(torch.ones(WIDTH)) for _ in range(2))
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.gate, self.up, self.down = (torch.nn.Linear(*s) for s in [(WIDTH, 2 * WIDTH)] * 2 + [(2 * WIDTH, WIDTH)])

    def forward(self, x, cos, sin):
        y = LigerRMSNormFunction.apply(x, self.first, 1e-6, 0.0, "llama", False)
        q, k, v = (part.view(1, TOKENS, HEADS, -1).transpose(1, 2) for part in self.qkv(y).chunk(3, -1))
        q, k = LigerRopeFunction.apply(q.contiguous(), k.contiguous(), cos, sin)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(1, TOKENS, WIDTH))
        y = LigerRMSNormFunction.apply(x, self.second, 1e-6, 0.0, "llama", False)
        return x + self.down(LigerSiLUMulFunction.apply(self.gate(y), self.up(y)))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(WORDS, WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, words, cos, sin):
        x = self.table(words)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(x)


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
angles = torch.outer(torch.arange(TOKENS), 1e4 ** -torch.linspace(0, 1, WIDTH // HEADS // 2)).repeat(1, 2)[None].cuda()
times = []
for step in range(int(sys.argv[1])):
    words = torch.randint(0, WORDS, (1, TOKENS + 1), device="cuda")
    torch.cuda.synchronize()
    begun = time.perf_counter()
    logits = model(words[:, :-1], angles.cos(), angles.sin())
    loss = LigerCrossEntropyFunction.apply(logits.view(-1, WORDS), words[0, 1:], None)[0]
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    times.append(time.perf_counter() - begun)
print(f"median {1000 * statistics.median(times[len(times) // 2 :]):.3f} ms, loss {loss.item():.6f}")
'''


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warpsmith", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--packages", nargs="*", default=[])
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="warpsmith-recording-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        (folder / ".git").mkdir()
        published.provide(options.packages, folder)
        (folder / "train.py").write_text(TRAIN)
        program = [options.python, str(folder / "train.py"), str(options.steps)]
        record = [str(pathlib.Path(options.warpsmith).resolve()), "record", "--", *program]

        def timed(command):
            ran = subprocess.run(command, cwd=folder, env=suite.environment(options.python), capture_output=True, text=True, timeout=400)
            found = re.search(r"median ([\d.]+) ms, loss ([\d.]+)", ran.stdout)
            if ran.returncode or not found:
                raise SystemExit(f"{command}\n{ran.stdout[-1000:]}{ran.stderr[-2000:]}")
            return float(found[1]), float(found[2]), ran.stderr[-1500:]

        # What is compiled is kept: the first run is for that.
        timed(program)
        plain, recorded, again = timed(program), timed(record), timed(program)
        listed = subprocess.run([record[0], "workloads", "list"], cwd=folder, capture_output=True, text=True)
    usual = (plain[0] + again[0]) / 2
    result = {
        "milliseconds of a step": {"plain": [plain[0], again[0]], "recorded": recorded[0]}, "ratio": round(recorded[0] / usual, 3),
        "losses": [plain[1], recorded[1], again[1]], "said": recorded[2], "workloads": listed.stdout[-3000:],
    }
    print(json.dumps(result, indent=1))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    is_same = abs(recorded[1] - plain[1]) <= max(1e-3, 2 * abs(again[1] - plain[1]))
    return 0 if result["ratio"] < 2.0 and is_same else 1


if __name__ == "__main__":
    sys.exit(main())
