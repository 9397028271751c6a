#!/usr/bin/env python3
"""Compares what the model of a GPU says of candidates with what was measured there.

    predicted.py --warpsmith BINARY --python PYTHON --journals FOLDER --out RESULTS.json [--gpu h200] [--most 40]

FOLDER has the journals of searches on that GPU (`optimize.py --journals FOLDER`, or `.warpsmith/runs`). Of each, candidates that were right are
predicted, at most so many, evenly taken from the fastest to the slowest; what comes out is the rank correlation (Spearman) of their
times, and how far predicted speedups are from measured ones at the median. Needs no GPU. Standard library only; PYTHON has torch and Triton.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "verify"))

import run as judged


def read(journal):
    """The original's text, and text and times of each candidate that was right."""
    lines = [json.loads(line) for line in journal.read_text().splitlines() if line.strip()]
    begun = next(line for line in lines if line["what"] == "begun")
    texts = {line["id"]: line["text"] for line in lines if line["what"] == "made"}
    times = {line["id"]: line["times"] for line in lines if line["what"] == "came" and line.get("times")}
    return begun["text"], [(texts[id], *times[id]) for id in sorted(times) if id in texts]


def spread(candidates, most):
    """So many of them, from the fastest to the slowest."""
    ranked = sorted(candidates, key=lambda one: one[2] / one[1])
    if len(ranked) <= most:
        return ranked
    return [ranked[round(at * (len(ranked) - 1) / (most - 1))] for at in range(most)]


def ranks(values):
    """The place of each value; equal ones share the mean of theirs."""
    order = sorted(values)
    first, count = {}, {}
    for at, value in enumerate(order):
        first.setdefault(value, at)
        count[value] = count.get(value, 0) + 1
    return [first[value] + (count[value] - 1) / 2 for value in values]


def spearman(one, other):
    """The correlation of ranks; `None` where all of one are equal."""
    if len(one) < 3 or len(set(one)) < 2 or len(set(other)) < 2:
        return None
    return statistics.correlation(ranks(one), ranks(other))


def predict(options, original, candidates):
    """Predicted milliseconds of original and candidate, by the candidate's number."""
    with tempfile.TemporaryDirectory(prefix="warpsmith-predicted-", ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        (folder / ".git").mkdir()
        (folder / "original.py").write_text(original)
        (folder / "all").mkdir()
        for at, (text, *_) in enumerate(candidates):
            (folder / "all" / f"c{at}.py").write_text(text)
        command = [options.warpsmith, "verify", "original.py", "all", "--batch", "--json", "--predict", options.gpu]
        found = judged.environment(options.python, None)
        found["XDG_STATE_HOME"] = str(folder / "state")
        ran = subprocess.run(command, cwd=folder, env=found, text=True, capture_output=True)
        rows = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
        said = {int(pathlib.Path(row["candidate"]).stem[1:]): row["predicted"] for row in rows if row.get("predicted")}
        lacks = [row.get("evidence") or row.get("reason") for row in rows if not row.get("predicted")]
        if not rows:
            lacks = [ran.stderr.strip()[-300:]]
        return said, lacks


def compared(options, journal):
    original, candidates = read(journal)
    candidates = spread(candidates, options.most)
    said, lacks = predict(options, original, candidates)
    measured = [candidates[at][2] / candidates[at][1] for at in sorted(said)]
    predicted = [said[at]["candidate"] / said[at]["original"] for at in sorted(said)]
    off = [abs(math.log(one / other)) for one, other in zip(predicted, measured)]
    return {
        "candidates": len(candidates),
        "predicted": len(said),
        "original_ms": {"measured": candidates[0][1] if candidates else None,
                        "predicted": next(iter(said.values()))["original"] if said else None},
        "rank correlation": spearman(predicted, measured),
        "median factor between predicted and measured speedup": math.exp(statistics.median(off)) if off else None,
        "not predicted": lacks[:3],
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--warpsmith", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--python", required=True)
    parser.add_argument("--journals", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--most", type=int, default=40)
    options = parser.parse_args()
    rows = {}
    for journal in sorted(options.journals.glob("*.jsonl")):
        rows[journal.stem] = compared(options, journal)
        print(journal.stem, json.dumps(rows[journal.stem]), flush=True)
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
    known = [row["rank correlation"] for row in rows.values() if row["rank correlation"] is not None]
    if known:
        print(f"{len(known)} files, median rank correlation {statistics.median(known):.2f}")
    return 0 if known else 1


if __name__ == "__main__":
    sys.exit(main())
