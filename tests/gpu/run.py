#!/usr/bin/env python3
"""Optimizes on a real GPU, from the command line and from Neovim, and writes what was measured.

    run.py --warpsmith BINARY --nvim NVIM --out RESULTS.json

Started by `cargo xtask gpu-test`; needs nothing but Python's standard library (and, for the kernels, torch and Triton in
the interpreter that runs it). Ends with status 1 when something is not as it should be.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
MARK = "WARPSMITH_GPU_TEST"


class Session:
    def __init__(self, options):
        self.warpsmith = str(pathlib.Path(options.warpsmith).resolve())
        self.nvim = options.nvim
        self.python = options.python
        self.results = {"date": datetime.date.today().isoformat(), "checks": [], "figures": {}}
        self.environment = dict(os.environ)
        self.environment["VIRTUAL_ENV"] = str(pathlib.Path(self.python).parent.parent)
        self.environment[MARK] = str(os.getpid())

    def check(self, name, passed, seen):
        self.results["checks"].append({"name": name, "passed": bool(passed), "seen": seen})
        print("ok  " if passed else "FAIL", name, "-", seen, flush=True)

    def figure(self, name, value):
        self.results["figures"][name] = value
        print("    ", name, "=", json.dumps(value), flush=True)

    def project(self, example):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="warpsmith-gpu-"))
        (folder / ".git").mkdir()
        return pathlib.Path(shutil.copy(ROOT / "examples" / example, folder))

    def run(self, *command, **options):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, **options)

    def left_behind(self):
        """Processes that carry this session's mark, besides this one."""
        wanted = f"{MARK}={os.getpid()}".encode()
        found = []
        for process in pathlib.Path("/proc").iterdir():
            try:
                if process.name.isdigit() and wanted in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:80])
            except OSError:
                pass
        return found

    def device_memory(self):
        query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        return int(subprocess.run(query, capture_output=True, text=True).stdout.split()[0])

    def machine(self):
        doctor = self.run(self.warpsmith, "doctor", "--json")
        self.results["machine"] = json.loads(doctor.stdout)
        self.results["machine"]["cpu"] = f"{os.cpu_count()} cores, {platform.machine()}"

    # What must hold -----------------------------------------------------------------------------------------------

    def command_line(self):
        file = self.project("matmul.py")
        start = time.monotonic()
        ran = self.run(self.warpsmith, "optimize", file.name, "--json", cwd=file.parent)
        seconds = time.monotonic() - start
        outcome = json.loads(ran.stdout) if ran.stdout else {"offer": None, "summary": ran.stderr}
        self.figure("command line", {"seconds": round(seconds, 1), "outcome": outcome})
        offer = outcome["offer"]
        self.check("optimize ends within 90 s", seconds <= 90, f"{seconds:.1f} s")
        self.check("the verified speedup is at least 1.8", offer and offer["speedup"]["ratio"] >= 1.8, outcome["summary"])
        self.check("no process is left", not self.left_behind(), self.left_behind())

    def in_the_editor(self, way):
        file = self.project("matmul.py")
        before = file.read_text()
        script = [self.nvim, "--headless", "--clean", "-l", HERE / "session.lua"]
        ran = self.run(*script, ROOT / "editors/nvim", self.warpsmith, file, way, cwd=file.parent, timeout=300)
        said = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
        self.figure(f"editor, {way}", said)
        self.check(f"the session ends well ({way})", ran.returncode == 0, ran.stderr.strip()[-400:])
        if way == "apply":
            asked = [line["asked"] for line in said if "asked" in line]
            label = re.compile(r"(\d+\.\d+)× faster \(95 % \d+\.\d+–\d+\.\d+\)")
            found = [match for text in asked for match in [label.search(text)] if match]
            self.check("the edit's annotation says the measured speedup", found and float(found[0][1]) >= 1.8, asked)
            reports = max((line.get("reports", 0) for line in said), default=0)
            self.check("progress is reported", reports > 5, f"{reports} reports")
            self.check("the edit is applied", file.read_text() != before, "the file has changed")
            again = self.run(self.python, file)
            self.check("the edited file runs", again.returncode == 0, (again.stdout + again.stderr).strip()[-300:])
        else:
            self.check("cancelling leaves the file untouched", file.read_text() == before, "compared")
        self.check(f"no process is left ({way})", not self.left_behind(), self.left_behind())
        self.check(f"no device memory is left ({way})", self.device_memory() < 100, f"{self.device_memory()} MiB")

    def other_examples(self):
        for example, budget in [("layer_norm.py", "30s"), ("softmax.py", "30s"), ("attention.py", "40s"), ("vector_add.py", "20s")]:
            file = self.project(example)
            start = time.monotonic()
            ran = self.run(self.warpsmith, "optimize", file.name, "--apply", "--budget", budget, cwd=file.parent)
            self.figure(example, {"seconds": round(time.monotonic() - start, 1), "said": ran.stdout.strip() or ran.stderr})
            again = self.run(self.python, file)
            self.check(f"{example} runs afterwards", again.returncode == 0, (again.stdout + again.stderr).strip()[-300:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--warpsmith", required=True)
    parser.add_argument("--nvim")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", required=True)
    parser.add_argument("--quick", action="store_true", help="leave out the other examples")
    options = parser.parse_args()
    session = Session(options)
    session.machine()
    session.command_line()
    if options.nvim:
        session.in_the_editor("apply")
        session.in_the_editor("cancel")
    if not options.quick:
        session.other_examples()
    pathlib.Path(options.out).write_text(json.dumps(session.results, indent=1, ensure_ascii=False) + "\n")
    failed = [check["name"] for check in session.results["checks"] if not check["passed"]]
    print(f"{len(session.results['checks']) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
