"""Comparison of two results, for floats up to the error that `floats.py` allows."""

import torch

from _warpsmith_bits import bits_of, same_bits
from _warpsmith_floats import ARITHMETIC, CHUNK, FACTOR, MOST_OPEN, SPILLED, Floats, difference, index_of
from _warpsmith_plain_values import plain_difference
from _warpsmith_poison import poisoned, real


class Leaf:
    """A value inside results: its path, its type and layout, and its elements as a contiguous tensor.

    For a tensor `meta` has `FIELDS`, then the index of the first result with the same memory. For another value it
    is `"plain"`, the type and a text; for a container `"container"`, the type and the type that it can replace; for
    a value that could not be read, which equals nothing, `"unread"`, the type and the reason."""

    __slots__ = ("path", "meta", "data", "learned")

    def __init__(self, path, meta, data=None):
        self.path = path
        self.meta = meta
        self.data = data
        # Properties that were computed once and are used for the next candidate.
        self.learned = {}

    def learn(self, what, runs, find):
        """The result of `find`, computed once for the same `runs`."""
        known = self.learned.get(what)
        if known is None or len(known[0]) != len(runs) or any(x is not y for x, y in zip(known[0], runs)):
            known = self.learned[what] = (runs, find())
        return known[1]


FIELDS = ("type", "dtype", "device", "shape", "strides", "requires_grad", "shared argument")


def compare(original, candidate, reference=None, jittered=(), holds_nan=False, exact=False, level=None, variants=(), terms=None):
    """The differences between the candidate's and the original's leaves, at most one for each leaf.

    Without runs that show the original's error, `level` has the result of `levels` from runs on other inputs.
    `variants` are results of the original with its kernels launched otherwise; where they differ from its own, any
    result is right. `terms` are its results with all inputs doubled, and with their magnitudes."""
    candidate, wrong = aligned(original, candidate)
    if wrong is not None:
        return [wrong]
    rounding = arithmetic_of(original)
    found, held = [], []
    for at, (one, other) in enumerate(zip(original, candidate)):
        wrong = shape_difference(one, other)
        if wrong is None and one.meta[0] == "plain":
            wrong = plain_difference(one, other, *runs_at(reference, jittered, at, len(original)))
        elif wrong is None and one.meta[0] != "container":
            held.append(at)
        if wrong is not None:
            found.append((at, wrong))
    same = told([same_bits(original[at].data, candidate[at].data) for at in held])
    tensors = []
    for at in (at for at, is_same in zip(held, same) if not is_same):
        known = level[at] if level is not None and len(level) == len(original) else None
        runs = runs_at(reference, jittered, at, len(original))
        _, others = runs_at(None, variants, at, len(original))
        compared = Tensors(original[at], candidate[at], *runs, rounding, holds_nan, exact, known, others)
        if terms is not None and compared.floats is not None:
            compared.floats.sum_terms(*(contents(leaf_at(one, at, len(original)), compared.o) for one in terms))
        tensors.append((at, compared))
    fine = told([compared.is_fine() for _, compared in tensors])
    for at, compared in (one for one, is_fine in zip(tensors, fine) if not is_fine):
        wrong = compared.difference()
        if wrong is not None:
            found.append((at, wrong))
    return [wrong for _, wrong in sorted(found, key=lambda one: one[0])]


def spilled(original, finite, candidate, others, reference=None, jittered=()):
    """Differences that a spill does not explain, on inputs with infinities and NaN. A spill is a non-finite element
    that the values in place of the infinities and NaN do not influence, as when these are multiplied by zero. The
    original must spill as well, into about as many elements, though not into the same ones. `finite` and `others`
    are the results of both sides with usual and with large numbers in these places, as pairs: in all tensors, and in
    some of them alone."""
    places = {leaf.path: at for at, leaf in enumerate(original)}
    by_path = {leaf.path: leaf for leaf in candidate}
    fours = [[{leaf.path: leaf for leaf in leaves} for leaves in (*one, *other)] for one, other in zip(finite, others)]
    rounding = arithmetic_of(original)

    def is_spill(wrong):
        path = wrong["path"]
        one = original[places[path]] if path in places else None
        if not wrong["is_value"] or one is None or one.data is None:
            return False
        data = [[contents(leaves.get(path), one.data) for leaves in four] for four in fours]
        if contents(by_path.get(path), one.data) is None or any(part is None for four in data for part in four):
            return False
        known = runs_at(reference, jittered, places[path], len(original))
        floats = Tensors(one, by_path[path], *known, rounding, True, False, None).floats
        return floats is not None and floats.spills(data)

    found = compare(original, candidate, reference, jittered, holds_nan=True)
    return [wrong for wrong in found if not is_spill(wrong)]


