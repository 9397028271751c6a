//! Tests of KernelBench files, whose models are computed by torch alone.

use crate::judging::{Project, text};

const MODEL: &str = "
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 12)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.rand(4, 16)]

def get_init_inputs():
    return []
";

const NEW: &str = "
import torch
import triton
import triton.language as tl

@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.maximum(x, 0.0), mask=at < n)

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 12)

    def forward(self, x):
        h = self.linear(x)
        out = torch.empty_like(h)
        relu_kernel[(1,)](h, out, h.numel(), BLOCK=64)
        return out
";

/// Parameters require gradients, but the results of kernels have none.
#[test]
fn a_model_with_weights_is_compared_without_gradients() {
    let project = Project::new(MODEL, &[]);
    project.write("candidates/right.py", NEW);
    project.write("candidates/wrong.py", &NEW.replace("tl.maximum(x, 0.0)", "tl.abs(x)"));
    for (name, said) in [("right", "accepted"), ("wrong", "refused (output)")] {
        let ran = project.verify(&[&format!("candidates/{name}.py"), "--quick"]);
        assert!(text(&ran.stdout).contains(said), "{}{}", text(&ran.stdout), text(&ran.stderr));
    }
}

const FOLDED: [(&str, &str); 2] = [
    (
        "        self.linear = torch.nn.Linear(16, 12)\n",
        "        self.linear = torch.nn.Linear(16, 12)\n        with torch.no_grad():\n            self.linear.weight *= 0.5\n            self.linear.bias *= 0.5\n",
    ),
    ("tl.maximum(x, 0.0), mask", "tl.maximum(x, 0.0) * 2.0, mask"),
];

/// The candidate folds a factor into its weights when it is constructed: right as KernelBench compares, and no
/// replacement for a model whose weights were trained.
#[test]
fn weights_of_one_seed_are_left_to_the_constructors() {
    let project = Project::new(MODEL, &[]);
    let folded = FOLDED.iter().fold(NEW.to_owned(), |text, (old, new)| text.replace(old, new));
    project.write("candidates/folded.py", &folded);
    project.write("candidates/forgets.py", &folded.replace(FOLDED[1].1, FOLDED[1].0));
    for (name, weights, said) in [
        ("folded", "seed", "accepted"),
        ("folded", "copied", "refused (output)"),
        ("forgets", "seed", "refused (output)"),
    ] {
        let ran = project.verify(&[&format!("candidates/{name}.py"), "--quick", "--weights", weights]);
        let out = text(&ran.stdout);
        assert!(out.contains(said), "{name} {weights}: {out}{}", text(&ran.stderr));
        let whose = if weights == "seed" { "constructor makes of one seed" } else { "copied into the candidate" };
        assert!(out.contains(whose), "{out}");
    }
}

/// What replaces operators of torch may be other operators of torch.
#[test]
fn other_operators_of_torch_are_noted_where_the_original_launches_no_kernel() {
    let project = Project::new(MODEL, &[]);
    let by_torch = NEW.replace("        return out\n", "        return torch.clamp(out, min=0.0)\n");
    project.write("candidates/clamps.py", &by_torch);
    let ran = project.verify(&["candidates/clamps.py", "--quick"]);
    let out = text(&ran.stdout);
    assert!(out.contains("accepted") && out.contains("aten::clamp"), "{out}{}", text(&ran.stderr));
}
