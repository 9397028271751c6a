"""An editor that plays its part in a recorded session, for `replay.py`: its document, its server, and its steps."""

import json
import os
import pathlib
import queue
import re
import subprocess
import threading
import time

import traffic

ANSWER, MORE = 60.0, 90.0  # seconds for an answer, and for a search beside its budget
AGAIN = 0.3  # seconds between two requests for what is not offered yet
ENDED = 15.0  # seconds after a search in which its offer must come


class Wrong(Exception):
    pass


class Text:
    """A document as the editor has it."""

    def __init__(self, text):
        self.text, self.version, self.edits, self.encoding = text, 0, [], "utf-16-le"

    def offset(self, position):
        lines = self.text.splitlines(keepends=True)
        before = sum(map(len, lines[: position["line"]]))
        line = lines[position["line"]] if position["line"] < len(lines) else ""
        unit = 2 if self.encoding == "utf-16-le" else 1
        return before + len(line.encode(self.encoding)[: position["character"] * unit].decode(self.encoding))

    def make(self):
        """Makes the edits, the last one first, so that the others stay where they are. Returns the changes as the editor tells them."""
        edits = sorted(self.edits, key=lambda edit: self.offset(edit["range"]["start"]), reverse=True)
        for edit in edits:
            start, end = (self.offset(edit["range"][side]) for side in ("start", "end"))
            self.text = self.text[:start] + edit["newText"] + self.text[end:]
        self.version, self.edits = self.version + 1, []
        return [{"range": edit["range"], "text": edit["newText"]} for edit in edits]


class Server:
    """The server, and all that was said."""

    def __init__(self, command, folder, environment, traffic_file):
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.traffic, self.came, self.log = traffic_file, queue.Queue(), b""
        threading.Thread(target=self.read, daemon=True).start()
        threading.Thread(target=self.listen, daemon=True).start()

    def read(self):
        while found := traffic.read(self.process.stdout):
            message = json.loads(found[1])
            self.traffic.note("server", message)
            self.came.put(message)
        self.came.put(None)

    def listen(self):
        for line in self.process.stderr:
            self.log = (self.log + line)[-2000:]

    def say(self, message):
        message = {"jsonrpc": "2.0", **message}
        self.traffic.note("client", message)
        try:
            self.process.stdin.write(traffic.framed(message))
            self.process.stdin.flush()
        except OSError as error:
            raise Wrong(f"the server has gone: {error}; {self.log.decode(errors='replace')}") from error