def told(questions):
    """The values of truth tensors on the device, among known ones (`True`, `False`). All are fetched with one wait,
    since each wait also waits for other processes that use the device."""
    open_ = [answer for answer in questions if not isinstance(answer, bool)]
    answers = iter(torch.stack(open_).tolist() if open_ else [])
    return [answer if isinstance(answer, bool) else next(answers) for answer in questions]


def levels(original, reference=None, jittered=()):
    """For each leaf the greatest error that an element may have, relative to its row, for results on other inputs."""
    rounding = arithmetic_of(original)
    found = []
    for at, leaf in enumerate(original):
        floats = floats_of(leaf, at, len(original), reference, jittered, rounding)
        found.append(None if floats is None else leaf.learn("level", floats.given, lambda: level_of(floats)))
    return found


def level_of(floats):
    greatest = torch.zeros_like(floats.floor)
    for part in floats.parts():
        _, _, bound, _ = floats.judged(part)
        allowed = bound - floats.place(part.size).mul_(floats.ulps)
        allowed = torch.where(part.is_finite, allowed, 0.0) / part.row_scale(floats)
        greatest = torch.maximum(greatest, allowed.max())
    return float(greatest)


def floats_of(leaf, at, count, reference, jittered, rounding):
    """The error model of a float leaf; `None` for another leaf."""
    o = leaf.data
    if o is None or o.numel() == 0 or not is_float(o.dtype):
        return None
    against, moved = runs_at(reference, jittered, at, count)
    r = contents(against, o)
    js = [data for data in (contents(leaf, o) for leaf in moved) if data is not None]
    return Floats(leaf, o, o, r, js, rounding, False)


def standing(original, reference=None, jittered=(), alike=None):
    """Whether a run can serve as a reference: whether it agrees with the run at a higher precision, and with the run
    on equal inputs with another memory layout, if there is one; whether it equals the former exactly; whether the
    former holds results that the original's type lacks; and whether all results and arguments are whole numbers."""
    rounding = arithmetic_of(original)
    credible, exact, finer, whole = True, reference is not None, False, True
    for at, leaf in enumerate(original):
        floats = floats_of(leaf, at, len(original), reference, jittered, rounding)
        if floats is None:
            continue
        r = contents(leaf_at(reference, at, len(original)), leaf.data)
        if r is not None:
            credible = credible and bool(floats.believed)
        exact = exact and r is not None and bool((real(r).double() == real(leaf.data).double()).all())
        # Arguments may hold the results.
        whole = whole and all(bool(is_whole(o).all()) for (o,) in chunks(leaf.data))
        if not leaf.path.startswith("argument"):
            finer = finer or (r is not None and any(bool(is_finer(o, r).any()) for o, r in chunks(leaf.data, r)))
    if alike is not None:
        credible = credible and len(alike) == len(original) and agree(original, alike, reference, jittered, rounding)
    return credible, exact, finer, whole


def is_finer(o, r):
    # Some 8-bit types lack this test.
    r = r.double()
    return r.isfinite() & (r != r.to(o.dtype).double())


# Sums of such numbers have fewer bits than any wide type.
LARGE = 2.0**22


def is_whole(o):
    o = o.double()
    return (o == o.round()) & (o.abs() < LARGE)


