"""What nine Triton releases say about short programs: `verdicts.py IN OUT --tritons DIR [--check]`.

IN is a .json file (`{"snippets": [...]}`) or a Python module with a list `SNIPPETS`; each program has `id`, `category`,
`source`, `signature` and `constexprs`. DIR holds VERSION/sp, an unpacked Triton each. See README.md.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

VERSIONS = ["3.1.0", "3.2.0", "3.3.1", "3.4.0", "3.5.1", "3.6.0", "3.7.1", "3.8.0", "3.9.0"]
SECONDS = 20


def lower(jit_function, signature, constexprs):
    """Lowers a kernel to TTIR and verifies it; returns the module's verdict (older releases return it, newer ones raise)."""
    import inspect
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import ASTSource, make_backend

    signature = {name: signature[name] for name in jit_function.arg_names if name in signature}
    backend_target = GPUTarget("cuda", 90, 32)
    backend = make_backend(backend_target)
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    takes = inspect.signature(backend.get_codegen_implementation).parameters
    functions = backend.get_codegen_implementation(*([options] if takes else []))
    if "constexprs" in inspect.signature(ASTSource.__init__).parameters:
        full = {name: signature.get(name, "constexpr") for name in jit_function.arg_names}
        source = ASTSource(jit_function, full, constexprs=constexprs)
    else:
        source = ASTSource(jit_function, signature, constants=constexprs)
    known = {"target": backend_target, "options": options, "codegen_fns": functions, "context": context}
    if hasattr(backend, "get_module_map"):
        known["module_map"] = backend.get_module_map()
    wanted = inspect.signature(source.make_ir).parameters
    module = source.make_ir(**{name: known[name] for name in wanted})
    return module.verify()


def text_of(error):
    """The message of an error as the exception tells it, without addresses; None if only its cause has one."""
    message = error.error_message if hasattr(error, "error_message") else str(error)
    return message and plain(str(message))


def plain(text):
    """A text without addresses and folders, not too long."""
    return re.sub(r"/(?:[\w.+-]+/)+", "", re.sub(r" at 0x[0-9a-f]+", " at 0x", text))[:300]


def place_of(chain, functions):
    """Line, column and node of the innermost compilation error whose node lies in the program, and the outermost's place."""
    found, outer = {}, None
    for error in chain:
        node, source = getattr(error, "node", None), getattr(error, "src", None)
        if node is None or not hasattr(node, "lineno"):
            continue
        if source is None and hasattr(error, "fn"):
            source = error.fn.src
        function = functions.get(source)
        if function is None:
            continue
        line, indent = function
        place = [line + node.lineno - 1, node.col_offset + indent]
        found = {"line": place[0], "col": place[1], "node": type(node).__name__}
        outer = outer or place
    if outer and outer != [found["line"], found["col"]]:
        found["call_site"] = outer
    return found


def judge(snippet, folder):
    """The verdict on one program, in this process."""
    import inspect
    import triton
    import triton.language as tl
    from triton.runtime.jit import JITFunction

    file = pathlib.Path(folder, snippet["id"] + ".py")
    file.write_text(snippet["source"], encoding="utf-8")
    spec = importlib.util.spec_from_file_location("snip_" + snippet["id"], file)
    module = importlib.util.module_from_spec(spec)
    functions = {}
    try:
        spec.loader.exec_module(module)
        for value in vars(module).values():
            while not isinstance(value, JITFunction) and hasattr(value, "fn"):
                value = value.fn
            if isinstance(value, JITFunction) and value.fn.__code__.co_filename == str(file):
                lines, start = inspect.getsourcelines(value.fn)
                text = value.src if isinstance(value.src, str) else value._src
                at = next(i for i, line in enumerate(lines) if re.match(r"\s*def\s", line))
                functions[text] = (start + at, len(lines[at]) - len(lines[at].lstrip()))
        kernel = module.k
        while not isinstance(kernel, JITFunction):
            kernel = kernel.fn
        constexprs = {name: getattr(tl, value[5:]) if isinstance(value, str) and value.startswith("__tl.") else value
                      for name, value in snippet["constexprs"].items()}
        verified = lower(kernel, snippet["signature"], constexprs)
    except BaseException as error:
        chain = [error]
        while chain[-1].__cause__ is not None:
            chain.append(chain[-1].__cause__)
        if type(error) is RuntimeError and "error encountered during parsing" in str(error):
            return {"ok": False, "error_type": "MLIRVerifyError", "message": "module.verify() failed"}
        inner = [link for link in chain if hasattr(link, "node")]
        last = inner[-1] if inner else error
        root = f"{type(chain[-1]).__name__}: {text_of(chain[-1])}"
        verdict = {"ok": False, "error_type": type(error).__name__, "message": text_of(last) or root}
        verdict.update(place_of(chain, functions))
        if chain[-1] is not last and root not in verdict["message"]:
            verdict["root_cause"] = root
        return verdict
    if verified is False:
        return {"ok": False, "error_type": "MLIRVerifyError", "message": "module.verify() failed"}
    return {"ok": True}


