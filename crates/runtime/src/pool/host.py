"""The actor that runs in the pool for each GPU. It starts a `warpsmith worker` for each client and forwards frames.

It does not know kernels; the worker judges them. Its inputs and outputs are bytes, texts and JSON.
"""

import asyncio
import fcntl
import hashlib
import json
import os
import platform
import shutil
import socket
import sys
import tempfile
import threading
import time

import ray

# After this many seconds without a message, a client is gone and its requests are dropped.
SILENCE = 60
# After this many seconds without clients, a host releases its GPU; until then the next search finds it warm.
IDLE = 30
# How long a worker may take to end by itself, in seconds.
END = 5
# The prefix of workers' folders, the file in each that its host locks, and the age in seconds below which a folder
# may not be locked yet.
FOLDER, HELD, YOUNG = "warpsmith-pool-", "held", 60


class Gone(Exception):
    """An error: the worker of a client has ended, so its evaluations must run elsewhere."""


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "warpsmith", "pool")


def binary_path(digest):
    return os.path.join(cache_folder(), digest, "warpsmith")


def install(digest, parts):
    """Stores the program under its hash. The file is renamed into place, so that no process sees a part of it."""
    if (found := hashlib.sha256(b"".join(parts)).hexdigest()) != digest:
        raise ValueError(f"the warpsmith program arrived with the hash {found}, not {digest}")
    path = binary_path(digest)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=os.path.dirname(path))
    with os.fdopen(handle, "wb") as file:
        file.writelines(parts)
    os.chmod(partial, 0o700)
    os.rename(partial, path)


def own_folder():
    """Creates a worker's folder with a lock, which the system releases however the host ends."""
    folder = tempfile.mkdtemp(prefix=FOLDER)
    held = open(os.path.join(folder, HELD), "w")
    fcntl.flock(held, fcntl.LOCK_EX)
    return folder, held


def sweep():
    """Removes the folders that killed hosts left."""
    base = tempfile.gettempdir()
    for folder in [os.path.join(base, name) for name in os.listdir(base) if name.startswith(FOLDER)]:
        try:
            if os.stat(folder).st_uid != os.getuid():
                continue
            with open(os.path.join(folder, HELD)) as held:
                is_old = time.time() - os.fstat(held.fileno()).st_mtime > YOUNG
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if is_old:
                    shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            # Another host holds the lock.
            pass