def agree(original, alike, reference, jittered, rounding):
    """Whether two results are equal, whatever their memory layout."""
    for at, (one, other) in enumerate(zip(original, alike)):
        if one.data is None or other.data is None:
            continue
        if one.data.shape != other.data.shape or one.data.dtype != other.data.dtype:
            return False
        against, moved = runs_at(reference, jittered, at, len(original))
        if tensor_difference(one, other, against, moved, rounding) is not None:
            return False
    return True


def changed(one, other):
    """The leaves that are not bitwise equal; NaN equals NaN."""
    other, wrong = aligned(one, other)
    if wrong is not None:
        return [wrong]
    wrong = [shape_difference(a, b) for a, b in zip(one, other)]
    held = [
        at for at, (a, b) in enumerate(zip(one, other))
        if wrong[at] is None and a.data is not b.data and a.data.numel()
    ]
    counts = told([sum(bitwise_wrong(x, y).sum() for x, y in chunks(one[at].data, other[at].data)) for at in held])
    for at, count in zip(held, counts):
        if count:
            what = f"{count} of {one[at].data.numel()} elements have other bits"
            wrong[at] = difference(other[at].path, what, True, count)
    for at, (a, b) in enumerate(zip(one, other)):
        if wrong[at] is None and a.meta[0] == "plain" and a.meta != b.meta:
            wrong[at] = difference(b.path, f"{b.meta[2]} instead of {a.meta[2]}", True)
    return [one for one in wrong if one is not None]


def unwritten(leaves):
    """The leaves that hold the pattern with which unwritten memory was filled."""
    found = []
    filled = [leaf for leaf in leaves if leaf.data is not None and leaf.data.numel()]
    some = told([any_poisoned(leaf.data) for leaf in filled])
    for leaf in (leaf for leaf, is_some in zip(filled, some) if is_some):
        count, first = 0, None
        for start, (part,) in numbered_chunks(leaf.data):
            where = poisoned(part)
            if where is None:
                break
            here = int(where.sum())
            if here and first is None:
                first = start + int(where.flatten().to(torch.uint8).argmax())
            count += here
        if count:
            total = leaf.data.numel() * (2 if leaf.data.is_complex() else 1)
            what = f"{count} of {total} elements were never written, the first at {index_of(leaf, first)}"
            found.append(difference(leaf.path, what, True, count))
    return found


def any_poisoned(data):
    found = [where.any() for where in (poisoned(part) for (part,) in chunks(data)) if where is not None]
    return torch.stack(found).any() if found else False


# Types and layouts.


def aligned(one, other):
    """The other leaves in the order of the first ones, by their paths, since the order of a dictionary does not
    matter; or a difference."""
    by_path = {leaf.path: leaf for leaf in other}
    paths = [leaf.path for leaf in one]
    if len(by_path) == len(other) == len(one) and all(path in by_path for path in paths):
        return [by_path[path] for path in paths], joined_difference(one, other)
    # A list in place of a tensor is a more helpful difference than the number of its values.
    for leaf in one:
        if leaf.path in by_path and "container" in (leaf.meta[0], by_path[leaf.path].meta[0]):
            wrong = shape_difference(leaf, by_path[leaf.path])
            if wrong is not None:
                return None, wrong
    if len(one) != len(other):
        counts = [sum(leaf.meta[0] != "container" for leaf in leaves) for leaves in (one, other)]
        return None, difference("result", f"{counts[1]} values instead of {counts[0]}", False)
    missing = next((leaf for leaf in one if leaf.path not in by_path), None)
    strange = next((leaf for leaf in other if leaf.path not in paths), None)
    if missing is None or strange is None:
        # Different keys have the same text.
        return other, None
    return None, difference(strange.path, f"is where the original has {missing.path}", False)


def joined_difference(one, other):
    """A difference for a result that shares memory with another result which is separate in the first leaves. Views
    of one tensor may become separate tensors, but not the other way round: writing to one would change both."""
    firsts, others = first_with_memory(one), first_with_memory(other)
    for path, first in others.items():
        if firsts.get(path, path) != firsts.get(first, first):
            return difference(path, f"has the memory of {first}, which the original's has not", False)
    return None


