#!/usr/bin/env python3
"""Plays what an editor said in a recorded session to a server on a real GPU, up to the edit that is measured there.

    replay.py SESSION --warpsmith BINARY --python PYTHON [--traffic TRAFFIC] [--out RESULTS.json] [--budget 60] [--device toy]
        [--file matmul.py --call COMMENT --pool ADDRESS]

SESSION is one of `sessions/`. The kernel is a file of `examples/` in a project of its own. Requests are made when the editor made them, after
the same answers; what the server offers is taken from its own answers, and the edit is made as the editor would, if it is for the text as it
is. Everything that is said goes to TRAFFIC. Ends with status 1 and a reason unless the edit is measured as faster, made, runs, and
`warpsmith verify` accepts it. `--device` plays a device, to try this script. `--file` takes another example than the session has; the comment `--call` says what to
run, so that nothing is recorded; with `--pool` no GPU of this machine is seen, and the title must name the one of the pool. Standard library only; PYTHON has torch and Triton.
"""

import argparse
import difflib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "verify"))

import editor
import run as judged
import traffic

MEASURED = re.compile(r"([\d.]+)× faster.*95 % ([\d.]+)–([\d.]+)")
# Of a simulated device, which a search of a few seconds is enough for.
TOY = "[compiler]\ntarget = 'cuda:90'\n[optimize]\ncandidates = 1\n[optimize.search]\nsmall-steps = 0\nlarge = 1.0\n"


RECORD = "window/showMessageRequest"


def project(options, header):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="warpsmith-replay-")) / "project"
    (folder / ".git").mkdir(parents=True)
    file = pathlib.Path(shutil.copy(HERE.parents[1] / "examples" / header["file"], folder))
    if options.device:
        file.write_text(file.read_text().replace("(4, 700)", "(4, 70)"))
    if options.call:
        # At the end, where it moves nothing.
        file.write_text(file.read_text() + "\n" + options.call.strip() + "\n")
    # Another text, another search.
    toy = TOY.replace("candidates = 1\n", "candidates = 6\n") if options.call else TOY
    settings = toy if options.device else f"[optimize]\nbudget = {options.budget}\n"
    (folder / "warpsmith.toml").write_text(settings + (f"[evaluator]\npool = '{options.pool}'\n" if options.pool else ""))
    environment = judged.environment(options.python, "" if options.pool else None) | {"XDG_STATE_HOME": str(folder.parent / "state")}
    environment |= {"WARPSMITH_FAKE_DEVICE": options.device} if options.device and not options.pool else {}
    return file, environment


def other(text, file):
    """The session with another file of the examples, whose first kernel is where that of the recorded one is."""
    header, *steps = [json.loads(line) for line in text.replace(json.loads(text.splitlines()[0])["file"], file).splitlines()]
    lines = (HERE.parents[1] / "examples" / file).read_text().splitlines()
    kernel = next(at for at, line in enumerate(lines) if line.startswith("def "))
    [hover] = [step["params"]["position"]["line"] for step in steps if step.get("request") == "textDocument/hover"]

    def moved(value):
        if isinstance(value, dict):
            return {key: kernel if key == "line" and one == hover else moved(one) for key, one in value.items()}
        return [moved(one) for one in value] if isinstance(value, list) else value

    return [header, *moved(steps)]


def without_recording(step):
    """Nobody is asked whether to record a call that is written down."""
    after = [what for what in step.get("after", []) if what != RECORD]
    return {"after": after} if step.get("answer") == RECORD else step | ({"after": after} if after else {})


