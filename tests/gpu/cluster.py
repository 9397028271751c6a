"""A Ray head on this host that sees some of its GPUs, and what its GPUs and processors do meanwhile, for `pool.py`."""

import contextlib
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
import uuid

# Nothing listens beyond this host, and nothing is reported home.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_IMPORT_WARNING": "1"}
MARK = "WARPSMITH_POOL_HEAD"
# Seconds until a head is there, and until it has ended by itself.
START, END = 90.0, 5.0
# So often the client's way is tried once Ray's own is there.
TRIES = 2
MEMORY = 500 << 20


def numbers(gpus):
    return ",".join(map(str, range(gpus)))


def count():
    """How many GPUs this host has."""
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60)
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())


def names():
    """What the GPUs of this host are called, each once."""
    listed = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, timeout=60)
    return sorted({line.strip() for line in listed.stdout.splitlines()})


def whole_cores(count):
    """So many of the host, whole cores where two share one: a part of the host has its part of what they share."""
    def core(processor):
        listed = pathlib.Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
        return int(re.match(r"\d+", listed.read_text())[0]) if listed.exists() else processor

    return sorted(sorted(os.sched_getaffinity(0), key=lambda one: (core(one), one))[:count])


class Head:
    def __init__(self, options, gpus, warpsmith, environment):
        self.options, self.gpus, self.warpsmith, self.environment = options, gpus, warpsmith, environment
        # Paths of sockets may not be long.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))
        (self.folder / ".git").mkdir()
        self.mark, self.port, self.own = uuid.uuid4().hex, free_port(), free_port()
        self.address, self.seconds, self.stopped, self.seen = f"ray://127.0.0.1:{self.port}", None, {}, ""
        self.processors = "all"

    @property
    def settings(self):
        return f"[evaluator]\npool = '{self.address}'\n"

    def command(self):
        found = [
            self.options.python, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--node-ip-address=127.0.0.1", f"--port={self.own}",
            f"--ray-client-server-port={self.port}", "--include-dashboard=false", "--disable-usage-stats", f"--num-gpus={self.gpus}",
            f"--object-store-memory={MEMORY}", f"--temp-dir={self.folder / 't'}",
        ]
        if self.options.device:
            found.append("--resources=" + json.dumps({f"accelerator_type:{self.options.device}": 1}))
        if self.options.cores:
            self.processors = ",".join(map(str, cores := whole_cores(self.options.cores * self.gpus)))
            found = ["taskset", "-c", self.processors, *found, f"--num-cpus={len(cores)}"]
        return found

    def __enter__(self):
        begun = time.monotonic()
        found = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")} | LOOPBACK
        # A host that is lent its memory bit by bit looks full to Ray, which then ends what runs there. For the first that connects Ray would
        # start as many processes as there are processors.
        found |= {"CUDA_VISIBLE_DEVICES": numbers(self.gpus), "RAY_OBJECT_STORE_ALLOW_SLOW_STORAGE": "1", MARK: self.mark}
        found |= {"RAY_memory_monitor_refresh_ms": "0", "RAY_prestart_worker_first_driver": "0", "GRPC_ENABLE_FORK_SUPPORT": "0"}
        found |= {"WARPSMITH_FAKE_DEVICE": self.options.device} if self.options.device else {}
        found |= {"WARPSMITH_LOG": "warpsmith=debug"} if self.options.logs else {}
        with (self.folder / "said").open("w") as said:
            self.process = subprocess.Popen(
                [*map(str, self.command())], env=found, cwd=self.folder, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
            )
        try:
            self.wait(begun + START)
        except BaseException:
            self.__exit__()
            raise
        self.seconds = round(time.monotonic() - begun, 1)
        return self

    def wait(self, until):
        """Until it has its GPUs and lets itself be asked: by Ray's client, or, where that does not work, by Ray's own protocol."""
        own = f"127.0.0.1:{self.own}"
        while not self.is_there(own):
            if time.monotonic() > until or self.process.poll() is not None:
                raise RuntimeError(f"no head with {self.gpus} GPUs: {self.seen} {self.said()}")
            time.sleep(1.0)
        if self.options.own or not any(self.is_there(self.address) for _ in range(TRIES)):
            self.address = own

    def is_there(self, address):
        command = [self.warpsmith, "pool", "status", "--address", address, "--format", "json"]
        found = self.environment(self.folder)
        with contextlib.suppress(subprocess.TimeoutExpired):
            ran = subprocess.run(command, env=found, cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=45)
            self.seen = (ran.stdout + ran.stderr)[-600:]
            return ran.returncode == 0 and sum(node["gpus"] for node in json.loads(ran.stdout)["nodes"]) == self.gpus
        return False

    def said(self):
        logs = [self.folder / "said", *sorted(self.folder.glob("t/session_latest/logs/ra*.err")), *self.folder.glob("t/session_latest/logs/raylet.out")]
        return "\n".join(path.read_text(errors="replace")[-600:] for path in logs if path.exists()) if self.folder.exists() else self.stopped.get("said", "")

    def __exit__(self, *_):
        """Ends it, and what it has left, each by its number."""
        begun, said = time.monotonic(), self.said()
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=END)
        while (left := self.marked()) and time.monotonic() - begun < 4 * END:
            for number in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGTERM if time.monotonic() - begun < END else signal.SIGKILL)
            time.sleep(0.2)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=1)
        self.stopped = {"seconds": round(time.monotonic() - begun, 1), "left": list(self.marked().values()), "said": said}
        if self.options.logs:
            self.keep_logs(self.options.logs)
        shutil.rmtree(self.folder, ignore_errors=True)

    def keep_logs(self, out):
        """What the hosts said, each in a file."""
        out.mkdir(parents=True, exist_ok=True)
        for at, path in enumerate(sorted(self.folder.glob("t/session_latest/logs/worker*.err"))):
            if b"warpsmith" in (text := path.read_bytes()):
                with gzip.open(out / f"{self.gpus}-{at}.log.gz", "wb") as copy:
                    copy.write(text)

    def marked(self):
        """Processes of this head: their numbers, with what they are."""
        mark, found = f"{MARK}={self.mark}".encode(), {}
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:120].strip()
        return {number: command for number, command in found.items() if command}


