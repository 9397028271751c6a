"""The client's view of the pool's actors: one for each GPU, which clients share by its name."""

import hashlib
import platform
import sys
import threading
import time

import ray
import warpsmith_pool_host as host
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from warpsmith_pool_connection import Unfit, first_line
from warpsmith_pool_placement import Placement, free, places

# An actor that does not answer for this many seconds is given up, whatever Ray reports about it.
SILENCE = 30
# How often hosts are told that this client is there, and it is looked for nodes that have come; many are told less
# often, since each call costs a millisecond.
TICK, CALLS = 5, 100
# If the client itself pauses for longer than this many seconds, the pause does not count as silence of the actors.
DEAF = 2
# After the first GPU, the others may take this fraction of its start time more, and at least this many seconds.
PATIENCE, LEAST = 0.5, 5.0
# The size in bytes of the parts in which the program is sent.
PART = 32 << 20
# The first and the longest pause between attempts to start a host again, in seconds.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
# The prefix of Ray's resource for the GPU model of a node, and the model of a node without that resource.
MODEL, ANY = "accelerator_type:", "GPU"

# The class is pickled by value, so that nodes need not have the module installed.
ray.cloudpickle.register_pickle_by_value(host)


def model_of(node):
    models = [name.removeprefix(MODEL) for name in node["Resources"] if name.startswith(MODEL)]
    return models[0] if models else ANY


def gpus_of(node):
    return int(node["Resources"].get("GPU", 0)) if node["Alive"] else 0


def counted():
    """The nodes, and how many GPUs of each model they have."""
    nodes, counts = ray.nodes(), {}
    for node in nodes:
        counts[model_of(node)] = counts.get(model_of(node), 0) + gpus_of(node)
    return nodes, {model: count for model, count in counts.items() if count}


def versions(environment):
    python = ".".join(environment["python"].split(".")[:2])
    return f"{environment['device']}, Python {python}, torch {environment['torch']}, Triton {environment['triton']}"


class Seat:
    """A GPU of a node, and the actor that has it."""

    def __init__(self, node, at):
        self.node, self.at, self.place = node["NodeID"], at, {"node": node["NodeManagerHostname"]}
        self.model, self.places = model_of(node), 1
        self.most = places(int(node["Resources"].get("CPU", 1)), gpus_of(node))
        self.state, self.why = "new", ""
        self.actor, self.life, self.ready = None, 0, None
        # The evaluations that it is judging, and those of them that take much longer than usual.
        self.under, self.late = set(), set()
        self.heard, self.pause, self.again = 0.0, FIRST_PAUSE, 0.0

    def free(self):
        return free(self) if self.state == "ready" else 0

    def end(self, evaluation):
        self.under.discard(evaluation)
        self.late.discard(evaluation)