class Session:
    """A client's worker on this host, and the evaluations that it is judging."""

    def __init__(self, settings, digest):
        self.settings, self.digest = settings, digest
        self.heard, self.queued, self.done = time.monotonic(), 0, 0
        self.process, self.first, self.folder, self.held = None, None, None, None
        self.waiting = {}
        self.shared = {}

    async def start(self):
        # The worker gets the client's settings, because the nearest settings file wins.
        self.folder, self.held = own_folder()
        with open(os.path.join(self.folder, "warpsmith.toml"), "w") as file:
            file.write(self.settings)
        # Ray sets this variable to the actor's share of processors, but the worker must judge as it does elsewhere.
        environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        command = [binary_path(self.digest), "worker", "--python", sys.executable]
        self.process = await asyncio.create_subprocess_exec(
            *command, cwd=self.folder, env=environment, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        self.first = asyncio.get_running_loop().create_future()
        self.reader = asyncio.create_task(self.listen(self.process, self.first))

    async def listen(self, process, first):
        try:
            while head := await process.stdout.readexactly(4):
                body = await process.stdout.readexactly(int.from_bytes(head, "little"))
                message = json.loads(body)
                if "Verdict" not in message:
                    first.set_result(message)
                elif waiting := self.waiting.pop(message["Verdict"]["id"], None):
                    waiting.set_result(body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            waiting, self.waiting = self.waiting, {}
            for one in [first, *waiting.values()]:
                if not one.done():
                    one.set_exception(Gone("the worker ended"))
                    # Retrieving the exception avoids a warning if no task waits for the future.
                    one.exception()

    def send(self, message):
        self.send_text(json.dumps(message).encode())

    def send_text(self, body):
        self.process.stdin.write(len(body).to_bytes(4, "little") + body)

    async def judge(self, number, parcel):
        if self.reader.done():
            raise Gone("the worker ended")
        since = time.monotonic()
        # An evaluation that its client gave up and sends here again may still be running.
        if number not in self.waiting:
            self.waiting[number] = asyncio.get_running_loop().create_future()
            self.send_text(b'{"Judge": {"id": %d, "parcel": %b}}' % (number, parcel))
        told = await self.waiting[number]
        self.done += 1
        return told, time.monotonic() - since

    async def end(self):
        if self.process and self.process.returncode is None:
            self.process.stdin.close()
            for insist in (self.process.terminate, self.process.kill):
                try:
                    await asyncio.wait_for(self.process.wait(), END)
                    break
                except asyncio.TimeoutError:
                    insist()
        shutil.rmtree(self.folder or "", ignore_errors=True)
        if self.held:
            self.held.close()


class Host:
    """The actor of one GPU, shared by several clients."""

    def __init__(self):
        context = ray.get_runtime_context()
        self.place = {
            "node": f"{socket.gethostname()} ({ray.util.get_node_ip_address()})", "id": context.get_node_id(),
            "number": ", ".join(map(str, ray.get_gpu_ids())),
        }
        self.itself = context.current_actor
        self.sessions, self.done, self.failures, self.gpu = {}, 0, 0, ""
        self.since = self.idle = time.monotonic()
        self.loop, self.ending = None, set()
        sweep()
        # A thread, because the event loop starts only with the first call, which may never come.
        threading.Thread(target=self.watch, daemon=True).start()

    async def open(self, session, settings, digest, machine):
        """Starts or finds the worker of a client and returns its first message; `None` if the program is not
        installed."""
        self.loop = asyncio.get_running_loop()
        here = [platform.system(), platform.machine()]
        if here != machine:
            what = f"the node is {' '.join(here)} and this warpsmith is built for {' '.join(machine)}"
            return {"Unfit": {"reason": f"{what}: start it on a machine like the nodes"}}, self.place
        if not os.path.exists(binary_path(digest)):
            return None, self.place
        found = self.sessions.get(session)
        if found and found.reader.done():
            self.failures += 1
            await self.close(session)
            found = None
        if not found:
            found = Session(settings, digest)
            await found.start()
            self.sessions[session] = found
        said = await asyncio.shield(found.first)
        found.heard = time.monotonic()
        if "Ready" in said:
            self.gpu = said["Ready"]["environment"]["device"]
        else:
            await self.close(session)
        return said, self.place

    async def install(self, digest, held):
        """Fetches the program from the object store, which copies it to a node once."""
        if not os.path.exists(binary_path(digest)):
            install(digest, [await part for part in held])

    async def judge(self, asked, held=None):
        """Judges a candidate. The part that it shares with others is sent once, under its hash. Both parts are JSON
        objects, which are joined without parsing. Arguments and result are bytes, which Ray passes unchanged: the
        result is the time in the worker in nanoseconds, followed by its answer."""
        head, own = asked.split(b"\n", 1)
        session, number, name = json.loads(head)
        found = self.session(session)
        if name not in found.shared:
            found.shared[name] = await held[0]
        told, seconds = await found.judge(number, found.shared[name][:-1] + b", " + own[1:])
        self.done += 1
        return int(1e9 * seconds).to_bytes(8, "little") + told

    def session(self, session):
        if session not in self.sessions:
            raise Gone("the host no longer knows this client")
        return self.sessions[session]

    async def abandon(self, session, unwanted):
        self.session(session).send({"Abandon": unwanted})

    async def drop(self, session, number):
        self.session(session).send({"Drop": number})

    async def alive(self, session, queued):
        """Notes that a client is alive. Returns the number of clients."""
        found = self.session(session)
        found.heard, found.queued = time.monotonic(), queued
        if found.reader.done():
            raise Gone("the worker ended")
        return len(self.sessions)

    async def close(self, session):
        if found := self.sessions.pop(session, None):
            # The task is not awaited, and a task without a reference may be garbage collected.
            ending = asyncio.create_task(found.end())
            self.ending.add(ending)
            ending.add_done_callback(self.ending.discard)

    async def report(self):
        sessions = [
            {"session": name, "busy": len(one.waiting), "queued": one.queued, "done": one.done}
            for name, one in self.sessions.items()
        ]
        seconds = time.monotonic() - self.since
        place = self.place | {"gpu": self.gpu}
        return place | {"sessions": sessions, "done": self.done, "failures": self.failures, "seconds": seconds}

    def watch(self):
        """Ends the workers of clients that are gone, and the host itself after some time without clients."""
        while True:
            time.sleep(1)
            now = time.monotonic()
            for name, one in list(self.sessions.items()):
                # A client sends no messages while its worker starts.
                if one.first.done() and now - one.heard > SILENCE:
                    asyncio.run_coroutine_threadsafe(self.close(name), self.loop)
            if self.sessions:
                self.idle = now
            elif now - self.idle > IDLE:
                ray.kill(self.itself)
                return
