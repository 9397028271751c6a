"""The processes in which requests are served: some programs abort the one that lowers them, inside MLIR.

Each request has a forked child of its own; those that say that they may (`in_series`) share one, which saves half of
the time of small kernels. Where such a child dies, the request is served once more by a new one: what was served before
is not to blame.
"""

import json
import linecache
import os
import resource
import select
import signal
import sys
import tempfile
import time

from warpsmith_answers import verifier_errors

MEMORY = 12 << 30
OUTPUT = 64 << 20
# The number of requests that one child serves; each of them leaks a little.
SERIES = 64


def confine(log, limits_memory):
    """Bounds what a forked child may use; what it prints goes into the log."""
    os.setpgid(0, 0)
    die_with_parent()
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT, OUTPUT))
    if limits_memory:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log.fileno(), 2)


def say(writer, part):
    """Writes a part of an answer."""
    whole = json.dumps(part).encode() + b"\n"
    while whole:
        whole = whole[os.write(writer, whole):]


def front_end(serve, request, log, folder):
    """Runs the front end. Returns its answer, and the lowered kernel."""
    answer, files, lowering = serve(request, folder)
    sys.stderr.flush()
    if answer.get("error", {}).get("kind") == "verify":
        log.seek(0)
        answer["error"]["verifier"] = verifier_errors(log.read().decode(errors="replace"), files)
    return answer, lowering


def in_child(serve, request, writer, log, folder):
    """Serves a request in a forked child."""
    # The address space that torch and CUDA reserve is much larger than the memory that they use.
    confine(log, not any(file.get("is_imported") for file in request["files"]))
    answer, lowering = front_end(serve, request, log, folder)
    if lowering is None or not request.get("full"):
        say(writer, answer)
        return
    say(writer, answer | {"at": lowering["source"].ext})
    from warpsmith_stages import compiled

    say(writer, {"compiled": compiled(lowering, request["full"], lambda part: say(writer, part), log, folder)})


def in_series(serve, reader, writer, log, folder):
    """Serves one request after the other in a forked child."""
    confine(log, True)
    with os.fdopen(reader, "rb") as requests:
        for number, line in enumerate(requests):
            log.seek(0)
            log.truncate()
            place = os.path.join(folder, str(number))
            os.mkdir(place)
            answer, lowering = front_end(serve, json.loads(line), log, place)
            # The module must be freed with its context before the next one is created.
            del lowering
            for name in [name for name in sys.modules if name.startswith("warpsmith_file_")]:
                del sys.modules[name]
            linecache.clearcache()
            say(writer, answer)


def joined(data):
    """The answer that a child has written so far, and the stage that it was last in. A part that it did not finish
    is lost."""
    answer, texts = {}, {}
    for line in data.split(b"\n")[:-1]:
        part = json.loads(line)
        texts.update([part.pop("text")] if "text" in part else [])
        answer |= part
    stage = answer.pop("at", None)
    if "compiled" in answer:
        stage = None
    if "compiled" in answer or stage is not None:
        answer["compiled"] = answer.get("compiled", {}) | {"stages": texts}
    return answer, stage


def how_it_ended(status, log):
    """How a process died, with the most informative line of its log."""
    log.seek(0)
    lines = log.read()[-4000:].decode(errors="replace").strip().splitlines()
    why = next((line for line in lines if "Assertion" in line or "error:" in line), lines[-1] if lines else "")
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
    return f"{how}: {why}"[:2000]


