"""Guesses of signatures for kernels that nobody launches here: what is a pointer, an integer, a flag, and of what value."""

import ast
import re

DEREFERENCES = {"load", "store", "make_block_ptr", "make_tensor_descriptor", "advance"}
INTEGER_NAME = re.compile(r"seqlen|indices|index|idx|offset|_lens?$|^lens?$|table|position|_ids?$|_id_|^ids?|target|label|"
                          r"slot|count|^Y_ptr$|block_mask|expert|num_|cursor|order|mapping|perm|split", re.I)
FLOAT_NAME = re.compile(r"eps|scale|alpha|beta|gamma|^lr|^p$|dropout|momentum|decay|temperature|softcap|thres|smoothing|"
                        r"coef|weight|^inv|_inv|factor|limit|lower_bound|theta|lambda|value$|ratio|_max$|_min$", re.I)
WIDE_NAME = re.compile(r"^g[a-z]?$|^dg|^h0?$|^ht$|^dh|lse|^m$|^l$|delta|mean|rstd|rms|scale|beta|loss|stat|acc|^A$|^Aw|^dA|"
                       r"_m$|_l$|initial_state|final_state", re.I)
TYPE_NAME = re.compile(r"dtype|_ty$|^DT$|_TYPE$", re.I)
FLAG_NAME = re.compile(r"^(USE|IS|HAS|STORE|OUTPUT|WITH|ENABLE|DO|NO|NEED|RETURN|SAVE|APPLY|COMPUTE|INIT)_|REVERSE|CAUSAL|"
                       r"^(is|use|has|with|need|do|store|return)_|_FIRST$|^(LOGSUMEXP|EVEN)", re.I)
SIZES = {"BT": 64, "BC": 16, "BK": 64, "BV": 64, "BS": 32, "BD": 64, "BN": 64, "BM": 64, "NC": 4, "K": 128, "V": 128, "D": 128,
         "T": 1024, "H": 4, "HV": 4, "HK": 4, "HQ": 8, "G": 2, "NK": 2, "NV": 2, "W": 4, "M": 64, "N": 64, "NT": 16, "R": 4,
         "B": 2, "S": 64, "C": 64, "NS": 2, "NB": 4, "LOG_BT": 6, "L": 16}


class Facts:
    """What a function's text tells about its parameters."""

    known = {}

    def __init__(self, function):
        self.function = function
        self.tree = function.parse().body[0]
        self.names = list(function.arg_names)
        self.constant = {p.name for p in function.params if p.is_constexpr}
        self.assigned, self.pointers, self.integers, self.flags, self.strings = {}, set(), set(), set(), {}
        Facts.known[function] = self
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self.assign(target, node.value)
            elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and node.value is not None:
                self.assign(node.target, node.value)
        for node in ast.walk(self.tree):
            self.look(node)

    @staticmethod
    def of(function):
        return Facts.known.get(function) or Facts(function)

    def assign(self, target, value):
        if isinstance(target, ast.Name):
            self.assigned.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, other in zip(target.elts, value.elts):
                self.assign(one, other)

    def roots(self, node, seen=()):
        """The parameters an address may start from."""
        if isinstance(node, ast.Name):
            if node.id in self.names:
                return {node.id} - self.constant
            if node.id in seen:
                return set()
            return set().union(*[self.roots(value, (*seen, node.id)) for value in self.assigned.get(node.id, [])])
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            return self.roots(node.left, seen) or self.roots(node.right, seen)
        if isinstance(node, ast.IfExp):
            return self.roots(node.body, seen) | self.roots(node.orelse, seen)
        if isinstance(node, ast.Subscript):
            return self.roots(node.value, seen)
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", "")
            if name in ("multiple_of", "max_contiguous", "advance", "make_block_ptr", "make_tensor_descriptor"):
                first = node.args[:1] or [word.value for word in node.keywords if word.arg == "base"]
                return self.roots(first[0], seen) if first else set()
            if name == "to" and isinstance(node.func, ast.Attribute):
                return self.roots(node.func.value, seen)
        return set()

    def loaded(self, node, seen=()):
        """The pointers whose loaded values an index or a bound is made of."""
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "load":
            return self.roots(node.args[0]) if node.args else set()
        if isinstance(node, ast.Name):
            if node.id in seen or node.id in self.names:
                return set()
            return set().union(*[self.loaded(value, (*seen, node.id)) for value in self.assigned.get(node.id, [])])
        return set().union(*[self.loaded(child, seen) for child in ast.iter_child_nodes(node)
                             if isinstance(child, ast.expr)])

    def look(self, node):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", "")
            words = {word.arg: word.value for word in node.keywords}
            if name in DEREFERENCES or name.startswith("atomic_"):
                address = node.args[0] if node.args else words.get("base", words.get("pointer"))
                if address is not None:
                    self.pointers |= self.roots(address)
                    self.integers |= self.loaded(address) - self.roots(address)
                if name.startswith("make_") or name == "advance":
                    for part in node.args[1:] + list(words.values()):
                        self.integers |= self.loaded(part)
            if name == "to" and node.args and ast.unparse(node.args[0]) in ("tl.int32", "tl.int64", "tl.uint32"):
                if isinstance(node.func.value, ast.Call) and getattr(node.func.value.func, "attr", "") == "load":
                    self.integers |= self.loaded(node.func.value)
            if name in ("range", "static_range") or getattr(node.func, "id", "") == "range":
                for part in node.args:
                    self.integers |= self.loaded(part)
            self.through(node, words)
        if isinstance(node, ast.Attribute) and node.attr == "element_ty":
            self.pointers |= self.roots(getattr(node.value, "value", node.value))
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            self.test(node.test)
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            for other in node.comparators:
                if isinstance(other, ast.Constant) and isinstance(other.value, str):
                    self.strings.setdefault(node.left.id, []).append(other.value)

    def test(self, node):
        if isinstance(node, ast.Name) and node.id in self.names:
            self.flags.add(node.id)
        elif isinstance(node, ast.UnaryOp):
            self.test(node.operand)
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                self.test(value)

    def through(self, node, words):
        """What a called helper does with the arguments."""
        callee = self.function.fn.__globals__.get(getattr(node.func, "id", None))
        if not hasattr(callee, "arg_names") or callee is self.function:
            return
        facts = Facts.of(callee)
        given = dict(zip(callee.arg_names, node.args)) | words
        for name, value in given.items():
            if name in facts.pointers:
                self.pointers |= self.roots(value)
            if name in facts.integers:
                self.integers |= self.roots(value)
            if name in facts.flags:
                self.test(value)
            if name in facts.strings and isinstance(value, ast.Name):
                self.strings.setdefault(value.id, []).extend(facts.strings[name])


