//! Tests of results inside arrays, deques, sets and objects, which are compared completely or left undecided.

use crate::judging::{Project, SCALE, text};
use crate::{Expected, RETURN, ROOT, TOP};

const CLASSES: &str = "
import collections
import enum
import random
import types
import numpy

class Object:
    def __init__(self, **all):
        self.__dict__.update(all)
    def __repr__(self):
        return 'Object()'

class Slots:
    __slots__ = ('wide', 'next')
    def __init__(self, wide):
        self.wide, self.next = wide, self
    def __repr__(self):
        return 'Slots()'

class Wrapped(torch.Tensor):
    def __repr__(self):
        return 'Wrapped()'

class Share(float):
    def __repr__(self):
        return 'Share()'

class Mode(enum.Enum):
    FAST = 1
    SLOW = 2

";
/// An array with more elements than `repr` shows.
const RETURNED: &str = "
    wide = out.repeat(1, 30)
    array = numpy.copy(wide.numpy())
    queue = collections.deque([wide + 0, 1], maxlen=3)
    spaces = types.SimpleNamespace(wide=wide + 0, deep=[{'mode': Mode.FAST}])
    custom = Object(wide=wide + 0, count=1)
    slots = Slots(wide + 0)
    tagged = (wide + 0).as_subclass(Wrapped)
    share = Share(0.5)
    names = {'b', 'a', ('c', 1)}
    held = {Mode.FAST: array, 'queue': queue, 'spaces': spaces, 'custom': custom, 'slots': slots, 'tagged': tagged}
    return held, share, names, numpy.float32(2.5)
";
const CUSTOM: &str = "custom = Object(wide=wide + 0, count=1)";
const SLOTS: &str = "slots = Slots(wide + 0)";
const TAGGED: &str = "tagged = (wide + 0).as_subclass(Wrapped)";
/// Memory that is filled only when it is read.
const LATE: &str = "late = torch.empty_like(wide)\n    fill = lambda: late.copy_(wide)\n    ";

/// A name, the reason, words of the evidence, and the edit, with `LATE` for [`LATE`].
#[rustfmt::skip]
const CANDIDATES: &[Expected] = &[
    ("same", "accepted", "", (SLOTS, SLOTS)),
    ("other_order", "accepted", "", (CUSTOM, "custom = Object(count=1, wide=wide + 0)")),
    ("other_names", "accepted", "", ("names = {'b', 'a', ('c', 1)}", "names = {('c', 1), 'a', 'b'}")),
    ("array", "output", "result[0][Mode.FAST = 1]: 1 of 1800 elements", (CUSTOM, "array[2, 180] += 1\n    custom = Object(wide=wide + 0, count=1)")),
    ("array_type", "form", "float64", ("numpy.copy(wide.numpy())", "wide.numpy().astype(numpy.float64)")),
    ("array_lies", "form", "Fake", ("array = numpy.copy(wide.numpy())", "class Fake(numpy.ndarray):\n        shape = property(lambda self: (5, 360))\n    array = numpy.zeros(7, numpy.float32).view(Fake)")),
    ("queue", "output", "result[0]['queue'][0]: 1 of 1800", (CUSTOM, "queue[0][2, 180] += 1\n    custom = Object(wide=wide + 0, count=1)")),
    ("queue_length", "form", "deque of at most 4 instead of a deque of at most 3", ("maxlen=3", "maxlen=4")),
    ("spaces", "output", "result[0]['spaces'].wide: 1 of 1800", (CUSTOM, "spaces.wide[2, 180] += 1\n    custom = Object(wide=wide + 0, count=1)")),
    ("deep", "output", "Mode.SLOW = 2 instead of Mode.FAST = 1", ("'mode': Mode.FAST", "'mode': Mode.SLOW")),
    ("object", "output", "result[0]['custom'].wide: 1 of 1800", (SLOTS, "custom.wide[2, 180] += 1\n    slots = Slots(wide + 0)")),
    ("object_more", "form", "Object(count, more, wide) instead of a Object(count, wide)", (CUSTOM, "custom = Object(wide=wide + 0, count=1, more=2)")),
    ("slots", "output", "result[0]['slots'].wide: 1 of 1800", ("share = Share(0.5)", "slots.wide[2, 180] += 1\n    share = Share(0.5)")),
    ("tagged", "output", "result[0]['tagged'] as tensor: 1 of 1800", ("share = Share(0.5)", "with torch._C.DisableTorchFunctionSubclass():\n        tagged[2, 180] += 1\n    share = Share(0.5)")),
    ("share", "output", "result[1] as float: 0.25 instead of 0.5", ("Share(0.5)", "Share(0.25)")),
    ("names", "output", "result[2]", ("names = {'b', 'a', ('c', 1)}", "names = {'b', 'a', ('c', 2)}")),
    ("number", "output", "result[3]", ("numpy.float32(2.5)", "numpy.float32(3.5)")),
    ("number_type", "output", "a float instead of a numpy.float32", ("numpy.float32(2.5)", "2.5")),
    // An object that computes on access is of another class, or was not accessed when it was read.
    ("lazy_get", "form", "with its own __getattribute__", (CUSTOM, "LATEclass Lazy(Object):\n        def __getattribute__(self, name):\n            fill()\n            return super().__getattribute__(name)\n    Lazy.__qualname__ = 'Object'\n    custom = Lazy(wide=late, count=1)")),
    ("lazy_dict", "form", "with its own __dict__", (CUSTOM, "LATEclass Lazy(Object):\n        __dict__ = property(lambda self: fill() or {'wide': wide, 'count': 1})\n    Lazy.__qualname__ = 'Object'\n    custom = Lazy.__new__(Lazy)\n    object.__setattr__(custom, 'wide', late)\n    object.__setattr__(custom, 'count', 1)")),
    ("lazy_field", "form", "with its own wide", (CUSTOM, "LATEclass Lazy(Object):\n        wide = property(lambda self: fill())\n    Lazy.__qualname__ = 'Object'\n    custom = Lazy(wide=wide, count=1)")),
    ("lazy_name", "form", "not plain strings", (CUSTOM, "LATEclass Name(str):\n        __hash__ = str.__hash__\n        def __eq__(self, other):\n            fill()\n            return str.__eq__(self, other)\n    custom = Object(**{'count': 1})\n    custom.__dict__[Name('wide')] = late")),
    ("lazy_slot", "form", "no Python code can see", (SLOTS, "class Hidden(Slots):\n        __slots__ = ('secret',)\n    Hidden.__qualname__ = 'Slots'\n    del Hidden.secret\n    slots = Hidden(wide + 0)")),
    ("lazy_wrap", "form", "with its own __torch_function__", (TAGGED, "LATEclass Lazy(Wrapped):\n        @classmethod\n        def __torch_function__(cls, *args):\n            fill()\n            return super().__torch_function__(*args)\n    Lazy.__qualname__ = 'Wrapped'\n    tagged = late.as_subclass(Lazy)")),
    ("lazy_equal", "unwritten", "result[0]['custom'].wide", (CUSTOM, "LATEclass Lazy(Object):\n        __eq__ = lambda self, other: fill()\n        __reduce__ = __array__ = __repr__ = lambda self, *all: fill()\n    Lazy.__qualname__ = 'Object'\n    custom = Lazy(wide=late, count=1)")),
];

