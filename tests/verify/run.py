#!/usr/bin/env python3
"""Judges every candidate of this folder with `warpsmith verify` and compares the verdicts with what their headers expect.

    run.py --warpsmith BINARY --python PYTHON [--jobs 4] [--only TEXT] [--out RESULTS.json]

A candidate `ORIGINAL/NAME.py` stands beside the original `ORIGINAL.py` and begins with

    # expect: refused: WORDS        or        # expect: accepted
    # point: NUMBERS                the points of README.md that it probes
    # subtle: yes                   a loose comparison on one shape passes it
    # offer: no                     it is right, and no faster: nothing may be offered

WORDS are alternatives with `|` between them; one of them must occur in the reason, in the name of a failed check or in its
evidence (`--strict`: not there). `--headers` only reads the headers. Standard library only. Ends with status 1 when a
verdict is not as expected.
"""

import argparse
import collections
import concurrent.futures
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
FIRST = {"softmax": "softmax", "fused": "fused", "matmul": "matmul", "inplace": "rotary_", "autograd": "rms_norm"}
# Originals whose function has the name of the file. Their candidates were written without sight of the judge.
SECOND = {
    name: name
    for name in (
        "affine", "arg_rows", "attend", "column_sums", "gate", "gather_rows", "group_stats", "log_sum_exp", "long_product",
        "rms", "scatter_add", "slow_copy", "weighted_product",
    )
}
ENTRIES = FIRST | SECOND
STATUS = {"accepted": 0, "refused": 1}
# Reasons that say more exactly what a word of a header means.
MEANS = {"output": ("sizes", "layout", "values", "race", "stale"), "cache": ("stale", "no-kernel")}


def header(path):
    """The expectation at the top of a candidate."""
    fields = {}
    for line in path.read_text().splitlines():
        key, colon, value = line.removeprefix("# ").partition(": ")
        if not line.startswith("# ") or not colon:
            break
        fields[key] = value
    verdict, _, words = fields["expect"].partition(": ")
    if verdict not in STATUS or (verdict == "refused") != bool(words):
        raise ValueError(f"{path}: expect: {fields['expect']}")
    return {
        "verdict": verdict,
        "words": words.split("|") if words else [],
        "points": fields["point"].split(", "),
        "subtle": fields.get("subtle") == "yes",
        "offer": fields.get("offer"),
    }


def candidates(only=""):
    for original in ENTRIES:
        for path in sorted((HERE / original).glob("*.py")):
            if only in str(path.relative_to(HERE)):
                yield original, path


def environment(python, device=None):
    """What the judge is started with; `device` is the number of the one that it may use, if it is not to use all."""
    found = dict(os.environ)
    if device is not None:
        found["CUDA_VISIBLE_DEVICES"] = device
    found["VIRTUAL_ENV"] = str(pathlib.Path(python).absolute().parent.parent)
    return found


