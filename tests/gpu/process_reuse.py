#!/usr/bin/env python3
"""Measures searches whose candidates share processes beside searches whose candidates have one each, on a real GPU.

    process_reuse.py --warpsmith BINARY --python PYTHON --out FOLDER [--series 1,8] [--files matmul,softmax_narrow,column_sum] [--candidates 150] [--budget 60]

Each search has the same seed and ends after so many candidates. Told are seconds, what was offered, how many processes there were, and what came of the candidates:
shared processes must not refuse more of them. `--out` has the journals and logs, in which `held` says what each process has of the device. Standard library only; PYTHON has
torch and Triton.
"""

import argparse
import collections
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "verify"))

import run as judged

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def searched(options, file, series):
    """One search, in a project of its own."""
    with tempfile.TemporaryDirectory(prefix="warpsmith-series-") as folder:
        folder = pathlib.Path(folder)
        (folder / ".git").mkdir()
        shutil.copy(file, folder)
        search = f"[optimize]\nseed = 1\npatience = 0\ncandidates = {options.candidates}\n[optimize.search]\nseries = {series}\n"
        (folder / "warpsmith.toml").write_text(search)
        environment = judged.environment(options.python) | {"WARPSMITH_LOG": "warpsmith=debug", "XDG_STATE_HOME": str(folder / "state")}
        command = [options.warpsmith, "optimize", file.name, "--budget", f"{options.budget}s", "--json"]
        begun = time.monotonic()
        with (folder / "log").open("w") as log:
            ran = subprocess.run(
                command, cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, timeout=3 * options.budget + 60
            )
        seconds = time.monotonic() - begun
        log = COLOURS.sub("", (folder / "log").read_text())
        kept = options.out / f"{file.stem}-{series}"
        with gzip.open(f"{kept}.log.gz", "wt") as copy:
            copy.write(log)
        entries = []
        for journal in folder.glob(".warpsmith/runs/*.jsonl"):
            shutil.copy(journal, f"{kept}.jsonl")
            entries += [json.loads(line) for line in journal.read_text().splitlines()]
    answer = json.loads(ran.stdout or "{}")
    came = [entry for entry in entries if entry["what"] == "came"]
    kinds = collections.Counter(fate if isinstance(fate := entry["fate"], str) else next(iter(fate)) for entry in came)
    return {
        "file": file.stem, "series": series, "seconds": round(seconds, 1), "evaluated": answer.get("evaluated"), "summary": answer.get("summary") or log[-400:],
        "first after": came[0]["seconds"] if came else None, "last after": came[-1]["seconds"] if came else None, "fates": kinds,
        "processes": len(set(re.findall(r'process="?candidate-(\d+)', log))),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warpsmith", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--python", required=True, type=lambda path: str(pathlib.Path(path).absolute()))
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--series", default="1,8")
    parser.add_argument("--files", default="matmul,softmax_narrow,column_sum")
    parser.add_argument("--candidates", type=int, default=150)
    parser.add_argument("--budget", type=int, default=60)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in options.files.split(","):
        for series in map(int, options.series.split(",")):
            rows.append(searched(options, HERE / f"optimize/{name}.py", series))
            print(json.dumps(rows[-1], ensure_ascii=False), flush=True)
            (options.out / "series.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    return 0 if all(row["evaluated"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
