#!/usr/bin/env python3
"""Measures what `warpsmith optimize` makes of the files in `optimize/`, on a real GPU.

    optimize.py --warpsmith BINARY --python PYTHON --out RESULTS.json [--only NAME ...] [--seconds 120] [--parts optimize,compile,tuned]
        [--limit SECONDS] [--settings FILE] [--journals FOLDER] [--jobs GPUS] [--state FOLDER]

`optimize` searches and keeps what is offered. `compile` times the original, the offer and the reference in torch, eager and compiled,
in one fresh process with a clock of its own (`baselines.py`), and compares results. `tuned` is a search that turns numbers alone. Each file is alone in a project of its own.

`--jobs` measures so many files at a time, each on a GPU of its own. With `--state` searches learn from each other, and take turns.

Results are written after each part of a file; what is there already is left out, so that a call goes on where the last one stopped.
`--only` measures again. Standard library only; PYTHON has torch and Triton. Ends with status 1 when a result is wrong or something
could not be measured.
"""

import argparse
import concurrent.futures
import contextlib
import datetime
import json
import math
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "verify"))

import run as judged

PARTS = ("optimize", "compile", "tuned")
# The same search without other ways to build a kernel: an autotuner of block sizes and launch options.
NUMBERS = "[optimize]\nrewrites = false\n"
# What they take is not the bytes that they move.
ARITHMETIC = ("matmul", "attention", "dequant_matmul")
BYTES_PER_MS = 4.8e9
# Seconds beside the budget: starting, and what is under way when it ends.
BESIDE, GRACE = 60.0, 180.0
COMPILE_SECONDS, COMPILE_LIMIT = 90.0, 400.0
LEVEL = 0.97


