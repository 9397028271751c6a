"""An index of the GPUs by free room for candidates, so that finding the best does not visit all GPUs."""

import collections
import statistics

# The number of steps in which the free share of a GPU is measured.
STEPS = 16
# The greatest number of concurrent candidates of a worker, as on a single machine.
MOST = 16
# The number of candidates that the GPUs of a node share, since their driver serializes work for all of them, and the
# least number for each GPU.
ON_A_NODE, LEAST = 48, 8
# One of this many places may be given to another candidate while its own takes long.
BESIDE = 4
# A candidate is late after this many times the median time of this many latest ones, and at least this many seconds;
# with fewer answers than the last number, none is late.
TIMES, KNOWN, LONGER, FEWEST = 4, 64, 5.0, 8


def places(cores, gpus):
    """How many concurrent candidates a GPU of a node has: no more than its share of the processors can compile."""
    return max(1, min(MOST, max(LEAST, ON_A_NODE // gpus), cores // gpus))


def free(seat):
    """The number of free places. A late candidate needs little more than a core for its compiler, so some late ones
    hold no place."""
    return seat.places + min(len(seat.late), seat.places // BESIDE) - len(seat.under)


class Late:
    """Detects evaluations that take much longer than recent ones (stragglers)."""

    def __init__(self):
        # The send times in order; evaluations that have been answered are skipped when they are reached.
        self.sent, self.took = collections.deque(), collections.deque(maxlen=KNOWN)

    def find(self, now):
        """Yields the evaluations that have become late since the last call."""
        if len(self.took) < FEWEST or not self.sent or now - self.sent[0][0] <= LONGER:
            return
        limit = max(LONGER, TIMES * statistics.median(self.took))
        while self.sent and now - self.sent[0][0] > limit:
            sent, evaluation = self.sent.popleft()
            # An evaluation that was lost and sent again is in the queue twice.
            if evaluation.sent == sent and evaluation in evaluation.seat.under:
                yield evaluation


class Placement:
    def __init__(self):
        # The seats by free share, in the order in which they got it.
        self.shares, self.where = [{} for _ in range(STEPS + 1)], {}

    def note(self, seat):
        """Updates the free share of a seat."""
        share = -(-STEPS * max(seat.free(), 0) // seat.places)
        if self.where.get(seat, 0) == share:
            return
        self.shares[self.where.pop(seat, 0)].pop(seat, None)
        if share:
            self.shares[share][seat], self.where[seat] = None, share

    def most(self, tried):
        """The seat with the most room; seats that were tried are used only if there is no other."""
        known = None
        for share in reversed(self.shares):
            for seat in share:
                if seat not in tried:
                    return seat
                known = known or seat
        return known
