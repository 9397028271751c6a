"""What goes ahead of a thorough judgement, and that judgement, come to one host: tried with a stand-in for Ray."""

import pathlib
import sys
import types
import unittest

SOURCES = pathlib.Path(__file__).parents[2] / "src" / "pool"


def module(name):
    made = types.ModuleType(f"warpsmith_pool_{name}")
    sys.modules[made.__name__] = made
    exec(compile((SOURCES / f"{name}.py").read_text(), f"{name}.py", "exec"), made.__dict__)
    return made


sys.modules["ray"] = types.SimpleNamespace(put=lambda value: value)
sys.modules["warpsmith_pool_connection"] = types.SimpleNamespace(first_line=str)
room, evaluations = module("room"), module("evaluations")


class Seat:
    def __init__(self, places):
        self.places, self.under, self.place, self.had = places, set(), {"node": "here"}, []
        judge = types.SimpleNamespace(remote=lambda _, number, *__: self.had.append(number))
        self.actor = types.SimpleNamespace(judge=judge)

    def free(self):
        return self.places - len(self.under)


class Ahead(unittest.TestCase):
    def setUp(self):
        self.seats = [Seat(2), Seat(4), Seat(3)]
        self.hosts = types.SimpleNamespace(room=room.Room(), session="s", call=lambda *_: None, lose=lambda *_: None)
        for seat in self.seats:
            self.hosts.room.note(seat)
        self.judge = evaluations.Evaluations(self.hosts, lambda *_: None)
        self.numbers = iter(range(100))

    def ask(self, calls="f", **effort):
        number = next(self.numbers)
        self.judge.add(number, {"name": "k.py", "workloads": [calls], "candidate": "x = 1", "effort": effort})
        self.judge.hand_out()
        return next((seat for seat in self.seats if number in seat.had), None)

    def test_an_offer_is_judged_where_the_original_is_known(self):
        knows = self.ask(ahead=True, thorough=True)
        others = [self.ask(brief=True) for _ in range(3)]
        self.assertGreater(len({id(seat) for seat in others}), 1)
        self.assertIs(self.ask(thorough=True), knows)

    def test_not_where_there_is_no_room(self):
        knows = self.ask(ahead=True, thorough=True)
        while knows.free() > 0:
            knows.under.add(object())
        self.hosts.room.note(knows)
        self.assertIsNot(self.ask(thorough=True), knows)

    def test_of_another_original_nobody_knows(self):
        knows = self.ask(ahead=True, thorough=True)
        self.assertIsNot(self.ask(calls="g", thorough=True), knows)


if __name__ == "__main__":
    unittest.main()
