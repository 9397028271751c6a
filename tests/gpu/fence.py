#!/usr/bin/env python3
"""Checks on a real GPU that CUDA, torch and Triton work behind the fence, and what they need there.

    fence.py [--module _worker.abi3.so] [--python PYTHON]

The module is what the binary unpacks to `~/.cache/warpsmith/worker`, the newest unless one is named. Needs torch and Triton in the interpreter. Ends with
status 1 when something is not as it should be; lines that begin with `    ` are there to be read.
"""

import argparse
import ctypes
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time

TOKEN = 42
GIB = 1 << 30

# The driver alone, without torch: a context, memory, and a handle of it for another process.
DRIVER = """
import ctypes, os, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def ask(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status != 0:
        text = ctypes.c_char_p()
        cuda.cuGetErrorName(status, ctypes.byref(text))
        raise RuntimeError(f"{name}: {status} {text.value}")
def context():
    ask("cuInit", 0)
    device, made = ctypes.c_int(), ctypes.c_void_p()
    ask("cuDeviceGet", ctypes.byref(device), 0)
    ask("cuDevicePrimaryCtxRetain", ctypes.byref(made), device)
    ask("cuCtxSetCurrent", made)
def allocated(size):
    memory = ctypes.c_uint64()
    ask("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
    return memory
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]
def open_handle(data):
    # By value: the type of the argument has to be known.
    cuda.cuIpcOpenMemHandle_v2.argtypes = [ctypes.POINTER(ctypes.c_uint64), Handle, ctypes.c_uint]
    memory = ctypes.c_uint64()
    ask("cuIpcOpenMemHandle_v2", ctypes.byref(memory), Handle.from_buffer_copy(data), 1)
    return memory
def opened():
    links = []
    for fd in os.listdir("/proc/self/fd"):
        try: links.append(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError: pass
    mapped = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if len(line.split(None, 5)) == 6}
    wanted = ("/dev/", "socket:", "memfd:", "/memfd:", "anon_inode")
    found = sorted(name for name in {*links, *mapped} if name.startswith(wanted))
    return {name: links.count(name) for name in found}
def status(*names):
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return {name: lines[name].strip() for name in names if name in lines}
"""

# Refuses single system calls, as the fence does, and nothing else.
REFUSING = """
import ctypes, struct
def refuse(*numbers):
    step = lambda code, jt, jf, k: struct.pack("HBBI", code, jt, jf, k)
    steps = [step(0x20, 0, 0, 0)]
    for number in numbers:
        steps += [step(0x15, 0, 1, number), step(0x06, 0, 0, 0x00050001)]
    steps.append(step(0x06, 0, 0, 0x7FFF0000))
    code = ctypes.create_string_buffer(b"".join(steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
"""

TORCH = """
import os, time, torch, triton, triton.language as tl
began = time.perf_counter()
x = torch.randn(1024, 1024, device="cuda")
print("first tensor", round(time.perf_counter() - began, 2), "s")
assert torch.allclose(x @ x, (x.double() @ x.double()).float(), atol=1e-2)
@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)
out = torch.empty_like(x)
began = time.perf_counter()
scale[(1024,)](x, out, x.numel(), BLOCK=1024)
torch.cuda.synchronize()
print("first launch", round(time.perf_counter() - began, 2), "s")
assert torch.equal(out, x * 2)
big = torch.empty(1 << 28, device="cuda")
times = triton.testing.do_bench(lambda: scale[(1 << 18,)](big, big, big.numel(), BLOCK=1024), return_mode="all")
times = sorted(times)
print("kernel", [round(times[len(times) * part // 20], 4) for part in (1, 10, 19)], "ms at 5, 50, 95 %")
pinned = torch.ones(1 << 28, dtype=torch.uint8).pin_memory()
y = torch.ones(8, requires_grad=True, device="cuda"); (y * y).sum().backward()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph): out.mul_(2)
graph.replay(); torch.cuda.synchronize()
"""

FOREVER = """
import time, torch, triton, triton.language as tl
@triton.jit
def forever(x):
    while tl.load(x, volatile=True) == 0:
        pass
x = torch.zeros(1, dtype=torch.int32, device="cuda")
hoard = torch.ones(8 << 28, device="cuda")
forever[(1,)](x)
open("running", "w").close()
torch.cuda.synchronize()
"""

CORRUPT = """
import torch, triton, triton.language as tl
@triton.jit
def wild(x):
    tl.store(x + (1 << 40), 1.0)
wild[(1,)](torch.zeros(1, device="cuda"))
torch.cuda.synchronize()
"""


