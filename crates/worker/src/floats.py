"""Comparison of two results up to the original's rounding error, which is measured rather than assumed.

The error that a candidate may have is, element by element, the sum of

- `FACTOR` times the greatest error of the original itself, relative to the scale of the element. The scale is the
  root mean square of its row (the last dimension), and greater where the element is ill-conditioned: where moved
  inputs move it further than is usual in its result;
- `NOISE` times its movement when the inputs are moved by the rounding error of the arithmetic;
- `ULPS` units in the last place, and `FLOOR` roundings of the arithmetic relative to the root mean square of its
  row, or to what its terms add up to without cancelling where that is known.

The original's error is its distance from a run at a higher precision. Without a credible run, the movement of its
results with the inputs replaces it."""

import copy

import torch

from _warpsmith_inputs import MAGNITUDE
from _warpsmith_poison import real

# With the numbers below, kernels of the same precision reached 0.6 of their bounds in all orders of summation that were
# tried (`tests/worker/kernels.py`); a factor of 4 refused some. A step of precision, 11 bits of mantissa instead of 24,
# is a factor of some thousand.
FACTOR = 8.0
# A leaf of few elements shows the original's error in few samples, so its error counts `1 + FEW / elements` times.
FEW = 4.0
# The factor where moved inputs replace the measured error.
FALLBACK = 4.0
NOISE = 4.0
# Roundings of the arithmetic relative to the row: sums of a thousand and more terms one by one, and sums that cancel.
# The second number is greater, for originals without a run that shows such errors; both are a fraction of the error of
# 10 bits of mantissa.
FLOOR = 512.0
BLIND_FLOOR = 1024.0
# By the size of an element in bytes. Narrow types are rounded once at the end, which differs by at most one place in
# another kernel.
ULPS = {1: 1.0, 2: 2.0, 4: 4.0, 8: 4.0}
# Elements whose row is smaller than the whole by this factor count like rows of this size.
LOWEST_ROW = 1e-3
# A run at a higher precision whose distance from the original exceeds this part of the scale is another computation
# (other random numbers, another branch), unless moved inputs move the results as far.
CREDIBLE = 2.0**-5
CREDIBLE_NOISE = 100.0
# The rounding error of the arithmetic that kernels do with inputs of 32 bits and fewer.
ARITHMETIC = 2.0**-23
# A candidate may spill into this many times as many elements as the original: with tiles of four times the size.
SPILLED = 4
# An original more of whose elements change when its kernels are launched otherwise is no measure for a candidate.
MOST_OPEN = 0.25
# The most factors of a product that is summed, as far as they are looked for.
MOST_FACTORS = 8
# The number of elements that are processed at once; some fifteen temporaries of 8 bytes each are alive at a time.
CHUNK = 1 << 21
SAMPLE = 1 << 16
# On a host, the bounds of tensors with up to this many elements are kept.
MOST_KEPT = 1 << 24


def difference(path, what, is_value, count=1, excess=None):
    return {"path": path, "what": what, "is_value": is_value, "count": count, "excess": excess}


def index_of(leaf, flat):
    """The index of an element of the tensor, or of its `view_as_real` for a complex one."""
    shape = leaf.meta[3] + ((2,) if leaf.data.is_complex() else ())
    index = []
    for size in reversed(shape):
        flat, at = divmod(flat, size)
        index.append(at)
    return tuple(reversed(index))


def room_for(tensor, bytes_each):
    """Whether there is enough room to keep something for each element."""
    if tensor.device.type != "cuda":
        return tensor.numel() < MOST_KEPT
    free, total = torch.cuda.mem_get_info(tensor.device)
    return free - bytes_each * tensor.numel() > total // 2