def first_with_memory(leaves):
    """The paths of results that share memory with an earlier result, each with the path of the first one."""
    tensors = (leaf for leaf in leaves if len(leaf.meta) > len(FIELDS))
    return {leaf.path: leaves[leaf.meta[-1]].path for leaf in tensors if leaf.meta[-1] is not None}


def kind_of(meta):
    """The kind of a leaf as text."""
    if meta[0] == "unread":
        return f"{meta[1]}, which cannot be read ({meta[2]}),"
    return meta[1] if meta[0] in ("plain", "container") else meta[0]


def layout(meta):
    """The strides as text."""
    shape, strides = meta[3], meta[4]
    return None if 0 in shape else [stride for size, stride in zip(shape, strides) if size > 1]


def shape_difference(one, other):
    if one.path != other.path:
        return difference(other.path, f"is where the original has {one.path}", False)
    a, b = one.meta, other.meta
    if not {"plain", "container", "unread"}.isdisjoint((a[0], b[0])):
        # A container may be of another type if it can replace the original's.
        if a[0] == b[0] != "unread" and (a[1] == b[1] or (a[0] == "container" and a[1] == b[2])):
            return None
        return difference(other.path, f"a {kind_of(b)} instead of a {kind_of(a)}", False)
    wrong = [
        f"{name} {y} instead of {x}"
        for name, x, y in zip(FIELDS, a, b)
        if x != y and not (name == "strides" and a[3] == b[3] and layout(a) == layout(b))
    ]
    if not wrong and (one.data is None) != (other.data is None):
        wrong = ["has contents on one side only"]
    return difference(other.path, ", ".join(wrong), False) if wrong else None


def leaf_at(leaves, at, count):
    return leaves[at] if leaves is not None and len(leaves) == count else None


def runs_at(reference, jittered, at, count):
    """A leaf in the run at a higher precision, `None` without such a run, and in the runs on moved inputs that have
    it."""
    moved = (leaf_at(leaves, at, count) for leaves in jittered or ())
    return leaf_at(reference, at, count), [leaf for leaf in moved if leaf is not None]


def arithmetic_of(leaves):
    """The rounding of the arithmetic, the share of the movement of results under moved inputs that it would cause, and
    the most terms that a sum may have.

    Inputs move by their own rounding error, but kernels calculate with 24 bits on inputs with 8 and 11 bits."""
    given = [leaf.data for leaf in leaves if leaf.data is not None and leaf.path.startswith("argument")]
    given = [data for data in given if is_float(data.dtype)]
    rounding = max((torch.finfo(data.dtype).eps for data in given), default=ARITHMETIC)
    terms = max((data.numel() for data in given), default=1)
    return min(rounding, ARITHMETIC), min(1.0, ARITHMETIC / rounding), max(terms, 1)


def is_float(dtype):
    return (dtype.is_floating_point or dtype.is_complex) and "float4" not in str(dtype) and "e8m0" not in str(dtype)


# Elements.


def chunks(*tensors):
    return (parts for _, parts in numbered_chunks(*tensors))


def numbered_chunks(*tensors):
    flats = [real(tensor).reshape(-1) for tensor in tensors]
    for start in range(0, flats[0].numel(), CHUNK):
        yield start, [flat[start : start + CHUNK] for flat in flats]


def bitwise_wrong(a, b):
    wrong = bits_of(a) != bits_of(b)
    if not is_float(a.dtype):
        return wrong
    # Some 8-bit types lack this test.
    a, b = (x.float() if x.dtype.itemsize == 1 else x for x in (a, b))
    return wrong & ~(a.isnan() & b.isnan())


def contents(leaf, like):
    if leaf is None or leaf.data is None or leaf.data.shape != like.shape or leaf.data.is_complex() != like.is_complex():
        return None
    return leaf.data


def tensor_difference(one, other, against, moved, rounding):
    """The difference between the elements of two tensors; NaN equals NaN at the same place."""
    if told([same_bits(one.data, other.data)])[0]:
        return None
    compared = Tensors(one, other, against, moved, rounding, True, False, None)
    return None if told([compared.is_fine()])[0] else compared.difference()