def verify(warpsmith, python, original, candidate, entry, limit=180.0, arguments=(), device=None):
    """Runs the judge once; everything that it started dies with it when it takes too long."""
    command = [warpsmith, "verify", str(original), str(candidate), "--entry", entry, "--json", *arguments]
    begun = time.monotonic()
    process = subprocess.Popen(
        command, env=environment(python, device), text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        err += f"\nno verdict within {limit:.0f} s"
    answer = None
    for text in (out, *reversed(out.splitlines())):
        try:
            answer = json.loads(text)
            break
        except ValueError:
            continue
    if not isinstance(answer, dict):
        answer = None
    return {"status": process.returncode, "seconds": time.monotonic() - begun, "answer": answer, "errors": err[-2000:]}


def stages(verdicts):
    """Seconds that each part took, of all that had it."""
    taken = collections.defaultdict(list)
    for stage, spent in (pair for one in verdicts for pair in one.get("stages") or []):
        taken[stage].append(spent)
    return taken


def matched(words, reason, failed):
    """Where one of the words occurs."""
    words = [*words, *(reason for word in words for reason in MEANS.get(word, ()))]
    places = {
        "reason": reason,
        "check": " ".join(check.get("name", "") for check in failed),
        "evidence": " ".join(str(check.get("evidence", "")) for check in failed),
    }
    for place, text in places.items():
        if any(word.lower() in text.lower() for word in words):
            return place
    return None


def compare(expected, run, strict):
    """One row of the results: what was expected, what came, and what is wrong with it."""
    answer = run["answer"] or {}
    verdict = answer.get("verdict", "none")
    failed = [check for check in answer.get("checks") or [] if not check.get("passed")]
    reason = str(answer.get("reason") or "")
    wrong = None
    place = None
    if verdict != expected["verdict"]:
        wrong = f"{verdict} instead of {expected['verdict']}"
    elif run["status"] != STATUS[verdict]:
        wrong = f"status {run['status']}"
    elif verdict == "refused":
        place = matched(expected["words"], reason, failed)
        if place is None or (strict and place == "evidence"):
            wrong = "another reason"
    elif expected["offer"] == "no" and answer.get("offer"):
        wrong = "offered, and is no faster"
    return {
        "expected": expected, "got": verdict, "reason": reason, "matched": place,
        "failed": [check.get("name") for check in failed],
        "evidence": [str(check.get("evidence"))[:300] for check in failed],
        "checks": len(answer.get("checks") or []),
        "seconds": round(run["seconds"], 2), "status": run["status"],
        "speedup": answer.get("speedup"), "interval": answer.get("interval"), "offer": answer.get("offer"),
        "wrong": wrong, "errors": run["errors"] if verdict == "none" else "",
    }


def suite(warpsmith, python, jobs, only="", strict=False, limit=180.0, until=None):
    """Judges all candidates, `jobs` at a time; rows by name."""
    rows = {}

    def one(item):
        original, path = item
        if until is not None and time.monotonic() > until:
            return None
        run = verify(warpsmith, python, HERE / f"{original}.py", path, ENTRIES[original], limit)
        return compare(header(path), run, strict)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        listed = list(candidates(only))
        for (original, path), row in zip(listed, pool.map(one, listed)):
            name = f"{original}/{path.stem}"
            if row is None:
                continue
            rows[name] = row
            mark = "FAIL" if row["wrong"] else "ok  "
            speed = f"{row['speedup']:.2f}x" if isinstance(row["speedup"], (int, float)) else "-"
            reason = row["reason"].replace("\n", " ")[:70]
            print(f"{mark} {name:36} {row['got']:9} {speed:>8} {row['seconds']:6.1f} s  {row['wrong'] or ''}  {reason}", flush=True)
    return rows


def summary(rows):
    """Counts of what the suite shows."""
    of = lambda test: [row for row in rows.values() if test(row["expected"])]
    right = lambda some: f"{sum(not row['wrong'] for row in some)} of {len(some)}"
    points = collections.defaultdict(list)
    for row in rows.values():
        for point in row["expected"]["points"]:
            points[point].append(row)
    return {
        "all": right(rows.values()),
        "refused": right(of(lambda e: e["verdict"] == "refused")),
        "accepted": right(of(lambda e: e["verdict"] == "accepted")),
        "subtle": right(of(lambda e: e["subtle"])),
        "false refusals": sum(row["got"] == "refused" for row in of(lambda e: e["verdict"] == "accepted")),
        "fakes accepted": sum(row["got"] == "accepted" for row in of(lambda e: e["verdict"] == "refused")),
        "points": {point: right(some) for point, some in sorted(points.items())},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warpsmith", default="warpsmith")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for one verdict")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--headers", action="store_true")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    if options.headers:
        for original, path in candidates(options.only):
            fields = header(path)
            print(f"{original + '/' + path.stem:36} {fields['verdict']:9} {','.join(fields['points']):12} {'subtle' if fields['subtle'] else '':7} {'|'.join(fields['words'])}")
        return 0
    begun = time.monotonic()
    rows = suite(options.warpsmith, options.python, options.jobs, options.only, options.strict, options.limit)
    result = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - begun, 1),
        "summary": summary(rows),
        "candidates": rows,
    }
    print(json.dumps(result["summary"], indent=1))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if not rows or any(row["wrong"] for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
