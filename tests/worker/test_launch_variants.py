import types
import unittest

import torch
from load import compare, launch_variant
from trial import leaf


def against(original, candidate, *variants, holds_nan=False):
    one = lambda tensor: [leaf("result", tensor)]
    others = [one(variant) for variant in variants]
    return compare.compare(one(original), one(candidate), holds_nan=holds_nan, variants=others)


def kernel(x, n, BLOCK: "tl.constexpr", SPAN: "tl.constexpr", WIDTH: "tl.constexpr", tile: int):
    pass


class Launches(unittest.TestCase):
    def launched(self, warps, tiles, *args, **kwargs):
        jit = types.SimpleNamespace(fn=kernel, arg_names=["x", "n", "BLOCK", "SPAN", "WIDTH", "tile"])
        found = []
        original = lambda _, *args, **kwargs: found.append((args, kwargs))
        launch_variant.launch(original, jit, args, kwargs, warps, tiles)
        return found[0]

    def test_warps_stay_in_their_range(self):
        for given, warps, expected in (({}, 1, 8), ({"num_warps": 32}, 1, 32), ({"num_warps": 1}, -2, 1)):
            _, kwargs = self.launched(warps, 0, 1, 2, grid=(1,), **given)
            self.assertEqual(kwargs["num_warps"], expected)

    def test_tiles_are_known_by_their_names_and_by_what_grids_read(self):
        grid = lambda meta: (meta["n"] // meta["SPAN"],)
        args, kwargs = self.launched(0, 1, 1, 1024, 64, SPAN=32, WIDTH=128, tile=64, grid=grid)
        # `WIDTH` may be a property of the data, and `tile` and `n` are no constants.
        self.assertEqual((args, kwargs), ((1, 1024, 128), {"SPAN": 64, "WIDTH": 128, "tile": 64, "grid": grid}))

    def test_counts_are_no_tiles(self):
        args, kwargs = self.launched(0, -1, 1, 1024, 8, SPAN=48, WIDTH=True, tile=1, grid=(1,))
        self.assertEqual((args, kwargs["SPAN"]), ((1, 1024, 8), 48))


class Comparison(unittest.TestCase):
    def test_what_differs_in_the_original_may_be_any_value(self):
        for dtype in (torch.int64, torch.float32):
            original = torch.arange(100).to(dtype)
            variant, candidate = original.clone(), original.clone()
            variant[10:14] += 5
            candidate[11] = 77
            self.assertEqual(len(against(original, candidate)), 1)
            self.assertEqual(against(original, candidate, variant), [])
            candidate[50] = 3
            self.assertEqual(against(original, candidate, variant)[0]["count"], 1)

    def test_for_nan_a_few_times_as_many_may_differ_elsewhere(self):
        for dtype in (torch.int64, torch.float32):
            original = torch.arange(100).to(dtype)
            variant, candidate = original.clone(), original.clone()
            variant[10:12] += 5
            candidate[20:28] += 9
            self.assertEqual(against(original, candidate, variant, holds_nan=True), [])
            candidate[20:29] += 9
            self.assertEqual(len(against(original, candidate, variant, holds_nan=True)), 1)

    def test_a_variant_that_differs_in_most_places_excuses_nothing(self):
        for dtype in (torch.int64, torch.float32):
            original = torch.arange(1, 101).to(dtype)
            candidate = original.clone()
            candidate[11] = 77
            self.assertEqual(len(against(original, candidate, -original, holds_nan=True)), 1)


if __name__ == "__main__":
    unittest.main()
