"""Original and candidate on the inputs that a judge would choose."""

import kernels
import torch
from load import compare, inputs

VALUES = [
    "recorded", "large", "far", "below", "negative", "tiny", "subnormal", "constant", "constant-rows", "sorted", "skewed",
    "outlier", "infinite", "nan", "integers", "zeros",
]


def leaf(path, tensor, shares=None, joins=None):
    tensor = tensor.detach()
    meta = (
        "torch.Tensor",
        str(tensor.dtype).removeprefix("torch."),
        tensor.device.type,
        tuple(tensor.shape),
        tuple(tensor.stride()),
        tensor.requires_grad,
        shares,
        joins,
    )
    return compare.Leaf(path, meta, tensor.contiguous())


def arguments(shapes, dtype, values, seed):
    generator = torch.Generator()
    generator.manual_seed(seed)
    made = []
    for at, shape in enumerate(shapes):
        # Weights lie around 1.
        tensor = (torch.randn(shape, generator=generator) + (len(shape) == 1)).clamp_(-4, 5).to(dtype)
        inputs.apply(tensor, values, float(tensor.min()), float(tensor.max()), generator)
        made.append(tensor)
    return made


def results(function, made):
    out = function(*[tensor.clone() for tensor in made])
    return [leaf("result", out), *(leaf(f"argument {at}", tensor) for at, tensor in enumerate(made))]


class Trial:
    """An original on one set of inputs."""

    def __init__(self, operation, shapes, dtype, values, seed, moved=2):
        self.operation, self.values = operation, values
        self.made = arguments(shapes, dtype, values, seed)
        self.original = results(operation.original, self.made)
        self.moved = [results(operation.original, [inputs.jitter(x, at) for x in self.made]) for at in range(moved)]
        self.references = {"none": None}
        self.candidates = {}

    def reference(self, precise):
        if precise not in self.references:
            kernels.hard = precise == "hard"
            wide = [inputs.widened(x, "float64") for x in self.made]
            self.references[precise] = results(self.operation.original, wide)
            kernels.hard = False
        return self.references[precise]

    def tells(self, precise):
        """Whether the judge would look: where large numbers cancel, only a believable run at a higher precision tells who is right."""
        reference = self.reference(precise)
        if self.values not in ("far", "below", "constant-rows"):
            return True
        return precise == "soft" and compare.standing(self.original, reference, self.moved)[0]

    def differences(self, function, precise="soft"):
        if function not in self.candidates:
            self.candidates[function] = results(function, self.made)
        is_exact = self.values == "integers" and self.operation.is_linear
        candidate, reference = self.candidates[function], self.reference(precise)
        return compare.compare(self.original, candidate, reference, self.moved, self.values == "nan", is_exact)