class Forker:
    """Speaks to a forker as the server does."""

    def __init__(self, options, folder):
        self.folder = folder
        self.control, theirs = socket.socketpair()
        load = (
            "from importlib import machinery, util\n"
            f"loader = machinery.ExtensionFileLoader('_worker', {str(options.module)!r})\n"
            "worker = util.module_from_spec(util.spec_from_loader('_worker', loader))\n"
            "loader.exec_module(worker)\n"
            f"worker.forker({theirs.fileno()})\n"
        )
        environment = dict(os.environ, PYTORCH_NVML_BASED_CUDA_CHECK="1", TRITON_CACHE_DIR=str(folder / "other"))
        self.process = subprocess.Popen([options.python, "-c", load], pass_fds=[theirs.fileno()], env=environment)
        theirs.close()
        self.ready = receive(self.control)
        self.next = 0

    def spawn(self, code, role="Runner"):
        self.next += 1
        mine, theirs = socket.socketpair()
        folders = {name: str(self.folder / name) for name in ("scratch", "kernels", "readable")}
        for path in folders.values():
            os.makedirs(path, exist_ok=True)
        fence = dict(folders, readable=[folders["readable"]], memory=4 * GIB, device_memory=0, results=0, streams=True, processes=32, output=64 << 20, token=TOKEN)
        request = frame({"Spawn": {"id": self.next, "role": {role: fence} if role == "Runner" else role}})
        socket.send_fds(self.control, [request[:1]], [theirs.fileno()])
        self.control.sendall(request[1:])
        theirs.close()
        file = pathlib.Path(folders["readable"], f"act{self.next}.py")
        # In a file of its own, whose source Triton finds however the runner loads the other; with an entry to be called.
        file.with_name(f"body{self.next}.py").write_text(code)
        found = f"import sys\nsys.path.insert(0, {folders['readable']!r})\n"
        file.write_text(f"{found}import body{self.next}\ndef act():\n    pass\n")
        workload = dict(file=str(file), entry="act", args=[], kwargs=[], mutated=[], launches=[], count=1,
                        environment=dict(python="", torch="", triton="", device="", driver=""))
        if role == "Runner":
            load = {"file": str(file), "folder": folders["readable"], "workload": workload}
            mine.sendall(frame({"Load": {**load, "is_candidate": True, "weights": {"seed": 1, "are_moved": False}}}))
        return self.next, mine

    def run(self, code):
        """What the runner said, and how it ended."""
        number, stream = self.spawn(code)
        reply = receive(stream)
        stream.close()
        return reply, self.end(number)

    def end(self, number):
        ended = receive(self.control)["Ended"]
        assert ended["id"] == number, ended
        return ended

    def kill(self, number):
        self.control.sendall(frame({"Kill": {"id": number}}))
        return self.end(number)


def frame(message):
    body = json.dumps(message).encode()
    return struct.pack("<I", len(body)) + body


def receive(stream):
    def exactly(count):
        data = b""
        while len(data) < count:
            part = stream.recv(count - len(data))
            if not part:
                return None
            data += part
        return data

    head = exactly(4)
    body = head and exactly(struct.unpack("<I", head)[0])
    return body and json.loads(body)


failed = []


def check(name, passed, seen=""):
    print("ok  " if passed else "FAIL", name, "-", str(seen)[-1500:], flush=True)
    if not passed:
        failed.append(name)


def shown(name, text):
    print(f"     {name}: {text}".replace("\n", "\n       "), flush=True)


def plain(options, code):
    """Runs the code without a fence."""
    ran = subprocess.run([options.python, "-c", code], capture_output=True, text=True, timeout=300)
    return ran.returncode == 0, (ran.stdout + ran.stderr).strip()[-1500:]