def die_with_parent():
    """Makes this process end when its parent is killed."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except Exception:
        pass


def stay_within(cores):
    """Restricts this process and its children to a number of the allowed cores; 0 means half of them."""
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        share = cores or max(1, len(allowed) // 2)
        # Different processes get different cores.
        first = os.getpid() % len(allowed)
        os.sched_setaffinity(0, (allowed + allowed)[first:first + min(share, len(allowed))])


class Service:
    """The queue of requests, which serves them and drops cancelled ones."""

    def __init__(self, answers, serve):
        self.answers, self.front_end = answers, serve
        self.waiting, self.rest, self.series = [], b"", None

    def say(self, answer):
        self.answers.write(json.dumps(answer).encode() + b"\n")

    def take(self, data):
        """Parses input into requests. Returns the ids of requests that are cancelled."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        cancelled = []
        for line in lines:
            message = json.loads(line)
            if "cancel" in message:
                cancelled.append(message["cancel"])
            else:
                self.waiting.append(message)
        kept = []
        for request in self.waiting:
            if request["id"] in cancelled:
                self.say({"id": request["id"], "cancelled": True})
            else:
                kept.append(request)
        self.waiting = kept
        return cancelled

    def run(self):
        """Serves requests until the input ends."""
        while True:
            while self.waiting:
                if not self.serve(self.waiting.pop(0)):
                    return
            data = os.read(0, 1 << 16)
            if not data:
                return
            self.take(data)

    def serve(self, request):
        """Serves one request. Returns whether the input is still open."""
        if request.get("in_series"):
            alive, answer = self.serve_in_series(request)
        else:
            with Child(lambda *its: in_child(self.front_end, request, *its[1:])) as child:
                alive, answer = self.wait(request, child)
        self.say({"id": request["id"]} | answer)
        return alive

    def serve_in_series(self, request):
        """Serves a request with the child that serves a series of them."""
        while True:
            if self.series is None:
                self.series = Child(lambda *its: in_series(self.front_end, *its))
            series, is_first = self.series, self.series.served == 0
            try:
                say(series.requests, request)
                series.served += 1
                alive, answer = self.wait(request, series)
            except BrokenPipeError:
                alive, answer = True, {"crashed": series.end()}
            if series.is_over or series.served >= SERIES:
                series.close()
                self.series = None
            if "crashed" not in answer or is_first or not alive:
                return alive, answer

    def wait(self, request, child):
        """Waits for the answer of a child, its end or its time limit."""
        data, end = b"", time.monotonic() + request["seconds"]
        alive, answer, is_whole = True, None, False
        while answer is None and not is_whole:
            ready = select.select([child.answers] + ([0] if alive else []), [], [], max(0, end - time.monotonic()))[0]
            if not ready:
                answer = {"unable": f"no answer within {request['seconds']} s"}
            if 0 in ready:
                more = os.read(0, 1 << 16)
                if not more:
                    alive, answer = False, {"cancelled": True}
                elif request["id"] in self.take(more):
                    answer = {"cancelled": True}
            if child.answers in ready:
                part = os.read(child.answers, 1 << 20)
                data += part
                if not part:
                    break
                is_whole = request.get("in_series") and data.endswith(b"\n")
        if answer is None and is_whole:
            return alive, joined(data)[0]
        if answer is not None:
            child.kill()
        ended = child.end()
        said, stage = joined(data)
        if answer is None and said and stage is None:
            return alive, said
        if answer is None:
            answer = {"crashed": ended}
        if said and stage is not None and "cancelled" not in answer:
            # The answer of the front end is valid, whatever happened afterwards.
            said["compiled"]["failed"] = {"stage": stage, "message": answer.get("crashed") or answer["unable"]}
            answer = said
        return alive, answer


class Child:
    """A forked process with the pipes to it, a folder and a log."""

    def __init__(self, work):
        """`work` is called in the child with what it reads requests from, writes answers to, its log and its folder."""
        self.folder = tempfile.TemporaryDirectory(prefix="warpsmith-")
        self.log, self.served, self.is_over = tempfile.TemporaryFile(), 0, False
        reader, self.requests = os.pipe()
        self.answers, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.requests)
                os.close(self.answers)
                work(reader, writer, self.log, self.folder.name)
            finally:
                os._exit(0)
        os.close(reader)
        os.close(writer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def kill(self):
        """Kills the child and its whole process group."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(self.pid, signal.SIGKILL)

    def end(self):
        """Waits for the end of the child. Returns how it ended."""
        _, status = os.waitpid(self.pid, 0)
        self.is_over = True
        return how_it_ended(status, self.log)

    def close(self):
        """Ends the child if it is running, and removes its files."""
        os.close(self.requests)
        if not self.is_over:
            self.end()
        os.close(self.answers)
        self.log.close()
        self.folder.cleanup()
