//! Tests of the recorder: the ways in which programs launch kernels, and whether the recording can be replayed.
//! Everything but the device is real. Needs the interpreter that `cargo xtask test` prepares (`WARPSMITH_TEST_PYTHON`).

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

mod late_launches;
mod objects;
mod program_exit;
mod replay;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

const HEAD: &str = "
import torch
import triton
import triton.language as tl

@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + o, tl.load(x_ptr + o, mask=o < n) * 2, mask=o < n)

";

struct Project(tempfile::TempDir);

impl Project {
    /// A project with a program that begins with [`HEAD`], after it was recorded.
    fn recorded(text: &str) -> (Self, Vec<Value>) {
        let project = Self::new(&[("main.py", &format!("{HEAD}{text}"))]);
        let workloads = project.record();
        (project, workloads)
    }

    fn new(files: &[(&str, &str)]) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            std::fs::write(project.0.path().join(name), text).unwrap();
        }
        // A `.git` folder makes this folder the workspace, wherever temporary folders are.
        std::fs::create_dir(project.0.path().join(".git")).unwrap();
        project
    }

    /// The folder in place of the user's state folder.
    fn state(&self) -> PathBuf {
        self.0.path().join(".state")
    }

    fn command(&self, args: &[&str]) -> Command {
        let python = test_python();
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpsmith"));
        command
            .args(args)
            .current_dir(self.0.path())
            .env("WARPSMITH_FAKE_DEVICE", "toy")
            .env("XDG_STATE_HOME", self.state())
            .env("VIRTUAL_ENV", python.parent().and_then(Path::parent).unwrap());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn record(&self) -> Vec<Value> {
        let ran = self.run(&["record", "--", test_python().to_str().unwrap(), "main.py"]);
        assert!(ran.status.success(), "{}{}", text(&ran.stdout), text(&ran.stderr));
        self.workloads()
    }

    /// The workloads in the order of the list, by entry.
    fn workloads(&self) -> Vec<Value> {
        let shown: Value = serde_json::from_slice(&self.run(&["workloads", "show", "--json"]).stdout).unwrap();
        let mut all: Vec<Value> = shown.as_array().unwrap().iter().map(|row| row["workload"].clone()).collect();
        all.sort_by_key(|workload| (workload["entry"].to_string(), workload["gradients"].to_string()));
        all
    }
}

fn test_python() -> PathBuf {
    std::env::var_os("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`").into()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn entries(workloads: &[Value]) -> Vec<&str> {
    workloads.iter().map(|workload| workload["entry"].as_str().unwrap()).collect()
}

fn kernels(workload: &Value) -> Vec<&str> {
    workload["launches"].as_array().unwrap().iter().map(|launch| launch["kernel"].as_str().unwrap()).collect()
}

const FUNCTION: &str = "
@triton.jit
def grad_kernel(g_ptr, out_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + o, tl.load(g_ptr + o, mask=o < n) * 2, mask=o < n)

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        double_kernel[(1,)](x, out, x.numel(), BLOCK=64)
        return out

    @staticmethod
    def backward(ctx, grad):
        out = torch.empty(grad.shape)
        grad_kernel[(1,)](grad.contiguous(), out, grad.numel(), BLOCK=64)
        return out

def double(x):
    return Double.apply(x)
";

#[test]
fn an_autograd_function_is_recorded_with_and_without_gradients() {
    let main = format!(
        "{FUNCTION}
x = torch.ones(50, requires_grad=True)
with torch.no_grad():
    double(x)
for _ in range(3):
    double(x).sum().backward()
assert x.grad[0] == 6
"
    );
    let (_project, workloads) = Project::recorded(&main);
    assert_eq!(entries(&workloads), ["Double.apply", "Double.apply", "double", "double"]);
    for pair in workloads.chunks(2) {
        assert_eq!((&pair[0]["gradients"], &pair[0]["count"]), (&json!(false), &json!(1)));
        assert_eq!(kernels(&pair[0]), ["double_kernel"]);
        assert_eq!((&pair[1]["gradients"], &pair[1]["count"]), (&json!(true), &json!(3)));
        assert_eq!(kernels(&pair[1]), ["double_kernel", "grad_kernel"]);
        assert_eq!(pair[1]["args"][0]["tensor"]["requires_grad"], true);
    }
}

#[test]
fn an_autograd_call_is_recorded_once_with_its_gradients() {
    let main = format!(
        "{FUNCTION}\nx = torch.ones(50, requires_grad=True)\nfor _ in range(3):\n    Double.apply(x).sum().backward()\n"
    );
    let (_project, workloads) = Project::recorded(&main);
    assert_eq!(entries(&workloads), ["Double.apply"]);
    assert_eq!((&workloads[0]["gradients"], &workloads[0]["count"]), (&json!(true), &json!(3)));
}

#[test]
fn a_launch_that_no_function_makes_is_a_workload() {
    let main = "
x, out = torch.ones(50), torch.zeros(50)
double_kernel[(2,)](x, out_ptr=out, n=50, BLOCK=32)
double_kernel[lambda meta: (triton.cdiv(50, meta['BLOCK']),)](x, out_ptr=out, n=50, BLOCK=32)
";
    let (project, workloads) = Project::recorded(main);
    let [launch] = workloads.as_slice() else { panic!("{workloads:?}") };
    assert_eq!((launch["entry"].as_str(), launch["source"].as_str()), (Some("double_kernel"), Some("launch")));
    assert_eq!((&launch["count"], &launch["launches"][0]["grid"]), (&json!(2), &json!([2])));
    assert_eq!(launch["kwargs"][1], json!(["n", {"int": 50}]));
    assert_eq!(launch["mutated"], json!([1]));
    let shown = text(&project.run(&["workloads", "show"]).stdout);
    assert!(shown.contains("a launch on its own") && shown.contains("double_kernel[2]("), "{shown}");
}

#[test]
fn tuned_kernels_are_recorded_with_the_configuration_that_was_chosen() {
    let main = "
def bench(run, quantiles):
    run()
    return [float(len(quantiles))] * 3

@triton.autotune([triton.Config({'BLOCK': b}, num_warps=2) for b in (16, 32)], key=['n'], do_bench=bench)
@triton.heuristics({'EVEN': lambda args: args['n'] % 2 == 0})
@triton.jit
def tuned_kernel(x_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + o, o, mask=o < n)

def fill(x):
    tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)](x, x.numel())

