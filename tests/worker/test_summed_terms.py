import unittest

import torch
from load import compare, inputs
from trial import leaf


def one(tensor):
    return [leaf("result", tensor)]


class SummedTerms(unittest.TestCase):
    def setUp(self):
        generator = torch.Generator().manual_seed(7)
        self.a = torch.rand(16, 4096, generator=generator) + 1
        self.b = torch.rand(4096, 16, generator=generator) + 1
        # Terms of both signs, and sums near zero.
        self.b[2048:] = -self.b[:2048] + torch.randn(2048, 16, generator=generator) * 1e-4
        self.a[:, 2048:] = self.a[:, :2048]

    def found(self, of, candidate):
        """The differences between a candidate's results and those of a kernel."""
        changed = []
        for doubled in (True, False):
            given = [self.a.clone(), self.b.clone()]
            for tensor in given:
                inputs.replace_terms(tensor, doubled)
            changed.append(one(of(*given)))
        original = of(self.a, self.b)
        level = [0.0]
        with_terms = compare.compare(one(original), one(candidate), level=level, terms=tuple(changed))
        return len(compare.compare(one(original), one(candidate), level=level)), len(with_terms)

    def split(self, a, b, parts):
        return sum(x @ y for x, y in zip(a.split(4096 // parts, 1), b.split(4096 // parts, 0)))

    def test_sums_that_cancel_may_differ_by_the_rounding_of_their_terms(self):
        product = lambda a, b: self.split(a, b, 1)
        exact = product(self.a.double(), self.b.double()).float()
        terms = float((self.a.abs() @ self.b.abs()).max())
        self.assertEqual(self.found(product, exact + terms * 2.0**-16), (1, 0))
        self.assertEqual(self.found(product, exact + terms * 2.0**-10), (1, 1))

    def test_a_result_that_does_not_scale_is_no_sum(self):
        other = lambda a, b: torch.exp(self.split(a, b, 1) * 1e-3)
        exact = other(self.a.double(), self.b.double()).float()
        terms = float((self.a.abs() @ self.b.abs()).max())
        self.assertEqual(self.found(other, exact + terms * 2.0**-16), (1, 1))

    def test_overflowing_terms_allow_nothing(self):
        product = lambda a, b: (a.double() @ b.double()).half()
        self.a *= 100
        self.b *= 100
        self.assertEqual(self.found(product, product(self.a, self.b) + 1), (1, 1))


if __name__ == "__main__":
    unittest.main()
