"""Which GPUs have room for another candidate. Asked for each one, so it does not look at all of them."""

import collections
import statistics

# Steps in which it is told how much of a GPU is free.
STEPS = 16
# A worker has at most so many candidates at once, as on a machine of its own.
MOST = 16
# The GPUs of a node have so many together, for their driver does one thing after the other for all of them; but each
# has some.
ON_A_NODE, LEAST = 48, 8
# One in so many places is given to another candidate while those who have them take long. As in `explore/pace.rs`.
BESIDE = 4
# That is so many times as long as usual, of the last so many, and so many seconds at least; nobody knows with fewer
# than so many. As there, too.
TIMES, KNOWN, LONGER, FEWEST = 4, 64, 5.0, 8


def places(cores, gpus):
    """How many candidates a GPU of a node has at once: no more than its share of the processors compiles."""
    return max(1, min(MOST, max(LEAST, ON_A_NODE // gpus), cores // gpus))


def free(seat):
    """Who takes much longer than the others has a core for its compiler and little else: some of these hold no
    place."""
    return seat.places + min(len(seat.late), seat.places // BESIDE) - len(seat.under)


class Late:
    """Who takes much longer than what was judged last."""

    def __init__(self):
        # When each was sent, in that order; who has come back is passed over when its turn comes.
        self.sent, self.took = collections.deque(), collections.deque(maxlen=KNOWN)

    def find(self, now):
        """Those who have become late since this was asked last."""
        if len(self.took) < FEWEST or not self.sent or now - self.sent[0][0] <= LONGER:
            return
        limit = max(LONGER, TIMES * statistics.median(self.took))
        while self.sent and now - self.sent[0][0] > limit:
            sent, evaluation = self.sent.popleft()
            # One that was lost, and sent again, stands in the line twice.
            if evaluation.sent == sent and evaluation in evaluation.seat.under:
                yield evaluation


class Room:
    def __init__(self):
        # By the share that is free: who has it, the longest first.
        self.shares, self.where = [{} for _ in range(STEPS + 1)], {}

    def note(self, seat):
        """A seat has more room or less."""
        share = -(-STEPS * max(seat.free(), 0) // seat.places)
        if self.where.get(seat, 0) == share:
            return
        self.shares[self.where.pop(seat, 0)].pop(seat, None)
        if share:
            self.shares[share][seat], self.where[seat] = None, share

    def most(self, tried):
        """The seat with the most room, and of those that were tried only where there is no other."""
        known = None
        for share in reversed(self.shares):
            for seat in share:
                if seat not in tried:
                    return seat
                known = known or seat
        return known
