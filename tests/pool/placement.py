"""Where the client has candidates judged, and what it calls back: tried with a stand-in for Ray."""

import json
import os
import pathlib
import sys
import tempfile
import types
import unittest
from collections import deque

SOURCES = pathlib.Path(__file__).parents[2] / "crates/runtime/src/pool"


def module(name):
    made = types.ModuleType(f"warpsmith_pool_{name}")
    sys.modules[made.__name__] = made
    exec(compile((SOURCES / f"{name}.py").read_text(), f"{name}.py", "exec"), made.__dict__)
    return made


sys.modules["ray"] = types.SimpleNamespace(put=lambda value: value)
sys.modules["warpsmith_pool_connection"] = types.SimpleNamespace(first_line=str)
placement, evaluations, host = module("placement"), module("evaluations"), module("host")


class Seat:
    def __init__(self, places):
        self.places, self.under, self.late, self.had = places, set(), set(), []
        self.place = {"node": "here", "number": str(places)}
        self.life, self.ready, self.told, self.got = 1, {"environment": {"device": "H900"}}, {}, {}
        judge = types.SimpleNamespace(remote=self.judge)
        self.dropped = []
        drop = types.SimpleNamespace(remote=lambda _, number: self.dropped.append(number))
        self.actor = types.SimpleNamespace(judge=judge, drop=drop)

    def judge(self, asked, held=None):
        (_, number, _), own = map(json.loads, asked.split(b"\n"))
        self.had.append(number)
        self.told[number], self.got[number] = [one["code"] for one in own["known"]], held

    def free(self):
        return placement.free(self)

    def end(self, evaluation):
        self.under.discard(evaluation)
        self.late.discard(evaluation)