class Suite:
    def __init__(self, options):
        self.options = options
        self.warpsmith = str(pathlib.Path(options.warpsmith).resolve())
        self.rows = json.loads(options.out.read_text()) if options.out.exists() else {}
        self.until = time.monotonic() + options.limit
        self.local, self.lock = threading.local(), threading.Lock()
        self.files = {path.stem: path for path in sorted(options.suite.glob("*.py"))}

    def left(self):
        return self.until - time.monotonic()

    def keep(self, name, part, value):
        with self.lock:
            row = self.rows.setdefault(name, {})
            if part == "optimize":
                # Of another offer.
                row.pop("compile", None)
            row[part] = {**value, "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}
            beside = self.options.out.with_name(self.options.out.name + ".new")
            beside.write_text(json.dumps(self.rows, indent=1) + "\n")
            beside.replace(self.options.out)

    def command(self, command, limit, folder):
        """Runs it to its end, or for so long; gives its status (`None` if it was ended), output, errors and seconds."""
        begun = time.monotonic()
        device = self.local.device
        found = judged.environment(self.options.python, None if device is None else str(device))
        # Each search knows no more than that of a new user, and none waits for another one.
        found["XDG_STATE_HOME"] = str(self.options.state or folder / "state")
        process = subprocess.Popen(
            [*map(str, command)], env=found, cwd=folder, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        status = None
        try:
            out, err = process.communicate(timeout=limit)
            status = process.returncode
        except subprocess.TimeoutExpired:
            # It ends what it has started, if it still can.
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        return status, out, err, round(time.monotonic() - begun, 1)

    # --- parts ------------------------------------------------------------------------------------------------------

    def optimize(self, name, folder):
        file = pathlib.Path(shutil.copy(self.files[name], folder))
        if self.options.settings:
            shutil.copy(self.options.settings, folder / "warpsmith.toml")
        return self.search(name, file, folder)

    def tuned(self, name, folder):
        file = pathlib.Path(shutil.copy(self.files[name], folder))
        (folder / "warpsmith.toml").write_text(NUMBERS)
        return self.search(f"{name}-tuned", file, folder)

    def search(self, name, file, folder):
        budget = self.options.seconds
        command = [self.warpsmith, "optimize", file.name, "--budget", f"{budget}s", "--json"]
        limit = min(2 * budget + GRACE, self.left())
        status, out, err, seconds = self.command(command, limit, folder)
        if status is None and limit < 2 * budget + GRACE:
            return None
        if self.options.journals:
            self.options.journals.mkdir(parents=True, exist_ok=True)
            for journal in folder.glob(".warpsmith/runs/*.jsonl"):
                shutil.copy(journal, self.options.journals / f"{name}.jsonl")
        try:
            answer = json.loads(out)
        except ValueError:
            return {"error": ending(err) or f"status {status} after {seconds:.0f} s", "seconds": seconds}
        offer = answer.get("offer")
        value = {key: answer.get(key) for key in ("kernel", "evaluated", "remembered", "summary", "diff", "text")}
        if offer:
            speedup = offer["speedup"]
            value |= {"change": offer["change"], "speedup": speedup["ratio"], "interval": [speedup["low"], speedup["high"]]}
            value |= {key: speedup[key] for key in ("before_ms", "after_ms", "pairs", "conditions")}
        return {**value, "budget": budget, "seconds": seconds}

    def compile(self, name, folder):
        original = pathlib.Path(shutil.copy(self.files[name], folder / "original.py"))
        paths = [original]
        if text := self.rows.get(name, {}).get("optimize", {}).get("text"):
            paths.append(folder / "optimized.py")
            paths[-1].write_text(text)
        limit = min(COMPILE_LIMIT, self.left())
        status, out, err, seconds = self.command([self.options.python, HERE / "baselines.py", *paths], limit, folder)
        said = [line for line in out.splitlines() if line.startswith("{")]
        if status is None and limit < COMPILE_LIMIT:
            return None
        value = json.loads(said[-1]) if said else {}
        if status != 0:
            value["error" if not said else "compile_error"] = ending(err) or f"status {status} after {seconds:.0f} s"
        if said and name not in ARITHMETIC:
            value["floor_ms"] = value["bytes"] / BYTES_PER_MS
        return {**value, "seconds": seconds}

    def go(self):
        """Measures what is missing, as many files at a time as there are jobs; whether all of it was reached."""
        names = queue.Queue()
        for name in self.options.only or self.files:
            names.put(name)
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as workers:
            devices = range(self.options.jobs) if self.options.jobs > 1 else [None]
            return all(list(workers.map(lambda device: self.work(names, device), devices)))

    def work(self, names, device):
        """Takes names until there are none or the time is over; whether it came to the end."""
        self.local.device = device
        with contextlib.suppress(queue.Empty):
            while True:
                if not self.file(names.get_nowait()):
                    return False
        return True

    def file(self, name):
        """Measures what is missing of one file; whether all of it was reached."""
        parts = self.options.parts.split(",")
        search = self.options.seconds + BESIDE
        needs = {"optimize": search, "compile": COMPILE_SECONDS, "tuned": search}
        missing = [part for part in parts if self.options.only or part not in self.rows.get(name, {})]
        for part in missing:
            if self.left() < needs[part]:
                print(f"     {self.left():.0f} s are left; {name} has to wait", flush=True)
                return False
            with tempfile.TemporaryDirectory(prefix="warpsmith-optimize-", ignore_cleanup_errors=True) as folder:
                folder = pathlib.Path(folder)
                (folder / ".git").mkdir()
                try:
                    value = getattr(self, part)(name, folder)
                except (OSError, ValueError, KeyError) as why:
                    value = {"error": f"{type(why).__name__}: {why}"}
            if value is None:
                return False
            self.keep(name, part, value)
            # What was offered is timed anew.
            if part == "optimize" and "compile" in parts and "compile" not in missing:
                missing.append("compile")
        if missing:
            print(line(name, self.rows[name]), flush=True)
        return True


def ending(text):
    """The last lines, as one."""
    return " ".join(" ".join(text.strip().splitlines()[-4:]).split())[-600:]


def figures(row):
    """What a row says: the speedup that was offered, the one that was timed here, and the time of the compiled reference over ours."""
    search, timing = row.get("optimize", {}), row.get("compile", {})
    ratios = timing.get("ratios", {})
    ours = ratios.get("optimized", ratios.get("original"))
    compiled = ratios.get("compiled")
    return {
        "offered": search.get("speedup") if search.get("diff") else None,
        "timed": ours,
        "to compiled": ours / compiled if ours and compiled else None,
        "to eager": ours / ratios["eager"] if ours else None,
        "floor share": timing["floor_ms"] / timing["times"].get("optimized", timing["times"]["original"])["median"] if "floor_ms" in timing else None,
        "correct": timing.get("correct"),
        "error": search.get("error") or timing.get("error"),
    }


def line(name, row):
    found, search = figures(row), row.get("optimize", {})
    said = lambda key: "    -" if found[key] is None else f"{found[key]:5.2f}"
    wrong = "" if found["correct"] is not False else " WRONG"
    what = found["error"] or search.get("change") or search.get("summary") or row.get("compile", {}).get("compile_error") or ""
    return (
        f"{name:22} offered {said('offered')}  timed {said('timed')}  to compiled {said('to compiled')}  to eager {said('to eager')}"
        f"  floor {said('floor share')}  {search.get('evaluated', 0):4} candidates{wrong}  {what[:160]}"
    )


def total(rows, count):
    """What all files say together; a file without an offer is as fast as it was."""
    found = {name: figures(row) for name, row in rows.items()}
    mean = lambda values: math.exp(sum(map(math.log, values)) / len(values)) if values else None
    searched = [name for name in found if "optimize" in rows[name]]
    timed = [one["timed"] for one in found.values() if one["timed"]]
    compared = [one["to compiled"] for one in found.values() if one["to compiled"]]
    return {
        "files": count, "searched": len(searched), "offers": sum(found[name]["offered"] is not None for name in searched),
        "mean offered": mean([found[name]["offered"] or 1.0 for name in searched]), "mean timed": mean(timed), "timed": len(timed),
        "slower than 1": sum(ratio < 1.0 for ratio in timed),
        "compared with torch.compile": len(compared), "level with it": sum(ratio >= LEVEL for ratio in compared), "mean to it": mean(compared),
        "wrong": [name for name, one in found.items() if one["correct"] is False],
        "errors": {name: one["error"][:200] for name, one in found.items() if one["error"]},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warpsmith", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="+", help="names of files; they are measured again")
    parser.add_argument("--seconds", type=float, default=120.0, help="the budget of each search")
    parser.add_argument("--parts", default="optimize,compile")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds for all of it; asked between files")
    parser.add_argument("--settings", type=pathlib.Path, help="a warpsmith.toml for the searches")
    parser.add_argument("--journals", type=pathlib.Path, help="a folder to leave the journals of the searches in")
    parser.add_argument("--jobs", type=int, default=1, help="files at a time, each on a GPU of its own")
    parser.add_argument("--state", type=pathlib.Path, help="where all searches keep what they have learned; else each begins with nothing")
    parser.add_argument("--suite", type=pathlib.Path, default=HERE / "optimize", help="where the files are")
    options = parser.parse_args()
    options.only = [name for names in options.only or [] for name in names.split(",")]
    suite = Suite(options)
    unknown = [name for name in options.only if name not in suite.files] + [part for part in options.parts.split(",") if part not in PARTS]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}")
    is_complete = suite.go()
    summary = total({name: row for name, row in suite.rows.items() if name in suite.files}, len(suite.files))
    print(json.dumps(summary, indent=1), flush=True)
    return 0 if is_complete and not summary["wrong"] and not summary["errors"] else 1


if __name__ == "__main__":
    sys.exit(main())