class Watch:
    """Asks once a second what each GPU does, and at the end how busy the processors were."""

    FIELDS = ("index", "uuid", "utilization.gpu", "memory.used", "clocks.sm")

    def __enter__(self):
        self.rows, self.before, self.process = [], processors(), None
        with contextlib.suppress(OSError):
            self.process = subprocess.Popen(
                ["nvidia-smi", f"--query-gpu={','.join(self.FIELDS)}", "--format=csv,noheader,nounits", "-l", "1"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )
            threading.Thread(target=self.read, daemon=True).start()
        return self

    def read(self):
        for line in self.process.stdout:
            self.rows.append([one.strip() for one in line.split(",")])

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
        busy, every = (now - then for now, then in zip(processors(), self.before))
        self.busy = round(busy / every, 3) if every else None

    def seen(self):
        found = {}
        for index in sorted({row[0] for row in self.rows}):
            rows = [row for row in self.rows if row[0] == index and len(row) == len(self.FIELDS)]
            # What the driver does not tell is no number.
            used, memory, clock = ([int(row[at]) for row in rows if row[at].isdigit()] for at in (2, 3, 4))
            found[index] = {
                "uuid": rows[0][1] if rows else None, "mean per cent": round(statistics.mean(used), 1) if used else None,
                "most MiB": max(memory, default=None), "median MHz": statistics.median(clock) if clock else None, "per cent": used,
            }
        return {"gpus": found, "processors busy": self.busy}


def processors():
    """The time that they were busy, and all of it."""
    fields = [int(one) for one in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
