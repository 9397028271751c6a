//! Tests of arguments that are objects: those that can be recreated faithfully, and those that cannot.

use serde_json::Value;

use super::replay::replayed;
use super::{HEAD, Project, entries, text};

const OBJECTS: &str = "
import abc, argparse, collections, dataclasses, enum, pathlib, typing
import numpy as np

class Flag(enum.Flag):
    A = 1
    B = 2
    C = 32

class Count(enum.IntEnum):
    FEW = 50

class Base(abc.ABC, typing.Generic[typing.TypeVar('T')]):
    def __init__(self, n):
        self.n = n
        self.__hidden = [n]

    @property
    def hidden(self):
        return self.__hidden

class Derived(Base):
    def __init__(self, n, flag):
        super().__init__(n)
        self.flag = flag

class Slotted:
    __slots__ = ('scale', '__own', 'unset')

    def __init__(self, scale):
        self.scale, self.__own = scale, 5

    @property
    def own(self):
        return self.__own

class Both(Slotted):
    def __init__(self, scale):
        super().__init__(scale)
        self.more = 'more'

@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    scale: float

def of_objects(x, size, numbers, steps, path, flags, derived, slotted, both, frozen, ordered, few, args, top):
    assert type(size) is torch.Size and size.numel() == x.numel(), size
    assert [type(number) for number in numbers] == [np.int64, np.float32, np.bool_, np.complex64]
    assert numbers[1] == np.float32(0.1) and np.isnan(numbers[3].real) and numbers[2]
    assert steps == range(4, 100, 3)
    assert path == pathlib.Path('/tmp') / 'weights' and isinstance(path, pathlib.Path)
    assert flags == (Flag.A | Flag.C, Flag.B, Count.FEW) and flags[0] is Flag.A | Flag.C and type(flags[2]) is Count
    assert type(derived) is Derived and (derived.n, derived.hidden, derived.flag) == (7, [7], Flag.B)
    assert type(slotted) is Slotted and (slotted.scale, slotted.own) == (2.5, 5) and not hasattr(slotted, 'unset')
    assert (both.scale, both.own, both.more, vars(both)) == (1.5, 5, 'more', {'more': 'more'})
    assert frozen == Frozen(3.0) and type(ordered) is collections.OrderedDict and list(ordered) == ['b', 'a']
    assert few == frozenset({1, 2}) and type(few) is frozenset and vars(args) == {'lr': 0.5}
    assert type(top) is torch.return_types.max and top.indices.tolist() == [3]
    out = torch.empty_like(x)
    double_kernel[(1,)](x, out, x.numel(), BLOCK=64)
    return out

if __name__ == '__main__':
    for stop in (100, 100):
        of_objects(
            torch.ones(50), torch.ones(50).shape, (np.int64(50), np.float32(0.1), np.bool_(True), np.complex64(float('nan'))),
            range(4, stop, 3), pathlib.Path('/tmp/weights'), (Flag.A | Flag.C, Flag.B, Count.FEW), Derived(7, Flag.B),
            Slotted(2.5), Both(1.5), Frozen(3.0), collections.OrderedDict(b=1, a=2), frozenset({1, 2}),
            argparse.Namespace(lr=0.5), torch.tensor([[1, 2, 3, 9]]).max(-1),
        )
";

#[test]
fn objects_are_made_again_as_they_were() {
    let project = Project::new(&[("main.py", &format!("{HEAD}{OBJECTS}"))]);
    let program = "
for call in calls:
    call = json.loads(call)
    for inputs in ({}, {'seed': 7}, {'resize': [[50, 32]]}):
        result, _, overrun = replay(json.dumps(call), inputs)
        assert overrun is None, overrun
        print(call['entry'], call['count'], tuple(result.shape))
";
    let expected = "of_objects 2 (50,)\nof_objects 2 (50,)\nof_objects 2 (32,)\n";
    assert_eq!(replayed(&project, program), expected);
}

/// Two ranges, two numbers of numpy and two objects with slots are not the same call.
#[test]
fn calls_with_different_object_contents_are_recorded_separately() {
    let main = "
import numpy as np

class Slotted:
    __slots__ = ('held',)

    def __init__(self, held):
        self.held = held

def double(x, what):
    double_kernel[(1,)](x, x, 50, BLOCK=64)

x = torch.ones(50)
for what in ({3}, {4}, range(3), range(4), np.float32(3), np.float32(4), Slotted(torch.ones(3)), Slotted(torch.ones(4))):
    double(x, what)
    double(x, what)
";
    let (_project, workloads) = Project::recorded(main);
    assert_eq!(entries(&workloads), ["double"; 8]);
    assert!(workloads.iter().all(|workload| workload["count"] == 2), "{workloads:?}");
}

#[test]
fn objects_with_hidden_state_are_named_as_obstacles() {
    let main = "
import collections

class Listed(list):
    pass

class Pair(tuple):
    pass

class Known:
    made = {}

    def __new__(cls, n):
        return cls.made.setdefault(n, super().__new__(cls))

class Copied:
    def __reduce__(self):
        return (Copied, ())

class Local:
    pass

Renamed = collections.namedtuple('Other', 'n')
Local.__qualname__ = 'Elsewhere'

def double(x, what):
    double_kernel[(1,)](x, x, 50, BLOCK=64)

for what in (Listed([1]), Pair((1,)), Known(1), Copied(), Local(), Renamed(1), collections.defaultdict(list)):
    double(torch.ones(50), what)
";
    let (project, workloads) = Project::recorded(main);
    assert_eq!(workloads.iter().filter(|workload| workload["entry"] == "double").count(), 7);
    let listed: Value = serde_json::from_slice(&project.run(&["workloads", "list", "--json"]).stdout).unwrap();
    let rows = listed.as_array().unwrap().iter().filter(|row| row["entry"] == "double");
    let mut obstacles: Vec<String> = rows.map(|row| row["obstacle"].as_str().unwrap_or("none").to_owned()).collect();
    obstacles.sort();
    let named = ["Copied", "Elsewhere", "Known", "Listed", "Other", "Pair"].map(str::to_owned);
    let named = named.into_iter().chain(["collections.defaultdict".to_owned()]);
    let expected: Vec<String> = named.map(|name| format!("an argument of type `{name}`")).collect();
    assert_eq!(obstacles, expected, "{}", text(&project.run(&["workloads", "list"]).stdout));
}
