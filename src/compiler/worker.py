"""Asks Triton's front end about kernels, for Warpsmith. Runs in the user's interpreter, which needs Triton and nothing else.

Reads requests from standard input and writes answers to standard output, one JSON object a line (`protocol.rs` has their
shapes). Each request is served by a forked child: some programs abort the process inside MLIR. What comes after the front
end is in `stages.py`; `answers.py` puts what Triton says into the words of an answer.
"""

import importlib.util
import inspect
import json
import linecache
import os
import re
import resource
import select
import signal
import sys
import tempfile
import time

# The other scripts are found, too, when Python is told not to look beside the first one (`PYTHONSAFEPATH`).
sys.path.append(os.path.dirname(os.path.abspath(__file__)))

from warpsmith_answers import load_place, placed, refusal, verifier_errors, watch

MEMORY = 12 << 30
OUTPUT = 64 << 20


# What is asked of Triton, release by release.


def lowered(function, request):
    """The module of a kernel in Triton's first representation, and what it takes to go on from there (`stages.py`)."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import ASTSource, make_backend

    names = function.arg_names
    types = {name: request["signature"][name] for name in names if name in request["signature"]}
    constants = {name: constant(value) for name, value in request["constexprs"].items()}
    target = GPUTarget(*request["target"])
    backend = make_backend(target)
    options = backend.parse_options(dict(request["options"]))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    takes = inspect.signature(backend.get_codegen_implementation).parameters
    functions = backend.get_codegen_implementation(*([options] if takes else []))
    aligned = [names.index(name) for name in request["aligned"] if name in names]
    if "constexprs" in inspect.signature(ASTSource.__init__).parameters:
        full = {name: types.get(name, "constexpr") for name in names}
        attributes = {(at,): [["tt.divisibility", 16]] for at in aligned}
        source = ASTSource(function, full, constexprs=constants, attrs=attributes)
    else:
        source = ASTSource(function, types, constants=constants, attrs=old_attributes(aligned))
    known = {"target": target, "options": options, "codegen_fns": functions, "context": context}
    if hasattr(backend, "get_module_map"):
        known["module_map"] = backend.get_module_map()
    module = source.make_ir(**{name: known[name] for name in inspect.signature(source.make_ir).parameters})
    if module.verify() is False:
        raise RuntimeError("error encountered during parsing")
    # A module is gone with its context.
    return known | {"module": module, "source": source, "backend": backend}


def old_attributes(aligned):
    """Which parameters are multiples of 16, as Triton 3.1 and 3.2 take it."""
    try:
        from triton.backends.compiler import AttrsDescriptor

        return AttrsDescriptor.from_hints({at: 16 for at in aligned})
    except ImportError:
        from triton.compiler.compiler import AttrsDescriptor

        return AttrsDescriptor(divisible_by_16=set(aligned), equal_to_1=set())


def constant(value):
    """A compile-time value: what JSON has no word for comes as `{"dtype": …}`, `{"tuple": […]}`, `{"dict": […]}`."""
    if isinstance(value, dict):
        import triton.language as tl

        if "dtype" in value:
            return getattr(tl, value["dtype"])
        if "dict" in value:
            return {name: constant(item) for name, item in value["dict"]}
        return tuple(constant(item) for item in value["tuple"])
    return value


def assumed(truth, is_called):
    """What stands for something of the user's that is only asked whether it is true."""
    return (lambda *args, **words: truth) if is_called else truth


# The user's code: what is left of each file, with what it imports put in.


