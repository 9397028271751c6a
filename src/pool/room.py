"""Which GPUs have room for another candidate. Asked for each one, so it does not look at all of them."""

# Steps in which it is told how much of a GPU is free.
STEPS = 16


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