def one_by_one(options):
    """What of the fence the driver minds, if it minds any."""
    body = "context(); memory = allocated(1 << 20); handle = Handle(); ask('cuIpcGetMemHandle', ctypes.byref(handle), memory)\n"
    look = "print(opened()); print(status('Threads', 'VmData', 'RssAnon', 'RssFile', 'RssShmem', 'VmLck'))"
    works, seen = plain(options, DRIVER + body + look)
    check("the driver without a fence", works, seen)
    for name, calls in [("socket", "41"), ("connect and bind", "42, 49, 50"), ("clone3", "435"), ("memfd_create", "319"), ("mode and owner", "90, 91, 92, 93, 94, 268, 260")]:
        works, seen = plain(options, REFUSING + DRIVER + f"refuse({calls})\n" + body)
        shown(f"with {name} refused", "works" if works else seen)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--module", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    if options.module is None:
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
        options.module = max((cache / "warpsmith/worker").glob("*.so"), key=lambda path: path.stat().st_mtime)
    options.module = options.module.resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fence-"))
    one_by_one(options)
    forker = Forker(options, folder)
    ready = (forker.ready or {}).get("Ready")
    check("the forker is ready", ready, forker.ready)
    if not ready:
        return
    shown("missing of the fence", ready["unfenced"])
    before = len(os.listdir(f"/proc/{forker.process.pid}/fd"))
    shown("threads of the forker", len(os.listdir(f"/proc/{forker.process.pid}/task")))

    reply, ended = forker.run(DRIVER + "context()\nprint(opened(), status('Threads', 'VmData', 'RssAnon', 'RssFile', 'RssShmem'))")
    check("the driver behind the fence", reply and "Loaded" in reply["reply"], (reply, ended))

    began = time.perf_counter()
    reply, ended = forker.run(TORCH + DRIVER + "print(opened(), status('Threads', 'RssAnon', 'RssFile', 'RssShmem', 'VmLck'))\n")
    check("torch and Triton behind the fence", reply and "Loaded" in reply["reply"], (reply, ended["how"]))
    shown("what it printed", ended["output"])
    shown("in all", f"{time.perf_counter() - began:.1f} s")
    file = folder / "plain.py"
    file.write_text(TORCH)
    ran = subprocess.run([options.python, str(file)], capture_output=True, text=True)
    shown("the same without a fence", ran.stdout + ran.stderr)

    handles(forker, folder)
    held(forker, folder)

    reply, ended = forker.run(CORRUPT)
    check("an illegal access", "Raised" in str(reply), (reply, ended["how"]))
    reply, ended = forker.run(TORCH)
    check("the one after it", reply and "Loaded" in reply["reply"], (reply, ended["how"]))

    times = []
    for _ in range(20):
        began = time.perf_counter()
        number, stream = forker.spawn("")
        receive(stream)
        times.append((time.perf_counter() - began) * 1e3)
        stream.close()
        forker.end(number)
    times.sort()
    shown("from the request to Loaded", f"median {times[10]:.1f} ms, {times[0]:.1f} to {times[-1]:.1f}, n=20")
    time.sleep(0.1)
    check("no descriptor of the forker is left", len(os.listdir(f"/proc/{forker.process.pid}/fd")) == before)
    forker.control.close()
    check("the forker ends", forker.process.wait(20) == 0)


def handles(forker, folder):
    """Another process opens the memory of a fenced one."""
    exporting = "context(); memory = allocated(1 << 20); ask('cuMemsetD8_v2', memory, ctypes.c_ubyte(7), ctypes.c_size_t(1 << 20))\n" \
        "ask('cuCtxSynchronize'); handle = Handle(); ask('cuIpcGetMemHandle', ctypes.byref(handle), memory)\n" \
        "open('handle', 'wb').write(bytes(handle))\n"
    number, stream = forker.spawn(DRIVER + exporting)
    reply = receive(stream)
    check("a handle of fenced memory", reply and "Loaded" in reply["reply"], reply)
    importing = DRIVER + f"context(); memory = open_handle(open({str(folder / 'scratch/handle')!r}, 'rb').read())\n" \
        "back = ctypes.create_string_buffer(16); ask('cuMemcpyDtoH_v2', back, memory, ctypes.c_size_t(16)); assert back.raw == bytes([7] * 16)\n"
    ran = subprocess.run([sys.executable, "-c", importing], capture_output=True, text=True)
    check("another process reads it", ran.returncode == 0, ran.stderr)
    stream.close()
    forker.end(number)


def held(forker, folder):
    """A kernel without end: its process and its memory go all the same."""
    (folder / "scratch").mkdir(exist_ok=True)
    used = lambda: int(subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                                      capture_output=True, text=True).stdout.split()[0] or 0)
    idle = used()
    number, stream = forker.spawn(FOREVER)
    deadline = time.monotonic() + 120
    while not (folder / "scratch/running").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    busy = used()
    began = time.perf_counter()
    ended = forker.kill(number)
    check("a kernel without end is ended", ended["how"] == "killed", (ended, f"{time.perf_counter() - began:.2f} s"))
    stream.close()
    check("its memory is free", busy > idle + 4096 and used() < idle + 256, f"{idle}, {busy}, {used()} MiB")


main()
sys.exit(1 if failed else 0)
