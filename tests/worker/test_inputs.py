import math
import unittest

import torch
from load import inputs
from trial import VALUES

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
BYTES = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]


def contents(*shape, dtype=torch.float32, seed=0, low=-4.0, high=4.0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).clamp_(low, high).to(dtype)


def filled(view, values, low=-4.0, high=4.0, seed=1, finite=None):
    inputs.apply(view, values, low, high, torch.Generator().manual_seed(seed), finite)
    return view.double()


class Values(unittest.TestCase):
    def test_rows_are_constant_or_have_one_outlier(self):
        for dtype in FLOATS:
            before = contents(16, 64, dtype=dtype)
            rows = filled(before.clone(), "constant-rows")
            self.assertTrue((rows == before[:, :1].double()).all())
            pulled = filled(before.clone(), "outlier") != before.double()
            self.assertTrue((pulled.sum(-1) <= 1).all() and pulled.sum() > 12)

    def test_every_type_and_layout_takes_every_kind(self):
        for dtype in [*FLOATS, *BYTES, torch.complex64]:
            for values in VALUES:
                layouts = [
                    contents(6, 8, dtype=dtype).T,
                    contents(1, 8, dtype=dtype).expand(5, 8),
                    contents(1, dtype=dtype).expand(5),
                    contents(12, 12, dtype=dtype)[::2, 1::3],
                    contents(0, 3, dtype=dtype),
                    contents(5, dtype=dtype),
                    contents(dtype=dtype),
                    contents(3, 1, 2, 4, dtype=dtype),
                ]
                for view in layouts:
                    stride = view.stride()
                    inputs.apply(view, values, -4.0, 4.0, torch.Generator().manual_seed(0))
                    self.assertEqual(view.stride(), stride)

    def test_elements_outside_of_the_view_stay(self):
        for values in VALUES:
            base = contents(8, 8)
            before = base.clone()
            filled(base[1::2, ::2], values)
            base[1::2, ::2] = before[1::2, ::2]
            self.assertTrue(torch.equal(base, before), values)

    def test_equal_seeds_give_equal_contents(self):
        for values in VALUES:
            one, same, other = (filled(contents(64, 64), values, seed=seed) for seed in (1, 1, 2))
            self.assertTrue(torch.equal(one.nan_to_num(9), same.nan_to_num(9)))
            if values in ("tiny", "skewed", "infinite", "nan", "integers"):
                self.assertFalse(torch.equal(one.nan_to_num(9), other.nan_to_num(9)), values)

    def test_positive_contents_stay_positive(self):
        for dtype in [*FLOATS, *BYTES]:
            for values in VALUES:
                least = 0.5
                x = contents(16, 64, dtype=dtype).double().abs().clamp(min=least).to(dtype)
                y = filled(x, values, low=least)
                self.assertTrue(((y > 0) | y.isnan()).all(), (dtype, values))
                x = contents(16, 64, dtype=dtype).double().abs().to(dtype)
                y = filled(x, values, low=0.0)
                self.assertTrue(((y >= 0) | y.isnan()).all(), (dtype, values))
                self.assertFalse((y == math.inf).any(), (dtype, values))

    def test_large_and_tiny(self):
        for dtype in FLOATS:
            before = contents(64, 64, dtype=dtype)
            large = filled(before.clone(), "large")
            self.assertTrue(large.isfinite().all())
            self.assertGreater(large.max(), 300)
            far = filled(before.clone(), "far")
            self.assertTrue(((far > 110) & (far < 130)).all())
            self.assertGreater(far.max(), far.min())
            self.assertTrue((filled(-before.abs(), "far", high=0.0) < -110).all())
            below = filled(before.clone(), "below")
            self.assertTrue(((below < -110) & (below > -130)).all())
            self.assertTrue((filled(before.clone(), "negative") <= 0).all())
            self.assertEqual(filled(before.abs(), "below", low=0.0).min(), before.abs().double().min())
            subnormal = filled(before.clone(), "subnormal").abs()
            self.assertTrue((subnormal <= torch.finfo(dtype).tiny).all() and (subnormal > 0).any())
            tiny = filled(before.clone(), "tiny")
            self.assertLess(tiny.abs().max(), 5e-3)
            denormal = (tiny.abs() < torch.finfo(dtype).tiny) & (tiny != 0)
            self.assertTrue(0.05 < denormal.double().mean() < 0.5, dtype)
        self.assertTrue(filled(contents(64) * 15000, "large", -60000, 60000).isfinite().all())

    def test_constant_sorted_and_zeros(self):
        for dtype in [*FLOATS, *BYTES]:
            x = contents(8, 33, dtype=dtype)
            self.assertEqual(len(filled(x.clone(), "constant").unique()), 1)
            self.assertTrue((filled(x.clone(), "constant") == 2).all())
            ordered = filled(x.clone(), "sorted")
            self.assertTrue((ordered.diff(dim=-1) >= 0).all())
            self.assertTrue(torch.equal(ordered, x.double().sort(dim=-1).values))
            self.assertTrue((filled(x.clone(), "zeros") == 0).all())
        self.assertTrue((filled(contents(4).abs() + 1, "zeros", low=1.0) == 1).all())

    def test_skewed_has_few_far_elements(self):
        for shape in [(64, 64), (5,)]:
            x = filled(contents(*shape), "skewed").abs()
            far = (x > 20).sum()
            self.assertTrue(1 <= far <= x.numel() / 4)

    def test_infinite_has_rows_and_single_elements(self):
        x = filled(contents(32, 64), "infinite")
        rows = (x == -math.inf).all(-1)
        self.assertTrue(rows[0])
        self.assertLessEqual(rows.sum(), 2)
        some = (x == -math.inf).any(-1) & ~rows
        self.assertTrue(some.any())
        self.assertFalse((x == math.inf).any() or x.isnan().any())
        self.assertTrue(((filled(contents(2, 3, 4, 5), "infinite")[0, 0, 0]) == -math.inf).all())
        flat = filled(contents(100), "infinite")
        self.assertTrue(1 <= (flat == -math.inf).sum() < 50)
        finite = filled(contents(8, 8, dtype=torch.float8_e4m3fn), "infinite")
        self.assertEqual((finite[0].unique().tolist(), finite.isfinite().all().item()), ([-448.0], True))

    def test_nan_spares_rows(self):
        for width in (4, 64, 4096):
            x = filled(contents(128, width), "nan")
            rows = x.isnan().any(-1)
            self.assertTrue(rows.any() and not rows.all())
            self.assertLess(x.isnan().double().mean(), 0.1)
        self.assertTrue(filled(contents(3), "nan").isnan().any())

    def test_numbers_stand_where_infinities_and_nan_would(self):
        for values in ("infinite", "nan"):
            for shape in [(64, 64), (100,)]:
                spoilt, usual, great = (filled(contents(*shape), values, finite=finite) for finite in (None, "usual", "great"))
                places = ~spoilt.isfinite()
                self.assertTrue(places.any() and usual.isfinite().all() and great.isfinite().all())
                for numbers in (usual, great):
                    self.assertTrue(torch.equal(spoilt[~places], numbers[~places]))
                    self.assertEqual(len(numbers[places].unique()), 1)
                self.assertLess(great[places].max(), 100 * usual.min())

    def test_integers_are_small(self):
        for dtype in [*FLOATS, *BYTES]:
            x = filled(contents(16, 64, dtype=dtype), "integers")
            self.assertEqual(x.unique().tolist(), list(range(-4, 5)))
            x = filled(contents(16, 64, dtype=dtype), "integers", low=0.0)
            self.assertEqual(x.unique().tolist(), list(range(5)))
            x = filled(contents(16, 64, dtype=dtype), "integers", low=0.5)
            self.assertEqual(x.unique().tolist(), list(range(1, 5)))

    def test_pieces_are_small_and_whole(self):
        chunk, inputs.CHUNK = inputs.CHUNK, 100
        try:
            for shape in [(40, 30), (3, 5, 7, 11), (1000,), (2, 300), (1, 1, 500)]:
                x = torch.zeros(shape)
                parts = inputs.pieces(x)
                for part in parts:
                    self.assertEqual(part.shape[-1], shape[-1])
                    self.assertLessEqual(part.numel(), max(100, shape[-1]))
                    part += 1
                self.assertTrue((x == 1).all())
                y = contents(*shape)
                self.assertTrue((filled(y, "sorted").diff(dim=-1) >= 0).all())
        finally:
            inputs.CHUNK = chunk