class Replay:
    def __init__(self, server, session, file, budget):
        self.server, self.file, self.budget = server, file, budget
        self.header, *self.steps = session
        self.document = Text(file.read_text())
        # By steps: the numbers of their requests, and the answers.
        self.asked, self.answers, self.count = {}, {}, 0
        self.seen, self.questions, self.diagnostics, self.shown = set(), {}, [], {}
        self.names = {"folder": str(file.parent), "processId": os.getpid(), "text": self.document.text}
        self.candidates, self.reports, self.told, self.times = set(), 0, [], {}
        self.ended = None

    # What the server says ---------------------------------------------------------------------------------------------

    def wait(self, what, is_there, limit=ANSWER):
        until = time.monotonic() + limit
        while not is_there():
            left = until - time.monotonic()
            # A search that has ended without an offer says so, and nothing else follows.
            if self.ended is not None and "applyEdit" in what:
                left = min(left, self.ended + ENDED - time.monotonic())
            if left < 0:
                raise Wrong(f"no {what}; the server said: {' | '.join(self.told[-3:])}")
            try:
                message = self.server.came.get(timeout=AGAIN)
            except queue.Empty:
                continue
            if message is None:
                raise Wrong(f"no {what}: the server has gone; {self.server.log.decode(errors='replace')}")
            self.take(message)

    def take(self, message):
        method = message.get("method")
        if method is None:
            self.answered(message)
            return
        self.seen.add(traffic.event(message))
        params = message.get("params") or {}
        if "id" in message:
            self.question(message, params)
        elif method == "textDocument/publishDiagnostics":
            self.found(params["diagnostics"])
        elif method == "window/showMessage":
            self.told.append(params["message"])
        elif method == "warpsmith/search":
            self.names |= {"run": params["begun"]["run"]} if "begun" in params else {}
            self.candidates |= {one["id"] for one in params.get("candidates", [])}
        elif method == "$/progress":
            self.names["job"] = params["token"]
            self.reports += params["value"]["kind"] == "report"
            self.ended = time.monotonic() if params["value"]["kind"] == "end" else self.ended

    def answered(self, message):
        step = self.asked.pop(message["id"], None)
        if step is None:
            return
        method, result = self.steps[step]["request"], message.get("result")
        if "error" in message:
            self.told.append(f"{method}: {message['error']['message']}")
        if method == "initialize":
            units = {"utf-8": "utf-8", "utf-16": "utf-16-le"}
            self.document.encoding = units[result["capabilities"].get("positionEncoding", "utf-16")]
        elif method == "textDocument/diagnostic" and result:
            self.names["previousResultId"] = result.get("resultId")
            if result["kind"] == "full":
                self.found(result["items"])
        self.answers[step] = result
        if result not in (None, [], {}):
            self.shown[method] = result

    def found(self, diagnostics):
        self.diagnostics = diagnostics
        if diagnostics:
            self.shown["findings"] = [one.get("code") for one in diagnostics]

    def question(self, message, params):
        """What an editor answers by itself, or keeps for its user."""
        method = message["method"]
        if method in traffic.OF_THE_USER:
            self.questions[method] = message
            if method == "workspace/applyEdit":
                self.offered(params)
            return
        result = self.header["answers"].get(method)
        if method == "workspace/configuration":
            result = [result[min(at, len(result) - 1)] for at in range(len(params["items"]))]
        self.server.say({"id": message["id"], "result": result})
        again = [at for at, step in enumerate(self.steps) if step.get("request") == traffic.ASKED_AGAIN.get(method) and at in self.answers]
        if again:
            self.ask(again[-1])

    def offered(self, params):
        """An offer must be for the text as it is, say what was measured, and ask."""
        self.times["offered"] = time.monotonic()
        change, *more = params["edit"]["documentChanges"]
        annotations = params["edit"]["changeAnnotations"]
        if more or change["textDocument"]["uri"] != self.file.as_uri() or change["textDocument"]["version"] != self.document.version:
            raise Wrong(f"an edit of another text: {json.dumps(params)[:500]}")
        if not all(annotations[edit["annotationId"]]["needsConfirmation"] for edit in change["edits"]):
            raise Wrong("an edit that asks nobody")
        self.document.edits, self.title = change["edits"], params["label"]
        self.about = [one["description"] for one in annotations.values()]

    # What the editor says ---------------------------------------------------------------------------------------------

    def filled(self, value, key=None):
        """A recorded value with what is of today."""
        if isinstance(value, dict):
            return {key: self.filled(one, key) for key, one in value.items()}
        if key == "diagnostics":
            codes = [one["code"] for one in value]
            return [one for one in self.diagnostics if one.get("code") in codes]
        if isinstance(value, list):
            return [self.filled(one) for one in value]
        if isinstance(value, str) and value[2:-1] in self.names and re.fullmatch(r"\$\{\w+\}", value):
            return self.names[value[2:-1]]
        return value.replace("${folder}", self.names["folder"]) if isinstance(value, str) else value

    def ask(self, at, params=None):
        params = self.filled(self.steps[at]["params"]) if params is None else params
        # Before the request gets its number: what the server asks meanwhile makes requests of its own.
        if "candidate" in params:
            self.wait(f"candidate {params['candidate']}", lambda: params["candidate"] in self.candidates, self.budget + MORE)
        self.count += 1
        self.asked[self.count] = at
        self.server.say({"id": self.count, "method": self.steps[at]["request"], "params": params})

    def takes(self, take):
        """The offered command that is like the one that was taken. What is not offered yet is asked for again."""
        until = time.monotonic() + ANSWER
        while True:
            of = take["of"]
            self.wait(f"answer to step {of}", lambda: of in self.answers)
            for command in traffic.commands(self.answers[of]):
                if command["command"] == take["command"] and sorted(command["arguments"][0]) == take["keys"]:
                    return {"command": command["command"], "arguments": command["arguments"]}
            if time.monotonic() > until:
                raise Wrong(f"{take['command']} is not offered: {json.dumps(self.answers[of])}")
            time.sleep(AGAIN)
            del self.answers[of]
            self.ask(of)

    def notify(self, method, params):
        params = self.filled(params)
        if method == "textDocument/didOpen":
            self.document.version = params["textDocument"]["version"]
        elif method == "textDocument/didChange":
            if not self.document.edits:
                raise Wrong("the editor changed the text where nothing was offered")
            params["contentChanges"] = self.document.make()
            params["textDocument"]["version"] = self.document.version
        elif method == "textDocument/didSave":
            self.file.write_text(self.document.text)
        elif method == "workspace/didChangeWatchedFiles":
            paths = [pathlib.Path(change["uri"].removeprefix("file://")) for change in params["changes"]]
            self.wait(f"files {paths}", lambda: all(path.exists() for path in paths), self.budget + MORE)
        self.server.say({"method": method, "params": params})

    def answer(self, method, result):
        limit = self.budget + MORE if method == "workspace/applyEdit" else ANSWER
        self.wait(method, lambda: method in self.questions, limit)
        question = self.questions.pop(method)
        titles = [one["title"] for one in question["params"].get("actions") or []]
        if method == "window/showMessageRequest" and result["title"] not in titles:
            raise Wrong(f"the editor's user took {result['title']!r}; offered are {titles}")
        self.told += [question["params"]["message"]] if "message" in question["params"] else []
        self.server.say({"id": question["id"], "result": self.filled(result)})

    def play(self):
        for at, step in enumerate(self.steps):
            for what in step.get("after", []):
                limit = self.budget + MORE if isinstance(what, str) else ANSWER
                self.wait(f"{what}, which step {at} comes after", lambda: what in (self.answers if isinstance(what, int) else self.seen), limit)
            if "take" in step:
                params = self.takes(step["take"])
                if params["command"] == "warpsmith.optimize":
                    self.times["began"] = time.monotonic()
                self.ask(at, params)
            elif "request" in step:
                self.ask(at)
            elif "notify" in step:
                self.notify(step["notify"], step["params"])
            elif "answer" in step:
                self.answer(step["answer"], step["result"])
        self.wait("last answer", lambda: not self.asked)

    def end(self):
        """As an editor is closed."""
        self.server.say({"id": "end", "method": "shutdown"})
        self.asked["end"] = None
        self.wait("answer to shutdown", lambda: "end" not in self.asked)
        self.server.say({"method": "exit"})
        return self.server.process.wait(timeout=10)
