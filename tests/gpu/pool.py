#!/usr/bin/env python3
"""Measures a pool of GPUs on one host: a real Ray cluster that sees 1, 2, then 4 of them.

    pool.py --warpsmith BINARY --python PYTHON --out RESULTS.json [--gpus 4,1,2] [--parts status,throughput,search,editor,local]
        [--nvim NVIM] [--candidates 60] [--search 200] [--warm 0] [--seconds 560] [--cores N] [--parallel N] [--own] [--logs FOLDER] [--reports FOLDER] [--device toy]

`throughput` judges variants of `examples/matmul.py`, so many `--candidates` for each GPU, with `evaluator.pool`; `local` does it without a pool, on the
fewest GPUs. `search` is one search with a seed until so many candidates are judged. `status` keeps what
`warpsmith pool status` and `warpsmith doctor --evaluator` say; `editor` plays a recorded Neovim session of `examples/matmul.py` to a server that sees no GPU;
with `--nvim` the part `neovim` does the same in that Neovim.

A host that has just started is slower: its memory grows as it is used, and nothing was read yet. With `--warm` a search of so many candidates on
the most GPUs comes before everything else; it counts for nothing.

The heads are started one after the other, in the order of `--gpus` and as far as there are so many, bound to the loopback, and ended with all that they have started. `--cores` gives each
GPU so many processors; with `--own` the pool is asked by Ray's own protocol, not by its client. What the GPUs do meanwhile is asked of `nvidia-smi`. Results are written after each part; a part that fails says so and the others go
on. PYTHON has torch, Triton and `ray[client]`; else the standard library only. `--device` plays devices, to try this script.
"""

import argparse
import collections
import contextlib
import datetime
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "verify"))

import cluster
import run as judged
import variants

PARTS = ("status", "throughput", "search", "editor", "neovim", "local")
GOALS = {2: 1.8, 4: 3.4}
IMPORTS = "import triton.language as tl\n"
CALL = "# warpsmith: workload entry=matmul a={0} b={0}\n"
TOY = "# warpsmith: workload entry=layer_norm x=f32[4,70] weight=f32[70] bias=f32[70]\n"
# Seconds after which a part is ended: to judge the candidates of a GPU, the budget of a search, a search in all, the editor's session.
JUDGING, BUDGET, SEARCHING, EDITING = 150.0, 180.0, 260.0, 160.0
# Seconds that must be left to begin with a part.
LEAST = 30.0