class Part:
    """Some rows of all runs, in double precision."""

    def __init__(self, plan, start, o, c, r, js):
        self.start = start
        self.o, self.c = o.double(), c.double()
        self.r = None if r is None else r.double()
        self.is_finite = self.o.isfinite()
        self.size = torch.where(self.is_finite, self.o.abs(), 0.0)
        self.unstable = self.noise = self.row = self.scale = None
        for j in js:
            j = j.double()
            apart = (j - self.o).abs_()
            # Where the original itself becomes finite or non-finite as its inputs move, any value is accepted.
            other = j.isfinite() != self.is_finite
            apart = torch.where(apart.isfinite(), apart, 0.0)
            self.unstable = other if self.unstable is None else self.unstable | other
            self.noise = apart if self.noise is None else torch.maximum(self.noise, apart)
        if self.noise is not None:
            # The last rounding is no evidence about the error before it.
            self.noise = self.noise.sub_(plan.place(self.size)).clamp_(min=0.0)

    def with_results(self, c):
        """The same part with other results of a candidate."""
        other = copy.copy(self)
        other.c = c
        return other

    def row_scale(self, plan):
        if self.row is None and not plan.by_row:
            self.row = plan.floor
        elif self.row is None:
            counts = self.is_finite.sum(-1, keepdim=True).clamp_(min=1)
            self.row = torch.maximum((self.size.square().sum(-1, keepdim=True) / counts).sqrt_(), plan.floor)
        return self.row

    def element_scale(self, plan):
        if self.scale is None:
            row = self.row_scale(plan)
            self.scale = row if self.noise is None else torch.maximum(self.noise * (plan.share / plan.usual), row)
        return self.scale

    def own_error(self, plan):
        """The original's distance from the run at a higher precision, beyond its last rounding."""
        error = (self.o - self.r).abs_().sub_(plan.place(self.size) * plan.last_rounding).clamp_(min=0.0)
        return torch.where(self.is_finite, error, 0.0)


