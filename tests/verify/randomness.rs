//! Tests of inputs that are not arguments: random numbers and the weights of models; and of candidates that hide them.

use crate::judging::{Edit, FASTER, Project, Report, SCALE};
use crate::{RETURN, SAME};

/// Draws from torch's generator, for numbers and for a seed.
const NOISY: &str = "
import torch
import triton
import triton.language as tl

# warpsmith: workload entry=noisy x=f32[4,40]

@triton.jit
def noisy_kernel(x_ptr, u_ptr, out_ptr, n, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    u = tl.load(u_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x + u + tl.rand(seed, at), mask=at < n)

def noisy(x):
    x = x.contiguous()
    u = torch.rand(x.shape, device=x.device)
    seed = torch.randint(0, 2**31 - 1, (1,)).item()
    out = torch.empty_like(x)
    noisy_kernel[(triton.cdiv(x.numel(), 64),)](x, u, out, x.numel(), seed, BLOCK=64)
    return out
";
const DRAWS: &str =
    "    u = torch.rand(x.shape, device=x.device)\n    seed = torch.randint(0, 2**31 - 1, (1,)).item()\n";
const SUM: &str = "x + u + tl.rand(seed, at)";
const LATER: &str = "the random numbers that `torch` gives after the call";

#[test]
fn random_numbers_are_the_same_for_both() {
    let candidates: &[(&str, Edit<'_>)] = &[
        ("a_block", ("64),)](x, u, out, x.numel(), seed, BLOCK=64", "128),)](x, u, out, x.numel(), seed, BLOCK=128")),
        ("b_more", ("    return out\n", "    torch.rand(1)\n    return out\n")),
        ("c_order", (DRAWS, "    seed = torch.randint(0, 2**31 - 1, (1,)).item()\n    u = torch.rand(x.shape)\n")),
        ("d_reseeds", (DRAWS, &format!("    torch.manual_seed(0)\n{DRAWS}"))),
        ("e_constant", (SUM, "x + 1.0 + 0.0 * u")),
        ("f_scaled", (SUM, "x + 0.99 * u + tl.rand(seed, at)")),
    ];
    let (reports, _) = Project::new(NOISY, candidates).batch(&["--quick"]);
    let said: Vec<&str> = reports.iter().map(Report::said).collect();
    let evidence: Vec<_> = reports.iter().map(|report| &report.0["evidence"]).collect();
    assert_eq!(said, ["accepted", "accepted", "output", "output", "output", "output"], "{evidence:?}");
    let is_noted: Vec<bool> = reports.iter().map(|report| report.0["notes"].to_string().contains(LATER)).collect();
    assert_eq!(is_noted[..2], [false, true]);
}

/// Differences from random numbers that cannot be seeded do not widen the tolerance.
#[test]
fn an_original_with_unseeded_randomness_is_undecided() {
    let loose = NOISY.replace("x.shape, device=x.device)", "x.shape, generator=OWN)") + "OWN = torch.Generator()\n";
    let (reports, code) = Project::new(&loose, &[("other", (SUM, "x + 1.0 + 0.0 * u"))]).batch(&["--quick"]);
    let evidence = reports[0].0["evidence"].as_str().unwrap();
    assert_eq!((reports[0].said(), code), ("undecided", Some(2)), "{evidence}");
    assert!(
        evidence.contains("two calls of the original on equal inputs differ") && evidence.contains("seed"),
        "{evidence}"
    );
}

const WORK: &str = "torch.ones(5000).sin()";

#[test]
fn candidates_that_evade_the_operator_trace_are_refused() {
    let with = |what: &str| format!("    with {what}:\n        {WORK}\n    return out\n");
    let disable = "    from torch.utils._python_dispatch import _disable_current_modes\n".to_owned();
    let thread =
        |work: &str| format!("    one = threading.Thread(target=lambda: {work})\n    one.start()\n    one.join()\n");
    let refused = [
        ("a_disabled", "tampering", disable + &with("_disable_current_modes()")),
        ("b_shut_off", "tampering", with("torch._C._DisableTorchDispatch()")),
        (
            "c_excluded",
            "tampering",
            with("torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.Python))"),
        ),
        ("d_thread", "threads", thread(WORK) + RETURN),
    ];
    // Torch itself disables modes to print a tensor; a user's own mode disables only itself.
    let mode = "    from torch.utils._python_dispatch import TorchDispatchMode\n    class Mine(TorchDispatchMode):\n        \
                def __torch_dispatch__(self, func, types, args=(), kwargs=None):\n            return func(*args, **(kwargs or \
                {}))\n    with Mine():\n        out = out.clone()\n    return out\n";
    let accepted = [
        ("e_prints", "accepted", format!("    repr(out)\n{RETURN}")),
        ("f_mode", "accepted", mode.to_owned()),
        ("g_same", "accepted", RETURN.to_owned()),
    ];
    let all = || refused.iter().chain(&accepted);
    let candidates: Vec<(&str, Edit<'_>)> = all().map(|(name, _, text)| (*name, (RETURN, text.as_str()))).collect();
    let told = |original: &str, candidates: &[(&str, Edit<'_>)]| -> Vec<(String, String, String)> {
        let (reports, _) = Project::new(original, candidates).batch(&["--quick"]);
        let of = |report: &Report| (report.name(), report.said().to_owned(), report.0["evidence"].to_string());
        reports.iter().map(of).collect()
    };
    let told_of = told(SCALE, &candidates);
    let expected: Vec<(&str, &str)> = all().map(|(name, reason, _)| (*name, *reason)).collect();
    let said: Vec<(&str, &str)> = told_of.iter().map(|(name, said, _)| (&**name, &**said)).collect();
    assert_eq!(said, expected, "{told_of:?}");
    // What the original does, too, is no reason to refuse a candidate.
    let original = SCALE.replace(RETURN, &(thread("None") + RETURN));
    let told = told(&original, &[("same", SAME), ("faster", FASTER)]);
    assert!(told.iter().all(|(_, said, _)| said == "accepted"), "{told:?}");
}

/// A `KernelBench` file whose bias is initially zero.
const MODEL: &str = "
import torch
import triton
import triton.language as tl

@triton.jit
def add_kernel(x_ptr, b_ptr, out_ptr, n, d, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    b = tl.load(b_ptr + at % d, mask=at < n)
    tl.store(out_ptr + at, x + b, mask=at < n)

class Model(torch.nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(wide, narrow) * 0.1)
        self.bias = torch.nn.Parameter(torch.zeros(narrow))
        self.norm = torch.nn.BatchNorm1d(narrow).eval()
        self.again = self.bias

    def forward(self, x):
        bias = self.bias
        weight = self.weight
        h = self.norm(x @ weight).contiguous()
        out = torch.empty_like(h)
        add_kernel[(triton.cdiv(h.numel(), 64),)](h, bias, out, h.numel(), h.shape[1], BLOCK=64)
        return out

def get_inputs():
    return [torch.rand(4, 16)]

def get_init_inputs():
    return [16, 12]
";

#[test]
fn module_weights_are_varied_like_inputs() {
    const WEIGHT: &str = "        weight = self.weight\n";
    const NORM: &str = "self.norm(x @ weight)";
    const LAST: &str = "        self.again = self.bias\n";
    let kept = format!(
        "{WEIGHT}        if not hasattr(self, 'kept'):\n            self.kept = weight.detach().clone()\n        weight = self.kept\n"
    );
    let by_version = kept.replace("not hasattr(self, 'kept')", "getattr(self, 'version', None) != weight._version")
        + "        self.version = self.weight._version\n";
    let candidates: &[(&str, Edit<'_>)] = &[
        (
            "a_same",
            (
                "cdiv(h.numel(), 64),)](h, bias, out, h.numel(), h.shape[1], BLOCK=64",
                "cdiv(h.numel(), 32),)](h, bias, out, h.numel(), h.shape[1], BLOCK=32",
            ),
        ),
        ("b_new", ("class Model(", "class ModelNew(")),
        ("c_by_version", (WEIGHT, &by_version)),
        // The weights differ because the constructor creates them differently.
        (
            "d_own",
            (
                LAST,
                "        self.again = self.bias\n        self.register_buffer('turned', self.weight.detach().t().contiguous())\n",
            ),
        ),
        ("e_bias_ignored", ("        bias = self.bias\n", "        bias = torch.zeros_like(self.bias)\n")),
        ("f_mean_ignored", (NORM, "(x @ weight) * (self.norm.weight / (self.norm.running_var + 1e-5).sqrt())")),
        ("g_weight_kept", (WEIGHT, &kept)),
    ];
    let (reports, _) = Project::new(MODEL, candidates).batch(&[]);
    let said: Vec<(String, &str)> = reports.iter().map(|report| (report.name(), report.said())).collect();
    let said: Vec<&str> = said.iter().map(|(_, said)| *said).collect();
    let evidence: Vec<_> = reports.iter().map(|report| &report.0["evidence"]).collect();
    let expected = ["accepted", "accepted", "accepted", "accepted", "output", "output", "output"];
    assert_eq!(said, expected, "{evidence:?}");
    let is_own: Vec<bool> =
        reports.iter().map(|report| report.0["notes"].to_string().contains("weights differ")).collect();
    assert_eq!(is_own[..4], [false, false, false, true]);
    // The original accepts a tensor of stride 0 as well.
    let checks = reports[0].0["checks"].to_string();
    assert!(!checks.contains("stride 0"), "{checks}");
}
