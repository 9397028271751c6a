#!/usr/bin/env python3
"""Write the programs of tests/data as seeds: `python3 fuzz/seeds.py`. Standard library only."""

import json
from pathlib import Path

here = Path(__file__).parent
programs = json.loads((here.parent / "tests/data/frontend_snippets.json").read_text())


def texts(value):
    if isinstance(value, str):
        if "\n" in value:
            yield value
    else:
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
            yield from texts(inner)


found = sorted(set(texts(programs)))
for target, edits in [("check", b""), ("edits", b"\xff\x05\x04\x03tl.load(x)\xff\x03\x00\x00(\xff\x08\x00\x20\n")]:
    folder = here / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(found):
        (folder / f"seed-{number:03}").write_bytes(text.encode() + edits)
print(f"{len(found)} programs")