class Ahead(unittest.TestCase):
    def setUp(self):
        self.seats = [Seat(2), Seat(4), Seat(3)]
        self.hosts = types.SimpleNamespace(placement=placement.Placement(), session="s", call=lambda *_: None, lose=lambda *_: None)
        for seat in self.seats:
            self.hosts.placement.note(seat)
        self.said = []
        self.verdicts = {}
        self.judge = evaluations.Evaluations(self.hosts, self.say)
        self.numbers = iter(range(100))

    def say(self, number, verdict):
        self.said.append(number)
        self.verdicts[number] = verdict

    def answer(self, seat, number, *measured):
        evaluation = next(one for one in seat.under if one.number == number)
        told = json.dumps({"Verdict": {"id": number, "verdict": {"stages": [], "measured": list(measured)}}})
        done = types.SimpleNamespace(exception=lambda: None, result=lambda: bytes(8) + told.encode())
        self.judge.judged(seat, seat.life, evaluation, evaluation.attempt, done)

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
        self.hosts.placement.note(knows)
        self.assertIsNot(self.ask(thorough=True), knows)

    def test_of_another_original_nobody_knows(self):
        knows = self.ask(ahead=True, thorough=True)
        self.assertIsNot(self.ask(calls="g", thorough=True), knows)

    def test_what_has_lost_its_point_is_called_back_from_where_it_is(self):
        seats = [self.ask() for _ in range(9)]
        self.assertEqual([seat.free() for seat in self.seats], [0, 0, 0])
        self.assertIsNone(self.ask(), "it waits")
        self.judge.drop(3)
        self.judge.drop(9)
        self.judge.drop(42)
        self.assertEqual([seat.dropped for seat in self.seats], [[3] if seat is seats[3] else [] for seat in self.seats])
        # What the host says of it yet is told to nobody; its place is given to who comes next, not to what was dropped.
        self.answer(seats[3], 3)
        self.assertEqual((self.said, seats[3].free()), ([], 1))
        self.assertIs(self.ask(), seats[3])
        self.assertNotIn(9, seats[3].had)

    def test_who_takes_much_longer_than_usual_holds_no_place(self):
        seat = self.seats[1]
        where = [self.ask() for _ in range(9)]
        self.assertIsNone(self.ask(), "nobody is late yet")
        for evaluation in seat.under:
            evaluation.sent -= 7.0
        self.judge.late.sent = deque((one.sent, one) for one in [*seat.under, *self.seats[0].under])
        self.judge.hand_out()
        self.assertEqual(len(seat.late), 0, "nobody knows what is usual")
        self.judge.late.took.extend([1.5] * 8)
        self.judge.hand_out()
        # One in four places is given to another one.
        self.assertEqual((len(seat.late), len(seat.under), seat.had[-1]), (4, 5, 9))
        self.assertIsNone(self.ask())
        # Who has come back is not late any more.
        self.answer(seat, where.index(seat))
        self.assertEqual((len(seat.late), len(seat.under)), (3, 4))
        self.judge.hand_out()
        self.assertEqual((seat.had[-1], seat.free()), (10, 0))

    def test_who_was_sent_again_is_not_late_by_the_first_time(self):
        self.judge.late.took.extend([1.5] * 8)
        first = self.ask()
        evaluation = self.judge.open[0]
        evaluation.sent -= 60.0
        before = (evaluation.sent, evaluation)
        self.judge.lost(first, evaluation, 1, "it died")
        self.judge.hand_out()
        self.judge.late.sent.appendleft(before)
        self.judge.hand_out()
        self.assertIn(evaluation, evaluation.seat.under)
        self.assertEqual([len(seat.late) for seat in self.seats], [0, 0, 0])

    def test_a_host_hears_once_what_the_others_have_measured_for_the_same_calls(self):
        first, second, _ = self.seats
        # All places are taken: whoever answers is asked next.
        where = [self.ask() for _ in range(9)]
        of = {seat: [number for number in range(9) if where[number] is seat] for seat in self.seats}
        self.answer(first, of[first][0], {"code": "a"}, {"code": "b", "twin": True}, {"workload": "what nobody can tell from others"})
        self.assertIs(self.ask(), first)
        self.answer(second, of[second][0], {"code": "c"})
        self.assertIs(self.ask(), second)
        self.answer(second, of[second][1])
        self.assertIs(self.ask(), second)
        self.answer(first, of[first][1])
        self.assertIs(self.ask(), first)
        self.assertEqual([seat.told[number] for seat, number in [(first, 9), (second, 10), (second, 11), (first, 12)]], [[], ["a"], [], ["c"]])
        # Its next worker knows nothing yet; of other calls nothing was measured.
        second.life += 1
        self.answer(second, of[second][2])
        self.assertIs(self.ask(), second)
        self.answer(second, of[second][3])
        self.assertIs(self.ask("g"), second)
        self.assertEqual((second.told[13], second.told[14]), (["a"], []))

    def test_who_only_goes_ahead_is_told_nothing_that_would_be_forgotten(self):
        shared, seat = evaluations.Shared(None), self.seats[1]
        shared.note(self.seats[0], {"code": "a"})
        for number, effort in enumerate([{"ahead": True}, {}, {}]):
            self.judge.send(seat, evaluations.Evaluation(number, "f", shared, {"effort": effort}))
        self.assertEqual([seat.told[number] for number in range(3)], [[], ["a"], []])

    def test_with_a_candidate_so_many_are_told_and_no_more(self):
        shared = evaluations.Shared(None)
        for number in range(40):
            shared.note(self.seats[0], number)
        last = [str(number) for number in range(40 - evaluations.TOLD, 40)]
        self.assertEqual((shared.news(self.seats[1]), shared.news(self.seats[1])), (last, []))

    def test_what_candidates_share_goes_along_until_a_worker_has_answered(self):
        body = json.dumps({"name": "k.py", "workloads": ["f"]}, sort_keys=True).encode()
        _, seat, _ = self.seats
        for _ in range(9):
            self.ask()
        first, second, *_ = seat.had
        self.answer(seat, first)
        self.assertIs(self.ask(), seat)
        self.assertEqual([seat.got[number] for number in (first, second, 9)], [[body], [body], None])
        # Its next worker has nothing; other calls it has not seen.
        self.answer(seat, second)
        seat.life += 1
        self.assertIs(self.ask(), seat)
        self.answer(seat, 10)
        self.assertIs(self.ask("g"), seat)
        self.assertEqual(seat.got[10], [body])
        self.assertIn(b'["g"]', seat.got[11][0])

    def test_a_twin_was_judged_where_the_other_was_measured(self):
        first = self.ask()
        self.answer(first, 0, {"code": "a"})
        here = {"gpu": "H900", "node": "here", "number": first.place["number"]}
        self.assertEqual(self.verdicts[0]["judged_on"], here)
        there = {"gpu": "H900", "node": "there", "number": "7"}
        first = self.ask()
        self.answer(first, 1, {"code": "a", "twin": True, "judged_on": there})
        self.assertEqual(self.verdicts[1]["judged_on"], there)
        # Of several calls one was measured here.
        first = self.ask()
        self.answer(first, 2, {"code": "a", "twin": True, "judged_on": there}, {"code": "b"})
        self.assertEqual(self.verdicts[2]["judged_on"]["node"], "here")


class Places(unittest.TestCase):
    def test_gpus_of_a_node_have_fewer_candidates_each_the_more_there_are(self):
        self.assertEqual([placement.places(16 * gpus, gpus) for gpus in (1, 2, 3, 4, 8)], [16, 16, 16, 12, 8])

    def test_none_has_more_than_its_processors_compile(self):
        self.assertEqual([placement.places(cores, gpus) for cores, gpus in ((4, 1), (16, 4), (2, 4), (0, 1))], [4, 4, 1, 1])


class Folders(unittest.TestCase):
    def test_what_a_killed_host_has_left_is_removed_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as base:
            before, tempfile.tempdir = tempfile.tempdir, base
            self.addCleanup(setattr, tempfile, "tempdir", before)
            (kept, held), (left, gone), (young, new) = [host.own_folder() for _ in range(3)]
            for file in (gone, new):
                file.close()
            for folder in (kept, left):
                os.utime(os.path.join(folder, host.HELD), (1, 1))
            os.mkdir(other := os.path.join(base, "warpsmith-pool-of-earlier-releases"))
            host.sweep()
            self.assertEqual([os.path.exists(folder) for folder in (kept, left, young, other)], [True, False, True, True])
            held.close()


if __name__ == "__main__":
    unittest.main()