#[test]
fn objects_in_results_are_compared_completely() {
    let original = SCALE.replace(TOP, &format!("{CLASSES}{TOP}")).replace(RETURN, RETURNED);
    crate::as_expected(&original, LATE, CANDIDATES);
}

#[test]
fn results_with_unreadable_contents_are_undecided() {
    let unread = [
        ("random.Random(1)", "`Random`: it holds what no Python code can see"),
        ("numpy.array([Object()])", "`ndarray`: torch has no type for its elements"),
        ("iter([out])", "`list_iterator`: it is of a class that is not written in Python"),
        ("{'deep': {Object(): 1}}", "result[1]['deep'] is a `dict`: not all of its keys can be read"),
    ];
    for (value, words) in unread {
        let returned = format!("    value = {value}\n    return out, value\n");
        let original = SCALE.replace(TOP, &format!("{CLASSES}{TOP}")).replace(RETURN, &returned);
        let project = Project::new(&original, &[("same", ("BLOCK = 4\n", "BLOCK = 4\n"))]);
        let ran = project.verify(&["candidates/same.py", "--quick", "--json"]);
        let said = text(&ran.stdout);
        assert!(ran.status.code() == Some(2) && said.contains("undecided") && said.contains(words), "{value}: {said}");
    }
}

const BOTH: &str = "
import dataclasses

@dataclasses.dataclass
class Both:
    one: torch.Tensor
    other: torch.Tensor

def root(x, calls):
    calls += 1
    both = Both(Root.apply(x), Root.apply(x + 1))
    return {'second': both, 'first': Root.apply(x + 2)}
";

#[test]
fn gradients_go_through_what_objects_hold() {
    let (before, _) = ROOT.split_once("\ndef root(").unwrap();
    let candidates = [
        ("accepted", ("{'second': both, 'first': Root.apply(x + 2)}", "{'first': Root.apply(x + 2), 'second': both}")),
        (
            "gradient",
            (
                "Both(Root.apply(x), Root.apply(x + 1))",
                "Both(Root.apply(x), Root.apply(x + 1).detach().requires_grad_())",
            ),
        ),
    ];
    let (reports, _) = Project::new(&format!("{before}{BOTH}"), &candidates).batch(&["--quick"]);
    let said: Vec<(String, &str)> = reports.iter().map(|report| (report.name(), report.said())).collect();
    let expected = [("accepted", "accepted"), ("gradient", "gradient")];
    let evidence: Vec<_> = reports.iter().map(|report| &report.0["evidence"]).collect();
    assert_eq!(said, expected.map(|(name, said)| (name.to_owned(), said)), "{evidence:?}");
}
