//! Tests of results in containers: the containers are compared, too, and values that are computed only on access are
//! too late.

use crate::judging::SCALE;
use crate::{Expected, RETURN, TOP};

const CLASSES: &str = "
import collections
from dataclasses import dataclass, field
from typing import NamedTuple

class Pair(NamedTuple):
    out: torch.Tensor
    count: int

@dataclass
class Named:
    out: torch.Tensor
    count: int = field(default=2, init=False)

@dataclass(slots=True)
class Slots:
    out: torch.Tensor

";
const RETURNED: &str = "
    pair = Pair(out, 1)
    both = (out, 1)
    named = Named(out)
    slots = Slots(out)
    most = torch.max(out, 1)
    size = out.shape
    ordered = collections.OrderedDict(a=out, b=2)
    held = {'pair': pair, 'both': both, 'named': named, 'slots': slots, 'most': most, 'size': size, 'ordered': ordered, 'list': [out]}
    return held
";
const NAMED: &str = "named = Named(out)";
const BOTH: &str = "both = (out, 1)";
const HELD: &str = "return held";
/// Memory that is filled only when it is read.
const LATE: &str = "late = torch.empty_like(out)\n    fill = lambda: late.copy_(out)\n    ";

/// A name, the reason, words of the evidence, and the edit, with `LATE` for [`LATE`].
#[rustfmt::skip]
const CANDIDATES: &[Expected] = &[
    // Callers of a tuple or a dictionary accept these, in any order.
    ("alike", "accepted", "", (BOTH, "both = Pair(out, 1)")),
    ("other_order", "accepted", "", (HELD, "return collections.OrderedDict(reversed(held.items()))")),
    ("list", "form", "result['both']: a list instead of a tuple", (BOTH, "both = [out, 1]")),
    ("bare", "form", "result['pair']: a tuple instead of a named tuple Pair(out, count)", ("pair = Pair(out, 1)", "pair = (out, 1)")),
    ("bare_most", "form", "result['most']: a tuple instead of a max (a tuple)", ("torch.max(out, 1)", "tuple(torch.max(out, 1))")),
    ("dict", "form", "result['ordered']: a dict instead of a OrderedDict (a dict)", ("collections.OrderedDict(a=out, b=2)", "dict(a=out, b=2)")),
    ("default", "form", "defaultdict", (HELD, "return collections.defaultdict(list, held)")),
    ("fields", "form", "Pair(out, number)", ("out: torch.Tensor\n    count: int\n\n@", "out: torch.Tensor\n    number: int\n\n@")),
    ("other_class", "form", "result['named']: a data class Other(out, count)", (NAMED, "named = dataclass(type('Other', (), {'__annotations__': Named.__annotations__, 'count': 2}))(out, 2)")),
    ("lazy_tuple", "form", "with its own __iter__", (BOTH, "LATEclass Lazy(tuple):\n        def __iter__(self):\n            fill()\n            return super().__iter__()\n    both = Lazy((late, 1))")),
    ("lazy_field", "form", "with its own out", (NAMED, "LATEclass Lazy(Named):\n        out = property(lambda self: fill(), lambda self, value: None)\n    Lazy.__qualname__ = 'Named'\n    named = Lazy(out)")),
    ("lazy_class", "form", "with its own __torch_function__ instead of a torch.Tensor", (BOTH, "LATEclass Lazy(torch.Tensor):\n        def __torch_function__(self, *args):\n            fill()\n            return super().__torch_function__(*args)\n    Lazy.__module__, Lazy.__qualname__ = 'torch', 'Tensor'\n    both = (late.as_subclass(Lazy), 1)")),
    // These look the same, but are not written yet when they are read.
    ("lazy_name", "unwritten", "result['both'][0]", (BOTH, "LATElate.detach = lambda: torch.Tensor.detach(fill())\n    both = (late, 1)")),
    ("lazy_key", "form", "not all of its keys can be read", (HELD, "LATEclass Key(str):\n        def __repr__(self):\n            fill()\n            return super().__repr__()\n    held.pop('both')\n    held[Key('both')] = (late, 1)\n    return held")),
    ("lazy_number", "form", "a int (a int) instead of a int", (BOTH, "class Lazy(int): pass\n    Lazy.__module__, Lazy.__qualname__ = 'builtins', 'int'\n    both = (out, Lazy(1))")),
    ("lazy_type", "unwritten", "result['pair'][0]", ("pair = Pair(out, 1)", "LATEclass Meta(type):\n        def __getattribute__(self, name):\n            fill()\n            return super().__getattribute__(name)\n    class Lazy(tuple, metaclass=Meta):\n        _fields = ('out', 'count')\n        __slots__ = ()\n    Lazy.__qualname__ = 'Pair'\n    pair = Lazy((late, 1))")),
];

/// The same, where each result has memory of its own.
#[rustfmt::skip]
const APART: &[Expected] = &[
    ("copies", "accepted", "", ("out, out.clone(), out[:1]", "out.clone(), out, out[:1].clone()")),
    ("shared", "form", "result[1]: has the memory of result[0], which the original's has not", ("out, out.clone()", "out, out")),
];

#[test]
fn results_do_not_begin_to_share_their_memory() {
    crate::as_expected(&SCALE.replace(RETURN, "    return out, out.clone(), out[:1]\n"), "", APART);
}

#[test]
fn result_containers_are_compared_without_running_their_code() {
    let original = SCALE.replace(TOP, &format!("{CLASSES}{TOP}")).replace(RETURN, RETURNED);
    crate::as_expected(&original, LATE, CANDIDATES);
}
