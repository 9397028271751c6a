import math
import unittest
from unittest import mock

import torch
from load import compare, floats, poison
from trial import leaf

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
BYTES = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
COMPLEX = [torch.complex64, torch.complex128]
NAN, INF = math.nan, math.inf


def plain(kind, text):
    return compare.Leaf("result", ("plain", kind, text))


def container(path, kind, stands_for=None):
    return compare.Leaf(path, ("container", kind, stands_for))


def one(tensor, **options):
    return [leaf("result", tensor, **options)]


def against(original, candidate, reference=None, jittered=(), **options):
    reference = None if reference is None else one(reference)
    return compare.compare(one(original), one(candidate), reference, [one(x) for x in jittered], **options)


def tensor(*values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


class Types(unittest.TestCase):
    def test_each_part_of_the_type_must_agree(self):
        x = torch.zeros(4, 6)
        others = {
            "dtype": x.half(),
            "shape": torch.zeros(6, 4),
            "strides": torch.zeros(6, 4).T,
            "requires_grad": None,
            "shared argument": None,
        }
        for part, other in others.items():
            leaves = one(x if other is None else other)
            if part == "requires_grad":
                leaves[0].meta = (*leaves[0].meta[:5], True, None, None)
            if part == "shared argument":
                leaves = one(x, shares=0)
            for found in (compare.compare(one(x), leaves), compare.changed(one(x), leaves)):
                self.assertEqual(len(found), 1, part)
                self.assertIn(part, found[0]["what"])
                self.assertFalse(found[0]["is_value"])

    def test_results_do_not_begin_to_share_their_memory(self):
        def results(*joins, order=(0, 1, 2)):
            leaves = [leaf(f"result[{at}]", torch.zeros(3), joins=join) for at, join in enumerate(joins)]
            return [leaves[at] for at in order]

        own, shared = results(None, None, None), results(None, None, 1)
        for found in (compare.compare(own, shared), compare.changed(own, shared)):
            self.assertEqual([one["path"] for one in found], ["result[2]"])
            self.assertIn("has the memory of result[1]", found[0]["what"])
        self.assertEqual(compare.compare(shared, own), [])
        self.assertEqual(compare.compare(shared, shared), [])
        # In another order another one comes first.
        self.assertEqual(compare.compare(shared, results(None, 1, None, order=(0, 2, 1))), [])
        self.assertTrue(compare.compare(shared, results(None, 0, None)))

    def test_numbers_of_values_and_kinds_must_agree(self):
        x = one(torch.zeros(2))
        self.assertIn("2 values instead of 1", compare.compare(x, x + x)[0]["what"])
        self.assertIn("a NoneType instead of a torch.Tensor", compare.compare(x, [plain("NoneType", "None")])[0]["what"])
        moved = [leaf("result[1]", torch.zeros(2))]
        self.assertIn("is where", compare.compare(x, moved)[0]["what"])

    def test_strides_that_lead_nowhere_are_none(self):
        for shape, one_way, other_way, is_same in [
            ((4, 1), (1, 1), (1, 4), True),
            ((1, 4), (4, 1), (9, 1), True),
            ((1,), (1,), (0,), True),
            ((3, 0), (1, 1), (7, 9), True),
            ((4, 2), (2, 1), (1, 4), False),
            ((4, 1), (1, 1), (2, 1), False),
        ]:
            both = []
            for strides in (one_way, other_way):
                leaves = one(torch.zeros(shape))
                leaves[0].meta = (*leaves[0].meta[:4], strides, False, None)
                both.append(leaves)
            for found in (compare.compare(*both), compare.changed(*both)):
                self.assertEqual(["strides" in wrong["what"] for wrong in found], [] if is_same else [True])

    def test_containers_are_values_as_well(self):
        def found(a, b):
            x = leaf("result[0]", torch.zeros(2))
            both = [container("result", *a), x], [container("result", *b), x]
            self.assertEqual(bool(compare.compare(*both)), bool(compare.changed(*both)))
            return [wrong["what"] for wrong in compare.compare(*both)]

        pair, size = ("named tuple Pair(a, b)", "tuple"), ("Size (a tuple)", "tuple")
        self.assertEqual(found(("tuple",), ("tuple",)), [])
        self.assertEqual(found(("tuple",), ("list",)), ["a list instead of a tuple"])
        self.assertEqual(found(pair, ("tuple",)), ["a tuple instead of a named tuple Pair(a, b)"])
        self.assertEqual(found(pair, pair), [])
        self.assertEqual(found(pair, size), ["a Size (a tuple) instead of a named tuple Pair(a, b)"])
        # Whoever takes a tuple takes these.
        self.assertEqual(found(("tuple",), size), [])
        self.assertEqual(found(("list",), size), ["a Size (a tuple) instead of a list"])
        self.assertEqual(len(found(("tuple",), ("Lazy (a tuple) with its own __iter__",))), 1)

    def test_another_container_is_told_before_what_is_in_it(self):
        x = [leaf("result", torch.zeros(2)), leaf("argument 0", torch.zeros(3))]
        y = [container("result", "tuple"), leaf("result[0]", torch.zeros(2)), leaf("result[1]", torch.zeros(2)), x[1]]
        (found,) = compare.compare(x, y)
        self.assertEqual((found["path"], found["what"]), ("result", "a tuple instead of a torch.Tensor"))
        (found,) = compare.compare(y, x)
        self.assertEqual((found["path"], found["what"]), ("result", "a torch.Tensor instead of a tuple"))
        (found,) = compare.compare(y, [*y[:2], y[3]])
        self.assertEqual((found["path"], found["what"]), ("result", "2 values instead of 3"))

    def test_values_are_found_by_their_paths(self):
        def leaves(*names):
            return [container("result", "dict"), *(leaf(f"result[{name}]", torch.full((2,), float(name))) for name in names)]

        for function in (compare.compare, compare.changed):
            self.assertEqual(function(leaves(1, 2, 3), leaves(3, 1, 2)), [])
            (found,) = function(leaves(1, 2, 3), leaves(3, 4, 1))
            self.assertEqual((found["path"], found["what"]), ("result[4]", "is where the original has result[2]"))
            other = leaves(3, 1, 2)
            other[1].data += 1
            self.assertEqual([wrong["path"] for wrong in function(leaves(1, 2, 3), other)], ["result[3]"])
            # Keys that print alike.
            self.assertEqual(function(leaves(1, 1), leaves(1, 1)), [])

    def test_plain_values(self):
        def accepted(kind, a, b, *runs):
            runs = [[plain(kind, text)] for text in runs]
            return not compare.compare([plain(kind, a)], [plain(kind, b)], *runs[:1], runs[1:])

        self.assertTrue(accepted("int", "3", "3"))
        self.assertFalse(accepted("int", "3", "4"))
        self.assertTrue(accepted("float", "nan", "nan"))
        self.assertFalse(accepted("float", "nan", "1.0"))
        self.assertTrue(accepted("float", "0.1", "0.10000000000000002"))
        self.assertFalse(accepted("float", "0.1", "0.1000000000001"))
        # Read out of a tensor of 32 bits.
        self.assertTrue(accepted("float", "0.10000000149011612", "0.10000000894069672"))
        self.assertFalse(accepted("float", "0.10000000149011612", "0.10001000016927719"))
        self.assertTrue(accepted("float", "2.0", "2.001", "2.0004"))
        self.assertFalse(accepted("float", "2.0", "2.001", "9.0"))
        self.assertFalse(accepted("str", "'0.1'", "'0.10000000000000002'"))


class Exact(unittest.TestCase):
    def test_integers_and_bools(self):
        for dtype in [*INTEGERS, torch.bool, torch.uint16, torch.uint32, torch.uint64]:
            x = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
            y = x.clone().view(-1)
            y[4] = 1
            self.assertEqual(against(x, x.clone()), [])
            (found,) = against(x, y.view(2, 3))
            self.assertEqual((found["count"], found["is_value"]), (1, True))
            self.assertIn("(1, 1)", found["what"])

    def test_integers_that_rounding_chooses_may_differ_like_the_originals(self):
        x = torch.arange(100)
        moved, other = x.clone(), x.clone()
        moved[3] += 1
        other[[5, 9]] -= 1
        self.assertEqual(against(x, other, jittered=[moved]), [])
        self.assertEqual(against(x, other)[0]["count"], 2)
        self.assertEqual(against(x, other, jittered=[moved], exact=True)[0]["count"], 2)
        other[20:] += 1
        self.assertEqual(against(x, other, jittered=[moved])[0]["count"], 82)
        far = x.clone()
        far[7] += 50
        self.assertEqual(against(x, far, jittered=[moved])[0]["count"], 1)

    def test_choices_between_two_are_like_integers(self):
        x = torch.arange(100) % 2 == 0
        moved, other, one_more = x.clone(), x.clone(), x.clone()
        moved[3] ^= True
        other[[5, 9, 30]] ^= True
        one_more[5:14] ^= True
        self.assertEqual(against(x, other, jittered=[moved]), [])
        self.assertEqual(against(x, other)[0]["count"], 3)
        self.assertEqual(against(x, other, x)[0]["count"], 3)
        self.assertEqual(against(x, other, jittered=[moved], exact=True)[0]["count"], 3)
        self.assertEqual(against(x, one_more, jittered=[moved])[0]["count"], 9)

    def test_exact_floats(self):
        for dtype in [*FLOATS, torch.complex64]:
            x = torch.tensor([0.0, 3.0, NAN, INF]).to(dtype)
            y = torch.tensor([-0.0, 3.0, NAN, INF]).to(dtype)
            self.assertEqual(against(x, y, exact=True), [])
            y[1] += 4 * torch.finfo(dtype).eps
            self.assertEqual(against(x, y, exact=True)[0]["count"], 1)

    def test_fp8_and_packed_bytes(self):
        for dtype in BYTES:
            x = torch.tensor([0.5, 1, 2, 4]).to(dtype)
            self.assertEqual(against(x, x.clone()), [])
            self.assertEqual(against(x, torch.tensor([0.5, 1, 2, 64]).to(dtype))[0]["count"], 1)
        packed = torch.arange(8, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
        other = torch.arange(1, 9, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
        self.assertEqual(against(packed, packed.clone()), [])
        self.assertEqual(against(packed, other)[0]["count"], 8)


class Standing(unittest.TestCase):
    def test_of_every_type(self):
        # A run at a higher precision may give its results in the same type.
        for dtype in [*FLOATS, *COMPLEX, *BYTES[:4]]:
            x = torch.tensor([0.5, 1, 2, 4]).to(dtype)
            # Credible, equal, not finer.
            self.assertEqual(compare.standing(one(x), one(x.clone()))[:3], (True, True, False), dtype)
            if not dtype.is_complex:
                wide = torch.tensor([0.5, 1, 2, 4 + 2.0**-40], dtype=torch.float64)
                self.assertEqual(compare.standing(one(x), one(wide))[2], dtype is not torch.float64, dtype)


class Bounds(unittest.TestCase):
    def test_the_error_of_the_original_is_allowed_some_times_over(self):
        for dtype in FLOATS:
            torch.manual_seed(0)
            exact = torch.randn(64, 64, dtype=torch.float64)
            error = 1e-4 * torch.randn(64, 64, dtype=torch.float64)
            x = (exact + error).to(dtype)
            self.assertEqual(against(x, (exact - error).to(dtype), exact), [])
            wrong = exact - error
            wrong[5, 7] += 0.5
            (found,) = against(x, wrong.to(dtype), exact)
            self.assertEqual(found["count"], 1)
            self.assertIn("(5, 7)", found["what"])
            self.assertGreater(found["excess"], 4)

    def test_moved_inputs_stand_for_a_missing_or_incredible_reference(self):
        torch.manual_seed(0)
        x = torch.randn(64, 64)
        moved = [x + 1e-4 * torch.randn(64, 64) for _ in range(2)]
        other = x + 1e-4 * torch.randn(64, 64)
        for reference in (None, torch.randn(64, 64).double(), torch.full((64, 64), NAN), torch.zeros(2)):
            self.assertEqual(against(x, other, reference, moved), [])
            self.assertEqual(against(x, x + 0.01, reference, moved)[0]["count"], 4096)

    def test_rows_have_scales_of_their_own(self):
        torch.manual_seed(0)
        exact = torch.randn(64, 64).double() * torch.logspace(-2, 0, 64)[:, None]
        x = (exact * (1 + 1e-5 * torch.randn(64, 64))).float()
        other = x.clone()
        other[0] += 1e-4
        self.assertEqual(against(x, other, exact)[0]["count"], 64)

    def test_ill_conditioned_elements_have_bounds_of_their_own(self):
        torch.manual_seed(0)
        exact = torch.randn(32, 32).double()
        x = exact.float()
        moved = x + 1e-6 * torch.randn(32, 32)
        moved[3, 3] += 0.5
        other = x.clone()
        other[3, 3] += 0.4
        self.assertEqual(against(x, other, exact, [moved]), [])
        other[4, 3] += 0.4
        self.assertEqual(against(x, other, exact, [moved])[0]["count"], 1)

    def test_narrow_inputs_say_nothing_of_the_arithmetic(self):
        torch.manual_seed(0)
        exact = torch.randn(64, 64).double()
        argument = leaf("argument 0", torch.zeros(4, dtype=torch.bfloat16))
        x, moved = exact.float(), (exact * (1 + 4e-3 * torch.randn(64, 64))).float()

        def found(error):
            return compare.compare(
                [*one(x), argument], [*one(x + error), argument], [*one(exact), argument], [[*one(moved), argument]]
            )

        self.assertEqual(found(2e-7), [])
        self.assertTrue(found(1e-4))

    def test_many_chunks_are_like_one(self):
        torch.manual_seed(0)
        small = compare.CHUNK
        for shape in [(300, 40), (12000,), (30, 400), (3, 7, 400)]:
            for dtype in [torch.float32, torch.complex64, torch.int32]:
                exact = torch.randn(shape, dtype=torch.float64) * 100
                x = exact.to(dtype)
                y = x.clone()
                y.view(-1)[-3] += 5
                answers = []
                for chunk in (small, 999):
                    compare.CHUNK = floats.CHUNK = chunk
                    answers.append([against(x, y, exact.to(x.dtype)), compare.changed(one(x), one(y))])
                compare.CHUNK = floats.CHUNK = small
                self.assertEqual(len(answers[0][0]), 1)
                texts = [[difference["what"] for part in answer for difference in part] for answer in answers]
                self.assertEqual(*texts)

    def test_empty_and_single(self):
        for shape in [(0,), (3, 0), (0, 3)]:
            self.assertEqual(against(torch.zeros(shape), torch.ones(shape)), [])
        self.assertEqual(against(tensor(1.0)[0], tensor(1.0000001)[0]), [])
        self.assertIn("()", against(tensor(1.0)[0], tensor(1.001)[0])[0]["what"])


class NotFinite(unittest.TestCase):
    def accepted(self, original, candidate, reference=None, jittered=(), dtype=torch.float32, **options):
        # Among others that are as they should be.
        def padded(value, dtype):
            return torch.cat([torch.ones(7, dtype=dtype), torch.tensor([value], dtype=dtype)])

        reference = None if reference is None else padded(reference, torch.float64)
        jittered = [padded(value, dtype) for value in jittered]
        return not against(padded(original, dtype), padded(candidate, dtype), reference, jittered, **options)

    def test_finite_stays_finite(self):
        for value in (INF, -INF, NAN):
            self.assertFalse(self.accepted(1.0, value))
            self.assertFalse(self.accepted(1.0, value, 1.0))

    def test_overflow_of_the_type(self):
        self.assertTrue(self.accepted(65504.0, INF, 65530.0, dtype=torch.float16))
        self.assertFalse(self.accepted(65504.0, -INF, 65530.0, dtype=torch.float16))
        self.assertFalse(self.accepted(30000.0, INF, 30000.0, dtype=torch.float16))

    def test_infinity_stays_or_is_better_known(self):
        self.assertTrue(self.accepted(INF, INF))
        self.assertFalse(self.accepted(INF, -INF))
        self.assertFalse(self.accepted(INF, NAN))
        self.assertFalse(self.accepted(INF, 5.0))
        self.assertTrue(self.accepted(INF, 5.0, 5.0))
        self.assertFalse(self.accepted(INF, 6.0, 5.0))

    def test_nan(self):
        for value in (NAN, INF, 0.0):
            self.assertTrue(self.accepted(NAN, value))
        self.assertTrue(self.accepted(NAN, NAN, holds_nan=True))
        self.assertFalse(self.accepted(NAN, 0.0, holds_nan=True))
        self.assertFalse(self.accepted(NAN, 0.0, NAN, holds_nan=True))

    def test_what_the_original_itself_is_unsure_of(self):
        self.assertTrue(self.accepted(1.0, INF, None, [INF]))
        self.assertTrue(self.accepted(INF, 1.0, None, [2.0]))


class Spilled(unittest.TestCase):
    """Eight rows of sixteen; the original spills into the first four columns of a row, the candidate into eight."""

    def setUp(self):
        self.numbers = torch.randn(8, 16)
        self.numbers[0, 0], self.influenced = 3.0, self.numbers.clone()
        self.influenced[0, 0] = 5000.0

    def found(self, own=4, more=8, others=None, first=-INF, **changes):
        original, candidate = self.numbers.clone(), self.numbers.clone()
        # What is not finite because it counts, and what is multiplied by zero.
        original[0, 0], candidate[0, 0] = -INF, first
        original[3, :own], candidate[3, :more] = NAN, NAN
        for name, value in changes.items():
            candidate[int(name[1:]), 9] = value
        great = self.influenced.clone() if others is None else others
        runs = [one(x) for x in (self.numbers, self.influenced)], [one(x) for x in (self.numbers, great)]
        self.assertEqual(len(against(original, candidate, holds_nan=True)), 1)
        return compare.spilled(one(original), runs[:1], one(candidate), runs[1:])

    def test_more_of_what_the_original_spills_is_no_difference(self):
        self.assertEqual(self.found(), [])
        self.assertEqual(self.found(own=2, more=10), [])
        self.assertEqual(self.found(first=NAN), [])

    def test_a_spill_of_its_own_is(self):
        self.assertEqual(len(self.found(own=0)), 1)
        self.assertEqual(len(self.found(own=1, more=6)), 1)
        self.assertEqual(len(self.found(own=0, more=0, first=NAN)), 1)
        self.assertEqual(len(self.found(first=INF)), 1)

    def test_what_else_is_wrong_is(self):
        self.assertEqual(len(self.found(r5=7.0)), 1)
        self.assertEqual(len(self.found(r3=INF)), 0)

    def test_an_influence_is(self):
        counts = self.influenced.clone()
        counts[3, 6] += 1e-3
        self.assertEqual(len(self.found(others=counts)), 1)
        counts[3, 6] = NAN
        self.assertEqual(len(self.found(others=counts)), 1)

    def test_of_several_tensors_one_may_count_where_another_does_not(self):
        counts = self.influenced.clone()
        counts[3] += 1.0
        original, candidate = self.numbers.clone(), self.numbers.clone()
        original[3, :4], candidate[3, :8] = NAN, NAN
        everywhere = one(self.numbers), one(counts)
        alone = one(self.numbers), one(self.numbers)
        self.assertEqual(len(compare.spilled(one(original), [everywhere], one(candidate), [everywhere])), 1)
        self.assertEqual(compare.spilled(one(original), [everywhere, alone], one(candidate), [everywhere, alone]), [])
        other = self.numbers.clone()
        other[3, 6] += 1.0
        wrong = one(other), one(other)
        self.assertEqual(len(compare.spilled(one(original), [everywhere, alone], one(candidate), [everywhere, wrong])), 1)

    def test_integers_and_other_forms_are_held_against_the_original(self):
        x, y = one(torch.arange(4)), one(torch.arange(4) + 1)
        self.assertEqual(compare.spilled(x, [(x, x)], x, [(x, x)]), [])
        self.assertEqual(len(compare.spilled(x, [(x, x)], y, [(y, y)])), 1)
        self.assertEqual(len(compare.spilled(x, [(x, x)], one(torch.zeros(4)), [(x, x)])), 1)


class Bits(unittest.TestCase):
    def test_changed(self):
        for dtype in [*FLOATS, *BYTES, *INTEGERS, *COMPLEX, torch.bool]:
            x = torch.tensor([[1, 0, 1], [0, 1, 0]]).float().to(dtype)
            self.assertEqual(compare.changed(one(x), one(x.clone())), [])
            y = torch.tensor([[1, 0, 1], [0, 1, 1]]).float().to(dtype)
            self.assertEqual([found["count"] for found in compare.changed(one(x), one(y))], [1])
        zeros = tensor(0.0, NAN), tensor(-0.0, NAN)
        self.assertEqual(compare.changed(one(zeros[0]), one(zeros[1]))[0]["count"], 1)
        other_nan = torch.tensor([0, 0x7FC00001], dtype=torch.int32).view(torch.float32)
        self.assertEqual(compare.changed(one(zeros[0]), one(other_nan)), [])
        self.assertTrue(compare.changed([plain("int", "1")], [plain("int", "2")]))

    def test_unwritten_memory_is_known_again(self):
        for dtype in [*FLOATS, *COMPLEX, *BYTES, torch.int32, torch.int64]:
            x = torch.zeros(3, 5, dtype=torch.float32).to(dtype)
            self.assertEqual(compare.unwritten(one(x)), [])
            poison.poison(x[1:, ::2])
            (found,) = compare.unwritten(one(x))
            self.assertEqual(found["count"], 12 if dtype.is_complex else 6, dtype)
            self.assertIn("(1, 0", found["what"])

    def test_any_layout_can_be_poisoned(self):
        for dtype in [*FLOATS, *COMPLEX, *BYTES, torch.int32]:
            base = torch.zeros(1).to(dtype)
            layouts = [base.expand(4), torch.zeros(0).to(dtype), torch.zeros(2, 3).to(dtype).T, base[0]]
            layouts.append(torch.zeros(6).to(dtype).as_strided((3, 3), (1, 1)))
            for x in layouts:
                poison.poison(x)
                self.assertEqual(len(compare.unwritten(one(x))), min(x.numel(), 1))
        poison.poison(torch.zeros(3, requires_grad=True))
        poison.poison(torch.zeros(3, 3).to_sparse())
        poison.poison(torch.zeros(3, device="meta"))

    def test_other_nans_are_written(self):
        for dtype in [*FLOATS, torch.float8_e4m3fn, torch.float8_e5m2]:
            self.assertEqual(compare.unwritten(one(torch.full((4,), NAN).to(dtype))), [])
            x = torch.zeros(4).to(dtype)
            poison.poison(x)
            self.assertTrue(x.float().isnan().all())

    def test_values_of_few_bits_say_nothing(self):
        for dtype in (torch.int8, torch.uint8, torch.int16):
            x = torch.arange(-128, 128).to(dtype)
            poison.poison(x)
            self.assertEqual(compare.unwritten(one(x)), [])
        x = torch.tensor([True, False])
        poison.poison(x)
        self.assertEqual(x.tolist(), [True, False])


class Waits(unittest.TestCase):
    """Each number that is fetched is a wait for the device, which others use: there are few, however many leaves and parts there are."""

    def waits(self, ask):
        from torch.utils._python_dispatch import TorchDispatchMode

        fetched = []

        class Watch(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                if func.overloadpacket.__name__ in ("_local_scalar_dense", "equal", "is_nonzero"):
                    fetched.append(func)
                return func(*args, **(kwargs or {}))

        original = torch.Tensor.tolist
        with Watch(), mock.patch.object(torch.Tensor, "tolist", lambda self: (fetched.append(self), original(self))[1]):
            self.assertEqual(ask(), [])
        return len(fetched)

    def test_what_is_fine_is_told_at_once(self):
        chunk = floats.CHUNK
        x = torch.randn(3 * chunk // 512, 512)
        leaves = lambda result: [leaf("result", result), leaf("argument 0", x), leaf("argument 1", x[:4])]
        one, other = leaves(x), leaves(x * (1 + 2.0**-23))
        ask = lambda: compare.compare(one, other, None, [leaves(x * (1 + 2.0**-22))])
        ask()
        self.assertEqual(self.waits(ask), 2)
        self.assertEqual(self.waits(lambda: compare.changed(one, leaves(x))), 1)
        self.assertEqual(self.waits(lambda: compare.unwritten(one)), 1)


if __name__ == "__main__":
    unittest.main()
