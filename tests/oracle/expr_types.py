"""The type of every expression of a package's kernels, as Triton 3.6.0 sees it: see README.md.

`PYTHONPATH=TRITONS/3.6.0/sp expr_types.py --out FILE ROOT/PACKAGE...`
"""

import argparse
import ast
import importlib
import inspect
import json
import os
import pathlib
import re
import select
import signal
import sys
import tempfile
import time

import stubs
stubs.install()

from signatures import guesses
from verdicts import lower, text_of
import triton
import triton.language as tl
import triton.language.core as core
from triton.compiler.code_generator import CodeGenerator
from triton.runtime.jit import JITFunction

SECONDS = 120
RECORDS = []


def scalar(kind):
    """A dtype's short name: i32, u8, fp16, ptr<fp32>."""
    if isinstance(kind, core.pointer_type):
        inner = kind.element_ty
        return f"ptr<{type_of_type(inner) if inner.is_block() else scalar(inner)}>"
    return kind.name.replace("uint", "u").replace("int", "i")


def type_of_type(kind):
    if isinstance(kind, core.block_type):
        return scalar(kind.element_ty) + "[" + ",".join(str(getattr(n, "value", n)) for n in kind.shape) + "]"
    return scalar(kind)


def describe(value):
    """The textual form of an expression's value."""
    if isinstance(value, core.tensor):
        return type_of_type(value.type) if value.type.is_block() else scalar(value.type) + "[]"
    if isinstance(value, core.constexpr):
        inner = value.value
        if isinstance(inner, (bool, int, float, str, type(None))):
            return "constexpr:" + repr(inner)
        return "constexpr:" + describe(inner)
    if isinstance(value, (core.tuple, tuple, list)):
        items = value.values if isinstance(value, core.tuple) else value
        name = "list" if isinstance(value, list) else "tuple"
        return name + "(" + ";".join(describe(item) for item in items) + ")"
    if isinstance(value, core.tensor_descriptor_base):
        return "desc<" + type_of_type(value.block_type) + ">"
    if isinstance(value, core.dtype):
        return "dtype:" + scalar(value)
    if value is None:
        return "none"
    if isinstance(value, (bool, int, float, str)):
        return "python:" + repr(value)
    if type(value).__name__ == "module":
        return "module:" + value.__name__
    if isinstance(value, (core.slice, slice)):
        return "slice"
    if hasattr(value, "__self__") and not isinstance(value.__self__, type(core)) or type(value).__name__ == "BoundJITMethod":
        return "method"
    if callable(value):
        return "function:" + getattr(value, "__name__", type(value).__name__)
    return "python:" + type(value).__name__


def watch():
    """Records each expression that the front end visits, for each function it generates, but the sums that it makes of
    augmented assignments."""
    visit = CodeGenerator.visit

    def watched(self, node):
        value = visit(self, node)
        if isinstance(node, ast.AugAssign):
            self.__dict__.get("expressions", {}).pop((node.lineno, node.col_offset, node.end_lineno, node.end_col_offset), None)
        if isinstance(node, ast.expr) and hasattr(node, "lineno") and not isinstance(getattr(node, "ctx", None), ast.Store):
            record = self.__dict__.get("expressions")
            if record is None:
                record = self.expressions = {}
                RECORDS.append((self.jit_fn, record))
            place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
            text = describe(value)
            kinds = record.setdefault(place, [])
            if text not in kinds:
                kinds.append(text)
        return value

    CodeGenerator.visit = watched


def origin(function):
    """File, line of `def`, and indentation of a function."""
    lines, start = inspect.getsourcelines(function.fn)
    at = next(i for i, line in enumerate(lines) if re.match(r"\s*def\s", line))
    return function.fn.__code__.co_filename, start + at, len(lines[at]) - len(lines[at].lstrip())


def in_file(function, record):
    """A record with places in the file: `[line, col, end line, end col, type or types]`, lines from 1, columns from 0 in bytes."""
    _, first, indent = origin(function)
    rows = []
    for (line, col, end, end_col), kinds in sorted(record.items()):
        rows.append([line + first - 1, col + indent, end + first - 1, end_col + indent, kinds[0] if len(kinds) == 1 else kinds])
    return rows


def value_of(value):
    return getattr(tl, value[5:]) if isinstance(value, str) and value.startswith("__tl.") else value


def comment(function, signature, constexprs):
    """The signature as Warpsmith reads it."""
    words = []
    for name in function.arg_names:
        value = signature.get(name, constexprs.get(name))
        if name in constexprs:
            value = value[2:] if isinstance(value, str) and value.startswith("__tl.") else json.dumps(value) \
                if isinstance(value, str) else repr(value)
        words.append(f"{name}={value}")
    return "# warpsmith: signature " + " ".join(words)


def attempt(function, signature, constexprs, roots):
    """Lowers once: the kernel's line of the output."""
    RECORDS.clear()
    if lower(function, signature, {name: value_of(value) for name, value in constexprs.items()}) is False:
        raise RuntimeError("verify")
    file, line, _ = origin(function)
    shorten = lambda path: next((os.path.relpath(path, root.parent.parent) for root in roots
                                 if path.startswith(str(root))), None)
    rows, helpers = [], []
    for called, record in RECORDS:
        if called is function:
            rows = in_file(called, record)
        elif shorten(called.fn.__code__.co_filename):
            path, at, _ = origin(called)
            helpers.append({"file": shorten(path), "name": called.fn.__name__, "line": at, "exprs": in_file(called, record)})
    return {"file": shorten(file), "kernel": function.fn.__name__, "line": line, "signature": signature,
            "constexprs": constexprs, "comment": comment(function, signature, constexprs), "exprs": rows, "helpers": helpers}


