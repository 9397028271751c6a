"""The compiler process: it runs Triton's front end for Warpsmith in the user's interpreter, which needs only Triton.

Reads requests from standard input and writes answers to standard output, one JSON object a line (`protocol.rs` has
their shapes). `serving.py` has the processes, `answers.py` puts what Triton says into the words of an answer, and what
comes after the front end is in `stages.py`.
"""

import gc
import importlib.util
import inspect
import linecache
import os
import re
import sys

# The other scripts must also be found if `PYTHONSAFEPATH` disables imports from this script's folder.
sys.path.append(os.path.dirname(os.path.abspath(__file__)))

import warpsmith_bytecode_cache as bytecode
from warpsmith_answers import load_place, placed, refusal, watch
from warpsmith_serving import Service, die_with_parent, stay_within


# The calls of Triton's API, which depend on its version.


def lowered(function, request):
    """Lowers a kernel to TTIR. Returns the module, and what the later stages (`stages.py`) need."""
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
    # A module does not outlive its context.
    return known | {"module": module, "source": source, "backend": backend}


def old_attributes(aligned):
    """The parameters that are multiples of 16, in the format of Triton 3.1 and 3.2."""
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
    """The replacement for an object of the user of which only the truth value is used."""
    return (lambda *args, **words: truth) if is_called else truth


# The user's code: the slice of each file, with its imports inserted.


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
            # In circular imports, a file gets the incomplete module, as in Python.
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
        """Runs a file as if it were at `path`, so that Triton reports lines of that path."""
        text = self.files[at]["text"]
        self.paths[path] = at
        # Triton gets the lines of functions from Python, which must use the text that was sent instead of the file on
        # disk.
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
        """The kernel of this name in the first file, without its decorators' wrappers."""
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


# Running the front end.


def served(request, folder):
    """Runs the front end on a request in this process. Returns the answer, the files, and the lowered kernel."""
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
    # Before Triton 3.3 the front end does not say to which function an expression belongs.
    own = origins.get(id(function))
    types = []
    for (_, *span), (of, kinds) in records.items():
        origin = origins.get(id(of)) if of is not None else None
        if origin is not None and origin == own:
            types.append(placed(origin, span) + [kinds])
    answer["types"] = types
    return answer, files, lowering


def main():
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    stay_within(int(sys.argv[1]))
    # The output of the user's code or of Triton must not mix with the answers.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    service = Service(answers, served)
    try:
        with bytecode.kept(["triton"], bytecode.beside(__file__)):
            import triton
            import triton.compiler.code_generator
            import triton.language.extra.libdevice
            from triton._C.libtriton import ir

        del ir
    except BaseException as error:
        service.say({"unfit": f"{type(error).__name__}: {error}"[:2000]})
        return
    die_with_parent()
    # A low priority leaves the processor to the editor and the user's programs.
    os.nice(10)
    # Freezing the existing objects keeps the garbage collector of each child from touching and thus copying their
    # pages.
    gc.freeze()
    service.say({"ready": triton.__version__, "python": sys.version.split()[0]})
    service.run()


if __name__ == "__main__":
    main()
