#!/usr/bin/env python3
"""How many GPUs the client of a pool keeps busy: the client's own code, in a time that is simulated.

    simulation.py [--gpus 8,64,250,500,1000] [--seconds 60] [--call 0.25] [--reply 0.36] [--trip 2.7] [--service 3.75] [--places 8]

`crates/runtime/src/pool/client.py` and what it imports run as they are, with a stand-in for Ray. What their thread computes counts with the time that it takes here; what
Ray adds counts with what `rate.py` measures of a real cluster: milliseconds of the client's processor for each call (`--call`, its own thread) and
for each answer (`--reply`, Ray's threads, of which one runs at a time), and the way there and back (`--trip`). A candidate takes
`--service` seconds of one of the `--places` of its GPU, half to one and a half times that. As many candidates as there are places are asked for at any time.
Standard library only.
"""

import argparse
import collections
import heapq
import itertools
import json
import pathlib
import queue
import random
import sys
import time
import types

sys.dont_write_bytecode = True
SOURCES = pathlib.Path(__file__).resolve().parents[2] / "crates/runtime/src/pool"
MODULES = ("access", "connection", "host", "placement", "hosts", "evaluations")
CHECK = {"name": "the recorded call", "passed": True, "evidence": "agrees with the original on fresh inputs, within rounding"}
VERDICT = {
    "outcome": "accepted", "checks": [CHECK] * 9, "measured": [{"pairs": [[0.0288, 0.0162]] * 32, "workload": "f(a=bf16[4096,4096])", "code": "0" * 81}], "notes": [],
    "stages": [["load", 0.5], ["compile", 2.7], ["check", 1.9], ["time", 0.4]],
}
ENVIRONMENT = {"python": "3.12.3", "torch": "2.11.0", "triton": "3.6.0", "device": "NVIDIA H200"}
# Seconds until a worker has imported torch.
START = 8.0


class World:
    """The time, what happens when, and what the client has been charged for."""

    def __init__(self, options):
        self.options, self.now, self.count = options, 0.0, itertools.count()
        self.due, self.random, self.busy, self.since, self.calls, self.replies = [], random.Random(1), 0.0, None, 0, 0
        self.looks = 0

    def at(self, delay, what):
        heapq.heappush(self.due, (self.now + delay, next(self.count), what))

    def monotonic(self):
        return self.now

    def measure(self, since):
        """From then on it is measured."""
        self.start, self.before = since, None

    def charge(self):
        """What the client's thread has done since it was woken takes that time."""
        if self.since is not None:
            options = self.options
            took = time.thread_time() - self.since + (self.calls * options.call + self.replies * options.reply) / 1000.0
            self.now, self.busy, self.calls, self.replies, self.since = self.now + took, self.busy + took, 0, 0, None
            if self.before is None and self.now >= self.start:
                self.before = self.busy


class Events:
    """The queue that the client waits at: there time goes by."""

    def __init__(self, world):
        self.world, self.items = world, collections.deque()

    def put(self, item):
        self.items.append(item)

    def get(self, timeout):
        world = self.world
        world.charge()
        deadline = world.now + timeout
        while not self.items and world.due and world.due[0][0] <= max(deadline, world.now):
            when, _, what = heapq.heappop(world.due)
            world.now = max(world.now, when)
            what()
        if not self.items:
            world.now, world.since = deadline, time.thread_time()
            raise queue.Empty
        world.since = time.thread_time()
        return self.items.popleft()


class Answer:
    def __init__(self, value):
        self.value = value

    def exception(self):
        return None

    def result(self):
        return self.value


class Call:
    """What a call to an actor gives: its answer comes after so long."""

    def __init__(self, world, delay, value):
        self.world, self.delay, self.value = world, delay, value

    def future(self):
        return self

    def add_done_callback(self, callback):
        def answered():
            self.world.replies += 1
            callback(Answer(self.value() if callable(self.value) else self.value))

        self.world.at(self.delay, answered)


class Method:
    def __init__(self, actor, name):
        self.actor, self.name = actor, name

    def remote(self, *arguments):
        self.actor.world.calls += 1
        return getattr(self.actor, "do_" + self.name)(*arguments)


class Actor:
    def __init__(self, world):
        self.world, self.trip = world, world.options.trip / 1000.0

    def __getattr__(self, name):
        return Method(self, name)

    def do_open(self, *_):
        place = {"node": "node", "id": "node", "number": "0"}
        return Call(self.world, START, ({"Ready": {"environment": ENVIRONMENT, "protocol": 1}}, place))

    def do_judge(self, *_):
        took = self.world.options.service * self.world.random.uniform(0.5, 1.5)
        return Call(self.world, self.trip + took, lambda: int(1e9 * took).to_bytes(8, "little") + TOLD)

    def do_alive(self, *_):
        return Call(self.world, self.trip, 1)

    def do_close(self, *_):
        return Call(self.world, self.trip, None)


TOLD = json.dumps({"Verdict": {"id": 0, "verdict": VERDICT}}).encode()


