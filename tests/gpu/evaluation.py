#!/usr/bin/env python3
"""Measures the judge of candidates on a real GPU, by the command line alone.

    evaluation.py --warpsmith BINARY --python PYTHON --out RESULTS.json [--parts suite,second,published,same,ratios,throughput,robust]
        [--packages FOLDER_OR_WHEEL ...] [--seconds 540] [--jobs 8]

Results are merged into the file, so that parts may run in calls of their own; `robust`, `same` and `ratios` go on where
the last call stopped. Each part ends when its share of the time is over and says how far it came. Where there are several GPUs, what is
judged in processes of its own is spread over them. Standard library only.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import datetime
import json
import os
import pathlib
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/verify"))

import published
import run as suite
import variants

EXAMPLES = {"vector_add": "add", "softmax": "softmax", "layer_norm": "layer_norm", "matmul": "matmul", "attention": "attention"}
RATIOS = (
    "softmax/ok_online", "softmax/ok_warps", "fused/ok_tiling", "fused/ok_split_paths", "matmul/ok_tiles",
    "matmul/ok_grouped", "matmul/ok_split_k_reduce", "inplace/ok_heads", "inplace/ok_two_dimensions", "autograd/ok_programs",
)
REPEATS = 50
# Seconds for the candidates of one original.
SUITE_LIMIT = 160.0
ROBUST, ROBUST_BATCH = 1000, 250


class Evaluation:
    def __init__(self, options):
        self.options = options
        self.warpsmith = str(pathlib.Path(options.warpsmith).resolve())
        self.out = options.out
        self.results = json.loads(self.out.read_text()) if self.out.exists() else {}
        self.until = time.monotonic() + options.seconds
        self.writing = threading.Lock()
        # Each device as often as so many processes judge on it at once.
        self.devices = queue.Queue()
        for _ in range(options.jobs):
            for device in devices():
                self.devices.put(device)

    def left(self):
        return self.until - time.monotonic()

    def keep(self, part, value):
        self.results[part] = value
        self.results.setdefault("dates", {})[part] = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        self.out.write_text(json.dumps(self.results, indent=1) + "\n")
        print(part, json.dumps({key: item for key, item in value.items() if not isinstance(item, (dict, list))}), flush=True)

    @contextlib.contextmanager
    def folder(self):
        """A project of its own, with what the judge keeps in it, gone afterwards."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="warpsmith-evaluation-"))
        (folder / ".git").mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def device(self):
        """The number of a device that is free."""
        device = self.devices.get()
        try:
            yield device
        finally:
            self.devices.put(device)

    def each(self, work, items):
        """Does the work for all items, beside each other."""
        with concurrent.futures.ThreadPoolExecutor(self.devices.qsize()) as pool:
            return list(pool.map(work, items))

    def verify(self, original, candidate, entry, limit=180.0, arguments=(), device=None):
        limit = min(limit, max(self.left(), 1.0))
        return suite.verify(self.warpsmith, self.options.python, original, candidate, entry, limit, arguments, device)

    def lines(self, *arguments, limit=600.0, device=None):
        """Runs the judge and gives its lines of JSON with the time at which each came."""
        command = [self.warpsmith, "verify", *map(str, arguments), "--json"]
        begun = time.monotonic()
        environment = suite.environment(self.options.python, device)
        with contextlib.ExitStack() as stack:
            errors = stack.enter_context(tempfile.TemporaryFile("w+"))
            if self.options.logs:
                environment["WARPSMITH_LOG"] = "warpsmith=debug"
                self.options.logs.mkdir(exist_ok=True)
                errors = stack.enter_context((self.options.logs / f"{time.time():.0f}-{self.devices.qsize()}.log").open("w+"))
            process = subprocess.Popen(
                command, env=environment, text=True, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            )
            watch = subprocess.Popen(["sh", "-c", f"sleep {max(min(limit, self.left()), 1.0):.0f}; kill -9 -{process.pid}"], start_new_session=True, stderr=subprocess.DEVNULL)
            found = []
            for line in process.stdout:
                with contextlib.suppress(ValueError):
                    answer = json.loads(line)
                    if isinstance(answer, dict):
                        found.append((time.monotonic() - begun, answer))
            process.wait()
            os.killpg(watch.pid, 9)
            watch.wait()
            errors.seek(0)
            said = errors.read()[-2000:] if not self.options.logs else str(errors.name)
        return found, time.monotonic() - begun, "" if found else said

    def batch(self, original, folder, entry, limit=600.0):
        """Verdicts on every file of a folder, by its name, each with the seconds `at` which it came; the seconds that all took."""
        jobs = ["--jobs", self.options.batch_jobs] if self.options.batch_jobs else []
        found, seconds, errors = self.lines(original, "--batch", folder, "--entry", entry, *jobs, limit=limit)
        verdicts = {pathlib.Path(answer.get("candidate", "")).stem: {**answer, "at": at} for at, answer in found if "verdict" in answer}
        return verdicts, seconds, errors

    def wanted(self, named):
        return {name: item for name, item in named.items() if not self.options.only or name in self.options.only}

    def earlier(self, part, rows):
        """What earlier calls found, where this one does not look at all of it."""
        return {**self.results.get(part, {}).get(rows, {})} if self.options.only else {}

    # --- parts ------------------------------------------------------------------------------------------------------

    def suite(self):
        return self.judged_as_expected("suite", suite.FIRST)

    def second(self):
        return self.judged_as_expected("second", suite.SECOND)

    def judged_as_expected(self, part, entries):
        """Judges all candidates of some originals."""
        wanted = self.wanted(entries)
        rows = {name: row for name, row in self.earlier(part, "candidates").items() if name.split("/")[0] not in wanted}
        for original, entry in wanted.items():
            if self.left() < 20:
                break
            with self.folder() as folder:
                shutil.copytree(suite.HERE / original, folder / "candidates", ignore=shutil.ignore_patterns("__pycache__"))
                verdicts, seconds, errors = self.batch(shutil.copy(suite.HERE / f"{original}.py", folder), folder / "candidates", entry, limit=SUITE_LIMIT)
            print(f"     {original}: {len(verdicts)} verdicts in {seconds:.0f} s {errors[-300:]}", flush=True)
            for path in sorted((suite.HERE / original).glob("*.py")):
                if answer := verdicts.get(path.stem):
                    run = {"answer": answer, "status": suite.STATUS.get(answer["verdict"]), "seconds": answer["seconds"], "errors": ""}
                    row = suite.compare(suite.header(path), run, strict=False)
                    if row["got"] == "accepted" and row["expected"]["verdict"] == "refused" and self.left() > 60:
                        # Alone it is called with more elements than 32 bits count, whether it is an offer or not.
                        run = self.verify(suite.HERE / f"{original}.py", path, entry)
                        row = suite.compare(suite.header(path), run, strict=False)
                    rows[f"{original}/{path.stem}"] = row
                    if row["wrong"]:
                        print(f"FAIL {original}/{path.stem:32} {row['wrong']}: {row['reason'][:150]!r}", row["failed"], str(row["evidence"])[:600], flush=True)
        total = len([path for original, path in suite.candidates() if original in entries])
        self.keep(part, {"judged": len(rows), "of": total, **suite.summary(rows), "candidates": rows})
        return len(rows) == total and not any(row["wrong"] for row in rows.values())

    def published(self):
        rows = self.earlier("published", "rows")
        with self.folder() as folder:
            published.provide(self.options.packages, folder)

            def one(item):
                name, path = item
                candidate = folder / "copies" / path.name
                candidate.parent.mkdir(exist_ok=True)
                shutil.copy(path, candidate)
                with self.device() as device:
                    return name, self.verify(path, candidate, "entry", device=device) if self.left() > 10 else None

            seen = [(name, run) for name, run in self.each(one, self.wanted(published.write(folder)).items()) if run]
        for name, run in seen:
            answer = run["answer"] or {}
            failed = [check for check in answer.get("checks") or [] if not check.get("passed")]
            rows[name] = {
                "verdict": answer.get("verdict", "none"), "reason": answer.get("reason"), "failed": failed, "offer": answer.get("offer"),
                "speedup": answer.get("speedup"), "seconds": round(run["seconds"], 1), "errors": run["errors"][-500:] if not answer else "",
            }
            if rows[name]["verdict"] != "accepted":
                print(f"     {name:36} {rows[name]['verdict']:9} {rows[name]['seconds']:6.1f} s  {rows[name]['reason'] or rows[name]['errors'][-300:]}", [str(check.get("evidence"))[-400:] for check in failed], flush=True)
        count = lambda verdict: sum(row["verdict"] == verdict for row in rows.values())
        false, wins = count("refused"), sum(bool(row["offer"]) for row in rows.values())
        self.keep("published", {
            "kernels": len(rows), "accepted": count("accepted"), "false refusals": false, "not judged": count("none"), "wins": wins, "rows": rows,
        })
        return false == wins == 0 and count("accepted") == len(published.LIGER) + len(published.FLA)

    def same(self):
        """A kernel against itself: how often a win is claimed."""
        rows, unmeasured = ({**self.results.get("same", {}).get(key, {})} for key in ("rows", "unmeasured"))
        with self.folder() as folder:
            kernels = {f"example {name}": (pathlib.Path(shutil.copy(ROOT / f"examples/{name}.py", folder)), entry) for name, entry in EXAMPLES.items()}
            kernels |= {name: (ROOT / f"tests/verify/{name}.py", entry) for name, entry in suite.FIRST.items()}
            def one(item):
                name, (path, entry) = item
                done = rows.setdefault(name, [])
                if len(done) >= REPEATS or self.left() < 20:
                    return
                with self.device() as device:
                    arguments = "--entry", entry, "--quick", "--jobs", 3, "--repeat", REPEATS - len(done)
                    found, _, errors = self.lines(path, path, *arguments, device=device)
                done += [{key: answer.get(key) for key in ("speedup", "interval", "offer")} for _, answer in found if answer.get("interval")]
                without = [answer for _, answer in found if not answer.get("interval")]
                unmeasured.setdefault(name, []).extend({key: answer.get(key) for key in ("verdict", "reason", "checks")} for answer in without)
                why = collections.Counter(str(answer.get("reason"))[:200] for answer in without)
                print(f"     {name:20} {len(done)} comparisons, {len(without)} without: {dict(why)} {errors[-300:]}", flush=True)
                # A call that is broken off keeps what it has.
                self.keep_same(rows, unmeasured)

            self.each(one, kernels.items())
        every, wins = self.keep_same(rows, unmeasured)
        # One measurement that is told fifty times is one.
        is_new = self.results["same"]["different"] >= 0.9 * every
        return every >= REPEATS * len(kernels) and wins < 0.01 * every and is_new

    def keep_same(self, rows, unmeasured):
        """Writes how often a win was claimed; gives the comparisons and the wins."""
        with self.writing:
            rows, unmeasured = dict(rows), dict(unmeasured)
            every = [row for some in rows.values() for row in some]
            wins = self.claims(every, rows, unmeasured)
        return len(every), wins

    def claims(self, every, rows, unmeasured):
        wins = sum(bool(row["offer"]) for row in every)
        above = sum(bool(row["interval"]) and row["interval"][0] > 1.0 for row in every)
        spread = [abs(row["speedup"] - 1.0) for row in every if row["speedup"]]
        self.keep("same", {
            "comparisons": len(every), "wins": wins, "intervals above 1": above,
            "different": len({(name, row["speedup"], *row["interval"]) for name, some in rows.items() for row in some}),
            "median distance from 1": statistics.median(spread) if spread else None, "largest": max(spread, default=None), "rows": rows,
            "without an interval": sum(map(len, unmeasured.values())), "unmeasured": unmeasured,
        })
        return wins

    def ratios(self):
        """The same ratio measured twice."""
        rows = {name: row for name, row in self.results.get("ratios", {}).get("rows", {}).items() if row["difference"] is not None}

        def one(name):
            if name in rows:
                return
            original = name.split("/")[0]
            files = ROOT / f"tests/verify/{original}.py", ROOT / f"tests/verify/{name}.py"
            # Everything is started twice.
            with self.device() as device:
                once = lambda: self.verify(*files, suite.ENTRIES[original], arguments=["--quick"], device=device)["answer"] or {}
                answers = [once() for _ in range(2) if self.left() > 20]
            speeds = [answer.get("speedup") for answer in answers]
            rows[name] = {"speedups": speeds, "difference": abs(speeds[0] / speeds[1] - 1.0) if len(speeds) == 2 and all(speeds) else None}
            print(f"     {name:28} {speeds}", flush=True)

        self.each(one, RATIOS)
        differences = [row["difference"] for row in rows.values() if row["difference"] is not None]
        median = statistics.median(differences) if differences else None
        self.keep("ratios", {"kernels": len(differences), "median difference": median, "rows": rows})
        return len(differences) == len(RATIOS) and median < 0.02

    def throughput(self):
        fine = True
        kinds = {"matmul": (self.options.variants, 120), "block": (min(self.options.variants // 2, 120), 60)}
        for name, (count, goal) in self.wanted(kinds).items():
            with self.folder() as folder:
                files = folder / "candidates"
                files.mkdir()
                original = folder / f"{name}.py"
                if name == "matmul":
                    shutil.copy(variants.matmul(files, count), original)
                else:
                    variants.block(files, original, count)
                # The first call records the workload and compiles the original, as an optimization has done before.
                self.verify(original, original, name)
                verdicts, seconds, errors = self.batch(original, files, name)
            rate = 60.0 * len(verdicts) / seconds
            # Without finding out about the original, once the processes are busy.
            times = sorted(answer["at"] for answer in verdicts.values())
            half = times[len(times) // 2 :]
            steady = 60.0 * (len(half) - 1) / (half[-1] - half[0]) if len(half) > 8 else None
            refused = {key: answer.get("reason") for key, answer in verdicts.items() if answer["verdict"] != "accepted"}
            offers = sum(bool(answer.get("offer")) for answer in verdicts.values())
            stages = {stage: round(statistics.median(spent), 3) for stage, spent in suite.stages(verdicts.values()).items()}
            self.keep(f"throughput {name}", {
                "candidates": count, "verdicts": len(verdicts), "seconds": round(seconds, 1), "a minute": round(rate, 1), "goal": goal,
                "a minute in the second half": steady and round(steady, 1), "first after": times and round(times[0], 1),
                "accepted": len(verdicts) - len(refused), "offers": offers, "refused": refused, "errors": errors, "stages": stages,
                "jobs": self.options.batch_jobs, "at": [round(at, 1) for at in times],
            })
            print(f"     median seconds of the stages: {stages}", flush=True)
            fine = fine and len(verdicts) == count and rate >= goal
        return fine

    def robust(self):
        """Crashing, hanging and corrupting candidates among right and wrong ones, in batches of one folder each."""
        before, earlier = state(), self.results.get("robust", {})
        batches = earlier.get("batches", {})
        for number in range(ROBUST // ROBUST_BATCH):
            # One that is broken off says nothing, and leaves behind what it could not clean up.
            longest = max((batch["seconds"] for batch in batches.values()), default=100.0)
            if str(number) in batches or self.left() < 1.15 * longest:
                continue
            with self.folder() as folder:
                files = folder / "candidates"
                files.mkdir()
                original = folder / "axpy.py"
                made = variants.robust(files, original, ROBUST_BATCH, seed=number)
                verdicts, seconds, errors = self.batch(original, files, "axpy")
            wrong = {
                name: [kind, verdicts.get(name, {}).get("verdict", "none"), str(verdicts.get(name, {}).get("reason"))[:200]]
                for name, kind in made.items()
                if verdicts.get(name, {}).get("verdict") != ("accepted" if kind == "right" else "refused")
            }
            batches[str(number)] = {"verdicts": len(verdicts), "seconds": round(seconds, 1), "wrong": wrong, "errors": errors}
            print(f"     batch {number}: {len(verdicts)} verdicts in {seconds:.0f} s, {len(wrong)} wrong {errors[-300:]}", flush=True)
        time.sleep(1.0)
        after = state()
        leaks = {
            "processes": [what for pid, what in after["processes"].items() if pid not in before["processes"]],
            "files": sorted(set(after["files"]) - set(before["files"])),
            "device bytes": (after["device"] or 0) - (before["device"] or 0),
        }
        leaks = {key: earlier["leaks"][key] + value if earlier else value for key, value in leaks.items()}
        count = sum(batch["verdicts"] for batch in batches.values())
        wrong = sum(len(batch["wrong"]) for batch in batches.values())
        seconds = sum(batch["seconds"] for batch in batches.values())
        self.keep("robust", {
            "candidates": ROBUST_BATCH * len(batches), "verdicts": count, "wrong": wrong, "seconds": round(seconds, 1),
            "leaked processes": len(leaks["processes"]), "leaked files": len(leaks["files"]), "leaked device bytes": leaks["device bytes"],
            "leaks": leaks, "batches": batches,
        })
        return count == ROBUST and wrong == 0 and not leaks["processes"] and not leaks["files"] and leaks["device bytes"] < 64 << 20


def devices():
    """The numbers of the devices; one that is not said where there is none to be listed."""
    try:
        listed = subprocess.run(["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"], capture_output=True, text=True, timeout=30)
        return listed.stdout.split() if listed.returncode == 0 and len(listed.stdout.split()) > 1 else [None]
    except (OSError, subprocess.SubprocessError):
        return [None]


def state():
    """Processes of this user that are not this one's own, temporary files, and memory in use on the device."""
    own, pid = set(), os.getpid()
    while pid > 1:
        own.add(pid)
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    processes = {}
    for process in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit() and int(process.name) not in own:
                # A number may be used again: the time of the start belongs to a process's name.
                fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                if command:
                    processes[f"{process.name}-{fields[19]}"] = f"{fields[0]} {command[:120]}"
    files = [str(path) for place in ("/dev/shm", tempfile.gettempdir()) if os.path.isdir(place) for path in pathlib.Path(place).iterdir()]
    device = None
    with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
        query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        device = sum(int(line) << 20 for line in subprocess.run(query, capture_output=True, text=True, timeout=30).stdout.split())
    return {"processes": processes, "files": files, "device": device}


PARTS = ("suite", "second", "published", "same", "ratios", "throughput", "robust")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warpsmith", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--packages", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=540.0, help="for all parts together")
    parser.add_argument("--jobs", type=int, default=4, help="processes that judge on a device at once, where each is alone with its original")
    parser.add_argument("--only", nargs="*", help="originals of the suite, published kernels, kinds of throughput; the results of the others stay")
    parser.add_argument("--batch-jobs", type=int, help="candidates of a folder at once; as many as the judge takes for best")
    parser.add_argument("--logs", type=pathlib.Path, help="where to leave what the judge logs of itself")
    parser.add_argument("--variants", type=int, default=240)
    options = parser.parse_args()
    evaluation = Evaluation(options)
    passed = {}
    for part in options.parts.split(","):
        if part not in PARTS:
            parser.error(f"no part {part}")
        passed[part] = getattr(evaluation, part)()
        print("ok  " if passed[part] else "FAIL", part, f"({evaluation.left():.0f} s left)", flush=True)
    return 0 if all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