class Hosts:
    def __init__(self, options, session, events):
        self.options, self.session, self.events = options, session, events
        self.seats, self.placement, self.model, self.versions = {}, Placement(), options["gpu"], None
        self.program, self.digest = None, digest_of(options["binary"])
        self.first, self.is_looking, self.looked = None, False, time.monotonic()

    def find(self):
        """Chooses a GPU model and takes its seats. Results of different models are never mixed: a client keeps to
        one."""
        nodes, counts = counted()
        deadline = time.monotonic() + (self.options["start"] if self.options["again"] else 0)
        # After a restart of the head, the nodes take a while to join again.
        while time.monotonic() < deadline and (self.model not in counts if self.model else not counts):
            time.sleep(1)
            nodes, counts = counted()
        if not counts:
            raise Unfit("the cluster has no GPUs: start Ray on a machine with some (`ray start --address=…`)")
        self.model = self.model or max(counts, key=lambda model: (counts[model], model))
        if self.model not in counts:
            raise Unfit(f"the cluster has no {self.model}; set `evaluator.gpu` to one of: {', '.join(sorted(counts))}")
        self.nodes(nodes)

    def nodes(self, nodes):
        """Adds the seats of new nodes and removes those of nodes that are gone."""
        self.is_looking = False
        alive = {(node["NodeID"], at): node for node in nodes for at in range(gpus_of(node))}
        for key, seat in list(self.seats.items()):
            if key not in alive and seat.state != "ready" and not seat.under:
                del self.seats[key]
        for (key, at), node in alive.items():
            if (key, at) not in self.seats and model_of(node) == self.model:
                self.seats[key, at] = Seat(node, at)
                self.start(self.seats[key, at])

    def start(self, seat):
        """Gets the actor of a GPU from Ray, which another client may already have created."""
        seat.state, seat.why, seat.life = "starting", "its GPU is in use, or it starts still", seat.life + 1
        self.placement.note(seat)
        name = f"{seat.node}-{seat.at}-{self.digest[:16]}"
        seat.actor = ray.remote(host.Host).options(
            name=name,
            get_if_exists=True,
            lifetime="detached",
            num_gpus=1,
            num_cpus=0,
            resources={} if seat.model == ANY else {MODEL + seat.model: 0.001},
            scheduling_strategy=NodeAffinitySchedulingStrategy(seat.node, soft=False),
        ).remote()
        self.open(seat)

    def open(self, seat):
        machine = [platform.system(), platform.machine()]
        self.call(seat, "opened", seat.actor.open.remote(self.session, self.options["settings"], self.digest, machine))

    def call(self, seat, kind, reference, *what):
        """Queues the result of a remote call as an event."""
        event = (seat, seat.life, *what)
        reference.future().add_done_callback(lambda done: self.events.put((kind, (*event, done))))

    def opened(self, seat, life, done):
        if life != seat.life:
            return
        if error := done.exception():
            return self.lose(seat, life, first_line(error))
        said, seat.place = done.result()
        if said is None:
            self.send_program(seat)
        elif "Ready" in said:
            self.seated(seat, said["Ready"])
        else:
            self.leave_out(seat, said["Unfit"]["reason"])

    def seated(self, seat, ready):
        seat.ready, seat.state, seat.places = ready, "ready", seat.most
        seat.pause, seat.heard = FIRST_PAUSE, time.monotonic()
        self.placement.note(seat)
        self.first = self.first or time.monotonic()
        if self.versions:
            self.keep_alike(seat)

    def keep_alike(self, seat):
        """Leaves a seat out whose software versions differ from the others', because results would not be
        comparable."""
        found = versions(seat.ready["environment"])
        if found != self.versions:
            seat.actor.close.remote(self.session)
            self.leave_out(seat, f"it has {found}, the others have {self.versions}")

    def leave_out(self, seat, why):
        seat.state, seat.why = "unfit", why
        self.placement.note(seat)
        print(f"pool: {seat.place['node']} is not used: {why}", file=sys.stderr, flush=True)

    def send_program(self, seat):
        """Puts the program into the object store once; Ray copies it to each node once."""
        if self.program is None:
            with open(self.options["binary"], "rb") as file:
                self.program = [ray.put(part) for part in iter(lambda: file.read(PART), b"")]
        self.call(seat, "installed", seat.actor.install.remote(self.digest, self.program))

    def installed(self, seat, life, done):
        if life != seat.life:
            return
        if error := done.exception():
            return self.lose(seat, life, first_line(error))
        self.open(seat)

    def lose(self, seat, life, why):
        """Marks a seat as lost: its actor, node or connection failed. It is retried after a pause while the node
        exists."""
        if life == seat.life and seat.state != "lost":
            seat.state, seat.why, seat.again = "lost", why, time.monotonic() + seat.pause
            seat.pause = min(2 * seat.pause, LONGEST_PAUSE)
            self.placement.note(seat)

    def look(self):
        """Restarts the seats that are due, and returns those that were lost because they do not answer."""
        now, silent = time.monotonic(), []
        # While the program was sent, or this machine slept, no answers could arrive.
        gap, self.looked = now - self.looked, now
        for seat in self.seats.values():
            seat.heard += gap if gap > DEAF else 0
            if seat.state == "lost" and now >= seat.again:
                self.start(seat)
            elif seat.state == "ready" and now - seat.heard > SILENCE:
                self.lose(seat, seat.life, "it does not answer")
                silent.append(seat)
        return silent

    def tick(self):
        """The seconds between two rounds of messages; far below the limits of silence for up to 2,000 GPUs."""
        return max(TICK, len(self.seats) / CALLS)

    def tell(self, queued):
        """Tells the hosts that this client is alive, and asks Ray for the nodes on a thread of its own."""
        for seat in self.ready():
            self.call(seat, "heard", seat.actor.alive.remote(self.session, queued))
        if not self.is_looking:
            self.is_looking = True
            threading.Thread(target=self.ask_nodes, daemon=True).start()

    def ask_nodes(self):
        """Queues the nodes as an event. Runs on a thread of its own, since the head may take long to answer."""
        try:
            self.events.put(("nodes", (ray.nodes(),)))
        except Exception as error:
            self.events.put(("no_nodes", (error,)))

    def heard(self, seat, life, done):
        if life != seat.life:
            return
        if error := done.exception():
            return self.lose(seat, life, first_line(error))
        # Clients that share a GPU divide its places.
        seat.heard, seat.places = time.monotonic(), max(1, seat.most // max(1, done.result()))
        self.placement.note(seat)

    def ready(self):
        return [seat for seat in self.seats.values() if seat.state == "ready"]

    def hello(self, passed):
        """The first message, once all seats have answered, or some have and the others take much longer."""
        ready, states = self.ready(), {seat.state for seat in self.seats.values()}
        if not ready:
            if states and states <= {"unfit"}:
                raise Unfit(self.why_none(""))
            return None
        patience = max(LEAST, PATIENCE * passed)
        if states & {"starting", "lost"} and time.monotonic() - self.first < patience:
            return None
        found = [versions(seat.ready["environment"]) for seat in ready]
        self.versions = max(found, key=lambda one: (found.count(one), one))
        for seat in ready:
            self.keep_alike(seat)
        ready = self.ready()
        cores = sum(seat.places for seat in ready)
        return {"Ready": ready[0].ready | {"cores": cores, "devices": len(ready), "model": self.model}}

    def why_none(self, when):
        reasons = [f"{seat.place['node']}, GPU {seat.at}: {seat.why}" for seat in self.seats.values()]
        return "; ".join([f"no {self.model} of the pool can judge {when}".strip(), *sorted(set(reasons))])

    def leave(self):
        """Ends this client's workers. A host that has not started yet is killed, since it would wait forever for its
        GPU."""
        closing = []
        for seat in self.seats.values():
            if seat.actor and seat.state in ("ready", "starting"):
                closing.append((seat, seat.actor.close.remote(self.session)))
        gone, _ = ray.wait([one for _, one in closing], num_returns=len(closing), timeout=2) if closing else ([], [])
        for seat, reference in closing:
            if reference not in gone and seat.state == "starting":
                ray.kill(seat.actor)


def digest_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(PART):
            digest.update(part)
    return digest.hexdigest()