fill(torch.zeros(64))
tuned_kernel[(4,)](torch.zeros(64), 64)
tuned_kernel[lambda meta: (triton.cdiv(50, meta['BLOCK']),)](torch.zeros(50), 50)
";
    let (_project, workloads) = Project::recorded(main);
    assert_eq!(entries(&workloads), ["fill", "tuned_kernel", "tuned_kernel"]);
    // The trials of the tuner are not recorded as launches of the program.
    assert_eq!(kernels(&workloads[0]), ["tuned_kernel"]);
    let keywords = workloads[0]["launches"][0]["keywords"].as_array().unwrap();
    for expected in [json!(["BLOCK", {"int": 16}]), json!(["num_warps", {"int": 2}]), json!(["EVEN", {"bool": true}])] {
        assert!(keywords.contains(&expected), "{expected}: {keywords:?}");
    }
    assert_eq!(workloads[0]["launches"][0]["grid"], json!([4]));
    let blocked: Vec<bool> = workloads[1..].iter().map(|workload| workload["blocked"].is_string()).collect();
    assert_eq!(blocked.iter().filter(|blocked| **blocked).count(), 1, "a grid that follows the configuration");
}

/// All kinds of arguments, and the results when the call is repeated: the program checks its arguments.
const KINDS: &str = "
import collections, dataclasses, enum, functools, typing

class Mode(enum.Enum):
    FAST = 1

@dataclasses.dataclass(frozen=True)
class Options:
    scale: float
    mode: Mode
    bias: typing.Any

class Pair(typing.NamedTuple):
    a: typing.Any
    b: int

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((8,), 3.0))
        self.inner = torch.nn.Linear(2, 2)

    def forward(self, x):
        assert self.weight[0] == 3.0 and isinstance(self.weight, torch.nn.Parameter)
        assert self.inner(torch.ones(2)).shape == (2,)
        return double(x)

class Plain:
    def __init__(self):
        self.factor = 2

    def run(self, x):
        assert self.factor == 2 and type(self).__name__ == 'Plain'
        return double(x)

    @classmethod
    def make(cls, x):
        assert cls.__name__ == 'Plain'
        return double(x)

def double(x):
    out = torch.empty_like(x)
    double_kernel[(1,)](x, out, x.numel(), BLOCK=64)
    return out

