"""Tests of the editor in `editor.py` with a server that is a list of messages."""

import pathlib
import queue
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import editor

CANDIDATES = {"method": "warpsmith/search", "params": {"candidates": [{"id": 2}]}}
REFRESH = {"method": "workspace/codeLens/refresh", "id": 7, "params": None}


class Scripted:
    """A server that says `messages`, and answers each request."""

    def __init__(self, messages):
        self.came, self.said = queue.Queue(), []
        for message in messages:
            self.came.put(message)

    def say(self, message):
        self.said.append(message)
        if "method" in message and "id" in message:
            self.came.put({"id": message["id"], "result": []})


class RequestTest(unittest.TestCase):
    def test_a_refresh_before_a_candidate_is_known_does_not_take_the_number_of_its_request(self):
        session = [
            {"answers": {}},
            {"request": "textDocument/codeLens", "params": {}},
            {"request": "warpsmith/search", "params": {"candidate": 2}, "after": [0]},
            {"request": "textDocument/hover", "params": {}, "after": [1]},
        ]
        server = Scripted([])
        with tempfile.NamedTemporaryFile(suffix=".py") as file:
            played = editor.Replay(server, session, pathlib.Path(file.name), 0.0)
            ask = played.ask

            def ask_amid_news(at, params=None):
                # The news come while the replay waits for the candidate.
                if at == 1:
                    server.came.put(REFRESH)
                    server.came.put(CANDIDATES)
                ask(at, params)

            played.ask = ask_amid_news
            editor.ANSWER, before = 2.0, editor.ANSWER
            try:
                played.play()
            finally:
                editor.ANSWER = before
        numbers = [message["id"] for message in server.said if "method" in message]
        self.assertEqual(len(numbers), len(set(numbers)), server.said)
        self.assertEqual(sorted(played.answers), [0, 1, 2])


if __name__ == "__main__":
    unittest.main()