def checked(options, file, environment, before):
    """The edited file runs, and the judge takes it."""
    # Where no GPU is, it runs without one.
    interpreted = {"TRITON_INTERPRET": "1"} if options.device or options.pool else {}
    ran = subprocess.run([options.python, file], env=environment | interpreted, capture_output=True, text=True, timeout=120)
    after = file.read_text()
    # The original's recorded calls are of its own file.
    edited = file.with_stem(f"{file.stem}_edited")
    edited.write_text(after)
    file.write_text(before)
    command = [options.warpsmith, "verify", file, edited, "--entry", file.stem, "--json", *(["--quick"] if options.device else [])]
    judge = subprocess.run(command, env=environment, cwd=file.parent, capture_output=True, text=True, timeout=300)
    verdict = json.loads(judge.stdout or "{}")
    environments = [one["environment"] for one in verdict.get("measured", [])]
    return {
        "diff": "".join(difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), "before", "after")),
        "runs": ran.returncode == 0, "printed": (ran.stdout + ran.stderr).strip()[-400:],
        "verified": judge.returncode == 0, "machine": environments[0] if environments else judge.stderr[-400:], "judged on": verdict.get("judged_on"),
        "verdict": {key: verdict.get(key) for key in ("verdict", "reason", "evidence", "speedup", "interval")},
    }


def wrong(options, played, result):
    """What is not as it should be."""
    there = (result["judged on"] or {}).get("gpu", "the pool's GPU")
    named = "simulated" if options.device else there
    found = [f"the title does not name {there}: {result['title']}"] if options.pool and named not in result["title"] else []
    found += [f"the editor was shown nothing for {method}" for method in played.header["shown"] if method not in played.shown]
    measured = MEASURED.search(result["title"])
    if not measured or float(measured[2]) <= 1.0:
        found.append(f"the title says no measured speedup: {result['title']}")
    found += [] if result["status"] == 0 else [f"the server ended with status {result['status']}"]
    found += [] if result["diff"] else ["the file is as it was"]
    found += [] if result["runs"] else [f"the edited file does not run: {result['printed']}"]
    found += [] if result["verified"] else [f"the judge does not take it: {result['verdict']}"]
    found += [] if result["reports"] > 1 else [f"{result['reports']} reports of progress"]
    return found


def replayed(options, session):
    file, environment = project(options, session[0])
    hidden = [("${folder}", str(file.parent)), ("${python}", options.python)]
    written = traffic.Traffic(options.traffic or os.devnull, hidden)
    before = file.read_text()
    server = editor.Server([options.warpsmith, "serve"], file.parent, environment, written)
    played, begun = editor.Replay(server, session, file, options.budget), time.monotonic()
    result = {"editor": session[0]["editor"], "file": session[0]["file"]}
    try:
        played.play()
        result["status"] = played.end()
        times = played.times
        result |= {
            "title": played.title, "about": played.about, "reports": played.reports, "told": played.told,
            "findings": played.shown.get("findings"), "hover": played.shown["textDocument/hover"]["contents"],
            "lenses": [command["title"] for command in traffic.commands(played.shown.get("textDocument/codeLens"))],
            "seconds to the offer": round(times["offered"] - times["began"], 1), "seconds in all": round(time.monotonic() - begun, 1),
        }
        result |= checked(options, file, environment, before)
        result["problems"] = wrong(options, played, result)
    except (editor.Wrong, subprocess.SubprocessError) as error:
        result["problems"] = [str(error)]
    finally:
        server.process.kill()
        server.process.wait()
        shutil.rmtree(file.parent.parent, ignore_errors=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("session", type=pathlib.Path)
    parser.add_argument("--warpsmith", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--python", required=True, type=lambda path: str(pathlib.Path(path).absolute()))
    parser.add_argument("--traffic", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--device")
    parser.add_argument("--file")
    parser.add_argument("--call", default="")
    parser.add_argument("--pool")
    options = parser.parse_args()
    text = options.session.read_text()
    session = other(text, options.file) if options.file else [json.loads(line) for line in text.splitlines()]
    session = list(map(without_recording, session)) if options.call else session
    result = replayed(options, session)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    print(f"{result['editor']}: {result.get('title')}, {result.get('seconds to the offer')} s to the offer, {result.get('seconds in all')} s in all")
    print("\n".join(result["problems"]) or "all as it should be")
    return 1 if result["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