def with_options(x, options, pair, parts, act, start=None):
    assert options.scale == -float('inf') and options.mode is Mode.FAST and options.bias[1] == 5
    assert type(pair) is Pair and pair.a is x and pair.b == 3
    assert parts == [slice(1, None, 2), (None, 'text', 1j), {'k': torch.float16}, {7}]
    assert act is torch.nn.functional.relu and start in (None, tl.float16)
    double_kernel[(1,)](x, torch.empty_like(x), x.numel(), BLOCK=64)
    return act(x)

def of_tensors(*, aliased, strided, empty, scalar, index, mask, half, eighth, byte, number, expanded, parameter, sequence):
    assert aliased[0].data_ptr() == aliased[1].data_ptr() and torch.equal(aliased[0][2:], aliased[2])
    assert strided.stride() == (1, 4) and empty.shape == (0, 3) and abs(scalar.item() - 2.5) < 1e-6
    assert index.tolist() == [3, 1, 2] and mask.tolist() == [True, False]
    assert half.dtype == torch.bfloat16 and eighth.dtype == torch.float8_e4m3fn and byte.dtype == torch.int8
    assert number.dtype == torch.complex64 and expanded.stride() == (0, 1)
    assert type(parameter) is torch.nn.Parameter and parameter.requires_grad
    assert sequence[-1] == 100_000 and bool((sequence.diff() >= 0).all())
    out = torch.zeros(4)
    double_kernel[(1,)](strided, out, 4, BLOCK=4)
    return out

if __name__ == '__main__':
    x = torch.arange(50.0)
    partial = functools.partial(with_options, start=tl.float16)
    parts = [slice(1, None, 2), (None, 'text', 1j), {'k': torch.float16}, {7}]
    partial(x, Options(-float('inf'), Mode.FAST, [x, 5]), Pair(x, 3), parts, torch.nn.functional.relu)
    whole = torch.arange(6.0)
    of_tensors(
        aliased=[whole, whole.view(6), whole[2:]],
        strided=torch.ones(8, 4).T[:, :8], empty=torch.zeros(0, 3), scalar=torch.tensor(2.5),
        index=torch.tensor([3, 1, 2]), mask=torch.tensor([True, False]), half=torch.ones(100, dtype=torch.bfloat16),
        eighth=torch.ones(100).to(torch.float8_e4m3fn), byte=torch.ones(3, dtype=torch.int8),
        number=torch.ones(100, dtype=torch.complex64), expanded=torch.ones(4).expand(3, 4),
        parameter=torch.nn.Parameter(torch.ones(100)), sequence=torch.arange(100_001),
    )
    Layer()(x)
    Plain().run(x)
    Plain.make(x)
";

#[test]
fn each_kind_of_argument_is_described() {
    let (_project, workloads) = Project::recorded(KINDS);
    // `Layer.forward`, `Plain.run` and `Plain.make` launch nothing themselves; `double` launches for all of them.
    assert_eq!(entries(&workloads), ["double", "of_tensors", "with_options"]);
    assert!(workloads.iter().all(|workload| workload["blocked"].is_null()));
    assert_eq!(workloads[0]["count"], 3);
    let named = |name: &str| {
        let all = workloads[1]["kwargs"].as_array().unwrap();
        all.iter().find(|pair| pair[0] == name).unwrap()[1]["tensor"].clone()
    };
    assert_eq!(named("strided")["stride"], json!([1, 4]));
    assert_eq!(named("index")["data"], json!({"integers": [3, 1, 2]}));
    assert_eq!(named("scalar")["data"], json!({"floats": [2.5]}));
    assert_eq!(named("parameter")["is_parameter"], true);
    assert_eq!(workloads[2]["kwargs"][0][1]["global"]["path"], "float16");
    assert_eq!(workloads[2]["args"][1]["object"]["class"]["path"], "Options");
}

