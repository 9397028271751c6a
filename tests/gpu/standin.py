#!/usr/bin/env python3
"""Plays the server's side of a session on a GPU to a real editor, so that pictures of it can be made where there is no GPU.

    standin.py keep TRAFFIC KEPT            what `replay.py` has written down, without what is of its machine
    standin.py serve KEPT [--speed 1]       stands where an editor would start `warpsmith serve`

What the server said by itself is said again, in its order and at its times, but not before the editor has done what it was said after.
Requests are answered as they were there: the answer is the last one to the like that had been given when what was said last was said.
Standard library only.
"""

import argparse
import collections
import json
import os
import pathlib
import sys
import threading
import time
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import traffic

# What is said of a search goes on beside what is said of the text, and neither waits for the other.
OF_THE_SEARCH = (
    "warpsmith/search", "$/progress", "window/workDoneProgress/create", "window/showMessageRequest", "workspace/applyEdit",
    "workspace/executeCommand warpsmith.optimize", "answer to window/showMessageRequest",
)
# What the editor does that the server then speaks about.
STEPS = (
    "initialized", "textDocument/didOpen", "textDocument/didChange", "workspace/executeCommand warpsmith.optimize",
    "workspace/executeCommand warpsmith.resources", "answer to window/showMessageRequest",
)


def entries(text):
    return [json.loads(line) for line in text.splitlines()]


def keep(options):
    """The interpreter is named as it is in what the server tells of its state."""
    text = options.traffic.read_text()
    said = [entry["message"] for entry in entries(text)]
    for message in said:
        if message.get("method") == "warpsmith/status":
            text = text.replace(message["params"]["compiler"]["python"] or "${python}", "${python}")
    options.kept.write_text(text)


def step(message):
    """What a message of the editor is called among `STEPS`."""
    method = message.get("method", "")
    return f"{method} {message['params']['command']}" if method == "workspace/executeCommand" else method


class Recorded:
    """The traffic: what was asked and answered, and what the server said by itself, of the search and of the text."""

    def __init__(self, lines):
        self.answers, self.tracks = [], {True: [], False: []}
        asked, questions, last = {}, {}, {True: 0.0, False: 0.0}
        for at, entry in enumerate(lines):
            message = entry["message"]
            is_of_client, has_method = entry["from"] == "client", "method" in message
            if not is_of_client and not has_method:
                self.answers.append((at, asked.pop(message["id"]), message))
                continue
            if is_of_client and has_method and "id" in message:
                asked[message["id"]] = message
            if not is_of_client and "id" in message:
                questions[message["id"]] = message["method"]
            name = message["method"] if not is_of_client else step(message) if has_method else f"answer to {questions[message['id']]}"
            if is_of_client and name not in STEPS:
                continue
            track = name in OF_THE_SEARCH
            self.tracks[track].append((at, entry["at"] - last[track], name if is_of_client else None, message))
            last[track] = entry["at"]


class Server:
    def __init__(self, recorded, speed):
        self.recorded, self.speed = recorded, speed
        self.steps, self.changed, self.writing = collections.Counter(), threading.Condition(), threading.Lock()
        self.questions = {}
        # How far the talk about the text has come.
        self.front = self.recorded.tracks[False][0][0]

    def say(self, message):
        with self.writing:
            sys.stdout.buffer.write(traffic.framed(message))
            sys.stdout.buffer.flush()

    def play(self, track):
        """Says what was said by itself, each when it is time."""
        waited = collections.Counter()
        for at, pause, awaited, message in self.recorded.tracks[track]:
            if not track:
                self.front = at
            if awaited:
                waited[awaited] += 1
                with self.changed:
                    self.changed.wait_for(lambda: self.steps[awaited] >= waited[awaited])
                continue
            time.sleep(pause / self.speed)
            if "id" in message:
                self.questions[message["id"]] = message["method"]
            self.say(message)
        if not track:
            self.front = sys.maxsize

    def did(self, name):
        with self.changed:
            self.steps[name] += 1
            self.changed.notify_all()

    def answer(self, message):
        found = self.like(message["method"], message.get("params") or {})
        # An error is an answer, too.
        body = {key: found[key] for key in ("result", "error") if key in found} if found else {"result": None}
        self.say({"jsonrpc": "2.0", "id": message["id"], **body})

    def like(self, method, params):
        """The last answer to a request like this one, of those that had been given so far; to one of the same place if there is one."""
        is_of_text, found, first = method.startswith("textDocument/"), [], None
        for at, asked, answer in self.recorded.answers:
            recorded = asked.get("params") or {}
            if asked["method"] != method or not is_like(params, recorded):
                continue
            first = first or answer
            if at <= self.front or not is_of_text:
                found.append((start(params) == start(recorded), at, answer))
        # Where none had been given yet, the first one was waited for.
        return max(found, key=lambda one: one[:2])[2] if found else first

    def run(self):
        while found := traffic.read(sys.stdin.buffer):
            message = json.loads(found[1])
            if "method" not in message:
                self.did(f"answer to {self.questions.get(message['id'])}")
            elif message["method"] == "exit":
                break
            else:
                # Answered first: what follows from it is said afterwards.
                if "id" in message:
                    self.answer(message)
                self.did(step(message))


def start(params):
    return params.get("position", params.get("range", {}).get("start"))


def is_like(params, recorded):
    """Whether the one may be answered as the other: the same command, the same candidate, the same line."""
    line = [one.get("position", {}).get("line") for one in (params, recorded)]
    return line[0] == line[1] and all(params.get(key) == recorded.get(key) for key in ("command", "candidate"))


def serve(options):
    """Begins with the editor's first request, which names its folder."""
    whole = traffic.read(sys.stdin.buffer)
    first = json.loads(whole[1])
    folder = urllib.parse.unquote(urllib.parse.urlparse(first["params"]["rootUri"]).path).rstrip("/")
    text = options.kept.read_text().replace("${folder}", folder).replace("${python}", "python")
    server = Server(Recorded(entries(text)), options.speed)
    server.answer(first)
    for track in (True, False):
        threading.Thread(target=server.play, args=(track,), daemon=True).start()
    server.run()
    # At once: a thread may be waiting for a step that nobody takes any more.
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = parser.add_subparsers(required=True)
    keeping = tasks.add_parser("keep")
    keeping.add_argument("traffic", type=pathlib.Path)
    keeping.add_argument("kept", type=pathlib.Path)
    keeping.set_defaults(task=keep)
    serving = tasks.add_parser("serve")
    serving.add_argument("kept", type=pathlib.Path)
    serving.add_argument("--speed", type=float, default=1.0, help="so many times faster than it was")
    serving.set_defaults(task=serve)
    # An editor adds arguments of its own.
    options, _ = parser.parse_known_args()
    options.task(options)


if __name__ == "__main__":
    main()