class Jitter(unittest.TestCase):
    def test_floats_move_by_a_unit_in_the_last_place(self):
        for dtype in [*FLOATS, *BYTES]:
            x = contents(1000, dtype=dtype)
            y = inputs.jitter(x, 7)
            self.assertEqual((y.dtype, y.shape), (x.dtype, x.shape))
            step = (y.double() - x.double()).abs()
            # From a power of two downwards the step is half as wide.
            eps = 0.25 if "e5m2" in str(dtype) else torch.finfo(dtype).eps
            place = x.double().abs() * eps + torch.finfo(dtype).tiny * eps
            self.assertTrue((step <= place).all())
            self.assertTrue(0.4 < (step > 0).double().mean() < 0.8, dtype)
            bits = inputs.BITS[dtype.itemsize]
            self.assertTrue(torch.equal(y.view(bits), inputs.jitter(x, 7).view(bits)))
            self.assertFalse(torch.equal(y.view(bits), inputs.jitter(x, 8).view(bits)))

    def test_what_cannot_move_stays(self):
        for dtype in [*FLOATS, torch.float8_e5m2]:
            top = torch.finfo(dtype).max
            x = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, top, -top] * 20).double().to(dtype)
            bits = inputs.BITS[dtype.itemsize]
            self.assertTrue(torch.equal(inputs.jitter(x, 3).view(bits), x.view(bits)))
        for x in (torch.arange(9), torch.tensor([True]), torch.ones(4).to(torch.float8_e8m0fnu)):
            y = inputs.jitter(x, 3)
            self.assertTrue(torch.equal(x.view(torch.int8), y.view(torch.int8)))
            self.assertNotEqual(y.data_ptr(), x.data_ptr())

    def test_complex_numbers_move(self):
        x = torch.complex(contents(100), contents(100, seed=1))
        y = inputs.jitter(x, 1)
        self.assertTrue(0 < (x - y).abs().max() < 1e-6)

    def test_many_chunks(self):
        chunk, inputs.CHUNK = inputs.CHUNK, 64
        try:
            x = contents(1000)
            moved = (inputs.jitter(x, 1) != x).view(-1, 8).any(-1)
            self.assertTrue(moved.all())
        finally:
            inputs.CHUNK = chunk