def constant(facts, name, default, mode, tuned):
    """A constexpr parameter's value."""
    if name in facts.strings:
        return (facts.strings[name] * 2)[mode["string"]]
    flag = name in facts.flags or FLAG_NAME.search(name)
    if flag and not isinstance(default, int) or isinstance(default, bool):
        return mode["flag"]
    if name in tuned and mode["size"] != "other":
        return tuned[name]
    if default is not None and not isinstance(default, type) and mode["size"] != "other" and name not in SIZES:
        return "__tl." + default.name.replace("fp", "float") if hasattr(default, "primitive_bitwidth") else default
    if TYPE_NAME.search(name):
        return "__tl.float32" if mode["kind"] == "fp32" else "__tl.bfloat16"
    if name in SIZES:
        return SIZES[name] if mode["size"] != "other" or not name.startswith("B") else 32
    if re.search(r"BLOCK|TILE|CHUNK|^B[A-Z]", name, re.I):
        return 64 if mode["size"] != "other" else 32
    if re.search(r"stage|^num_|^n_|^N[A-Z]", name):
        return 4
    if FLOAT_NAME.search(name):
        return 0.5
    if flag:
        return mode["flag"]
    return 16


def runtime(facts, name, mode):
    """A runtime parameter's type, or None for a pointer that is left out."""
    if name in facts.pointers:
        if "mask" in name.lower() and mode["kind"] == "mixed":
            return "*i1"
        if name in facts.integers or INTEGER_NAME.search(name):
            return "*i64" if mode["kind"] == "mixed" and re.search("target|label|ids|Y", name) else "*i32"
        if mode["kind"] == "mixed":
            return "*fp32" if WIDE_NAME.search(name) else "*bf16"
        return "*" + mode["kind"]
    if re.search("stride|num|^n_|^N|size|len|iter|step", name, re.I):
        return "i32"
    return "fp32" if FLOAT_NAME.search(name) else "i32"


def guesses(function, tuned):
    """Signatures and constexprs to try, best first; each with the mode it was made by."""
    facts = Facts.of(function)
    defaults = {p.name: p.default for p in function.params if p.has_default}
    seen = []
    for flag in (True, False):
        for size in ("tuned", "other"):
            for kind in ("mixed", "bf16", "fp32", "fp16"):
                for string in (0, 1):
                    mode = {"kind": kind, "flag": flag, "size": size, "string": string}
                    signature, constexprs = {}, {}
                    for name in function.arg_names:
                        if name in facts.constant:
                            constexprs[name] = constant(facts, name, defaults.get(name), mode, tuned)
                        else:
                            signature[name] = runtime(facts, name, mode)
                    if (signature, constexprs) not in seen:
                        seen.append((signature, constexprs))
                        yield mode, signature, constexprs
