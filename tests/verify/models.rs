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
