"""The pending evaluations. Each is answered exactly once, even if actors or nodes fail meanwhile."""

import collections
import hashlib
import json
import time
from collections import OrderedDict, deque

import ray
from warpsmith_pool_connection import first_line
from warpsmith_pool_placement import Late

# The greatest number of attempts at an evaluation: one, and two elsewhere.
ATTEMPTS = 3
# How many shared parts of candidates (files and calls) are kept in the object store.
KEPT = 32
# How many of the latest measurements of other hosts are sent with a candidate. With few GPUs that is all of them.
TOLD = 16


class Shared:
    """What candidates share: where it is kept, whose workers have it, and what was measured of them, which has a
    number each."""

    def __init__(self, held):
        self.held, self.known = held, {}
        self.measured, self.count, self.heard = collections.deque(maxlen=TOLD), 0, {}

    def note(self, seat, measured):
        """Records a measurement, so that later candidates with the same machine code need not be measured again."""
        self.measured.append((self.count, seat, json.dumps(measured)))
        self.count += 1

    def news(self, seat):
        """The measurements that the worker of a seat has neither received nor made itself, as texts."""
        life, last = self.heard.get(seat, (seat.life, 0))
        last = last if life == seat.life else 0
        self.heard[seat] = (seat.life, self.count)
        return [measured for number, there, measured in self.measured if number >= last and there is not seat]


class Evaluation:
    def __init__(self, number, name, shared, own):
        self.number, self.name, self.shared, self.own = number, name, shared, own
        self.attempt, self.tried, self.came, self.sent = 0, set(), time.monotonic(), 0.0
        self.seat = None


class Evaluations:
    def __init__(self, hosts, say):
        self.hosts, self.say = hosts, say
        self.open, self.waiting = {}, deque()
        self.shared = OrderedDict()
        self.late = Late()
        # The seats that have prepared an original for thorough judgements, by the name of the shared part.
        self.ahead = {}

    def add(self, number, parcel):
        own = {name: parcel.pop(name) for name in ("candidate", "effort")}
        body = json.dumps(parcel, sort_keys=True).encode()
        name = hashlib.sha256(body).hexdigest()
        if name not in self.shared:
            self.shared[name] = Shared([ray.put(body)])
        self.shared.move_to_end(name)
        if len(self.shared) > KEPT:
            self.ahead.pop(self.shared.popitem(last=False)[0], None)
        self.open[number] = evaluation = Evaluation(number, name, self.shared[name], own)
        self.waiting.append(evaluation)

    def hand_out(self):
        """Sends waiting evaluations to the seats with the most room, preferably not to those that have lost them
        before."""
        for evaluation in self.late.find(time.monotonic()):
            evaluation.seat.late.add(evaluation)
            self.hosts.placement.note(evaluation.seat)
        while self.waiting:
            evaluation = self.waiting[0]
            if evaluation.number not in self.open:
                self.waiting.popleft()
                continue
            seat = self.knows(evaluation) or self.hosts.placement.most(evaluation.tried)
            if seat is None:
                return
            self.waiting.popleft()
            if evaluation.own["effort"].get("ahead"):
                self.ahead[evaluation.name] = seat
            self.send(seat, evaluation)

    def knows(self, evaluation):
        """The seat that has prepared this original for a thorough judgement, if it has room."""
        seat = self.ahead.get(evaluation.name) if evaluation.own["effort"].get("thorough") else None
        return seat if seat and seat not in evaluation.tried and seat.free() > 0 else None

    def send(self, seat, evaluation):
        evaluation.attempt += 1
        evaluation.tried.add(seat)
        evaluation.seat = seat
        evaluation.sent = time.monotonic()
        seat.under.add(evaluation)
        self.late.sent.append((evaluation.sent, evaluation))
        self.hosts.placement.note(seat)
        # A request that only prepares judges nothing, so the measurements would be lost.
        news = [] if evaluation.own["effort"].get("ahead") else evaluation.shared.news(seat)
        own = json.dumps(evaluation.own)[:-1] + ', "known": [' + ", ".join(news) + "]}"
        # Passing several values instead of bytes, and an unneeded reference, would cost half a millisecond more.
        asked = f"{json.dumps([self.hosts.session, evaluation.number, evaluation.name])}\n{own}".encode()
        held = [] if evaluation.shared.known.get(seat) == seat.life else [evaluation.shared.held]
        self.hosts.call(seat, "judged", seat.actor.judge.remote(asked, *held), evaluation, evaluation.attempt)

    def judged(self, seat, life, evaluation, attempt, done):
        if attempt == evaluation.attempt:
            seat.end(evaluation)
            self.hosts.placement.note(seat)
        if error := done.exception():
            self.hosts.lose(seat, life, first_line(error))
            self.lost(seat, evaluation, attempt, first_line(error))
        # The first answer counts. An evaluation that was given up may still be answered; a later answer is then
        # ignored.
        elif self.open.pop(evaluation.number, None):
            told, now = done.result(), time.monotonic()
            seconds, verdict = int.from_bytes(told[:8], "little") / 1e9, json.loads(told[8:])["Verdict"]["verdict"]
            evaluation.shared.known[seat] = life
            self.late.took.append(now - evaluation.sent)
            self.note(seat, evaluation, verdict)
            verdict["stages"] += [("queue", evaluation.sent - evaluation.came), ("pool", now - evaluation.sent - seconds)]
            self.say(evaluation.number, verdict)

    def note(self, seat, evaluation, verdict):
        """Adds where the candidate was judged; for a twin, where the candidate with the same machine code was
        measured."""
        here = {"gpu": seat.ready["environment"]["device"], "node": seat.place["node"], "number": seat.place["number"]}
        measured = verdict["measured"]
        places = [one.get("judged_on") or here for one in measured]
        verdict["judged_on"] = places[0] if places and all(place == places[0] for place in places) else here
        for one in measured:
            if one.get("code") and not one.get("twin"):
                evaluation.shared.note(seat, one | {"judged_on": here})

    def give_up(self, seat, life, why):
        for evaluation in list(seat.under):
            self.lost(seat, evaluation, evaluation.attempt, why)

    def lost(self, seat, evaluation, attempt, why):
        """Requeues a lost evaluation, unless it is already running elsewhere or its attempts are used up."""
        if attempt != evaluation.attempt:
            return
        seat.end(evaluation)
        self.hosts.placement.note(seat)
        if evaluation.number not in self.open:
            return
        if evaluation.attempt < ATTEMPTS:
            self.waiting.appendleft(evaluation)
            return
        del self.open[evaluation.number]
        told = f"it was lost {ATTEMPTS} times, the last time on {seat.place['node']}: {why}"
        outcome = {"undecided": {"why": told}}
        self.say(evaluation.number, {"outcome": outcome, "checks": [], "measured": [], "notes": [], "stages": []})

    def drop(self, number):
        """Cancels an evaluation. If it is running, its seat has room again once the worker reports the end."""
        evaluation = self.open.pop(number, None)
        if evaluation and evaluation.seat and evaluation in evaluation.seat.under:
            evaluation.seat.actor.drop.remote(self.hosts.session, number)

    def abandon(self, unwanted):
        """Abandons all evaluations in progress."""
        if unwanted:
            self.open.clear()
            self.waiting.clear()
        for seat in self.hosts.ready():
            seat.actor.abandon.remote(self.hosts.session, unwanted)
