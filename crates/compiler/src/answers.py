"""The conversion of Triton's errors, source locations and types to answers. Part of `worker.py`."""

import ast
import os
import re


def text_of(error):
    """The message of an error."""
    message = error.error_message if hasattr(error, "error_message") else str(error)
    # Up to Triton 3.4 the message may be the `repr` of an exception.
    wrapped = re.fullmatch(r"\w*(?:Error|Exception)\((['\"])(.*)\1,?\)", str(message or ""), re.DOTALL)
    return wrapped.group(2).replace("\\'", "'").replace("\\n", "\n") if wrapped else str(message or "")


def chain_of(error):
    """An error and its causes, outermost first."""
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    return chain


def places_of(chain, functions):
    """The place of each compilation error of a chain: file, line, column, end line, end column; outermost first."""
    places = []
    for error in chain:
        node, source = getattr(error, "node", None), getattr(error, "src", None)
        if node is None or not hasattr(node, "lineno"):
            continue
        if source is None and hasattr(error, "fn"):
            source = error.fn.src
        origin = functions.get(source)
        if origin is not None:
            place = placed(origin, (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset))
            places += [place] if place not in places else []
    return places


def placed(origin, span):
    """Converts a place in a function to one in its file: lines from 1, columns from 0 in bytes."""
    file, first, indent = origin
    line, column, end, end_column = span
    return [file, line + first - 1, column + indent, end + first - 1, end_column + indent]


def refusal(error, functions):
    """The answer for an error of the front end."""
    chain = chain_of(error)
    if type(error) is RuntimeError and "error encountered during parsing" in str(error):
        return {"error": {"kind": "verify", "message": "", "places": []}}
    inner = [link for link in chain if hasattr(link, "node")]
    if not inner:
        # This error is not about the program: the parts of the request do not fit together.
        return {"unable": f"{type(error).__name__}: {error}"[:2000]}
    root = chain[-1]
    words = text_of(inner[-1])
    if root is not inner[-1]:
        cause = text_of(root)
        plain = cause if type(root).__name__ in ("ValueError", "AssertionError", "RuntimeError") else f"{type(root).__name__}: {cause}"
        words = words if cause and cause in words else "\n".join(part for part in (words, plain) if part)
    return {"error": {"kind": type(root).__name__, "message": words[:4000], "places": places_of(chain, functions)}}


def load_place(error, files):
    """The line of a file that uses Triton in an invalid way; `None` if the error may be ours, or is not Triton's."""
    import traceback
    import triton

    home = os.path.dirname(triton.__file__)
    frames = traceback.extract_tb(error.__traceback__)
    own = [at for at, frame in enumerate(frames) if frame.filename in files.paths]
    if not own:
        return None
    is_import = isinstance(error, ImportError) and (error.name or "").split(".")[0] == "triton"
    if not is_import and not any(frame.filename.startswith(home) for frame in frames[own[-1] + 1:]):
        # A call with wrong arguments fails before it enters Triton.
        if not re.match(r"(?:JITFunction\.__init__|jit|autotune|heuristics|Config\.__init__)\(\) ", str(error)):
            return None
    frame = frames[own[-1]]
    line = files.files[files.paths[frame.filename]]["text"].split("\n")[frame.lineno - 1].encode()
    start = len(line) - len(line.lstrip())
    return [files.paths[frame.filename], frame.lineno, start, frame.lineno, len(line.rstrip())]


def verifier_errors(log, files):
    """The errors that MLIR has printed: message, file, line and column (from 0)."""
    found = []
    for match in re.finditer(r"^(?:loc\(\"?)?(/[^\n\"]*?\.py)\"?:(\d+):(\d+)\)?: error: (.*)$", log, re.MULTILINE):
        at = files.paths.get(match.group(1))
        if at is not None:
            found.append([match.group(4)[:2000], at, int(match.group(2)), max(int(match.group(3)) - 1, 0)])
    return found


def scalar(kind):
    """The text of a scalar type: `int32`, `fp16`, `*fp32`."""
    if hasattr(kind, "element_ty") and not kind.is_block():
        inner = kind.element_ty
        return "*" + (type_of(inner) if inner.is_block() else scalar(inner))
    return kind.name


def type_of(kind):
    """The text of a type: `fp16[64, 32]`."""
    if kind.is_block():
        return scalar(kind.element_ty) + "[" + ", ".join(str(getattr(n, "value", n)) for n in kind.shape) + "]"
    return scalar(kind)


def describe(value):
    """The text of the type of a run-time value; `None` for any other value."""
    import triton.language.core as core

    if isinstance(value, core.tensor):
        return type_of(value.type)
    if "descriptor" in type(value).__name__ and hasattr(value, "block_type"):
        return "descriptor of " + type_of(value.block_type)
    return None


def watch(records):
    """Records the type of each expression that the front end visits, by function."""
    from triton.compiler.code_generator import CodeGenerator

    visit = CodeGenerator.visit

    def watched(self, node):
        value = visit(self, node)
        if isinstance(node, ast.expr) and hasattr(node, "lineno") and not isinstance(getattr(node, "ctx", None), ast.Store):
            try:
                kind = describe(value)
            except Exception:
                # An error of the recording must not change the result.
                kind = None
            if kind is not None:
                function = getattr(self, "jit_fn", None)
                key = (id(function), node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
                kinds = records.setdefault(key, (function, []))[1]
                if kind not in kinds:
                    kinds.append(kind)
        return value

    CodeGenerator.visit = watched
