"""The stages after the front end: Triton's own compiler down to machine code, without a GPU. Part of `worker.py`."""

import contextlib
import inspect
import os
import re
import subprocess
import tempfile

# The number of columns of tensor memory, as in Triton.
TENSOR_MEMORY = 512


def compiled(lowering, wanted, say, log, folder):
    """Runs the stages after the front end. `say` is called with the requested texts, and with each stage before it
    starts, because the process may die in it.
    """
    target, options = lowering["target"], lowering["options"]
    # Triton's cache is redirected to a folder that is removed.
    os.environ["TRITON_CACHE_DIR"] = os.environ["TRITON_HOME"] = os.path.join(folder, "cache")
    tempfile.tempdir = folder
    metadata = {"hash": "", "target": target, **options.__dict__}
    answer = {"registers": None, "spills": None, "stack": None, "shared": 0, "warps": options.num_warps}
    product, stage, start = lowering["module"], lowering["source"].ext, 0
    results, printed = {}, []
    try:
        for stage, compile_further in pipeline(lowering):
            say({"at": stage})
            start = log.seek(0, os.SEEK_END)
            with listening(printed):
                product = compile_further(product, metadata)
            results[stage] = product
            if stage in wanted["stages"]:
                say({"text": [stage, str(product)]})
    except BaseException as error:
        message = words(error, log, start).replace(folder + os.sep, "")
        answer["failed"] = {"stage": stage, "message": message}
    answer["shared"] = metadata.get("shared") or 0
    answer["warps"] = metadata.get("num_warps", options.num_warps)
    if "failed" in answer:
        return answer
    if target.backend == "hip":
        answer |= of_amdgcn(results.get("amdgcn", ""))
    elif isinstance(product, bytes):
        say({"at": "sass"})
        path = os.path.join(folder, "kernel.cubin")
        with open(path, "wb") as out:
            out.write(product)
        answer |= of_ptxas("".join(printed), metadata.get("name", "")) or of_cubin(path, metadata.get("name", ""))
        if "sass" in wanted["stages"]:
            text = tool("nvdisasm", "-c", "-gi", path) or tool("cuobjdump", "-sass", path)
            if text is None:
                answer["failed"] = {"stage": "sass", "message": "neither nvdisasm nor cuobjdump of Triton works"}
            else:
                say({"text": ["sass", text]})
    lack = lacking(wanted["shared"], metadata)
    if lack is not None:
        answer["failed"] = {"stage": "launch", "message": lack}
    return answer


def pipeline(lowering):
    """The names and functions of the stages after the front end. AMD's last stage only packs the output of the one
    before."""
    stages, backend, source = {}, lowering["backend"], lowering["source"]
    takes = len(inspect.signature(backend.add_stages).parameters)
    backend.add_stages(*[stages, lowering["options"], getattr(source, "language", None)][:takes])
    names = list(stages)
    return [(name, stages[name]) for name in names[names.index(source.ext):] if name != "hsaco"]


def words(error, log, start):
    """The message of an error, with the errors that MLIR has printed."""
    log.seek(start)
    printed = re.findall(r"^[^\n]*?error: (.*)$", log.read().decode(errors="replace"), re.MULTILINE)
    text = re.sub(r"\n?Repro command: .*", "", f"{type(error).__name__}: {error}").strip()
    return "\n".join([text, *dict.fromkeys(printed)])[:4000]


@contextlib.contextmanager
def listening(printed):
    """Captures the logs of programs that Triton runs, such as `ptxas`, before Triton removes them."""
    run = subprocess.run

    def heard(command, *args, **rest):
        result = run(command, *args, **rest)
        path = getattr(rest.get("stderr"), "name", None)
        if rest.get("shell") and isinstance(command, str) and " 2> " in command:
            path = command.rsplit(" 2> ", 1)[1]
        if isinstance(path, str) and os.path.exists(path):
            with open(path, errors="replace") as log:
                printed.append(log.read())
        return result

    subprocess.run = heard
    try:
        yield
    finally:
        subprocess.run = run


def of_ptxas(log, kernel):
    """Registers, stack and spills per thread from the output of `ptxas -v`; `{}` if it contains none."""
    part = re.search(rf"Compiling entry function '{re.escape(kernel)}'(.*?)(?:Compiling entry|\Z)", log, re.DOTALL)
    text = part.group(1) if part else ""
    used = re.search(r"Used (\d+) registers", text)
    frame = re.search(
        rf"Function properties for {re.escape(kernel)}\s+(\d+) bytes stack frame, (\d+) bytes spill stores", text
    )
    if not used or not frame:
        return {}
    stack, stored = int(frame.group(1)), int(frame.group(2))
    # A value that is stored to the stack several times has one slot there, so spills are at most the stack.
    return {"registers": int(used.group(1)), "stack": stack, "spills": min(stack, stored)}


def of_cubin(path, kernel):
    """The same from the compiled kernel, which does not distinguish spills from other uses of the stack, unless the
    stack is empty."""
    report = tool("cuobjdump", "--dump-resource-usage", path) or ""
    found = re.search(rf"Function {re.escape(kernel)}:\s*REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)", report)
    if not found:
        return {}
    registers, stack, local = map(int, found.groups())
    return {"registers": registers, "stack": stack, "spills": 0 if stack + local == 0 else None}


def of_amdgcn(text):
    """Vector registers, scratch and spills per thread, from the metadata at the end of the assembly."""

    def number(name):
        found = re.search(rf"^\s*\.{name}:\s*(\d+)", text, re.MULTILINE)
        return int(found.group(1)) if found else None

    spilled = number("vgpr_spill_count")
    return {
        "registers": number("vgpr_count"),
        "stack": number("private_segment_fixed_size"),
        "spills": None if spilled is None else 4 * spilled,
    }


def tool(name, *arguments):
    """The output of one of the programs that come with Triton; `None` if it fails."""
    import triton

    path = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin", name)
    try:
        result = subprocess.run([path, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return result.stdout.decode(errors="replace")


def lacking(limit, metadata):
    """The error that Triton would raise at the launch because of missing device memory; `None` if the memory suffices
    or is unknown."""
    from triton.runtime.errors import OutOfResources

    shared, tensor = metadata.get("shared") or 0, metadata.get("tmem_size") or 0
    if limit is not None and shared > limit:
        return f"OutOfResources: {OutOfResources(shared, limit, 'shared memory')}"
    if tensor > TENSOR_MEMORY:
        return f"OutOfResources: {OutOfResources(tensor, TENSOR_MEMORY, 'tensor memory')}"
    return None