def tuned_values(wrappers):
    """The constexprs that an autotuner's first configuration gives."""
    for wrapper in wrappers:
        for config in getattr(wrapper, "configs", None) or []:
            return dict(config.kwargs)
    return {}


def failed(error, function):
    """How far the front end came in the kernel, and the innermost error's text."""
    line = getattr(getattr(error, "node", None), "lineno", 0) if getattr(error, "src", None) == function.src else 0
    while error.__cause__ is not None:
        error = error.__cause__
    return line, f"{type(error).__name__}: {text_of(error)} (line {line})"


def repaired(function, signature, constexprs, roots):
    """Changes one parameter at a time as long as the front end comes further; the output's line, or None."""
    def once(types, values):
        try:
            return None, attempt(function, types, values, roots)
        except BaseException as error:
            return failed(error, function)[0], None

    far, _ = once(signature, constexprs)
    end = time.monotonic() + SECONDS / 2
    better = True
    while better and far is not None:
        better = False
        changes = [(name, kind) for name in signature for kind in ("i32", "fp32", "*bf16", "*fp32", "*i32", "*i64")]
        changes += [(name, value) for name in constexprs for value in (1, 2, 4, 16, 32, 64, 128, True, False, None)]
        for name, change in changes:
            if time.monotonic() > end:
                return None
            types = dict(signature, **{name: change}) if name in signature else signature
            values = dict(constexprs, **{name: change}) if name in constexprs else constexprs
            reached, line = once(types, values)
            if line:
                return line
            if reached > far:
                signature, constexprs, far, better = types, values, reached, True
                break
    return None


def in_child(function, wrappers, roots, out, log):
    """Tries guesses until one lowers with the flags on, and one with them off; writes what lowered to `out`."""
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(log.fileno(), 2)
    done, failures = set(), []
    for mode, signature, constexprs in guesses(function, tuned_values(wrappers)):
        if mode["flag"] in done:
            continue
        try:
            line = attempt(function, signature, constexprs, roots)
        except BaseException as error:
            failures.append((*failed(error, function), signature, constexprs))
            continue
        done.add(mode["flag"])
        os.write(out, (json.dumps(line, separators=(",", ":")) + "\n").encode())
    if done:
        return
    best = max(failures, key=lambda failure: failure[0])
    line = repaired(function, best[2], best[3], roots)
    os.write(out, (json.dumps(line or {"failed": best[1]}, separators=(",", ":")) + "\n").encode())


def forked(function, wrappers, roots):
    """The output lines of one kernel, from a process of its own."""
    log = tempfile.TemporaryFile()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            in_child(function, wrappers, roots, writer, log)
        finally:
            os._exit(0)
    os.close(writer)
    data, end = b"", time.monotonic() + SECONDS
    while select.select([reader], [], [], max(0, end - time.monotonic()))[0]:
        part = os.read(reader, 1 << 20)
        if not part:
            break
        data += part
    else:
        os.kill(child, signal.SIGKILL)
    os.close(reader)
    _, status = os.waitpid(child, 0)
    lines = [json.loads(line) for line in data.decode().splitlines() if line.endswith("}")]
    return lines or [{"failed": f"ended with status {status}"}]


def functions_of(root):
    """Every JIT function of a package, with the wrappers around it."""
    sys.path.insert(0, str(root.parent))
    for path in sorted(root.rglob("*.py")):
        if "triton.jit" in path.read_text(encoding="utf-8") and "ascend" not in str(path):
            name = ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
            try:
                importlib.import_module(name)
            except BaseException as error:
                print("not imported:", name, type(error).__name__, str(error)[:100], file=sys.stderr)
    found = {}
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").split(".")[0] != root.name:
            continue
        for value in list(vars(module).values()):
            wrappers = []
            while not isinstance(value, JITFunction) and hasattr(value, "fn") and type(value).__module__ != "stubs":
                wrappers.append(value)
                value = value.fn
            if isinstance(value, JITFunction) and not value.is_gluon() and str(root) in value.fn.__code__.co_filename:
                found[origin(value)[:2]] = (value, wrappers)
    return [found[key] for key in sorted(found)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("roots", nargs="+", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/types.jsonl"))
    parser.add_argument("--only", help="a regular expression over names of kernels")
    args = parser.parse_args()
    roots = [root.resolve() for root in args.roots]
    watch()
    start = time.monotonic()
    counts = {"launched": 0, "launched lowered": 0, "helpers": 0, "helpers lowered": 0, "lines": 0, "expressions": 0}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.open("w") as out:
        for root in roots:
            text = "\n".join(path.read_text(encoding="utf-8") for path in root.rglob("*.py"))
            launched = set(re.findall(r"\b(\w+)\[", text))
            for function, wrappers in functions_of(root):
                name = function.fn.__name__
                if args.only and not re.search(args.only, name):
                    continue
                kind = "launched" if wrappers or name in launched else "helpers"
                counts[kind] += 1
                lines = forked(function, wrappers, roots)
                if "failed" in lines[-1]:
                    print(kind, name, f"{origin(function)[0]}:{origin(function)[1]}", lines[-1], file=sys.stderr)
                    continue
                counts[kind + " lowered"] += 1
                for line in lines:
                    counts["lines"] += 1
                    counts["expressions"] += len(line["exprs"]) + sum(len(one["exprs"]) for one in line["helpers"])
                    out.write(json.dumps({"launched": kind == "launched"} | line, separators=(",", ":")) + "\n")
    print(json.dumps(counts), f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
