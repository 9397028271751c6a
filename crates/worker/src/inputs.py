"""Contents of float tensors that test a kernel, made from contents like the recorded ones."""

import torch

BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# The number of elements that are processed at once.
CHUNK = 1 << 24
# The part of the magnitudes of elements whose sums show what terms add up to: the sums must fit their type.
MAGNITUDE = 2.0**-4
# Powers of two, and packed pairs of 4 bits: their smallest step is not a rounding error.
COARSE = ("float8_e8m0fnu", "float4_e2m1fn_x2")


def apply(view, values, low, high, generator, finite=None):
    """Overwrites a float tensor whose contents lie between `low` and `high`; the new contents are on the same side
    of zero. With `finite`, a `"usual"` or a `"great"` number replaces each infinity and NaN."""
    if values == "recorded" or view.numel() == 0 or is_coarse(view.dtype):
        return
    view = torch.view_as_real(view) if view.is_complex() else view
    for dim, stride in enumerate(view.stride()):
        if stride == 0:
            view = view.narrow(dim, 0, 1)
    Filler(view, low, high, generator, finite).fill(values)


def jitter(flat, seed):
    """A copy whose float elements are moved by one unit in the last place up, down, or not at all."""
    if not (flat.is_floating_point() or flat.is_complex()) or is_coarse(flat.dtype):
        return flat.clone()
    moved = flat.clone(memory_format=torch.contiguous_format)
    generator = torch.Generator(flat.device)
    generator.manual_seed(seed & 0x7FFF_FFFF_FFFF)
    elements = (torch.view_as_real(moved) if moved.is_complex() else moved).view(-1)
    bits = elements.view(BITS[elements.dtype.itemsize])
    greatest = int(torch.tensor(torch.finfo(elements.dtype).max, dtype=elements.dtype).view(bits.dtype))
    # The sign is a separate bit, so this moves the magnitude by one step. Zeros, the least number and non-finite values
    # stay.
    mask = torch.iinfo(bits.dtype).max
    for start in range(0, bits.numel(), CHUNK):
        part = bits[start : start + CHUNK]
        magnitude = part & mask
        step = torch.randint(-1, 2, part.shape, dtype=torch.int8, device=part.device, generator=generator)
        part += step.to(bits.dtype) * ((magnitude > 1) & (magnitude < greatest))
    return moved


def coarsen(flat, rounds):
    """Reduces each 32-bit float to 10 bits of mantissa: to the nearest such number, or towards zero."""
    if flat.dtype is not torch.float32:
        return
    for start in range(0, flat.numel(), CHUNK):
        part = flat[start : start + CHUNK]
        bits = part.view(torch.int32)
        made = ((bits + (1 << 12)) if rounds else bits) & -(1 << 13)
        made = made.view(torch.float32)
        part.copy_(torch.where(part.isfinite() & made.isfinite(), made, part))


def replace_terms(flat, doubled):
    """Replaces each element by twice its value, or by a part of its magnitude."""
    if is_coarse(flat.dtype):
        return
    flat = torch.view_as_real(flat) if flat.is_complex() else flat
    for start in range(0, flat.numel(), CHUNK):
        part = flat.view(-1)[start : start + CHUNK]
        # Types of 8 bits have no arithmetic.
        wide = part.float() if part.dtype.itemsize == 1 else part
        part.copy_(wide * 2 if doubled else wide.abs() * MAGNITUDE)


def widened(flat, dtype):
    """A copy in a wider type. Elements that are not floats, or are as wide already, keep their type."""
    dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    if is_coarse(flat.dtype):
        return flat.clone()
    if flat.is_complex():
        wide = torch.complex128 if dtype is torch.float64 else torch.complex64
        return flat.to(wide if wide.itemsize > flat.dtype.itemsize else flat.dtype, copy=True)
    if not flat.is_floating_point() or flat.dtype.itemsize >= dtype.itemsize:
        return flat.clone()
    return flat.to(dtype)


def is_coarse(dtype):
    return str(dtype).removeprefix("torch.") in COARSE