class Files:
    """The files of a request, loaded when they are needed."""

    def __init__(self, files, folder):
        self.files, self.folder, self.modules = files, folder, {}
        self.paths = {}

    def load(self, at):
        """The module of a file."""
        if at not in self.modules:
            file = self.files[at]
            if file.get("is_imported"):
                return self.load_itself(at)
            # Files that import each other get what is there so far, as in Python.
            folder = os.path.join(self.folder, str(at))
            os.mkdir(folder)
            path = os.path.join(folder, re.sub(r"\W", "_", file["name"]) + ".py")
            with open(path, "w", encoding="utf-8", newline="") as out:
                out.write(file["text"])
            self.paths[path] = at
            spec = importlib.util.spec_from_file_location(f"warpsmith_file_{at}", path)
            module = self.modules[at] = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            for name in file.get("assumed", []):
                setattr(module, name["name"], assumed(name["truth"], name["is_called"]))
            for name, other, member in file["imports"]:
                there = self.load(other)
                setattr(module, name, there if member is None else getattr(there, member))
            if file.get("path") is None:
                spec.loader.exec_module(module)
            else:
                self.load_as(file["path"], at, module)
        return self.modules[at]

    def load_as(self, path, at, module):
        """Runs a file as if it stood at `path`: Triton then tells lines of that."""
        text = self.files[at]["text"]
        self.paths[path] = at
        # Python is asked for the lines of functions: they are those that were sent, whatever stands on disk.
        linecache.cache[path] = (len(text), None, text.splitlines(True), path)
        exec(compile(text, path, "exec", dont_inherit=True), vars(module))

    def load_itself(self, at):
        """Imports the user's own file, as Python would from the folder around its packages."""
        path, text = self.files[at]["path"], self.files[at]["text"]
        with open(path, encoding="utf-8", newline="") as file:
            if file.read() != text:
                raise ImportError("the file is not saved")
        root, names = os.path.dirname(path), [os.path.splitext(os.path.basename(path))[0]]
        while os.path.isfile(os.path.join(root, "__init__.py")):
            root, package = os.path.split(root)
            names.insert(0, package)
        if names[-1] == "__init__" and len(names) > 1:
            names.pop()
        sys.path[:0] = [root]
        self.paths[path] = at
        module = self.modules[at] = importlib.import_module(".".join(names))
        if not os.path.samefile(getattr(module, "__file__", None) or os.devnull, path):
            raise ImportError(f"Python has another module of the name {module.__name__}")
        self.paths[module.__file__] = at
        return module

    def function(self, name):
        """The kernel of this name in the first file, without what is wrapped around it."""
        from triton.runtime.jit import JITFunction

        function = getattr(self.load(0), name)
        while not isinstance(function, JITFunction):
            function = function.fn
        return function

    def origin(self, function):
        """The file of a function, the line of its `def` and by how much that is indented; `None` for Triton's own."""
        at = self.paths.get(function.fn.__code__.co_filename)
        if at is None:
            return None
        lines, start = inspect.getsourcelines(function.fn)
        head = next(i for i, line in enumerate(lines) if re.match(r"\s*def\s", line))
        return at, start + head, len(lines[head]) - len(lines[head].lstrip())


# What the front end says.


def served(request, folder):
    """What the front end says to a request, in this process; the files, and what was lowered."""
    from triton.runtime.jit import JITFunction

    files = Files(request["files"], folder)
    try:
        function = files.function(request["kernel"])
    except BaseException as error:
        place = load_place(error, files)
        if place is None:
            return {"unable": f"{type(error).__name__}: {error}"[:2000]}, files, None
        message = re.sub(r" \(/[^)]*\)$", "", f"{type(error).__name__}: {error}")
        return {"error": {"kind": "load", "message": message[:2000], "places": [place]}}, files, None
    functions, origins = {}, {}
    for module in files.modules.values():
        for value in list(vars(module).values()):
            while not isinstance(value, JITFunction) and hasattr(value, "fn"):
                value = value.fn
            if isinstance(value, JITFunction):
                origin = files.origin(value)
                if origin is not None:
                    functions[value.src] = origins[id(value)] = origin
    records, lowering = {}, None
    if request["types"]:
        watch(records)
    try:
        lowering = lowered(function, request)
    except BaseException as error:
        answer = refusal(error, functions)
    else:
        answer = {"accepted": True}
    # Before 3.3 the front end does not say whose expression it visits.
    own = origins.get(id(function))
    types = []
    for (_, *span), (of, kinds) in records.items():
        origin = origins.get(id(of)) if of is not None else None
        if origin is not None and origin == own:
            types.append(placed(origin, span) + [kinds])
    answer["types"] = types
    return answer, files, lowering


# Processes.


