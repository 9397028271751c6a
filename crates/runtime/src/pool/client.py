"""The client of a Ray cluster: it holds the connection and speaks Warpsmith's frames over standard input and output.

For the program that starts it, this is a worker that has the GPUs of the cluster. Ray decides where actors run and
detects failures. The client tracks which evaluation each actor has, so that none is lost or counted twice.
"""

import contextlib
import json
import os
import queue
import sys
import threading
import time
import uuid

import warpsmith_bytecode_cache as bytecode
from warpsmith_pool_connection import Unfit, connect, first_line

# The interval of periodic work, in seconds.
GLANCE = 0.2
# The longest time for one event, in seconds. Calls of Ray have no time limit of their own: some block forever if the
# head fails meanwhile.
STUCK = 60
# How long the client may take to leave the cluster, in seconds.
LEAVING = 30


class Stream:
    """The output stream of frames. Standard output is redirected, so that prints of Ray do not come between frames."""

    def __init__(self):
        self.out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def say(self, message):
        body = json.dumps(message).encode()
        self.out.write(len(body).to_bytes(4, "little") + body)
        self.out.flush()


def listen(events):
    """Reads frames from standard input, on a thread of its own."""
    source = sys.stdin.buffer
    while len(head := source.read(4)) == 4:
        events.put(("asked", (json.loads(source.read(int.from_bytes(head, "little"))),)))
    events.put(("ended", ()))


class Client:
    """The event loop. A single thread handles all events: requests of the program and results of remote calls."""

    def __init__(self, options, stream):
        # These modules import Ray, whose presence is checked first.
        from warpsmith_pool_evaluations import Evaluations
        from warpsmith_pool_hosts import Hosts

        self.stream, self.events = stream, queue.Queue()
        session = uuid.uuid4().hex
        self.hosts = Hosts(options, session, self.events)
        self.evaluations = Evaluations(self.hosts, self.say_verdict)
        self.limit, self.since, self.is_ready = options["start"], time.monotonic(), False
        self.turned = time.monotonic()

    def say_verdict(self, number, verdict):
        self.stream.say({"Verdict": {"id": number, "verdict": verdict}})

    def watch(self):
        """Ends the process if an event takes too long, so that the program starts another client. Runs on a thread of
        its own."""
        limit, glanced = max(STUCK, self.limit), time.monotonic()
        while True:
            time.sleep(GLANCE)
            now = time.monotonic()
            # While this machine slept, nothing could happen.
            self.turned += now - glanced if now - glanced > 10 * GLANCE else 0
            glanced = now
            if now - self.turned > limit:
                end(f"a call of Ray does not return within {limit:.0f} s")

    def run(self):
        threading.Thread(target=listen, args=(self.events,), daemon=True).start()
        self.hosts.find()
        told = looked = time.monotonic()
        while True:
            self.turned = time.monotonic()
            try:
                kind, what = self.events.get(timeout=GLANCE)
            except queue.Empty:
                kind, what = "nothing", ()
            if kind == "ended":
                return
            getattr(self, kind)(*what)
            now = time.monotonic()
            if now - looked > GLANCE:
                looked = now
                for seat in self.hosts.look():
                    self.evaluations.give_up(seat, seat.life, "it does not answer")
            if now - told > self.hosts.tick():
                told = now
                self.hosts.tell(len(self.evaluations.waiting))
            if not self.is_ready:
                self.greet(now - self.since)
            self.evaluations.hand_out()

    def nothing(self):
        pass

    def asked(self, message):
        if "Judge" in message:
            self.evaluations.add(message["Judge"]["id"], message["Judge"]["parcel"])
        elif "Drop" in message:
            self.evaluations.drop(message["Drop"])
        else:
            self.evaluations.abandon(message["Abandon"])

    def opened(self, seat, life, done):
        self.hosts.opened(seat, life, done)

    def installed(self, seat, life, done):
        self.hosts.installed(seat, life, done)

    def heard(self, seat, life, done):
        self.hosts.heard(seat, life, done)

    def judged(self, seat, life, evaluation, attempt, done):
        self.evaluations.judged(seat, life, evaluation, attempt, done)

    def nodes(self, nodes):
        self.hosts.nodes(nodes)

    def no_nodes(self, error):
        self.hosts.is_looking = False
        # Anything else, such as a slow head, may be over at the next attempt.
        if isinstance(error, ConnectionError):
            raise error

    def greet(self, passed):
        """Sends the first message, with the GPUs of the pool, once they are ready."""
        if hello := self.hosts.hello(passed):
            self.is_ready = True
            self.stream.say(hello)
        elif passed > self.limit:
            raise Unfit(self.hosts.why_none(f"within {self.limit:.0f} s (`evaluator.start`)"))


def end(why):
    """Ends the process at once. A normal exit would let Ray look for the cluster once more, and wait for the threads."""
    print(f"pool: {why}", file=sys.stderr, flush=True)
    os._exit(1)


def too_slow(stream, options):
    why = f"{options['address']} answers, but Ray does not connect within {options['start']:.0f} s"
    stream.say({"Unfit": {"reason": f"{why}: the logs of its head may say why, in ray/session_latest/logs of its temporary folder"}})
    os._exit(2)


def main():
    options = json.loads(sys.argv[1])
    stream = Stream()
    # Without this timer, a cluster that accepts the connection and never answers would block forever.
    slow = threading.Timer(options["start"], too_slow, (stream, options))
    slow.daemon = True
    slow.start()
    try:
        with bytecode.kept(["ray"], bytecode.beside(__file__)):
            connect(options)
        slow.cancel()
        if options["do"] == "status":
            from warpsmith_pool_status import status

            stream.say(status())
            return
        client = Client(options, stream)
        threading.Thread(target=client.watch, daemon=True).start()
        try:
            client.run()
        finally:
            late = threading.Timer(LEAVING, end, (f"the cluster does not let go within {LEAVING} s",))
            late.daemon = True
            late.start()
            # If the connection is lost, the actors cannot be notified.
            with contextlib.suppress(Exception):
                client.hosts.leave()
    except BrokenPipeError:
        # The program that reads the output has ended.
        os._exit(1)
    except ConnectionError as error:
        end(f"the connection to {options['address']} is lost: {first_line(error)}")
    except Unfit as error:
        stream.say({"Unfit": {"reason": str(error)}})
        sys.exit(2)


if __name__ == "__main__":
    main()