class Filler:
    """A tensor without repeated elements, and the ways to change it."""

    def __init__(self, view, low, high, generator, finite=None):
        self.view, self.low, self.high, self.generator, self.finite = view, float(low), float(high), generator, finite
        self.info = torch.finfo(view.dtype)
        # The narrow types have no arithmetic of their own.
        self.wide = torch.float64 if view.dtype is torch.float64 else torch.float32

    def fill(self, values):
        {
            "large": self.large,
            "far": self.far,
            "below": self.far_below,
            "negative": self.negative,
            "tiny": self.tiny,
            "subnormal": self.subnormal,
            "constant": self.constant,
            "constant-rows": self.constant_rows,
            "sorted": self.sort,
            "skewed": self.skewed,
            "outlier": self.outlier,
            "infinite": self.infinite,
            "nan": self.nan,
            "integers": self.integers,
            "zeros": self.zeros,
        }[values]()

    def change(self, function):
        """Replaces the contents by `function(contents)`, some rows at a time."""
        for part in pieces(self.view):
            part.copy_(function(part.to(self.wide)))

    def random(self, like):
        return torch.rand(like.shape, dtype=torch.float32, device=like.device, generator=self.generator)

    def below(self, top, shape=()):
        return torch.randint(0, top, shape, device=self.view.device, generator=self.generator)

    def kept(self, part):
        """Positive contents stay positive when they are made small."""
        if self.low <= 0:
            return part
        least = torch.ones((), dtype=BITS[self.view.dtype.itemsize]).view(self.view.dtype)
        return part.clamp(min=float(least))

    def amplitude(self):
        return max(abs(self.low), abs(self.high))

    def large(self):
        # Exponentials overflow above 89, squares of half precision above 255; sums of some thousand such values do not
        # overflow in other types.
        recorded = self.amplitude()
        target = min(100.0 * max(recorded, 1.0), self.info.max / 8)
        factor = target / recorded if recorded > 0 else 1.0
        self.change(lambda part: (part * factor).clamp(-target, target))

    def far(self):
        self.shifted(1 if self.high > 0 else -1)

    def far_below(self):
        if self.low < 0:
            self.shifted(-1)

    def shifted(self, sign):
        # Above a hundred standard deviations of normally distributed contents.
        top = self.info.max / 8
        shift = min(30.0 * self.amplitude(), top) * sign
        self.change(lambda part: (part + shift).clamp(-top, top))

    def negative(self):
        if self.low < 0:
            self.change(lambda part: -part.abs())

    def tiny(self):
        """A ten-thousandth of the recorded contents, or as little as the type can represent; every eighth is
        denormal."""
        recorded = max(self.amplitude(), self.info.tiny)
        factor = min(max(1e-4, 16 * self.info.tiny), 0.1)

        def small(part):
            denormal = part / recorded * self.info.tiny
            return self.kept(torch.where(self.random(part) < 0.125, denormal, part * factor))

        self.change(small)

    def subnormal(self):
        recorded = max(self.amplitude(), self.info.tiny)
        self.change(lambda part: self.kept(part / recorded * self.info.tiny))

    def constant(self):
        self.view.fill_(self.usual())

    def constant_rows(self):
        if self.view.ndim > 1:
            self.change(lambda part: part[..., :1].expand_as(part))
        else:
            self.constant()

    def usual(self):
        value = 0.75 * self.high + 0.25 * self.low
        return value if value or self.low >= 0 else self.high

    def instead(self, value):
        """`value`, which is not finite, or its replacement."""
        if self.finite is None:
            return value
        if self.finite == "usual":
            return self.usual()
        top = min(1000.0 * max(self.amplitude(), self.info.tiny), self.info.max / 8)
        return -top if self.low < 0 else top

    def sort(self):
        if self.view.ndim:
            self.change(lambda part: part.sort(dim=-1).values)

    def skewed(self):
        top = max(self.info.max / 8, self.amplitude())

        def pulled(part):
            return torch.where(self.random(part) < 1 / 64, (part * 1000).clamp(-top, top), part)

        self.change(pulled)
        one = self.element()
        one.copy_((one.to(self.wide) * 1000).clamp(-top, top))

    def outlier(self):
        if self.view.ndim == 0:
            return
        top = max(self.info.max / 8, self.amplitude())

        def pulled(part):
            at = torch.zeros(part.shape, dtype=torch.bool, device=part.device)
            at.scatter_(-1, self.below(part.shape[-1], (*part.shape[:-1], 1)), True)
            return torch.where(at, (part * 1000).clamp(-top, top), part)

        self.change(pulled)

    def infinite(self):
        if self.low >= 0:
            return
        # Some 8-bit types have no infinity.
        least = float(torch.tensor(-torch.inf).to(self.view.dtype).float())
        least = self.instead(least if least == -torch.inf else self.info.min)
        self.change(lambda part: torch.where(self.random(part) < 1 / 64, least, part))
        if self.view.ndim < 2:
            self.element().fill_(least)
            return
        rows = self.view.shape[:-1]
        self.view[(0,) * len(rows)].fill_(least)
        self.view[tuple(int(self.below(size)) for size in rows)].fill_(least)

    def nan(self):
        """A few NaN in every eighth row."""
        few = 2 / max(self.view.shape[-1], 16) if self.view.ndim else 1.0
        value = self.instead(torch.nan)

        def spoilt(part):
            row = self.random(part[..., :1]) < 0.125 if part.ndim > 1 else True
            return torch.where((self.random(part) < few) & row, value, part)

        self.change(spoilt)
        self.element().fill_(value)

    def integers(self):
        lowest = -4 if self.low < 0 else int(self.low > 0)
        for part in pieces(self.view):
            numbers = torch.randint(lowest, 5, part.shape, device=part.device, dtype=torch.int8, generator=self.generator)
            part.copy_(numbers)

    def zeros(self):
        self.view.fill_(self.low if self.low > 0 else 0.0)

    def element(self):
        """A random element."""
        return self.view[tuple(int(self.below(size)) for size in self.view.shape)]


def pieces(view):
    """Parts of at most `CHUNK` elements that consist of whole rows where possible."""
    if view.numel() <= CHUNK or view.ndim < 2:
        return [view]
    dim = max(range(view.ndim - 1), key=lambda dim: view.shape[dim])
    if view.shape[dim] == 1:
        return [view]
    step = max(1, view.shape[dim] * CHUNK // view.numel())
    return [piece for part in view.split(step, dim) for piece in pieces(part)]
