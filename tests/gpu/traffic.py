#!/usr/bin/env python3
"""Writes down what an editor and the server say to each other, and makes a session of it that `replay.py` plays again.

    traffic.py tee TRAFFIC SERVER ARGUMENTS…                         stands between an editor and SERVER
    traffic.py session TRAFFIC --editor NAME --file FILE --out SESSION

TRAFFIC holds a message a line: when it came, in seconds, from whom, and the message. A session has the editor's side alone, a step a line,
without paths, texts, versions and numbers of requests: those are of the day. `after` names what the editor had seen before it took the step:
answers, by the number of the step that asked, and what the server said by itself. Standard library only.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

# The user's own answers; all others an editor gives by itself.
OF_THE_USER = ("window/showMessageRequest", "workspace/applyEdit")
# What an editor asks again when it is told to, or when time has passed.
ASKED_AGAIN = {
    "workspace/codeLens/refresh": "textDocument/codeLens",
    "workspace/inlayHint/refresh": "textDocument/inlayHint",
    "workspace/diagnostic/refresh": "textDocument/diagnostic",
}
REPEATED = (*ASKED_AGAIN.values(), "textDocument/codeAction")
# What each side gives a name of its own.
NAMES = ("processId", "run", "job", "previousResultId")
# Of these only the connection is the matter.
LEFT_OUT = ("$/cancelRequest", "$/setTrace", "shutdown", "exit")


def read(stream):
    """The next message, as bytes with and without what stands before it; nothing at the end."""
    head, length = b"", 0
    while line := stream.readline():
        head += line
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
        elif not line.strip():
            body = stream.read(length)
            return head + body, body
    return None


def framed(message):
    body = json.dumps(message, ensure_ascii=False).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def event(message):
    """What a notification or request of the server is called where it is waited for; nothing if nobody would."""
    method, params = message["method"], message.get("params")
    if method == "$/progress":
        return f"{method} {params['value']['kind']}" if params["value"]["kind"] != "report" else None
    if method == "warpsmith/search":
        return f"{method} ended" if "ended" in params else f"{method} begun" if "begun" in params else None
    return method if method in (*OF_THE_USER, "textDocument/publishDiagnostics") else None


class Traffic:
    """A file of messages. `hidden` are words that stand for others in it, such as the folder."""

    def __init__(self, path, hidden=()):
        self.file, self.hidden = open(path, "w", encoding="utf-8"), hidden
        self.begun, self.lock = time.monotonic(), threading.Lock()

    def note(self, sender, message):
        line = json.dumps({"at": round(time.monotonic() - self.begun, 3), "from": sender, "message": message}, ensure_ascii=False)
        for name, words in self.hidden:
            line = line.replace(words, name)
        with self.lock:
            self.file.write(line + "\n")
            self.file.flush()


def tee(path, command):
    traffic = Traffic(path)
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def pump(sender, source, sink):
        try:
            while found := read(source):
                whole, body = found
                # Written down first: the answer must not come before what it answers.
                traffic.note(sender, json.loads(body))
                sink.write(whole)
                sink.flush()
        except OSError:
            pass  # one of the two has gone
        finally:
            sink.close()

    threading.Thread(target=pump, args=("client", sys.stdin.buffer, server.stdin), daemon=True).start()
    pump("server", server.stdout, sys.stdout.buffer)
    # At once: the other thread waits in a read that an ordinary end would trip over.
    os._exit(server.wait())


# A session of it ------------------------------------------------------------------------------------------------------


def commands(answer):
    """The commands that an answer offers, of actions or lenses."""
    items = answer if isinstance(answer, list) else []
    return [item["command"] for item in items if isinstance(item.get("command"), dict) and not item.get("disabled")]


class Session:
    """Takes messages and keeps the editor's steps."""

    def __init__(self, folder):
        self.folder = folder
        self.steps, self.seen = [], []
        # By numbers of requests: the step that asked, and what the server asks.
        self.asked, self.questions = {}, {}
        self.answers, self.by_itself, self.known = {}, {}, {}

    def plain(self, value, key=None):
        """A value without what is of the day."""
        if isinstance(value, dict):
            return {key: self.plain(value, key) for key, value in value.items()}
        if key == "contentChanges":
            return "${changes}"
        if key == "diagnostics":
            return [{"code": one["code"]} for one in value]
        if isinstance(value, list):
            return [self.plain(one) for one in value]
        if key in NAMES:
            return f"${{{key}}}" if value is not None else None
        if key == "text":
            return "${text}"
        return value.replace(self.folder, "${folder}") if isinstance(value, str) else value

    def step(self, step):
        if self.seen:
            step["after"], self.seen = self.seen, []
        self.steps.append(step)
        return len(self.steps) - 1

    def saw(self, what):
        if what is not None and what not in self.seen:
            self.seen.append(what)

    def of_client(self, message):
        method = message.get("method")
        if method in LEFT_OUT:
            return
        if method is None:
            question = self.questions[message["id"]]
            if question in OF_THE_USER:
                self.step({"answer": question, "result": self.plain(message.get("result"))})
            else:
                self.by_itself[question] = self.plain(message.get("result"))
        elif "id" not in message:
            if method == "textDocument/didChange":
                self.known.clear()
            self.step({"notify": method, "params": self.plain(message.get("params"))})
        else:
            self.asked[message["id"]] = self.request(method, message.get("params"))

    def request(self, method, params):
        """The step that asks this; one that has asked the same of the same text before."""
        if method == "workspace/executeCommand":
            for of, answer in reversed(self.answers.items()):
                for command in commands(answer):
                    if all(command[key] == params[key] for key in ("command", "arguments")):
                        take = {"of": of, "command": command["command"], "keys": sorted(command["arguments"][0])}
                        return self.step({"request": method, "take": take})
            raise SystemExit(f"nothing has offered {params}")
        step = {"request": method, "params": self.plain(params)}
        key = json.dumps(step)
        if method not in REPEATED or key not in self.known:
            self.known[key] = self.step(step)
        return self.known[key]

    def of_server(self, message):
        if "method" in message:
            self.saw(event(message))
            if "id" in message:
                self.questions[message["id"]] = message["method"]
        elif message["id"] in self.asked:
            of = self.asked[message["id"]]
            # The last one is what was taken of.
            self.answers.pop(of, None)
            self.answers[of] = message.get("result")
            self.saw(of)

    def header(self, editor, name):
        shown = {self.steps[of]["request"] for of, answer in self.answers.items() if answer not in (None, [], {})}
        return {"editor": editor, "file": name, "shown": sorted(shown), "answers": self.by_itself}


def session(options):
    made = Session(str(options.file.parent))
    for line in options.traffic.read_text().splitlines():
        entry = json.loads(line)
        {"client": made.of_client, "server": made.of_server}[entry["from"]](entry["message"])
    lines = [made.header(options.editor, options.file.name), *made.steps]
    options.out.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def main():
    if sys.argv[1:2] == ["tee"]:
        return tee(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["session"])
    parser.add_argument("traffic", type=pathlib.Path)
    parser.add_argument("--editor", required=True)
    parser.add_argument("--file", type=pathlib.Path, required=True, help="as it was opened, in the folder of the project")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    return session(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