def ray(world, gpus):
    """As much of Ray as the client uses."""
    node = lambda at: {
        "NodeID": f"node{at}", "Alive": True, "NodeManagerHostname": f"node{at}",
        "Resources": {"GPU": 8.0, "CPU": 8.0 * world.options.places, "accelerator_type:H200": 1.0},
    }
    module = types.ModuleType("ray")
    module.nodes = lambda: [node(at) for at in range(-(-gpus // 8))]
    module.put = lambda value: value
    made = types.SimpleNamespace(remote=lambda: Actor(world))
    module.remote = lambda _: types.SimpleNamespace(options=lambda **_: made)
    module.wait = lambda references, **_: (references, [])
    module.cloudpickle = types.SimpleNamespace(register_pickle_by_value=lambda _: None)
    strategies = types.ModuleType("ray.util.scheduling_strategies")
    strategies.NodeAffinitySchedulingStrategy = lambda *_, **__: None
    return {"ray": module, "ray.util": types.ModuleType("ray.util"), "ray.util.scheduling_strategies": strategies}


class Thread:
    """What the client does beside its loop is done at once."""

    def __init__(self, target, args=(), daemon=None):
        self.target, self.args = target, args

    def start(self):
        self.target(*self.args)


def client(world, gpus):
    """The client's modules, with that Ray, that time and these threads."""
    sys.modules.update(ray(world, gpus))
    found = {}
    files = [("warpsmith_bytecode_cache", SOURCES.parent / "python/bytecode_cache.py")]
    files += [(f"warpsmith_pool_{name}", SOURCES / f"{name}.py") for name in (*MODULES, "client")]
    for name, file in files:
        module = types.ModuleType(name)
        found[file.stem] = sys.modules[name] = module
        exec(compile(file.read_text(), file.name, "exec"), module.__dict__)
        if "time" in module.__dict__:
            module.time = types.SimpleNamespace(monotonic=world.monotonic, sleep=lambda _: None)
        if "threading" in module.__dict__:
            module.threading = types.SimpleNamespace(Thread=Thread)
    found["client"].listen = lambda _: None
    free = found["hosts"].Seat.free

    def looked_at(seat):
        world.looks += 1
        return free(seat)

    found["hosts"].Seat.free = looked_at
    return found["client"]


class Asker:
    """The program's end: for each verdict it asks for another one."""

    def __init__(self, world, events, most):
        self.world, self.events, self.most = world, events, most
        self.numbers, self.times = itertools.count(), []
        parcel = {"name": "k.py", "files": {"k.py": "x = 1\n" * 600}, "candidate": "x = 1\n" * 600, "workloads": [{"entry": "f"}], "effort": {}}
        self.frame = json.dumps({"Judge": {"id": 0, "parcel": parcel}})

    def ask(self):
        # As the thread that listens does; only one of the client's threads computes at a time.
        message = json.loads(self.frame)
        message["Judge"]["id"] = next(self.numbers)
        self.events.put(("asked", (message,)))

    def say(self, message):
        if "Ready" in message:
            for _ in range(self.most):
                self.ask()
        else:
            json.dumps(message).encode()
            self.times.append(self.world.now)
            self.ask()


def simulated(options, gpus):
    world = World(options)
    module = client(world, gpus)
    events = Events(world)
    module.queue = types.SimpleNamespace(Queue=lambda: events, Empty=queue.Empty)
    asker = Asker(world, events, gpus * options.places)
    settings = {"gpu": "", "settings": "", "start": 600.0, "binary": __file__, "again": False}
    running = module.Client(settings, asker)
    # All that is asked at the beginning is handed out first.
    warm = START + 2 * options.service + 2e-3 * gpus * options.places
    world.measure(warm)
    world.at(warm + options.seconds, lambda: events.put(("ended", ())))
    running.run()
    measured = [at for at in asker.times if at >= warm]
    world.busy -= world.before
    rate, wanted = len(measured) / (world.now - warm), gpus * options.places / options.service
    return {
        "GPUs": gpus, "wanted a second": round(wanted, 1), "verdicts a second": round(rate, 1), "GPUs busy": round(100 * rate / wanted, 1),
        "client busy": round(100 * world.busy / (world.now - warm), 1), "ms of the client each": round(1000 * world.busy / max(len(measured), 1), 3),
        "GPUs looked at each": round(world.looks / max(len(asker.times), 1), 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", default="8,64,250,500,1000")
    parser.add_argument("--seconds", type=float, default=60.0, help="simulated, once it is under way")
    parser.add_argument("--call", type=float, default=0.25, help="milliseconds")
    parser.add_argument("--reply", type=float, default=0.36, help="milliseconds")
    parser.add_argument("--trip", type=float, default=2.7, help="milliseconds")
    parser.add_argument("--service", type=float, default=3.75, help="seconds")
    parser.add_argument("--places", type=int, default=8, help="of a GPU, as in a node of eight")
    options = parser.parse_args()
    for gpus in map(int, options.gpus.split(",")):
        print(json.dumps(simulated(options, gpus)), flush=True)


if __name__ == "__main__":
    main()
