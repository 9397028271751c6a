import gc
import unittest
from unittest import mock

import torch
from load import bits, compare
from trial import leaf

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float8_e5m2, torch.int64, torch.bool, torch.complex64]


class Once(unittest.TestCase):
    def setUp(self):
        patched = mock.patch.object(bits, "GREAT", 4096)
        patched.start()
        self.addCleanup(patched.stop)
        self.once = bits.Once()

    def test_equal_contents_are_kept_once(self):
        for dtype in DTYPES:
            x = torch.arange(8192).reshape(64, 128).to(torch.float32).to(dtype)
            self.assertIs(self.once.keep(x), x)
            self.assertIs(self.once.keep(x.clone()), x)
            self.assertIsNot(self.once.keep(x.clone().reshape(128, 64)), x)

    def test_one_bit_makes_another(self):
        x = torch.zeros(100_000)
        self.once.keep(x)
        for at in (0, 1, 57_311, 99_999):
            y = x.clone()
            y[at] = -0.0
            self.assertIs(self.once.keep(y), y)

    def test_what_nobody_has_is_forgotten(self):
        self.once.keep(torch.ones(4096))
        gc.collect()
        self.assertEqual(len(self.once.known), 0)

    def test_small_ones_stay(self):
        x, y = torch.ones(1023), torch.ones(1023)
        self.once.keep(x)
        self.assertIs(self.once.keep(y), y)

    def test_what_is_kept_once_is_not_compared(self):
        one, other = ([leaf("argument 1", torch.full((4096,), torch.nan))] for _ in range(2))
        other[0].data = one[0].data
        broken = mock.Mock(side_effect=AssertionError)
        with mock.patch.object(bits, "bits_of", broken), mock.patch.object(compare, "bits_of", broken):
            self.assertEqual(compare.compare(one, other), [])
            self.assertEqual(compare.changed(one, other), [])


if __name__ == "__main__":
    unittest.main()