def forked(snippet, folder):
    """The verdict on one program, in a process of its own: some inputs abort it."""
    log = tempfile.TemporaryFile()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(log.fileno(), 2)
        import warnings
        warnings.simplefilter("always")
        os.write(writer, json.dumps(judge(snippet, folder)).encode())
        os.close(writer)
        os._exit(0)
    os.close(writer)
    data = b""
    end = time.monotonic() + SECONDS
    while True:
        ready, _, _ = select.select([reader], [], [], max(0, end - time.monotonic()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            break
        part = os.read(reader, 1 << 16)
        if not part:
            break
        data += part
    os.close(reader)
    _, status = os.waitpid(child, 0)
    log.seek(0)
    stderr = log.read().decode(errors="replace").replace(folder + "/", "")
    if os.WIFSIGNALED(status) or not data:
        lines = stderr.strip().splitlines()
        why = next((line for line in lines if "Assertion" in line or "error:" in line), lines[-1] if lines else "")
        verdict = {"ok": False, "error_type": "Crash", "message": plain(f"signal {os.WTERMSIG(status)}: {why}")}
    else:
        verdict = json.loads(data)
    diagnostics = [line for line in stderr.splitlines() if re.search(r"\berror: ", line)]
    if diagnostics and not verdict["ok"]:
        verdict["mlir_diag"] = [plain(line) for line in diagnostics[:3]]
    warned = [found.group(1)[:200] for found in re.finditer(r"\.py:\d+: (\w*Warning: .*)", stderr)
              if "FP_FUSION" not in found.group(1)]
    if warned:
        verdict["warnings"] = sorted(set(warned))
    return verdict


def worker():
    """Reads programs from stdin, writes `{id: verdict}` to stdout: runs under one Triton."""
    snippets = json.load(sys.stdin)
    import triton
    import triton.language
    import triton.compiler
    import triton.backends
    with tempfile.TemporaryDirectory() as folder:
        json.dump({snippet["id"]: forked(snippet, folder) for snippet in snippets}, sys.stdout)


def run(version, tritons, snippets):
    """The verdicts of one release."""
    env = dict(os.environ, PYTHONPATH=str(pathlib.Path(tritons, version, "sp")))
    done = subprocess.run([sys.executable, __file__, "--worker"], input=json.dumps(snippets), env=env, text=True,
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def read(path):
    """The programs of a file."""
    if path.suffix == ".json":
        return json.loads(path.read_text())["snippets"]
    spec = importlib.util.spec_from_file_location("programs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SNIPPETS


def spread(results):
    """Verdicts by version, from the file's verdicts by space-separated versions."""
    return {version: verdict for versions, verdict in results.items() for version in versions.split()}


def grouped(verdicts):
    """Verdicts by space-separated versions, where neighbours that agree share one."""
    groups = []
    for version, verdict in verdicts.items():
        if groups and groups[-1][1] == verdict:
            groups[-1][0].append(version)
        else:
            groups.append(([version], verdict))
    return {" ".join(versions): verdict for versions, verdict in groups}


def identity(snippet):
    """What a verdict depends on."""
    return json.dumps([snippet[key] for key in ("id", "source", "signature", "constexprs")])


def compare(snippets, results):
    """Prints where new verdicts differ from those in the file."""
    right = total = 0
    for snippet in snippets:
        for version, old in spread(snippet["results"]).items():
            if version not in results:
                continue
            new = results[version][snippet["id"]]
            total += 1
            same = old["ok"] == new["ok"] and old.get("line") == new.get("line") and old.get("col") == new.get("col")
            right += same
            if not same:
                print(snippet["id"], version, "was", old, "is", new)
    print(f"{right} of {total} verdicts agree (ok, line, col)")


def write(path, snippets, results, versions):
    """Writes the structure of the given data, one program a line; a key of `results` names all releases that agree."""
    note = ("line is 1-based and col 0-based, both into `source`; ok means AST->TTIR plus module.verify(); "
            "a key of results is one or more versions, separated by spaces")
    head = {"versions": versions, "target": ["cuda", 90, 32], "python": sys.version.split()[0], "note": note}
    lines = []
    for snippet in snippets:
        keep = {key: snippet[key] for key in ("id", "category", "source", "signature", "constexprs")}
        keep["results"] = grouped({version: results[version][snippet["id"]] for version in versions})
        lines.append(json.dumps(keep, separators=(",", ":"), ensure_ascii=False))
    text = json.dumps(head, separators=(",", ":"))[:-1] + ',"snippets":[\n' + ",\n".join(lines) + "\n]}\n"
    path.write_text(text, encoding="utf-8")


def judged(snippets, versions, tritons, known):
    """The verdicts by version and program: those known, and new ones for the other programs."""
    results = {version: {} for version in versions}
    for snippet in snippets:
        for version, verdict in known.get(identity(snippet), {}).items():
            results.get(version, {})[snippet["id"]] = verdict
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = {}
        for version in versions:
            new = [snippet for snippet in snippets if snippet["id"] not in results[version]]
            if new:
                jobs[version] = pool.submit(run, version, tritons, new)
        for version, job in jobs.items():
            results[version].update(job.result())
            print(version, len(results[version]), "verdicts", flush=True)
    return results


def main():
    if "--worker" in sys.argv:
        return worker()
    parser = argparse.ArgumentParser()
    parser.add_argument("input", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path, nargs="?")
    parser.add_argument("--tritons", required=True)
    parser.add_argument("--versions", default=",".join(VERSIONS))
    parser.add_argument("--only", help="a regular expression over ids")
    parser.add_argument("--check", action="store_true", help="compare with the verdicts in the input")
    parser.add_argument("--again", action="store_true", help="run programs whose verdicts OUT has already")
    args = parser.parse_args()
    snippets = [snippet for snippet in read(args.input) if not args.only or re.search(args.only, snippet["id"])]
    versions = args.versions.split(",")
    known = {}
    if args.output and args.output.exists() and not args.again:
        known = {identity(snippet): spread(snippet["results"]) for snippet in read(args.output)}
    results = judged(snippets, versions, args.tritons, known)
    if args.check:
        compare(snippets, results)
    if args.output:
        write(args.output, snippets, results, versions)


if __name__ == "__main__":
    main()
