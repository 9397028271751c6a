"""What the worker does without torch is what it does with it: the rule by which results agree, and Triton's driver."""

import importlib.util
import json
import os
import pathlib
import tempfile
import types
import unittest
from importlib import machinery
from unittest import mock

import torch
from kernels import OPERATIONS
from load import FOLDER
from trial import VALUES, Trial

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]


def worker():
    loader = machinery.ExtensionFileLoader("_worker", os.environ["WARPSMITH_TEST_WORKER"])
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("_worker", loader))
    loader.exec_module(module)
    return module


class Comparer:
    """Requests for both comparers, with the results in files."""

    worker = worker()

    def __init__(self, folder):
        self.folder, self.requests, self.slots = pathlib.Path(folder), [], 0

    def ask(self, kind, **fields):
        self.requests.append(json.dumps({kind: fields}))

    def keep(self, leaves):
        self.slots += 1
        path, at, told = self.folder / str(self.slots), 0, []
        with path.open("wb") as file:
            for leaf in leaves:
                kind, dtype, device, shape, stride, requires_grad, shares, _ = leaf.meta
                value = {"class": kind, "dtype": dtype, "device": device, "shape": shape, "stride": stride, "at": at}
                told.append({"path": leaf.path, "value": {"Tensor": value | {"requires_grad": requires_grad, "shares": shares}}})
                at += file.write(leaf.data.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        buffer = {"File": {"path": str(path), "size": at}} if at else None
        self.ask("Keep", owner=1, kept=[[self.slots, {"leaves": told, "buffer": buffer}]])
        return self.slots

    def compare(self, original, candidate, reference=None, jittered=(), holds_nan=False, exact=False, level=None):
        self.ask("Compare", original=original, candidate=candidate, reference=reference, jittered=list(jittered), holds_nan=holds_nan, exact=exact, level=level, variants=[], terms=None)

    def answers(self):
        """What the one with torch says, and the one without, to the same requests."""
        both = [[json.loads(answer) for answer in self.worker.compare(self.requests, with_torch)] for with_torch in (True, False)]
        return list(zip(self.requests, *both))


class Agreement(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.seen = {"agree": 0, "differ": 0}

    def check(self, comparer, about):
        for request, one, other in comparer.answers():
            if "Differences" not in one:
                self.assertEqual(one, other, (about, request[:200]))
                continue
            one, other = one["Differences"], other["Differences"]
            self.assertEqual([found["path"] for found in one], [found["path"] for found in other], (about, request, one, other))
            self.seen["differ" if one else "agree"] += 1
            for a, b in zip(one, other):
                self.assertEqual((a["count"], a["is_value"], a["excess"] is None), (b["count"], b["is_value"], b["excess"] is None), (about, a, b))
                if a["excess"] is not None:
                    self.assertAlmostEqual(a["excess"] / b["excess"], 1, delta=1e-6, msg=str((about, a, b)))
                # The same element, or the same type and layout.
                words = [found["what"].split(": ")[0].split(" is ")[0] for found in (a, b)]
                self.assertEqual(*words) if a["is_value"] else self.assertTrue(b["what"])

    def test_kernels_are_judged_alike(self):
        for name, operation in OPERATIONS.items():
            for dtype in operation.dtypes:
                # Every second one: each takes a second.
                for values in VALUES[dtype is torch.float16 :: 2]:
                    trial = Trial(operation, operation.shapes[0], dtype, values, 100)
                    self.trial(trial, [*operation.right.values(), *operation.wrong.values()], (name, dtype, values))
        self.assertGreater(min(self.seen.values()), 200, self.seen)

    def trial(self, trial, candidates, about):
        comparer = Comparer(self.folder)
        original, *moved = [comparer.keep(run) for run in [trial.original, *trial.moved]]
        references = [None if run is None else comparer.keep(run) for run in map(trial.reference, ("soft", "hard", "none"))]
        is_exact = trial.values == "integers" and trial.operation.is_linear
        for reference in references:
            comparer.ask("Stand", original=original, reference=reference, jittered=moved, dense=moved[0])
            comparer.ask("Stand", original=original, reference=reference, jittered=moved, dense=None)
        for candidate in candidates:
            trial.differences(candidate)
            slot = comparer.keep(trial.candidates[candidate])
            for reference in references:
                comparer.compare(original, slot, reference, moved, trial.values == "nan", is_exact)
                comparer.compare(original, slot, level=[original, reference, moved])
            comparer.compare(original, slot, references[0])
            comparer.ask("Changed", one=original, other=slot)
        self.check(comparer, about)

    def leaves(self, tensor, path="result"):
        from trial import leaf

        return [leaf(path, tensor)]

    def test_types_odd_numbers_and_shapes(self):
        generator = torch.Generator().manual_seed(1)
        for dtype in [*FLOATS, *INTEGERS]:
            for shape in [(), (1,), (7,), (3, 5), (2, 1, 6), (0, 4), (4, 1)]:
                comparer = Comparer(self.folder)
                plain = torch.randn(shape, generator=generator).mul(3)
                one = plain.to(dtype)
                odd = torch.where(torch.rand(shape, generator=generator) < 0.3, torch.nan, plain) if dtype.is_floating_point else plain
                runs = [one, (plain * 1.001).to(dtype), (plain + 1).to(dtype), odd.to(dtype), one.clone()]
                original, *others = [comparer.keep(self.leaves(run)) for run in runs]
                wide = comparer.keep(self.leaves(one.double() * (1 + 1e-4) if dtype.is_floating_point else one))
                for other in others:
                    for reference, moved in [(None, []), (wide, []), (None, others[:2]), (wide, others[:1])]:
                        for exact in (False, True):
                            comparer.compare(original, other, reference, moved, True, exact)
                    comparer.ask("Changed", one=original, other=other)
                self.check(comparer, (dtype, shape))
        self.assertGreater(min(self.seen.values()), 300, self.seen)

    def test_what_an_original_is_good_for(self):
        ones, thirds = torch.ones(3, 5), torch.full((3, 5), 1 / 3)
        for result, wide, fields in [
            (ones, ones, (True, False, True)),
            (thirds, thirds, (True, False, False)),
            (thirds, thirds.double() + 1e-9, (False, True, False)),
            (ones * 2**22, ones * 2**22, (True, False, False)),
            (ones.half(), ones, (True, False, True)),
        ]:
            for path in ("result", "argument 0"):
                comparer = Comparer(self.folder)
                slots = [comparer.keep(self.leaves(run, path)) for run in (result, wide)]
                comparer.ask("Stand", original=slots[0], reference=slots[1], jittered=[], dense=None)
                self.check(comparer, (path, fields))
                is_exact, is_finer, is_whole = fields
                told = {"is_exact": is_exact, "is_finer": is_finer and path == "result", "is_whole": is_whole}
                standing = comparer.answers()[-1][1]["Standing"]
                self.assertEqual({name: standing[name] for name in told}, told, (path, result, wide))

    def test_results_of_other_forms(self):
        comparer = Comparer(self.folder)
        x = torch.randn(4, 6)
        one = comparer.keep(self.leaves(x))
        for other in [x.half(), x.T, x[:2], x.T.contiguous().T]:
            slot = comparer.keep(self.leaves(other))
            comparer.compare(one, slot)
            comparer.ask("Changed", one=one, other=slot)
        two = comparer.keep(self.leaves(x) + self.leaves(x, "argument 0"))
        comparer.compare(one, two)
        comparer.compare(one, comparer.keep(self.leaves(x, "argument 0")))
        comparer.ask("Drop", slots=[two])
        # Strides of what has one element lead nowhere.
        column = x[:, :1].contiguous()
        comparer.compare(comparer.keep(self.leaves(column)), comparer.keep(self.leaves(column.T.contiguous().T)))
        comparer.compare(comparer.keep(self.leaves(column)), comparer.keep(self.leaves(x[:, :1])))
        self.check(comparer, "forms")
        self.assertEqual(self.seen, {"agree": 1, "differ": 11})

    def test_what_is_not_there_is_said(self):
        lost = Comparer(self.folder)
        lost.compare(1, 2)
        [answer] = lost.worker.compare(lost.requests, False)
        self.assertIn("nothing is kept under 1", json.loads(answer)["Failed"]["why"])
        short = Comparer(self.folder)
        slot = short.keep(self.leaves(torch.ones(4)))
        (pathlib.Path(self.folder) / str(slot)).write_bytes(b"")
        self.assertIn("end before", json.loads(short.worker.compare(short.requests, False)[0])["Failed"]["why"])


class Driver(unittest.TestCase):
    def test_triton_asks_nobody_else(self):
        from triton.backends.driver import GPUDriver
        from triton.backends.nvidia import driver as nvidia
        from triton.runtime import driver

        spec = importlib.util.spec_from_file_location("_driver", FOLDER / "torch_free/driver.py")
        ours = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(ours)
        before, asked = GPUDriver.__init__, []

        def milliseconds(call, times):
            asked.append(times)
            return [call() + float(at) for at in range(times)]

        # It is compiled with the driver's library.
        with mock.patch.object(nvidia, "CudaUtils", types.SimpleNamespace):
            ours.install((9, 0), milliseconds)
        active = driver.active
        self.assertIs(GPUDriver.__init__, before)
        self.assertEqual((active.get_current_device(), active.get_current_stream(0)), (0, 0))
        self.assertEqual((active.get_current_target().backend, active.get_current_target().arch), ("cuda", 90))
        self.assertEqual(active.get_benchmarker()(lambda: 1.0, quantiles=(0.5, 0.0, 1.0)), [5.0, 1.0, 10.0])
        self.assertEqual(asked, [1, 10])


if __name__ == "__main__":
    unittest.main()