class Floats:
    """A float leaf of all runs, as rows."""

    def __init__(self, leaf, o, c, r, js, rounding, holds_nan, level=None):
        self.leaf, self.holds_nan, self.level, self.rounding = leaf, holds_nan, level, rounding
        self.arithmetic, self.share, terms = rounding
        info = torch.finfo(o.dtype)
        size = real(o).dtype.itemsize
        # `finfo` is wrong about one type.
        self.eps = 0.25 if "e5m2" in str(o.dtype) else info.eps
        self.greatest, self.ulps = info.max, ULPS[size]
        # Below the normal numbers of wide types devices flush to zero, each term of a sum by itself.
        self.quantum = info.tiny * terms if size >= 4 or o.dtype is torch.bfloat16 else info.tiny * self.eps
        # A run at a higher precision may still return its results in the narrow type.
        self.last_rounding = 0.5 if r is None or r.dtype.itemsize > o.dtype.itemsize else 1.0
        self.given = (o, r, *js)
        width = o.shape[-1] * (2 if o.is_complex() else 1) if o.ndim > 1 else 1
        self.by_row = 1 < width <= CHUNK
        rows = (-1, width) if self.by_row else (-1,)
        o, c, *others = [real(x).reshape(rows) for x in [o, c, *([] if r is None else [r]), *js]]
        self.runs = o, c, None if r is None else others[0], others if r is None else others[1:]
        self.count = o.numel()
        self.step = max(1, CHUNK // width) if self.by_row else CHUNK
        self.kept = [self.part(0, self.step)] if len(o) <= self.step else None
        # These values do not depend on the candidate's elements.
        scales = leaf.learn(("scales", level, rounding), self.given, self.measure)
        self.floor, self.usual, self.believed, self.row_floor, self.allowed = scales
        self.variants, self.free, self.terms = [], 0, None

    def vary(self, variants):
        """Sets results of the original with its kernels launched otherwise. Where they differ from its own by more
        than rounding, the original's are not what its author meant, and any result is right."""
        rows = [real(variant).reshape(self.runs[0].shape) for variant in variants]
        is_open = lambda rows: sum(int(self.judged(self.varied(part, rows))[3].sum()) for part in self.parts())
        counts = [is_open(row) for row in rows]
        self.variants = [row for row, count in zip(rows, counts) if 0 < count <= MOST_OPEN * self.count]
        self.free = max((count for count in counts if count <= MOST_OPEN * self.count), default=0)

    def sum_terms(self, doubled, absolute):
        """Sets the results with all inputs doubled, and with `MAGNITUDE` of their magnitudes. Where doubling multiplies all results
        by one power of two exactly, each is a sum of products or the like, and the magnitudes bound what its terms add
        up to without cancelling. The rounding of a sum is relative to that, and not to the sum (Higham, "Accuracy and
        Stability of Numerical Algorithms", section 4.2)."""
        if doubled is None or absolute is None:
            return
        doubled, absolute = (real(x).reshape(self.runs[0].shape) for x in (doubled, absolute))
        for factors in range(1, MOST_FACTORS + 1):
            if all(bool((self.rows_of(doubled, part) == part.o * 2.0**factors).all()) for part in self.parts()):
                self.terms = absolute, FLOOR * self.arithmetic / MAGNITUDE**factors
                return

    def rows_of(self, rows, part):
        return rows[part.start : part.start + len(part.o)].double()

    def varied(self, part, rows):
        return part.with_results(self.rows_of(rows, part))

    def wrong(self, part):
        """The expected elements, their errors, the allowed errors, and the elements that are wrong."""
        expected, error, bound, wrong = self.judged(part)
        for rows in self.variants:
            wrong = wrong & ~self.judged(self.varied(part, rows))[3]
        return expected, error, bound, wrong

    def place(self, size):
        return (size * self.eps).add_(self.quantum)

    def part(self, start, stop, step=1):
        o, c, r, js = self.runs
        at = slice(start, stop, step)
        return Part(self, start, o[at], c[at], None if r is None else r[at], [j[at] for j in js])

    def parts(self):
        if self.kept is not None:
            return self.kept
        return (self.part(start, start + self.step) for start in range(0, len(self.runs[0]), self.step))

    def measure(self):
        """The scales, and the original's error relative to them. All values stay on the device."""
        squares = counts = noises = 0
        for part in self.parts():
            squares = squares + part.size.square().sum()
            counts = counts + part.is_finite.sum()
            if part.noise is not None:
                noises = noises + part.noise.square().sum()
        counts = counts.clamp(min=1)
        noise = (noises / counts) ** 0.5 * self.share
        self.floor = ((squares / counts).sqrt() * (LOWEST_ROW if self.by_row else 1.0)).clamp(min=1e-300)
        self.floor = torch.maximum(self.floor, torch.as_tensor(noise, dtype=torch.float64, device=self.floor.device))
        self.usual = self.usual_noise()
        zero = torch.zeros_like(self.floor)
        worst = moved = zero
        believed = torch.ones_like(zero, dtype=torch.bool)
        is_finer = torch.zeros_like(believed)
        for part in self.parts():
            scale = part.element_scale(self)
            if part.noise is not None:
                moved = torch.maximum(moved, (part.noise / scale).max())
            if part.r is not None:
                worst = torch.maximum(worst, (part.own_error(self) / scale).max())
                believed = believed & ~(part.is_finite & ~part.r.isfinite()).any()
                is_finer = is_finer | (part.r != part.r.to(self.runs[0].dtype).double()).any()
        self.believed = believed & (worst <= (moved * self.share * CREDIBLE_NOISE).clamp(min=CREDIBLE))
        if self.runs[2] is None:
            self.believed = torch.zeros_like(believed)
        # A kernel that calculates in 32 bits whatever its inputs are has the same error at any precision of its inputs.
        self.row_floor = torch.where(self.believed & is_finer, FLOOR, BLIND_FLOOR) * self.arithmetic
        likely = torch.maximum(worst, moved * self.share) * FACTOR
        few = 1 + FEW / self.count
        self.allowed = torch.where(self.believed, likely, moved * FALLBACK) * few
        if self.level is not None and self.runs[2] is None and not self.runs[3]:
            self.allowed = torch.maximum(self.allowed, torch.as_tensor(self.level, device=self.allowed.device))
        return self.floor, self.usual, self.believed, self.row_floor, self.allowed

    def usual_noise(self):
        """By how much of its row's scale an element of usual conditioning moves."""
        if not self.runs[3]:
            return None
        step = -(-self.count // SAMPLE)
        sample = self.kept[0] if self.kept and step == 1 else self.part(0, None, step)
        return (sample.noise * self.share / sample.row_scale(self)).median().clamp(min=self.arithmetic)

    def bounded(self, part):
        """The expected elements, their errors, and the allowed errors."""
        expected = part.o
        if part.r is not None:
            expected = torch.where(self.believed & part.r.isfinite(), part.r, part.o)
        bound = self.place(expected.abs()).mul_(self.ulps).add_(part.element_scale(self) * self.allowed)
        bound = bound.add_(part.row_scale(self) * self.row_floor)
        if part.noise is not None:
            bound = bound.add_(part.noise * (NOISE * self.share))
        if self.terms is not None:
            rows, share = self.terms
            bound = bound.add_(self.rows_of(rows, part).abs_().nan_to_num_(0.0, 0.0) * share)
        return expected, (part.c - expected).abs_(), bound

    def is_fine(self, part):
        """Whether all elements are finite and within their bounds, which is quick to check and almost always so."""
        _, error, bound = self.bounded(part)
        return ((error <= bound) & (bound < torch.inf)).all()

    def bounds(self):
        """The expected elements and the allowed errors, to be kept for the next candidate, if there is room for
        them. For elements that are not finite the allowed error is negative, so that none is within it."""
        if not room_for(self.runs[0], 12):
            return None
        kept = [], []
        for part in self.parts():
            expected, _, bound = self.bounded(part)
            kept[0].append(expected)
            # Rounded down.
            kept[1].append(torch.where(bound < torch.inf, bound * (1 - 2.0**-22), -1.0).float())
        return kept

    def judged(self, part):
        expected, error, bound = self.bounded(part)
        fine = (error <= bound) & expected.isfinite()
        # The greatest numbers of the type may be rounded to infinity.
        fine |= part.c.isinf() & (part.c.sign() == expected.sign()) & (expected.abs() + bound >= self.greatest)
        fine |= part.c == part.o
        is_nan = part.o.isnan()
        fine |= (is_nan & part.c.isnan()) if self.holds_nan else is_nan
        if part.unstable is not None:
            fine |= part.unstable
        return expected, error, bound, ~fine

    def is_fine_everywhere(self):
        """Whether all elements are within their bounds, as a truth value on the device. Elements outside may still
        be right."""
        what = "bounds", self.level, self.rounding, self.terms is None
        bounds = self.leaf.learn(what, self.given, self.bounds)
        if bounds is None:
            return torch.stack([self.is_fine(part) for part in self.parts()]).all()
        parts = zip(self.runs[1].split(self.step), *bounds)
        return torch.stack([((c.double() - expected).abs_() <= bound).all() for c, expected, bound in parts]).all()

    def spills(self, runs):
        """Whether all wrong elements are a spill, and the original spills as well. Each of `runs` has the original's
        and the candidate's results with usual and with large finite numbers in some of their inputs. Where these
        results do not differ, the numbers have no influence, so a non-finite element comes from a product with zero,
        and is right without it. An element that is infinite by an influence may be NaN by a spill beside it."""
        runs = [[real(x).reshape(self.runs[0].shape) for x in four] for four in runs]
        own = more = 0
        for part in self.parts():
            at = slice(part.start, part.start + len(part.o))
            wrong = self.judged(part)[3]
            spilled = part.o.isinf() & part.c.isnan()
            own_spills = torch.zeros_like(wrong)
            for four in runs:
                usual, great, c_usual, c_great = (run[at].double() for run in four)
                stays = (c_usual == c_great) & c_great.isfinite()
                spilled |= part.is_finite & ~part.c.isfinite() & stays & ~self.judged(part.with_results(c_usual))[3]
                own_spills |= ~part.is_finite & (usual == great) & great.isfinite()
            if (wrong & ~spilled).any():
                return False
            more += int(wrong.sum())
            own += int(own_spills.sum())
        return 0 < more <= SPILLED * own

    def difference(self):
        count = int(torch.stack([self.wrong(part)[3].sum() for part in self.parts()]).sum())
        spread = SPILLED * self.free if self.holds_nan else 0
        return self.describe(count) if count > spread else None

    def describe(self, count):
        worst, strange, what = -1.0, 0, ""
        for part in self.parts():
            expected, error, bound, wrong = self.wrong(part)
            excess = torch.where(wrong, (error / bound).nan_to_num(torch.inf), -1.0)
            here, at = excess.reshape(-1).max(0)
            strange += int((wrong & ~(part.c.isfinite() & part.is_finite)).sum())
            if float(here) > worst:
                worst, at = float(here), int(at)
                got, want, error, allowed = (float(x.reshape(-1)[at]) for x in (part.c, expected, error, bound))
                place = index_of(self.leaf, part.start * (self.runs[0].shape[1] if self.by_row else 1) + at)
                what = f"at {place}: {got:.9g} instead of {want:.9g}"
                if error < torch.inf:
                    what += f", an error of {error:.3g} where {allowed:.3g} is allowed"
        note = f", {strange} of them are not finite on one side" if strange else ""
        text = f"{count} of {self.count} elements differ by more than rounding{note}; the worst {what}"
        return difference(self.leaf.path, text, True, count, worst if worst < 1e300 else None)
