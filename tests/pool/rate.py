#!/usr/bin/env python3
"""What Ray adds to an evaluation at the client, measured on a real cluster, for `simulation.py`.

    rate.py ADDRESS [--calls 1500]

Calls go to four actors that answer at once with a verdict of usual size, so many at a time. PYTHON has `ray[client]` and is the cluster's.
"""

import argparse
import json
import os
import queue
import sys
import time

sys.dont_write_bytecode = True
os.environ.update(RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0", RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")

import ray
from simulation import TOLD


class Echo:
    async def judge(self, *_):
        return TOLD


def measured(actors, calls, window):
    own, events = {"candidate": "x = 1\n" * 600, "effort": {}}, queue.Queue()
    sent = done = 0
    clock, processor, thread = time.perf_counter(), time.process_time(), time.thread_time()
    while done < calls:
        while sent < calls and sent - done < window:
            asked = f"{json.dumps(['session', sent, 'name'])}\n{json.dumps(own)}".encode()
            actors[sent % len(actors)].judge.remote(asked).future().add_done_callback(events.put)
            sent += 1
        json.loads(events.get().result()[8:])
        done += 1
    each = lambda seconds: round(1000.0 * seconds / calls, 3)
    return {
        "at once": window, "calls a second": round(calls / (time.perf_counter() - clock)),
        "ms of the processor each": each(time.process_time() - processor), "of its own thread": each(time.thread_time() - thread),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--calls", type=int, default=1500)
    options = parser.parse_args()
    ray.init(options.address, log_to_driver=False, logging_level="ERROR")
    actors = [ray.remote(Echo).options(num_cpus=0).remote() for _ in range(4)]
    measured(actors, 100, 16)
    for window in (1, 16, 256):
        print(measured(actors, options.calls if window > 1 else options.calls // 8, window), flush=True)


if __name__ == "__main__":
    main()