class Widened(unittest.TestCase):
    def test_values_stay_and_types_widen(self):
        wide = {"float64": torch.float64, "float32": torch.float32}
        for name, dtype in wide.items():
            for narrow in [torch.float32, torch.float16, torch.bfloat16, *BYTES]:
                x = contents(50, dtype=narrow)
                y = inputs.widened(x, name)
                self.assertEqual(y.dtype, dtype)
                self.assertTrue(torch.equal(x.double(), y.double()))
                self.assertNotEqual(x.data_ptr(), y.data_ptr())
        for x in (torch.arange(3), torch.tensor([True]), contents(3, dtype=torch.float64)):
            y = inputs.widened(x, "float32")
            self.assertEqual(y.dtype, x.dtype)
            self.assertNotEqual(x.data_ptr(), y.data_ptr())
        self.assertEqual(inputs.widened(torch.zeros(2, dtype=torch.complex64), "float64").dtype, torch.complex128)
        self.assertEqual(inputs.widened(torch.zeros(2, dtype=torch.complex64), torch.float32).dtype, torch.complex64)


class Coarse(unittest.TestCase):
    def test_ten_bits_are_left(self):
        x = torch.cat([contents(4096), torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 3.4028235e38, 1e-40])])
        for rounds in (False, True):
            made = x.clone()
            inputs.coarsen(made, rounds)
            few = torch.where(made.isfinite() & (made.abs() < 3e38), made, 0.0)
            self.assertTrue(bool((few.view(torch.int32) & 0x1FFF == 0).all()))
            self.assertTrue(torch.equal(made.isfinite(), x.isfinite()) and bool(made[-3].isnan()))
            error = (made[:4096] - x[:4096]).abs() / x[:4096].abs()
            self.assertTrue(2.0**-12 < float(error.max()) <= 2.0 ** (-11 if rounds else -10))
            again = made.clone()
            inputs.coarsen(again, rounds)
            self.assertTrue(torch.equal(again.view(torch.int32), made.view(torch.int32)))


if __name__ == "__main__":
    unittest.main()
