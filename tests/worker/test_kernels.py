"""Right kernels are accepted and wrong ones refused, on the inputs that a judge would choose."""

import unittest

import torch
from kernels import OPERATIONS
from trial import VALUES, Trial

# Whether the run at a higher precision is one, calculates in 32 bits all the same, or is missing.
PRECISE = ["soft", "hard", "none"]
# Bugs that stay below the rounding of the results: of all widths, or without a run at a higher precision.
INVISIBLE = {
    ("matmul", "inputs of 10 bits", torch.float16),
    ("matmul", "inputs of 10 bits", torch.bfloat16),
    ("matmul", "inputs of 7 bits", torch.float16),
    ("matmul", "inputs of 7 bits", torch.bfloat16),
}
NEEDS_REFERENCE = {("gelu", "tanh", torch.float16), ("gelu", "tanh", torch.bfloat16)}
# Elsewhere it is as good; in few places can it be told.
FAR = ("layer_norm", "squares")
# A better result than the original's, which nothing but a run at a higher precision can tell.
UNKNOWN = {("matmul of 10 bits", "better", "none")}
# A thousand products one by one are really that much worse than blocks of them where the sums cancel.
CANCELS = ("matmul", "one by one", "sorted")


def trials(operation, seed, dtypes=None):
    for dtype in dtypes or operation.dtypes:
        for shapes in operation.shapes:
            for values in VALUES:
                yield dtype, values, Trial(operation, shapes, dtype, values, seed)


class Kernels(unittest.TestCase):
    def test_other_orders_and_formulas_are_accepted(self):
        for name, operation in OPERATIONS.items():
            for dtype, values, trial in trials(operation, 100):
                for variant, function in operation.right.items():
                    for precise in PRECISE:
                        is_left = (name, variant, precise) in UNKNOWN or (name, variant, values) == CANCELS
                        if not is_left and trial.tells(precise):
                            found = trial.differences(function, precise)
                            self.assertEqual(found, [], (name, variant, precise, dtype, values))

    def test_bugs_are_refused_on_some_inputs(self):
        for name, operation in OPERATIONS.items():
            for dtype in operation.dtypes:
                self.refused(name, operation, dtype)

    def refused(self, name, operation, dtype):
        missed = set()
        for precise in PRECISE:
            known = INVISIBLE | (NEEDS_REFERENCE if precise == "none" else set())
            bugs = [bug for bug in operation.wrong if (name, bug, dtype) not in known]
            missed |= {(bug, precise) for bug in bugs if (name, bug) != FAR or precise == "soft"}
        for _, _, trial in trials(operation, 0, [dtype]):
            found = lambda bug, precise: trial.tells(precise) and trial.differences(operation.wrong[bug], precise)
            missed = {one for one in missed if not found(*one)}
            if not missed:
                return
        self.assertEqual(missed, set(), (name, dtype))

    def test_some_bugs_need_their_values(self):
        needed = {
            ("softmax", "maximum not subtracted"): {"large", "far", "below", "skewed", "outlier"},
            ("cross_entropy", "maximum not subtracted"): {"large", "far", "below", "skewed", "outlier"},
            ("row_max", "begins at zero"): {"infinite", "below", "negative", "constant-rows"},
            ("row_max", "swallows NaN"): {"nan"},
            ("rms_norm", "no eps"): {"tiny", "subnormal", "zeros", "constant-rows"},
            ("layer_norm", "squares"): {"far", "below"},
        }
        for (name, bug), expected in needed.items():
            operation = OPERATIONS[name]
            found = set()
            for _, values, trial in trials(operation, 0):
                if trial.tells("soft") and trial.differences(operation.wrong[bug]):
                    found.add(values)
            self.assertEqual(found, expected, (name, bug))


if __name__ == "__main__":
    unittest.main()