class Tensors:
    """A leaf of the original and one of the candidate with different bits, and the error model of the original's."""

    def __init__(self, one, other, against, moved, rounding, holds_nan, exact, level, variants=()):
        self.one, self.o, self.c, self.exact, self.rounding = one, one.data, other.data, exact, rounding
        self.r = contents(against, self.o)
        self.js = [data for data in (contents(leaf, self.o) for leaf in moved) if data is not None]
        self.variants = [data for data in (contents(leaf, self.o) for leaf in variants) if data is not None]
        self.holds_nan = holds_nan
        self.floats = None
        if is_float(self.o.dtype) and not exact:
            self.floats = Floats(one, self.o, self.c, self.r, self.js, rounding, holds_nan, level)
            self.floats.vary(self.variants)

    def is_fine(self):
        """Whether the candidate's leaf is within its bounds, as far as a quick check shows."""
        return False if self.floats is None else self.floats.is_fine_everywhere()

    def difference(self):
        if self.floats is not None:
            return self.floats.difference()
        if is_float(self.o.dtype):
            return exact_difference(self.one, self.o, self.c)
        # Inputs with fewer bits move by more than the rounding of the arithmetic.
        runs = [] if self.r is None else [self.r]
        runs += self.js if self.r is None or self.rounding[1] == 1.0 else []
        spread = SPILLED if self.holds_nan else 0
        return integer_difference(self.one, self.o, self.c, [] if self.exact else runs, self.variants, spread)


def integer_difference(leaf, o, c, runs, variants=(), spread=0):
    """Integers must be equal. Where the original rounds or selects, some of its own integers change when the inputs
    move; then a few times as many may differ in a candidate, by no more. Where they change when its kernels are
    launched otherwise, as in `variants`, a candidate's may be any; `spread` times as many may be so elsewhere."""
    runs = [run for run in runs if run.dtype == o.dtype and o.dtype in COUNTED]
    variants = [run for run in variants if run.dtype == o.dtype]
    variants = [run for run in variants if int((bits_of(run) != bits_of(o)).sum()) <= MOST_OPEN * o.numel()]
    count, greatest, first, free = 0, 0, None, 0
    flips, steps = [0] * len(runs), [0]
    for start, (a, b, *others) in numbered_chunks(o, c, *runs, *variants):
        wrong = bits_of(a) != bits_of(b)
        is_open = torch.zeros_like(wrong)
        for run in others[len(runs) :]:
            is_open |= bits_of(run) != bits_of(a)
        wrong &= ~is_open
        free += int(is_open.sum())
        for at, run in enumerate(others[: len(runs)]):
            flips[at] += int((run != a).sum())
            steps.append(int((run.long() - a.long()).abs().max()))
            wrong &= run != b
        here = int(wrong.sum())
        if here and runs:
            greatest = max(greatest, int(((b.long() - a.long()) * wrong).abs().max()))
        if here and first is None:
            first = start + int(wrong.to(torch.uint8).argmax())
        count += here
    if count <= spread * free or (count <= FACTOR * max(flips, default=0) and greatest <= max(steps)):
        return None
    return unequal(leaf, o, c, count, first)


COUNTED = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


def exact_difference(leaf, o, c):
    count, first = 0, None
    for start, (a, b) in numbered_chunks(o, c):
        a, b = a.double(), b.double()
        wrong = (a != b) & ~(a.isnan() & b.isnan())
        here = int(wrong.sum())
        if here and first is None:
            first = start + int(wrong.to(torch.uint8).argmax())
        count += here
    return unequal(leaf, o, c, count, first) if count else None


def unequal(leaf, o, c, count, first):
    o, c = (real(x).reshape(-1) for x in (o, c))
    if "float4" in str(o.dtype):
        o, c = bits_of(o), bits_of(c)
    what = f"{count} of {o.numel()} elements are not equal, as they must be; the first at {index_of(leaf, first)} is "
    return difference(leaf.path, what + f"{c[first].item()} instead of {o[first].item()}", True, count)