class Pool:
    def __init__(self, options):
        self.options = options
        self.warpsmith = str(pathlib.Path(options.warpsmith).resolve())
        self.until = time.monotonic() + options.seconds
        self.results = json.loads(options.out.read_text()) if options.out.exists() else {}
        self.failed = []

    def left(self):
        return self.until - time.monotonic()

    def keep(self, part, value):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        self.results[part] = {**value, "date": now}
        self.options.out.write_text(json.dumps(self.results, indent=1, ensure_ascii=False) + "\n")
        told = {key: one for key, one in value.items() if not isinstance(one, (dict, list)) and len(str(one)) < 200}
        print(f"{part}: {json.dumps(told, ensure_ascii=False)} ({self.left():.0f} s left)", flush=True)

    def part(self, name, work, *arguments):
        """Does a part by itself: what goes wrong in it is kept in place of its results."""
        try:
            value = work(*arguments)
        except Exception as error:  # whatever it is, the time on the host goes on
            value = {"error": f"{type(error).__name__}: {error}", "where": traceback.format_exc()[-1500:]}
        if "error" in value:
            self.failed.append(name)
        self.keep(name, value)

    @contextlib.contextmanager
    def project(self, settings=""):
        """A folder with the original, whose call is in a comment: nothing is recorded where no GPU is."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="warpsmith-pool-"))
        (folder / ".git").mkdir()
        (folder / "warpsmith.toml").write_text(settings)
        text = (HERE.parents[1] / "examples/matmul.py").read_text()
        assert text.count(IMPORTS) == 1
        (folder / "matmul.py").write_text(text.replace(IMPORTS, IMPORTS + "\n" + self.call()))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def call(self):
        return CALL.format("f32[64,64]" if self.options.device else "bf16[4096,4096]")

    def environment(self, folder, visible=""):
        """What the command is started with: it sees no GPU, unless it is to judge here."""
        found = judged.environment(self.options.python, visible) | cluster.LOOPBACK
        if self.options.device and visible:
            found["WARPSMITH_FAKE_DEVICE"] = self.options.device
        return found | {"XDG_STATE_HOME": str(folder / "state")}

    def command(self, folder, *arguments, limit, visible=""):
        """Runs it to its end, or for so long: its status, lines with the seconds at which they came, errors."""
        limit, begun = max(min(limit, self.left()), 5.0), time.monotonic()
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                [self.warpsmith, *map(str, arguments)], cwd=folder, env=self.environment(folder, visible), text=True,
                start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            )
            end = threading.Timer(limit, os.killpg, (process.pid, signal.SIGKILL))
            end.start()
            lines = [(time.monotonic() - begun, line) for line in process.stdout]
            process.wait()
            end.cancel()
            errors.seek(0)
            return process.returncode, lines, errors.read()[-2000:]

    # --- parts ------------------------------------------------------------------------------------------------------

    def status(self, head):
        with self.project(head.settings) as folder:
            said = {}
            for name, arguments in {
                "doctor": ("doctor", "--evaluator"), "pool status": ("pool", "status"), "as JSON": ("pool", "status", "--format", "json"),
            }.items():
                code, lines, errors = self.command(folder, *arguments, limit=90.0)
                said[name] = {"status": code, "said": [line.rstrip() for _, line in lines], "errors": errors}
        failed = [name for name, one in said.items() if one["status"] != 0]
        return {**said, **({"error": f"{failed} failed"} if failed else {})}

    def batch(self, gpus, settings, visible=""):
        """Judges the candidates; what came, and how busy the host was."""
        count = self.options.candidates * gpus
        with self.project(settings) as folder:
            files = folder / "candidates"
            files.mkdir()
            variants.matmul(files, self.options.candidates * max(self.options.gpus))
            for path in sorted(files.iterdir())[count:]:
                path.unlink()
            quick = ["--quick"] if self.options.device else []
            with cluster.Watch() as watch:
                begun = time.monotonic()
                _, lines, errors = self.command(
                    folder, "verify", "matmul.py", "--batch", files, "--entry", "matmul", "--json", *quick, limit=JUDGING, visible=visible
                )
                seconds = time.monotonic() - begun
        answers = [(at, json.loads(line)) for at, line in lines if line.startswith("{")]
        return self.summed([(at, one) for at, one in answers if "verdict" in one], count, seconds, errors) | watch.seen()

    def summed(self, answers, count, seconds, errors):
        times, verdicts = sorted(at for at, _ in answers), [one for _, one in answers]
        places = collections.Counter(json.dumps(one.get("judged_on"), sort_keys=True) for one in verdicts)
        return {
            **({"error": f"{len(verdicts)} of {count} verdicts: {errors[-600:]}"} if len(verdicts) != count else {}),
            "verdicts": len(verdicts), "seconds": round(seconds, 1), "a minute": round(60.0 * len(verdicts) / seconds, 1),
            **rates(times), "first after": round(times[0], 1) if times else None, "judged on": dict(places),
            "said": collections.Counter(f"{one['verdict']} {one.get('reason') or ''}"[:80] for one in verdicts),
            "example": {key: verdicts[0].get(key) for key in ("judged_on", "measured")} if verdicts else None, "errors": errors[-600:],
            "stages": stages(verdicts), "at": [round(at, 1) for at in times],
        }

    def throughput(self, head):
        return self.batch(head.gpus, head.settings)

    def local(self, gpus):
        return self.batch(gpus, "", cluster.numbers(gpus))

    def search(self, head, candidates=None):
        candidates = candidates or self.options.search
        optimize = f"[optimize]\nseed = 1\ncandidates = {candidates}\npatience = 0\nbudget = {BUDGET:.0f}\n"
        optimize += f"parallel = {self.options.parallel * head.gpus}\n" if self.options.parallel else ""
        with self.project(head.settings + optimize) as folder, cluster.Watch() as watch:
            begun = time.monotonic()
            code, lines, errors = self.command(folder, "optimize", "matmul.py", "--json", limit=SEARCHING)
            seconds = time.monotonic() - begun
            _, told, _ = self.command(folder, "report", "--format", "json", limit=60.0)
        text, report = ("".join(line for _, line in some) for some in (lines, told))
        if self.options.reports and report:
            self.options.reports.mkdir(parents=True, exist_ok=True)
            (self.options.reports / f"search-{head.gpus}-of-{candidates}.json").write_text(report)
        # One that was ended says nothing, but its journal does.
        failed = {} if text.startswith("{") else {"error": f"status {code}: {errors[-800:]}"}
        outcome, report = json.loads("{}" if failed else text), json.loads(report or "{}")
        offer = outcome.get("offer") or {}
        speedup = offer.get("speedup") or {}
        done = sorted((one for one in report.get("candidates", []) if one["fate"] != "open"), key=lambda one: one["seconds"])
        return {
            **failed, "seconds": round(seconds, 1), "evaluated": outcome.get("evaluated"), "summary": outcome.get("summary"), "change": offer.get("change"),
            "speedup": speedup.get("ratio"), "interval": [speedup.get("low"), speedup.get("high")], "conditions": speedup.get("conditions"),
            **rates([one["seconds"] for one in done]), "first judged after": done[0]["seconds"] if done else None,
            "last judged after": done[-1]["seconds"] if done else None, "best": best(done), "stages": stages(done), "errors": errors[-600:], **watch.seen(),
        }

    def editor(self, head):
        """A user without a GPU: the server sees none, and the title of the edit names that of the pool."""
        out = self.options.out.with_name("pool-editor.json")
        file, call = ("layer_norm.py", TOY) if self.options.device else ("matmul.py", self.call())
        command = [
            sys.executable, HERE / "replay.py", HERE / "sessions/neovim.jsonl", "--warpsmith", self.warpsmith, "--python", self.options.python,
            "--out", out, "--budget", "40", "--file", file, "--call", call, "--pool", head.address,
            *(["--device", self.options.device] if self.options.device else []),
        ]
        with cluster.Watch() as watch:
            ran = subprocess.run(
                [*map(str, command)], env=dict(os.environ) | cluster.LOOPBACK, text=True, capture_output=True,
                stdin=subprocess.DEVNULL, timeout=max(min(EDITING, self.left()), 5.0),
            )
        found = json.loads(out.read_text()) if out.exists() else {}
        problems = found.get("problems", [ran.stderr[-1500:]])
        return {**({"error": "; ".join(problems)} if ran.returncode else {}), **found, **watch.seen()}

    def neovim(self, head):
        """The same in Neovim itself, with `session.lua`: the diff that is shown names a GPU of the pool, and accepting it changes the file."""
        with self.project(head.settings + "[optimize]\nbudget = 40\n[compiler]\ntarget = 'cuda:90'\n") as folder, cluster.Watch() as watch:
            file = folder / "matmul.py"
            before = file.read_text()
            script = [self.options.nvim, "--headless", "--clean", "-l", HERE / "session.lua"]
            ran = subprocess.run(
                [*map(str, script), str(HERE.parents[1] / "editors/nvim"), self.warpsmith, str(file), "apply"], cwd=folder, env=self.environment(folder),
                text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=max(min(EDITING, self.left()), 5.0),
            )
            changed = file.read_text() != before
        said = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
        title = next((one["asked"] for one in said if "faster" in one.get("asked", "")), None)
        named = [name for name in cluster.names() if title and name in title]
        problems = [] if ran.returncode == 0 else [f"status {ran.returncode}: {ran.stderr.strip()[-600:]}"]
        problems += [] if named else [f"the title names no GPU of the pool: {title}"]
        problems += [] if changed else ["the file is as it was"]
        return {**({"error": "; ".join(problems)} if problems else {}), "title": title, "said": said, **watch.seen()}

    # ----------------------------------------------------------------------------------------------------------------

    def warmed(self):
        with cluster.Head(self.options, max(self.options.gpus), self.warpsmith, self.environment) as head:
            return self.search(head, self.options.warm)

    def go(self):
        if self.options.warm:
            self.part("warming", self.warmed)
        for gpus in self.options.gpus:
            if wanted := [part for part in self.options.parts if gpus in self.where(part)]:
                self.part(f"head of {gpus}", self.with_head, gpus, wanted)
        if "local" in self.options.parts and self.left() > LEAST:
            self.part(f"local {min(self.options.gpus)}", self.local, min(self.options.gpus))
        self.part("compared", self.compared)

    def where(self, part):
        """The numbers of GPUs that a part is done with."""
        every = self.options.gpus
        return {"status": every[:1], "throughput": every, "search": every, "editor": every[-1:], "neovim": every[-1:] if self.options.nvim else [], "local": []}[part]

    def with_head(self, gpus, parts):
        with cluster.Head(self.options, gpus, self.warpsmith, self.environment) as head:
            for part in parts:
                if self.left() > LEAST:
                    self.part(f"{part} {gpus}", getattr(self, part), head)
                    if "error" in self.results[f"{part} {gpus}"]:
                        self.keep(f"logs of {part} {gpus}", {"said": head.said()})
                else:
                    self.failed.append(part)
        return {"address": head.address, "seconds until it was there": head.seconds, "processors": head.processors, "stopped": head.stopped, "said": head.said()}

    def compared(self):
        """How much more several GPUs give than one."""
        found = {}
        for part in ("throughput", "search"):
            rows = {gpus: self.results.get(f"{part} {gpus}", {}) for gpus in sorted(self.options.gpus)}
            one = rows.get(1, {})
            for key in ("a minute", "a minute from the first on", "a minute in the second half", "a minute in the middle"):
                ratios = {gpus: round(row[key] / one[key], 2) for gpus, row in rows.items() if gpus > 1 and one.get(key) and row.get(key)}
                found[f"{part}, {key}"] = ratios
        found["pool to local"] = [self.results.get(f"{part} 1", {}).get("a minute") for part in ("throughput", "local")]
        few, many = (self.results.get(f"search {gpus}", {}) for gpus in (min(self.options.gpus), max(self.options.gpus)))
        if few.get("speedup") and many.get("speedup"):
            found["search"] = {"speedup": [few["speedup"], many["speedup"]], "share of the seconds": round(many["seconds"] / few["seconds"], 2)}
        missed = {gpus: ratio for gpus, ratio in found["throughput, a minute"].items() if ratio < GOALS.get(gpus, 0)}
        return {**found, **({"missed": missed} if missed else {})}


def rates(times):
    """Verdicts a minute, by the seconds at which they came; `in the middle` is without the first and the last fifth, when processes start and
    the last candidates compile."""
    rate = lambda some: round(60.0 * (len(some) - 1) / (some[-1] - some[0]), 1) if len(some) > 4 else None
    fifth, half = len(times) // 5, len(times) // 2
    return {
        "a minute from the first on": rate(times), "a minute in the second half": rate(times[half:]),
        "a minute in the middle": rate(times[fifth : len(times) - fifth]),
    }


def stages(verdicts):
    """Seconds that each part took of those that had it, and how many these are."""
    of = lambda spent: {"median": round(statistics.median(spent), 3), "mean": round(statistics.mean(spent), 3), "of": len(spent)}
    return {stage: of(spent) for stage, spent in judged.stages(verdicts).items()}


def best(done):
    """When which speed was reached: candidates so far, seconds, times as fast."""
    steps, most = [], 1.0
    for at, one in enumerate(done):
        if (one["speedup"] or 0) > most:
            most = one["speedup"]
            steps.append([at + 1, round(one["seconds"], 1), round(most, 3)])
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warpsmith", required=True)
    parser.add_argument("--python", required=True, type=lambda path: str(pathlib.Path(path).absolute()))
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--nvim", type=lambda path: str(pathlib.Path(path).absolute()))
    parser.add_argument("--gpus", default="4,1,2")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--candidates", type=int, default=60, help="to be judged for each GPU")
    parser.add_argument("--search", type=int, default=200, help="candidates of a search")
    parser.add_argument("--warm", type=int, default=0, help="candidates of a search before everything else")
    parser.add_argument("--seconds", type=float, default=560.0, help="for all parts together")
    parser.add_argument("--cores", type=int, help="processors for each GPU")
    parser.add_argument("--parallel", type=int, help="candidates of a search at once for each GPU")
    parser.add_argument("--own", action="store_true", help="ask by Ray's own protocol")
    parser.add_argument("--logs", type=pathlib.Path, help="a folder for what the hosts say, in detail")
    parser.add_argument("--reports", type=pathlib.Path, help="a folder for what `warpsmith report` says of each search")
    parser.add_argument("--device", help="a device to be played")
    options = parser.parse_args()
    options.out = options.out.absolute()
    options.gpus, options.parts = [int(one) for one in options.gpus.split(",")], options.parts.split(",")
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no {', '.join(unknown)}")
    if not options.device:
        there = cluster.count()
        options.gpus = [one for one in options.gpus if one <= there] or [max(there, 1)]
    pool = Pool(options)
    pool.go()
    print(json.dumps(pool.results["compared"], indent=1), *(f"FAIL {name}" for name in pool.failed), sep="\n", flush=True)
    return 1 if pool.failed else 0


if __name__ == "__main__":
    sys.exit(main())
