//! Tests of kernels that are launched by a comment alone, with and without torch.

use crate::SAME;
use crate::judging::{Edit, Project, SCALE, text};

/// A kernel that only a comment launches.
const KERNEL: &str = "
import triton
import triton.language as tl

# warpsmith: workload entry=scale_kernel[cdiv(n,BLOCK)] x=f16[60] index=i32[60]<60 out=f32[60] n=60 BLOCK=16

@triton.jit
def scale_kernel(x, index, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x_value = tl.load(x + at + tl.load(index + at, mask=mask, other=0) * 0, mask=mask)
    y = x_value.to(tl.float32) * 2.0
    tl.store(out + at, y, mask=mask)
";
const OUT: &str = "    tl.store(out + at, y, mask=mask)\n";

#[rustfmt::skip]
const KERNELS: &[(&str, &str, &str, Edit<'_>)] = &[
    ("same", "accepted", "", ("y = x_value", "y = x_value")),
    ("other_block", "accepted", "", ("n=60 BLOCK=16", "n=60 BLOCK=32 num_warps=2")),
    ("other_grid", "accepted", "", ("scale_kernel[cdiv(n,BLOCK)]", "scale_kernel[n//BLOCK+1]")),
    ("small_grid", "output", "argument 2", ("scale_kernel[cdiv(n,BLOCK)]", "scale_kernel[n//BLOCK]")),
    ("fixed_grid", "sizes", "argument 2", ("scale_kernel[cdiv(n,BLOCK)]", "scale_kernel[4]")),
    ("twice", "accepted", "", (".to(tl.float32) * 2.0", ".to(tl.float32)\n    y = y + y")),
    ("beyond", "overrun", "16 bytes behind the end", (OUT, "    tl.store(out + at, y, mask=at < n + 4)\n")),
    ("keeps", "stale", "new contents", (OUT, "    tl.store(out + at, y, mask=mask)\n\nclass Kept:\n    def __init__(self, kernel):\n        self.kernel, self.key = kernel, None\n    def __getitem__(self, grid):\n        def call(**given):\n            if given['x'].data_ptr() == self.key:\n                given['out'].copy_(self.out)\n                return\n            self.kernel[grid](**given)\n            self.key, self.out = given['x'].data_ptr(), given['out'].clone()\n        return call\nscale_kernel = Kept(scale_kernel)\n")),
    ("layout", "layout", "", (OUT, "    tl.store(out + at, tl.where(x.to(tl.uint64) % 4 == 0, y, 0.0), mask=mask)\n")),
    ("mutates", "output", "argument 0", (OUT, "    tl.store(out + at, y, mask=mask)\n    tl.store(x + at, 1.0, mask=mask)\n")),
    ("lies", "tampering", "Tensor.data_ptr", (OUT, "    tl.store(out + at, y, mask=mask)\n\nclass Lies:\n    def __init__(self, kernel):\n        self.kernel = kernel\n    def __getitem__(self, grid):\n        def call(**given):\n            self.kernel[grid](**given)\n            kind = next(kind for kind in type(given['x']).__mro__ if kind.__name__ == 'Tensor')\n            plain = kind.data_ptr\n            kind.data_ptr = lambda self: plain(self)\n        return call\nscale_kernel = Lies(scale_kernel)\n")),
    ("patched", "tampering", "triton", ("\n@triton.jit", "\ntriton.jit, plain = (lambda f: plain(f)), triton.jit\n@triton.jit")),
    ("rounded", "output", "of 60 elements differ", (".to(tl.float32) * 2.0", ".to(tl.float32) * 2.002")),
    ("sizes", "overrun", "sizes 60 → 59", ("mask = at < n\n", "mask = at < 60\n")),
    ("unwritten", "output", "1 of 60", (OUT, "    tl.store(out + at, y, mask=mask & (at != 7))\n")),
    ("values", "values", "a few NaN", (OUT, "    tl.store(out + at, tl.where(y == y, y, 0.0), mask=mask)\n")),
    ("wrong", "output", "the recorded call: argument 2", (OUT, "    tl.store(out + at, -y, mask=mask)\n")),
];

/// Runs with and without torch.
#[test]
fn a_kernel_is_judged_by_itself() {
    let edits: Vec<(&str, Edit<'_>)> = KERNELS.iter().map(|(name, _, _, edit)| (*name, *edit)).collect();
    for has_torch in [false, true] {
        let project = Project::new(KERNEL, &edits);
        if !has_torch {
            std::fs::create_dir(project.path("first")).unwrap();
            project.write("first/torch.py", "raise ImportError('none here')\n");
        }
        let (reports, code) = project.batch(&["--jobs", "3"]);
        assert_eq!((reports.len(), code), (edits.len(), Some(1)));
        let mut others = Vec::new();
        for report in &reports {
            let name = report.name();
            let (_, expected, words, _) = KERNELS.iter().find(|(it, ..)| *it == name).unwrap();
            others.extend(crate::otherwise(report, expected, words));
            let notes = report.0["notes"].to_string();
            let is_own = name == "other_block";
            assert_eq!(notes.contains("comment describes: scale_kernel(") && notes.contains("BLOCK=32"), is_own);
            let was_called = report.checks().iter().any(|(name, passed)| name == "the recorded call" && *passed);
            assert_eq!(notes.contains("there is no torch"), was_called && !has_torch, "{name}: {notes}");
        }
        assert!(others.is_empty(), "torch: {has_torch}\n{}", others.join("\n"));
        let ran = project.verify(&["candidates/same.py"]);
        let shown = text(&ran.stdout);
        assert_eq!(shown.contains("ok kernels: "), !has_torch, "{shown}");
        assert_eq!(shown.contains("ok everything is written: "), has_torch, "{shown}");
        assert!(shown.contains("ok other calls: ") && !shown.contains("results stay"), "{shown}");
    }
}

/// Without torch, all other features report that they need it.
#[test]
fn features_that_need_torch_report_its_absence() {
    let project = Project::new(SCALE, &[("same", SAME)]);
    std::fs::create_dir(project.path("first")).unwrap();
    project.write("first/torch.py", "raise ImportError('none here')\n");
    let without = SCALE.replace("import torch\n", "");
    for (original, words) in [
        (without.as_str(), "takes torch (ImportError: none here)"),
        (SCALE, "ImportError: none here"),
        (&KERNEL.replace("n=60", "n=60 dtype=torch.float16"), "an element type takes torch"),
        (&KERNEL.replace("out=f32[60]", "out=c64[60]"), "tensors of `complex64` take torch"),
    ] {
        project.write("original.py", original);
        project.write("candidates/same.py", original);
        let ran = project.verify(&["candidates/same.py"]);
        let shown = text(&[ran.stdout, ran.stderr].concat());
        assert_eq!(ran.status.code(), Some(2), "{shown}");
        assert!(shown.contains(words), "{words}: {shown}");
    }
}