def in_child(request, writer, log, folder):
    """Serves a request in a forked child."""
    os.setpgid(0, 0)
    die_with_parent()
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT, OUTPUT))
    if not any(file.get("is_imported") for file in request["files"]):
        # What torch and CUDA reserve has nothing to do with what they use.
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log.fileno(), 2)
    answer, files, lowering = served(request, folder)
    sys.stderr.flush()
    if answer.get("error", {}).get("kind") == "verify":
        log.seek(0)
        answer["error"]["verifier"] = verifier_errors(log.read().decode(errors="replace"), files)
    with os.fdopen(writer, "wb", buffering=0) as out:

        def say(part):
            whole = json.dumps(part).encode() + b"\n"
            while whole:
                whole = whole[out.write(whole):]

        if lowering is None or not request.get("full"):
            say(answer)
        else:
            say(answer | {"at": lowering["source"].ext})
            from warpsmith_stages import compiled

            say({"compiled": compiled(lowering, request["full"], say, log, folder)})


def joined(data):
    """The answer that a child has written so far, and the stage that it was last in. A part that it did not finish is lost."""
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
    """How a process died, and the best that it has written about it."""
    log.seek(0)
    lines = log.read()[-4000:].decode(errors="replace").strip().splitlines()
    why = next((line for line in lines if "Assertion" in line or "error:" in line), lines[-1] if lines else "")
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
    return f"{how}: {why}"[:2000]


def die_with_parent():
    """A child whose parent is killed ends, too."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except Exception:
        pass


def stay_within(cores):
    """Keeps this process and its children to so many of the cores that it may use; 0 means half of them."""
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        share = cores or max(1, len(allowed) // 2)
        # Not the same ones for all processes.
        first = os.getpid() % len(allowed)
        os.sched_setaffinity(0, (allowed + allowed)[first:first + min(share, len(allowed))])


class Service:
    """Takes requests, serves the newest, and drops those that are cancelled."""

    def __init__(self, answers):
        self.answers, self.waiting, self.rest = answers, [], b""

    def say(self, answer):
        self.answers.write(json.dumps(answer).encode() + b"\n")

    def take(self, data):
        """Takes what was read. Returns the ids of requests that are cancelled."""
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
        """Serves until there is nobody to serve."""
        while True:
            while self.waiting:
                if not self.serve(self.waiting.pop(0)):
                    return
            data = os.read(0, 1 << 16)
            if not data:
                return
            self.take(data)

    def serve(self, request):
        """Serves one request. Returns whether there is still somebody to serve."""
        with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder, tempfile.TemporaryFile() as log:
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    os.close(reader)
                    in_child(request, writer, log, folder)
                finally:
                    os._exit(0)
            os.close(writer)
            alive, answer = self.wait(request, child, reader, log)
            os.close(reader)
        self.say({"id": request["id"]} | answer)
        return alive

    def wait(self, request, child, reader, log):
        """Waits for a child, its end or the end of the time that it has."""
        data, end = b"", time.monotonic() + request["seconds"]
        alive, answer = True, None
        while answer is None:
            ready = select.select([reader] + ([0] if alive else []), [], [], max(0, end - time.monotonic()))[0]
            if not ready:
                answer = {"unable": f"no answer within {request['seconds']} s"}
            if 0 in ready:
                more = os.read(0, 1 << 16)
                if not more:
                    alive, answer = False, {"cancelled": True}
                elif request["id"] in self.take(more):
                    answer = {"cancelled": True}
            if reader in ready:
                part = os.read(reader, 1 << 20)
                data += part
                if not part:
                    break
        if answer is not None:
            try:
                os.killpg(child, signal.SIGKILL)
            except ProcessLookupError:
                os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        said, stage = joined(data)
        if answer is None and said and stage is None:
            return alive, said
        if answer is None:
            answer = {"crashed": how_it_ended(status, log)}
        if said and stage is not None and "cancelled" not in answer:
            # What the front end has said stands, whatever happened afterwards.
            said["compiled"]["failed"] = {"stage": stage, "message": answer.get("crashed") or answer["unable"]}
            answer = said
        return alive, answer


def main():
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    stay_within(int(sys.argv[1]))
    # What the user's code or Triton prints is no answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    service = Service(answers)
    try:
        import triton
        import triton.compiler.code_generator
        import triton.language.extra.libdevice
        from triton._C.libtriton import ir

        del ir
    except BaseException as error:
        service.say({"unfit": f"{type(error).__name__}: {error}"[:2000]})
        return
    die_with_parent()
    # The editor and the user's own programs come first.
    os.nice(10)
    service.say({"ready": triton.__version__, "python": sys.version.split()[0]})
    service.run()


if __name__ == "__main__":
    main()
