#!/usr/bin/env python3
"""How many contexts of the driver are made and ended a second, by processes that do nothing else: on one GPU, and on several of one host.

    contexts.py [--out RESULTS.json] [--gpus 1,2,4] [--processes 16] [--seconds 5] [--ways spread,few,hidden,narrow,both]

`spread`: so many `--processes` for each GPU, each seeing that one alone (`CUDA_VISIBLE_DEVICES`). `hidden`: beside that the device files of the other GPUs are
not there for it (a mount namespace: needs root). If the rates of `spread` do not grow with the GPUs and those of `hidden` do, what bounds them is that the
driver looks at every GPU of the host in every process. `narrow`: with one connection to the device instead of eight. `both`: hidden and
narrow. `few`: `spread` with four processes a GPU. Of each context: seconds to start the driver, to make it, and until its process has ended. Standard library only.
"""

import argparse
import ctypes
import glob
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import time

CLONE_NEWNS, MS_REC, MS_PRIVATE, MS_BIND = 0x00020000, 0x4000, 1 << 18, 4096
NODE = re.compile(r"/dev/nvidia(\d+)$")


def minor(gpu):
    """The number of a GPU's device file, which need not be that of the GPU."""
    asked = subprocess.run(["nvidia-smi", "-q", "-i", str(gpu)], capture_output=True, text=True, timeout=60).stdout
    found = re.search(r"Minor Number\s*:\s*(\d+)", asked)
    return found[1] if found else str(gpu)


def hide(keep):
    """Puts nothing over the device files of the other GPUs, for this process and those that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        raise OSError(ctypes.get_errno(), "no mount namespace")
    for path in glob.glob("/dev/nvidia*"):
        if (node := NODE.match(path)) and node[1] != keep and libc.mount(b"/dev/null", path.encode(), None, MS_BIND, None):
            raise OSError(ctypes.get_errno(), f"{path} cannot be hidden")


def once():
    """Makes a context; seconds for the driver and for the context, and when it was there."""
    cuda, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    marks = [time.monotonic()]
    for call, arguments in (("cuInit", (0,)), ("cuDeviceGet", (ctypes.byref(device), 0)), ("cuCtxCreate_v2", (ctypes.byref(context), 0, device))):
        if status := getattr(cuda, call)(*arguments):
            raise RuntimeError(f"{call}: {status}")
        marks.append(time.monotonic())
    return marks[1] - marks[0], marks[3] - marks[1], marks[3]


def work(gpu, keep, until, results, connections):
    """Starts a process for each context, one after the other, until the time is over."""
    made, spent = 0, [0.0, 0.0, 0.0]
    try:
        os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
        if connections:
            os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = connections
        if keep is not None:
            hide(keep)
            # Of what it sees there is one alone.
            os.environ["CUDA_VISIBLE_DEVICES"] = "0"
        while time.time() < until:
            reader, writer = os.pipe()
            if (child := os.fork()) == 0:
                # Nothing of it may go on with what its parent does.
                try:
                    os.write(writer, json.dumps(once()).encode())
                finally:
                    os._exit(0)
            os.close(writer)
            with os.fdopen(reader) as said:
                text = said.read()
            os.waitpid(child, 0)
            if text:
                driver, context, there = json.loads(text)
                made, spent = made + 1, [spent[0] + driver, spent[1] + context, spent[2] + time.monotonic() - there]
        results.put({"gpu": gpu, "made": made, "seconds": spent})
    except OSError as error:
        results.put({"gpu": gpu, "made": made, "seconds": spent, "error": str(error)})


def rate(gpus, options, processes, is_hidden, connections):
    results, until = multiprocessing.Queue(), time.time() + options.seconds
    keeps = {gpu: minor(gpu) if is_hidden else None for gpu in range(gpus)}
    started = [multiprocessing.Process(target=work, args=(gpu, keeps[gpu], until, results, connections)) for gpu in keeps for _ in range(processes)]
    begun = time.monotonic()
    for process in started:
        process.start()
    rows = [results.get(timeout=options.seconds + 60) for _ in started]
    took, made = time.monotonic() - begun, sum(row["made"] for row in rows)
    errors = sorted({row["error"] for row in rows if "error" in row})
    return {
        "a second": round(made / took, 2), "made": made, "seconds each": [round(sum(row["seconds"][at] for row in rows) / max(made, 1), 3) for at in range(3)],
        **({"errors": errors} if errors else {}),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--gpus", default="1,2,4")
    parser.add_argument("--ways", default="spread,few,hidden,narrow,both")
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    rows = {}
    every = options.processes
    ways = {"spread": (every, False, ""), "few": (4, False, ""), "hidden": (every, True, ""), "narrow": (every, False, "1"), "both": (every, True, "1")}
    for name in options.ways.split(","):
        for gpus in map(int, options.gpus.split(",")):
            rows[f"{name} {gpus}"] = rate(gpus, options, *ways[name])
            print(f"{name} {gpus}: {json.dumps(rows[f'{name} {gpus}'])}", flush=True)
            if options.out:
                options.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if all(row["made"] for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
