"""The programs of programs.txt, spelled out. See README.md for the notation."""

import pathlib
import re

BASE = "o = tl.arange(0, BLOCK)\nv = tl.load(x + o)\n"
TYPES = re.compile(r"\*?(i1|[iu](8|16|32|64)|fp(16|32|64)|bf16|fp8\w+)$")


def value_of(text):
    """A constexpr's value: a literal, or a dtype as the data spells it."""
    return "__" + text if text.startswith("tl.") else eval(text, {})


def indent(text):
    return "".join("    " + line + "\n" if line.strip() else "\n" for line in text.strip("\n").split("\n"))


def program(section):
    head, _, text = section.partition("\n")
    words = head.split()
    category, name, options = words[0], words[1], words[2:]
    flags = {word for word in options if "=" not in word}
    given = dict(word.split("=", 1) for word in options if "=" in word)
    types = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "64"} | given
    text = text.strip("\n") + "\n"
    if "def k(" not in text:
        before, dash, body = text.rpartition("\n---\n") if "\n---\n" in text else ("", "", text)
        if "raw" not in flags:
            body = BASE + body
        if "store(" not in body and "raw" not in flags:
            body += "tl.store(y + o, v)\n"
        runtime = [key for key in types if TYPES.match(types[key]) and key != "n"] + ["n"]
        constant = [key for key in types if key not in runtime]
        parameters = ", ".join(runtime + [key + ": tl.constexpr" for key in constant])
        types = {key: types[key] for key in runtime + constant}
        before = before.strip("\n") + "\n\n" if before.strip() else ""
        text = f"{before}@triton.jit\ndef k({parameters}):\n{indent(body)}"
    else:
        parameters = re.search(r"def k\(((?:[^()]|\([^()]*\))*)\)", text).group(1)
        types = {key: types[key] for key in types if re.search(rf"\b{key}\b", parameters)}
    if "bare" not in flags:
        text = "import triton\nimport triton.language as tl\n\n" + text
    return {"id": name, "category": category, "source": text,
            "signature": {key: kind for key, kind in types.items() if TYPES.match(kind)},
            "constexprs": {key: value_of(kind) for key, kind in types.items() if not TYPES.match(kind)}}


TEXT = pathlib.Path(__file__).with_name("programs.txt").read_text(encoding="utf-8")
SNIPPETS = [program(section) for section in re.split(r"(?m)^## ", TEXT)[1:]]
