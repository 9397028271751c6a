#!/usr/bin/env python3
"""Write one long file of published kernels, to measure with.

    kernel_file.py --lines 1000 OUTPUT [--package UNPACKED_WHEEL]

Takes the kernels of liger-kernel 0.8.5 (`ops/*.py`) with the functions that launch them, in the order of the files, until
there are enough lines. When the package has no more, it begins again with other names. Without `--package` the wheel is
downloaded with pip to a temporary folder. Standard library only.
"""

import argparse
import ast
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PINNED = "liger-kernel==0.8.5"
HEADER = "import torch\nimport triton\nimport triton.language as tl\n\nfrom triton.language.extra.libdevice import tanh\n"


def download(folder):
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "--dest", folder, PINNED], check=True)
    (wheel,) = Path(folder).glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    return Path(folder)


def definitions(path):
    """Name and source of the kernels of a file, and of the functions and classes that launch something."""
    text = path.read_text()
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            source = "\n".join(lines[first - 1 : node.end_lineno])
            if "triton.jit" in source or re.search(r"\w\[[^]\n]+\]\(\n", source):
                yield node.name, source


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--package", type=Path, help="the unpacked wheel")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        package = args.package or download(folder)
        files = sorted(package.glob("liger_kernel/ops/*.py"))
        parts = [part for file in files for part in definitions(file)]
    names = {name for name, _ in parts}
    text, turn, count = HEADER, 0, 0
    while text.count("\n") < args.lines:
        name, source = parts[count % len(parts)]
        if count and count % len(parts) == 0:
            turn += 1
        if turn:
            source = re.sub(r"\b\w+\b", lambda word: f"{word[0]}_{turn}" if word[0] in names else word[0], source)
        text += f"\n\n{source}\n"
        count += 1
    args.output.write_text(text)
    print(f"{args.output}: {text.count(chr(10))} lines, {len(text)} bytes, {text.count('@triton.jit')} kernels")


if __name__ == "__main__":
    main()
