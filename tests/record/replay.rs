//! Tests that recorded calls can be replayed.

use std::process::Command;

use serde_json::Value;

use super::{FUNCTION, HEAD, KINDS, Project, test_python, text};

/// The output of a Python program that has the worker as `replay` and the recorded calls as `calls`.
pub(super) fn replayed(project: &Project, program: &str) -> String {
    let cache = tempfile::tempdir().unwrap();
    let python = test_python();
    let record = Command::new(env!("CARGO_BIN_EXE_warpsmith"))
        .args(["record", "--", python.to_str().unwrap(), "main.py"])
        .current_dir(project.0.path())
        .env("WARPSMITH_FAKE_DEVICE", "toy")
        .env("XDG_CACHE_HOME", cache.path())
        .output()
        .unwrap();
    let worker = std::fs::read_dir(cache.path().join("warpsmith/worker")).unwrap().next().unwrap().unwrap().path();
    let head = format!(
        "
import json, torch
from importlib import machinery, util
loader = machinery.ExtensionFileLoader('_worker', {worker:?})
worker = util.module_from_spec(util.spec_from_loader('_worker', loader))
loader.exec_module(worker)
calls = [json.dumps(call) for call in json.load(open('calls.json'))]

def replay(call, inputs={{}}, file='main.py', **options):
    return worker.replay(call, file, json.dumps(inputs), **options)
"
    );
    std::fs::write(project.0.path().join("calls.json"), Value::Array(project.workloads()).to_string()).unwrap();
    let ran = Command::new(python)
        .args(["-c", &format!("{head}{program}")])
        .current_dir(project.0.path())
        .env("TRITON_INTERPRET", "1")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}{}", text(&record.stderr), text(&ran.stderr));
    text(&ran.stdout)
}

/// The assertions of the program also hold for recreated arguments.
#[test]
fn each_kind_of_argument_is_made_again() {
    let project = Project::new(&[("main.py", &format!("{HEAD}{KINDS}"))]);
    let program = "
for call in calls:
    for inputs in ({}, {'seed': 7}, {'jitter': 3}):
        result, tensors, overrun = replay(call, inputs)
        assert overrun is None, overrun
    print(json.loads(call)['entry'], tuple(result.shape))
";
    let expected = "double (50,)\nof_tensors (4,)\nwith_options (50,)\n";
    assert_eq!(replayed(&project, program), expected);
}

#[test]
fn inputs_are_resized_laid_out_widened_and_guarded() {
    let main = "
def double(x, out, n, shift=0):
    double_kernel[(triton.cdiv(n + shift, 64),)](x.contiguous(), out, n + shift, BLOCK=64)

double(torch.randn(10, 20).half(), torch.empty(200).half(), 200)
";
    let project = Project::new(&[("main.py", &format!("{HEAD}{main}"))]);
    let program = "
call = calls[0]
_, (x, out), overrun = replay(call, {'seed': 1})
assert overrun is None and torch.equal(out, (x * 2).flatten())
_, (same, _), _ = replay(call, {'seed': 1})
_, (other, _), _ = replay(call, {'seed': 2})
assert torch.equal(x, same) and not torch.equal(x, other)
assert 0.8 < x.float().std().item() < 1.2
for inputs, stride in (
    ({'resize': [[20, 17], [200, 170]]}, (17, 1)), ({'layout': 'transposed'}, (1, 10)), ({'layout': 'sliced'}, (36, 1)),
    ({'layout': 'gapped'}, (20, 1)), ({'layout': 'mixed'}, (1, 10)), ({'layout': 'transposed', 'dense': True}, (20, 1)),
    ({'layout': 'expanded'}, (0, 1)), ({'layout': 'shifted'}, (20, 1)), ({'widen': 'float64'}, (20, 1)),
    ({'values': 'zeros'}, (20, 1)),
):
    _, (x, out), overrun = replay(call, {'seed': 1, **inputs})
    assert overrun is None and x.stride() == stride, (inputs, x.stride())
    if inputs.get('layout') == 'gapped':
        # The kernel writes one element behind the other.
        assert out.stride() == (2,)
        out = out.as_strided(out.shape, (1,))
    assert torch.equal(out, (x * 2).flatten()), inputs
    if 'widen' in inputs:
        assert x.dtype == torch.float64 and torch.equal(x.half(), same)
    if 'layout' in inputs and inputs['layout'] == 'shifted':
        assert x.data_ptr() % 16 == 2
    if 'values' in inputs:
        assert not x.any()
wrong = json.loads(call)
wrong['kwargs'] = [['shift', {'int': 4}]]
print(replay(json.dumps(wrong))[2])
";
    assert_eq!(replayed(&project, program), "memory was written 8 bytes behind the end of tensor argument 1\n");
}

#[test]
fn replay_runs_launches_and_autograd_functions() {
    let main = format!(
        "{FUNCTION}
x = torch.randn(50, requires_grad=True)
Double.apply(x).sum().backward()
double_kernel[(1,)](torch.ones(50), torch.zeros(50), 50, BLOCK=64)
"
    );
    let project = Project::new(&[("main.py", &format!("{HEAD}{main}"))]);
    let program = "
result, (x,), _ = replay(calls[0])
result.sum().backward()
assert torch.equal(x.grad, torch.full((50,), 2.0))
_, (x, out), overrun = replay(calls[1])
assert torch.equal(out, x * 2) and overrun is None
print(len(calls))
";
    assert_eq!(replayed(&project, program), "2\n");
}

/// A candidate with another name for its model, another order of weights, and no function for inputs.
#[test]
fn models_get_the_inputs_and_the_weights_of_the_original() {
    let bench = "
import torch

class Model(torch.nn.Module):
    def __init__(self, size, bias=True):
        super().__init__()
        self.one = torch.nn.Linear(size, size, bias=bias)
        self.two = torch.nn.Linear(size, size, bias=bias)

    def forward(self, x, index):
        return self.two(self.one(x))[index]

def get_inputs():
    return [torch.rand(10, 8), torch.randperm(10)]

def get_init_inputs():
    return [8]
";
    let (head, rest) = bench.split_once("        self.one").unwrap();
    let (_, forward) = rest.split_once("    def forward").unwrap();
    let (forward, _) = forward.split_once("def get_inputs").unwrap();
    let linear = |name: &str| format!("        self.{name} = torch.nn.Linear(size, size, bias=bias)\n");
    let candidate =
        format!("{head}{}{}    def forward{forward}", linear("two"), linear("one")).replace("Model(", "ModelNew(");
    let project = Project::new(&[
        ("bench.py", bench),
        ("candidate.py", &candidate),
        ("main.py", &format!("{HEAD}{FUNCTION}double(torch.ones(9))\n")),
    ]);
    let program = "
import os
call = json.dumps(dict(source='kernel-bench', file=os.path.abspath('bench.py'), entry='Model.forward', args=[], kwargs=[],
    mutated=[], launches=[], count=1, environment=dict(python='', torch='', triton='', device='', driver='')))
for inputs in ({'seed': 3}, {'seed': 4, 'layout': 'transposed'}):
    expected, (x, index), _ = replay(call, inputs, file='bench.py')
    result, _, _ = replay(call, inputs, file='candidate.py', is_candidate=True)
    assert torch.equal(expected, result), inputs
    assert sorted(index.tolist()) == list(range(10)) and 0.0 <= x.min() and x.max() <= 1.0
print(x.stride())
";
    assert_eq!(replayed(&project, program), "(1, 10)\n");
}
