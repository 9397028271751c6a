#!/usr/bin/env python3
"""A language model whose replies are written down, in a search on a real GPU: cheats are refused, the good one is offered.

    models.py --warpsmith BINARY --python PYTHON [--out RESULTS.json] [--budget 90] [--device toy]

Three searches of `naive_matmul.py`, each from the state of a new user: by the model alone, by the skills alone, and by both. The model
says something that is no code, something that does not compile, something that keeps results by the addresses of its arguments, and something that
computes half of the sum. Then it leaves out what the host does for nothing, which no skill can, and tries one tile after the other until it has that
which a person would take; skills know tiles. Ends with status 1 when something is not as it should be. `--device` plays a device,
to try this script. Standard library only; PYTHON has torch and Triton.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "verify"))

import run as judged

FILE = HERE / "naive_matmul.py"
LARGE, SMALL, REPAIR, CORRECTION = "Write this file anew", "Change one thing", "does not run. Repair it", "This reply cannot be used"
INPUT, OUTPUT = 2.0, 8.0  # dollars for a million tokens
TOKENS = (3000, 1500)
SHARES = {"model": 1.0, "skills": 0.0, "both": 0.5}
# The target: this share of what the model comes to in the end.
TARGET = 0.9
# What the model tries before it has the tiles that a person would take: one after the other, the small ones first.
TRIED = sorted(((m, n, k, 4) for m in (32, 64, 128) for n in (32, 64, 128) for k in (32, 64)), key=lambda tile: tile[0] * tile[1] * tile[2])
# Small steps that change nothing: so many are at hand.
IDLE = 40


def settings(share):
    return (
        "[optimize]\nseed = 1\nparallel = 6\n[model]\nprovider = 'scripted'\nscript = 'replies.toml'\nname = 'scripted'\n"
        f"share = {share}\nlimits = {{ parallel = 1 }}\nprices = {{ input = {INPUT}, output = {OUTPUT} }}\n"
    )


def tiles(text, m, n, k, options):
    """The matmul with other tiles and launch options."""
    for name, was, now in (("M", 64, m), ("N", 64, n), ("K", 32, k)):
        text = text.replace(f"BLOCK_SIZE_{name}={was}", f"BLOCK_SIZE_{name}={now}")
    return text.replace(f"BLOCK_SIZE_K={k},\n", f"BLOCK_SIZE_K={k}, {options},\n")


def shown(text):
    """What a model is shown of a file, and writes anew: the kernel and what calls it."""
    return text[text.index("import torch") : text.index("# warpsmith")] + text[text.index("@triton.jit") : text.index("\n\nif __name__")] + "\n"


def direct(text):
    """The matmul without what the host does for nothing."""
    text = text.replace("    bt = b.t().contiguous()\n", "").replace("        a, bt, c,\n", "        a, b, c,\n")
    text = text.replace("bt.stride(0), bt.stride(1)", "b.stride(1), b.stride(0)")
    return text.replace("dtype=torch.float32)\n    grid", "dtype=a.dtype)\n    grid").replace("return c.to(a.dtype)", "return c")


def replies(text):
    """What the model says, in this order for each kind of question."""
    text = shown(text)
    half = text.replace("tl.cdiv(K, BLOCK_SIZE_K)):", "tl.cdiv(K, BLOCK_SIZE_K) // 2):")
    broken = edit("    accumulator = tl.zeros(", "    accumulator = tl.zeroes(")
    cheat = edit("    M, K = a.shape\n", "    key = (a.data_ptr(), b.data_ptr())\n    if key in matmul.__dict__:\n        return matmul.__dict__[key]\n    M, K = a.shape\n")
    idle = [edit("    pid_m = tl.program_id(axis=0)", f"    tl.assume(M > -{number})\n    pid_m = tl.program_id(axis=0)") for number in range(1, IDLE + 1)]
    nothing = edit("    return c\n", "    return c\n")
    tried = [tiles(direct(text), m, n, k, f"num_warps={warps}") for m, n, k, warps in TRIED]
    good = tiles(direct(text), 128, 256, 64, "num_warps=8, num_stages=3")
    said = [(SMALL, one, False) for one in (broken, cheat, *idle)]
    said += [(LARGE, "The host does too much.", False), (CORRECTION, block(half), False)]
    said += [(LARGE, block(one), False) for one in (direct(text), *tried, good)]
    said += [(REPAIR, block(text.replace("    pid_m = ", f"    tl.assume(N > -{number})\n    pid_m = ")), False) for number in range(1, IDLE + 1)]
    said += [(kind, nothing, True) for kind in (SMALL, CORRECTION, LARGE, REPAIR)]
    # A question that is asked once more has the text of the first one as well.
    said.sort(key=lambda one: one[0] != CORRECTION)
    lines = []
    for when, what, again in said:
        lines += ["[[reply]]", f"when = {when!r}", f"input = {TOKENS[0]}", f"output = {TOKENS[1]}", f"text = {json.dumps(what)}"]
        lines += ["again = true"] if again else []
    return "\n".join(lines) + "\n"


def block(text):
    return f"Diagnosis: the tiles are small.\n\n```python\n{text}```\n"


def edit(old, new):
    old, new = (text.removesuffix("\n") for text in (old, new))
    return f"Diagnosis: something else.\n\n<<<<<<< OLD\n{old}\n=======\n{new}\n>>>>>>> NEW\n"


def search(options, share):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="warpsmith-models-"))
    (folder / ".git").mkdir()
    file = pathlib.Path(shutil.copy(FILE, folder))
    (folder / "warpsmith.toml").write_text(settings(share))
    environment = judged.environment(options.python) | {"XDG_STATE_HOME": str(folder / "state")}
    if options.device:
        environment["WARPSMITH_FAKE_DEVICE"] = options.device
        file.write_text(file.read_text().replace("4096,4096", "100,100"))
    (folder / "replies.toml").write_text(replies(file.read_text()))
    warpsmith = str(pathlib.Path(options.warpsmith).resolve())
    begun = time.monotonic()
    ran = subprocess.run(
        [warpsmith, "optimize", file.name, "--budget", f"{options.budget}s", "--json"],
        cwd=folder, env=environment, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=4 * options.budget + 120,
    )
    told = subprocess.run([warpsmith, "report", "--format", "json"], cwd=folder, env=environment, text=True, capture_output=True)
    try:
        outcome, report = json.loads(ran.stdout), json.loads(told.stdout)
    except ValueError:
        return {"error": (ran.stderr + told.stderr)[-1500:]}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    judged_ones = [one for one in report["candidates"] if one["fate"] != "open"]
    judged_ones.sort(key=lambda one: one["seconds"])
    return {
        "seconds": round(time.monotonic() - begun, 1), "evaluated": outcome["evaluated"], "summary": outcome["summary"],
        "offer": (outcome["offer"] or {}).get("speedup"), "change": (outcome["offer"] or {}).get("change"), 
        "refusals": report["refusals"], "asked": report["asked"], "models": report["models"],
        "judged": [[one["kind"], one["fate"], one["speedup"], round(one["seconds"], 1)] for one in judged_ones],
    }


def by_model(row):
    return [one for one in row.get("judged", ()) if one[0].startswith("model ")]


def reached(name, row, target):
    """After how many candidates there is one that is so fast; of the model alone its own count. `None`: there is none."""
    alone = by_model(row) if name == "model" else row.get("judged", ())
    return next((at + 1 for at, (_, _, speedup, _) in enumerate(alone) if (speedup or 0) >= target), None)


def wrong(name, row, options):
    """What is not as it should be."""
    if "error" in row:
        return [f"{name}: {row['error']}"]
    found = []
    if name != "skills":
        reasons = {one["reason"]: one["example"] for one in row["refusals"]}
        # Of small steps, which the search need not ask for where skills take its turns.
        if name == "model" and "data_ptr" not in reasons.get("Screen", ""):
            found.append(f"{name}: the cache is not refused by name: {reasons}")
        if "Output" not in reasons:
            found.append(f"{name}: half of the sum is not refused: {reasons}")
        [cost] = row["models"] or [{"requests": 0, "input": 0, "output": 0, "dollars": 0.0}]
        expected = cost["requests"] * (TOKENS[0] * INPUT + TOKENS[1] * OUTPUT) / 1e6
        if cost["requests"] < 4 or abs(cost["dollars"] - expected) > 1e-9 or cost["input"] != TOKENS[0] * cost["requests"]:
            found.append(f"{name}: the costs are wrong: {cost}")
        if not any(speedup for _, _, speedup, _ in by_model(row)):
            found.append(f"{name}: no candidate of the model is right")
    if not options.device and not row["offer"]:
        found.append(f"{name}: nothing is offered: {row['summary']}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warpsmith", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--budget", type=int, default=90)
    parser.add_argument("--device")
    options = parser.parse_args()
    rows, problems = {}, []
    for name, share in SHARES.items():
        row = rows[name] = search(options, share)
        problems += wrong(name, row, options)
        offer = row.get("offer")
        told = f"{offer['ratio']:.2f}x ({offer['low']:.2f}-{offer['high']:.2f})" if offer else "no offer"
        print(f"{name}: {told}, {row.get('evaluated')} evaluated, {len(by_model(row))} of them by the model", flush=True)
        if options.out:
            options.out.write_text(json.dumps(rows, indent=1) + "\n")
    target = TARGET * max((speedup or 0 for _, _, speedup, _ in by_model(rows["model"])), default=0)
    after = {name: reached(name, rows[name], target) for name in rows}
    print(f"{target:.2f}x is reached after so many candidates: {after}")
    if options.out:
        options.out.write_text(json.dumps({**rows, "target": target, "reached": after}, indent=1) + "\n")
    if not options.device:
        # Who never reaches it needs more than any number.
        never = float("inf")
        if not (after["both"] or never) < min(after["model"] or never, after["skills"] or never):
            problems.append(f"both together do not reach {target:.2f}x in fewer evaluations than either alone: {after}")
    print("\n".join(problems) or "all as it should be")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
