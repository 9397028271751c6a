import unittest

import torch
from load import argument_needs


def read(function, made, which, count=64):
    """Of how many parts of an argument a function needs how many."""
    working = [tensor.clone() for tensor in made]
    base = argument_needs.Snapshot([x for x in [function(*working)] if x is not None], working, made)
    parts = argument_needs.sectors(made[which], count, 1)
    found = 0
    for part in parts:
        for value in argument_needs.others(made[which]):
            working = [tensor.clone() for tensor in made]
            argument_needs.put(working[which], *part, value)
            out = function(*working)
            if base.differs([x for x in [out] if x is not None], working, which, part, value):
                found += 1
                break
    return found, len(parts)


def in_place(x, y):
    x[: len(x) // 2] += y[: len(x) // 2]


class Needs(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_what_every_result_depends_on_is_needed(self):
        x = torch.randn(64, 64)
        for function in (
            lambda x: x * 2,
            lambda x: x.softmax(-1),
            lambda x: x.amax(-1),
            lambda x: x.amin(-1),
            lambda x: x.sum(),
            lambda x: x.argsort(-1),
            lambda x: x.relu(),
            lambda x: x.half(),
        ):
            self.assertEqual(read(function, [x], 0), (64, 64))
        a, b = torch.randn(64, 128), torch.randn(128, 32)
        for which in (0, 1):
            self.assertEqual(read(torch.matmul, [a, b], which), (64, 64))

    def test_what_no_result_depends_on_is_not(self):
        x = torch.randn(64, 64)
        # A mask, a gather and half of the rows: whoever skips the rest is right.
        found, asked = read(lambda x: x * torch.ones_like(x).tril(), [x], 0, 512)
        self.assertTrue(0.45 * asked < found < 0.65 * asked)
        found, asked = read(lambda x: x[torch.arange(0, 64, 4)], [x], 0, 512)
        self.assertTrue(0.2 * asked < found < 0.3 * asked)
        self.assertEqual(read(lambda x: torch.zeros_like(x), [x], 0)[0], 0)
        # Less than rounding.
        self.assertEqual(read(lambda x, y: x + 1e-9 * y, [x, x.clone()], 1)[0], 0)

    def test_what_stays_in_place_is_not_read(self):
        x, y = torch.randn(64, 64), torch.randn(64, 64)
        for which in (0, 1):
            found, asked = read(in_place, [x, y], which, 512)
            self.assertTrue(0.45 * asked < found < 0.55 * asked, (which, found, asked))
        changed = x.clone()
        in_place(changed, y)
        snapshot = argument_needs.Snapshot([], [changed, y], [x, y])
        self.assertTrue(0.9 * 32 * 64 * 4 < snapshot.written[0] <= 32 * 64 * 4)
        self.assertEqual(snapshot.written[1], 0)

    def test_integers_and_gaps_are_not_asked(self):
        self.assertFalse(argument_needs.can_be_asked(torch.arange(10)))
        self.assertFalse(argument_needs.can_be_asked(torch.randn(8, 8)[:, :4]))
        self.assertFalse(argument_needs.can_be_asked(torch.randn(0, 8)))
        for tensor in (torch.randn(8, 4).T, torch.randn(1, 8).expand(5, 8), torch.randn(3, dtype=torch.complex64)):
            self.assertTrue(argument_needs.can_be_asked(tensor))
        self.assertEqual(argument_needs.flat(torch.randn(1, 8).expand(5, 8)).numel(), 8)
        self.assertEqual(argument_needs.others(torch.rand(9) + 1)[1:], [])


if __name__ == "__main__":
    unittest.main()
