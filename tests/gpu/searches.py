#!/usr/bin/env python3
"""Stops, kills and crowds searches on a real GPU.

    searches.py --warpsmith BINARY --python PYTHON [--out RESULTS.json] [--only cancel,killed,worker,crowd] [--file FILE] [--budget 40]
        [--after 12] [--crowd 10]

`cancel` interrupts a search in its middle; `killed` kills one and resumes it; `worker` kills what judges while it goes on; `crowd` starts so many at once,
of which each judges two candidates. `--after` candidates something is done. Standard library only; PYTHON has torch and Triton. Ends with status 1
when something is not as it should be.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "verify"))

import run as judged

MARK = "WARPSMITH_SEARCHES"
PARTS = ("cancel", "killed", "worker", "crowd")
LIMIT = 300.0
# Ending a process that has a context takes the driver a tenth of a second, one after the other.
GONE = 8.0
# A search that ends well has an offer, or none.
ENDED = (0, 1)


class Project:
    """A file in a folder of its own, and what is searched in it."""

    def __init__(self, options, settings=""):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="warpsmith-searches-"))
        (self.folder / ".git").mkdir()
        (self.folder / "warpsmith.toml").write_text(settings)
        self.file = pathlib.Path(shutil.copy(options.file, self.folder))
        self.warpsmith, self.budget = str(pathlib.Path(options.warpsmith).resolve()), options.budget
        self.environment = judged.environment(options.python)
        self.environment |= {"XDG_STATE_HOME": str(self.folder / "state"), MARK: self.folder.name}

    def start(self, *arguments):
        command = [self.warpsmith, "optimize", *(arguments or (self.file.name, "--budget", f"{self.budget}s", "--json"))]
        return subprocess.Popen(
            command, env=self.environment, cwd=self.folder, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )

    def journals(self):
        """What each run has written down, the first run first."""
        paths = self.folder.glob(".warpsmith/runs/*.jsonl")
        ordered = sorted(paths, key=lambda path: int(path.stem.rsplit("-", 1)[1]))
        return [[json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")] for path in ordered]

    def wait(self, process, count):
        """Until so many candidates were judged."""
        until = time.monotonic() + LIMIT
        while time.monotonic() < until and process.poll() is None:
            if any(len(ids(journal, "came")) >= count for journal in self.journals()):
                return True
            time.sleep(0.02)
        return False

    def left(self):
        """Processes of this project that are still there: their numbers, with what they are."""
        mark, found = f"{MARK}={self.folder.name}".encode(), {}
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        return {number: command for number, command in found.items() if command}

    def gone(self):
        """Waits until no process is left; after how many seconds that was (`None` if some stay), and what stays."""
        since = time.monotonic()
        while (left := self.left()) and time.monotonic() - since < GONE:
            time.sleep(0.02)
        return None if left else round(time.monotonic() - since, 2), list(left.values())


def ids(journal, what):
    return sorted(entry["id"] for entry in journal if entry["what"] == what)


def last(journal, what):
    return next((entry for entry in reversed(journal) if entry["what"] == what), None)


def fates(journal, made):
    """Whether each candidate was made and came to its end once, and which of those that were made never came to one."""
    # What still compiles when the time is over is given up.
    done, numbers = ids(journal, "came") + ids(journal, "given-up"), ids(journal, "made")
    return len(done) == len(set(done)) and len(numbers) == len(set(numbers)), sorted(set(made) - set(done))


def end(process):
    try:
        return process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()


def cancel(options):
    project = Project(options)
    before, process = project.file.read_text(), project.start()
    reached = project.wait(process, options.after)
    since = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait(timeout=LIMIT)
    took = round(time.monotonic() - since, 2)
    gone, left = project.gone()
    return {
        "passed": reached and took <= 1.0 and not left and project.file.read_text() == before and process.returncode == 2,
        "seconds": took, "all gone after": gone, "left": left, "status": process.returncode,
    }


def killed(options):
    project = Project(options)
    process = project.start()
    reached = project.wait(process, options.after)
    process.kill()
    process.wait()
    gone, left = project.gone()
    before = project.journals()[0]
    out, err = end(project.start("--resume", "last", "--json"))
    after = project.journals()[0]
    kept = after[: len(before)] == before
    # What was under way is judged when the run goes on.
    once, lost = fates(after, ids(before, "made"))
    ended = last(after, "ended")
    return {
        "passed": reached and not left and kept and once and not lost and ended is not None,
        "all gone after": gone, "left": left, "judged before": len(ids(before, "came")), "judged in all": len(ids(after, "came")),
        "under way": len(ids(before, "made")) - len(ids(before, "came")), "lost": lost, "made in all": len(ids(after, "made")), "kept": kept,
        "each once": once, "said": ended["summary"] if ended else err[-400:],
    }


def worker(options):
    project = Project(options)
    process = project.start()
    reached = project.wait(process, options.after)
    others = {number: command for number, command in project.left().items() if number != process.pid}
    for number in others:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    since = time.monotonic()
    at = len(ids(project.journals()[0], "came"))
    project.wait(process, at + 4)
    again = round(time.monotonic() - since, 1)
    out, err = end(process)
    journal = project.journals()[0]
    ended = last(journal, "ended")
    once, lost = fates(journal, ids(journal, "made"))
    gone, left = project.gone()
    return {
        "passed": reached and bool(others) and process.returncode == 0 and ended is not None and once and not lost and not left,
        "killed": len(others), "seconds until four more": again, "judged before": at, "judged in all": len(ids(journal, "came")),
        "each once": once, "lost": lost, "status": process.returncode, "all gone after": gone, "left": left, "said": ended["summary"] if ended else err[-400:],
    }


def crowd(options):
    project = Project(options, "[optimize]\ncandidates = 2\n")
    since = time.monotonic()
    running = []
    for _ in range(options.crowd):
        running.append(project.start())
        # In this order.
        time.sleep(0.3)
    errors = [err for process, (_, err) in [(process, end(process)) for process in running] if process.returncode not in ENDED]
    journals = project.journals()
    begun = [journal[0]["at"] / 1000.0 for journal in journals]
    ends = [start + last(journal, "ended")["seconds"] for start, journal in zip(begun, journals) if last(journal, "ended")]
    alone = all(start >= earlier - 0.1 for start, earlier in zip(begun[1:], ends))
    return {
        "passed": len(ends) == options.crowd and alone and not errors and not project.left(),
        "searches": len(ends), "one after the other": alone, "seconds": round(time.monotonic() - since, 1),
        "longest": round(max((stop - start for start, stop in zip(begun, ends)), default=0.0), 1), "errors": [err[-300:] for err in errors],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warpsmith", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--file", type=pathlib.Path, default=HERE / "optimize/softmax_narrow.py")
    parser.add_argument("--budget", type=float, default=40.0)
    parser.add_argument("--after", type=int, default=12, help="candidates after which something is done")
    parser.add_argument("--crowd", type=int, default=10)
    options = parser.parse_args()
    results = {}
    for name in options.only.split(","):
        results[name] = {"cancel": cancel, "killed": killed, "worker": worker, "crowd": crowd}[name](options)
        print("ok  " if results[name]["passed"] else "FAIL", name, json.dumps(results[name]), flush=True)
        if options.out:
            options.out.write_text(json.dumps(results, indent=1) + "\n")
    return 0 if all(result["passed"] for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
