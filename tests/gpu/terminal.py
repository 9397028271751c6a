#!/usr/bin/env python3
"""Draws what Neovim shows of the session on a GPU that is kept in `sessions/neovim-h200.jsonl`, as an SVG.

    terminal.py --nvim NVIM --out PICTURE.svg

A real Neovim in a terminal, with the plugin and `standin.py` for its server: the kernel is optimized, and its picture is that of the offer.
Needs tmux; else the standard library only.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from html import escape

HERE = pathlib.Path(__file__).resolve().parent
KEPT = HERE / "sessions" / "neovim-h200.jsonl"
COLUMNS, ROWS = 150, 40
WIDTH, HEIGHT, MARGIN = 7.8, 16, 12  # of a character and around the text, in pixels
INK, PAPER = "#000000", "#ffffff"
INIT = """
vim.opt.runtimepath:prepend("{plugin}")
vim.cmd("filetype plugin on")
vim.cmd("runtime! plugin/warpsmith.lua")
vim.o.termguicolors, vim.o.background = true, "light"
vim.cmd.colorscheme("lunaperche")
vim.lsp.config("warpsmith", {{ cmd = {{ "{python}", "{standin}", "serve", "{kept}", "--speed", "10" }} }})
vim.lsp.enable("warpsmith")
"""


class Terminal:
    """A program in a terminal that nobody looks at."""

    def __init__(self, folder, command, environment):
        self.tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        self.run("new-session", "-d", *size, "-c", str(folder / "project"), *command, env=environment)

    def run(self, *arguments, **options):
        return subprocess.run([*self.tmux, *arguments], check=True, capture_output=True, text=True, **options).stdout

    def type(self, keys):
        self.run("send-keys", keys, "Enter")

    def wait(self, words):
        """What is shown with colours, once these words are."""
        until = time.monotonic() + 60
        while words not in (shown := self.run("capture-pane", "-p")):
            if time.monotonic() > until:
                raise SystemExit(f"no {words!r} in\n{shown}")
            time.sleep(0.2)
        time.sleep(1)
        return self.run("capture-pane", "-e", "-N", "-p")


def shown(nvim):
    """What Neovim shows at the end of the session."""
    said = [json.loads(line)["message"] for line in KEPT.read_text().splitlines()]
    opened = next(one["params"]["textDocument"] for one in said if one.get("method") == "textDocument/didOpen")
    offer = next(one["params"]["label"] for one in said if one.get("method") == "workspace/applyEdit")
    with tempfile.TemporaryDirectory(prefix="warpsmith-picture-") as folder:
        folder = pathlib.Path(folder)
        (folder / "project" / ".git").mkdir(parents=True)
        (folder / "project" / "layer_norm.py").write_text(opened["text"])
        names = {"plugin": HERE.parents[1] / "editors" / "nvim", "python": sys.executable, "standin": HERE / "standin.py", "kept": KEPT}
        (folder / "init.lua").write_text(INIT.format(**names))
        environment = os.environ | {f"XDG_{name}_HOME": str(folder) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
        terminal = Terminal(folder, [nvim, "--clean", "-u", str(folder / "init.lua"), "layer_norm.py"], environment)
        try:
            terminal.wait("H:1")  # a finding: the server is there
            terminal.type(":12")
            terminal.type(":Warpsmith optimize")
            terminal.wait("1: Run it once")
            terminal.type("1")
            return terminal.wait(re.sub(r",.*", "", offer))
        finally:
            terminal.run("kill-server")


def runs(line, look):
    """The pieces of a line with their looks. A look goes on in the next line."""
    for codes, text in re.findall(r"(?:\x1b\[([\d;]*)m)?([^\x1b]*)", line):
        codes = [int(code or 0) for code in codes.split(";")] if codes else []
        while codes:
            code = codes.pop(0)
            if code == 0:
                look.clear()
            elif code in (38, 48) and codes[:1] == [2]:
                look[code], codes = "#%02x%02x%02x" % tuple(codes[1:4]), codes[4:]
            elif code in (39, 49):
                look.pop(code - 1, None)
            elif code in (1, 22):
                look["bold"] = code == 1
        if text:
            yield text, dict(look)


def drawn(screen):
    lines, look, shapes = screen.rstrip("\n").split("\n"), {}, []
    for row, line in enumerate(lines):
        column, y = 0, MARGIN + row * HEIGHT
        for text, seen in runs(line, look):
            x, width = MARGIN + column * WIDTH, len(text) * WIDTH
            if seen.get(48, PAPER) != PAPER:
                shapes.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{HEIGHT}" fill="{seen[48]}"/>')
            weight = ' font-weight="bold"' if seen.get("bold") else ""
            fill = f' fill="{seen[38]}"' if seen.get(38, INK) != INK else ""
            # Spaces at an end or in a row would be lost.
            for words in re.finditer(r"\S+( \S+)*", text):
                at, length = x + words.start() * WIDTH, len(words[0]) * WIDTH
                shapes.append(f'<text x="{at:.1f}" y="{y + 12}" textLength="{length:.1f}"{weight}{fill}>{escape(words[0])}</text>')
            column += len(text)
    width, height = COLUMNS * WIDTH + 2 * MARGIN, len(lines) * HEIGHT + 2 * MARGIN
    font = "font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"13\""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" role="img">\n'
        f'<title>Neovim offers a faster kernel</title>\n<rect width="100%" height="100%" rx="6" fill="{PAPER}" stroke="#bbbbbb"/>\n'
        f'<g {font} fill="{INK}">\n' + "\n".join(shapes) + "\n</g>\n</svg>\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvim", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.out.write_text(drawn(shown(options.nvim)))