#[test]
fn methods_of_reproducible_objects_are_recorded() {
    let main = "
class Op:
    def __init__(self, n):
        self.n = n

    def run(self, x):
        double_kernel[(1,)](x, x, self.n, BLOCK=64)

class Held:
    def __init__(self):
        self.file = open(__file__)

    def run(self, x):
        double_kernel[(1,)](x, x, 7, BLOCK=64)

Op(50).run(torch.ones(50))
Held().run(torch.ones(50))
";
    let (project, workloads) = Project::recorded(main);
    // An object that holds a file cannot be recreated; the launch can.
    assert_eq!(entries(&workloads), ["Held.run", "Op.run", "double_kernel"]);
    assert_eq!(workloads[1]["args"][0]["object"]["state"], json!([["n", {"int": 50}]]));
    assert_eq!(workloads[2]["source"], "launch");
    let listed: Value = serde_json::from_slice(&project.run(&["workloads", "list", "--json"]).stdout).unwrap();
    let obstacle = |entry: &str| {
        let all = listed.as_array().unwrap();
        all.iter().find(|row| row["entry"] == entry).unwrap()["obstacle"].clone()
    };
    assert_eq!(obstacle("Held.run"), "an argument of type `_io.TextIOWrapper`");
    assert_eq!((obstacle("Op.run"), obstacle("double_kernel")), (Value::Null, Value::Null));
}

#[test]
fn shapes_are_counted_up_to_a_limit_and_a_step_counter_adds_none() {
    let main = "
def double(x, step):
    double_kernel[(1,)](x, x, x.numel(), BLOCK=64)

for step in range(40):
    double(torch.ones(50), step)
for size in (10, 20, 20, 30, 40):
    double(torch.ones(size), 0)
";
    let project =
        Project::new(&[("main.py", &format!("{HEAD}{main}")), ("warpsmith.toml", "workloads.max-shapes = 6\n")]);
    let workloads = project.record();
    let counts: Vec<(i64, u64)> = workloads
        .iter()
        .map(|it| (it["args"][0]["tensor"]["shape"][0].as_i64().unwrap(), it["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(counts.iter().filter(|(size, _)| *size == 50).map(|(_, count)| count).sum::<u64>(), 40);
    assert_eq!(counts.iter().filter(|(size, _)| *size == 20).count(), 1);
    assert!(counts.contains(&(20, 2)) && counts.len() == 6, "{counts:?}");
}

/// Recording draws no random numbers and does not change what the program computes.
#[test]
fn the_program_computes_the_same_under_the_recorder() {
    let main = format!(
        "{FUNCTION}
torch.manual_seed(3)
x = torch.randn(50, requires_grad=True)
double(x).sum().backward()
print(torch.rand(3).tolist(), x.grad.sum().item(), double.__name__)
"
    );
    let project = Project::new(&[("main.py", &format!("{HEAD}{main}"))]);
    let python = test_python();
    let plain =
        Command::new(&python).arg("main.py").current_dir(project.0.path()).env("TRITON_INTERPRET", "1").output();
    let recorded = project.run(&["record", "--", python.to_str().unwrap(), "main.py"]);
    let plain = text(&plain.unwrap().stdout);
    assert!(!plain.is_empty() && text(&recorded.stdout).starts_with(&plain), "{plain} {}", text(&recorded.stdout));
}

#[test]
fn workloads_are_listed_shown_and_removed() {
    let main = "
def double(x, n):
    double_kernel[(1,)](x, x, n, BLOCK=64)

def other(x):
    double(x, 50)

double(torch.ones(50), 50)
double(torch.ones(20), 20)
";
    let project = Project::new(&[("main.py", &format!("{HEAD}{main}"))]);
    let none = project.run(&["workloads", "list"]);
    assert_eq!((none.status.code(), text(&none.stdout).starts_with("nothing is recorded")), (Some(1), true));
    assert_eq!(project.record().len(), 2);
    let listed = text(&project.run(&["workloads", "list"]).stdout);
    assert!(listed.starts_with("ID  ENTRY   FILE     CALLS  AGE  LAUNCHES       SHAPES\n"), "{listed}");
    assert!(listed.contains("double  main.py  1      now  double_kernel  float32[50], 50\n"), "{listed}");
    let shown = text(&project.run(&["workloads", "show", "double"]).stdout);
    for part in ["argument   0: float32[20] (tensor 0: cpu, storage 0, 20 values)", "changes    tensor 0", "by "] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let gone = project.run(&["workloads", "rm", "nothing"]);
    assert_eq!(gone.status.code(), Some(2));
    assert!(text(&gone.stderr).contains("no recorded call `nothing`"));
    let id = listed.lines().nth(1).unwrap().split_whitespace().next().unwrap();
    assert_eq!(text(&project.run(&["workloads", "rm", id]).stdout), "removed 1 call\n");
    assert_eq!(project.workloads().len(), 1);
    assert_eq!(text(&project.run(&["workloads", "rm", "--all"]).stdout), "removed 1 call\n");
    assert!(project.workloads().is_empty());
}
