use model::api::TritonTarget;
use model::kernel::Module;
use model::syntax::Source;

use crate::{RuleContext, Selection, check};

/// The findings when the kernel `k(x, n, B: tl.constexpr)` has this body, in a file with this rest.
fn flagged(imports: &str, decorator: &str, body: &str, rest: &str) -> Vec<String> {
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!("{imports}\n{decorator}\n@triton.jit\ndef k(x, n, B: tl.constexpr):\n{body}\n{rest}\n");
    let source = Source::parse(text);
    assert!(!source.has_error(), "{}", source.text());
    let (module, selection) = (Module::build(&source), Selection { select: vec!["L004".into()], ignore: vec![] });
    let context = RuleContext::new(&source, &module, TritonTarget::newest());
    check(&context, &selection).iter().map(|found| source.slice(found.span).to_owned()).collect()
}

const TRITON: &str = "import triton\nimport triton.language as tl";
const LAUNCH: &str = "k[(1,)](x, n, B=64)";

#[test]
fn bounds_that_a_launch_may_make_constant_are_not_flagged() {
    let bound = |rest: &str| flagged(TRITON, "", "tl.arange(0, n)", rest);
    for rest in [LAUNCH, "k[(1,)](x, y.numel(), B=64)", "k[(1,)](x, B=64, n=2)"] {
        assert_eq!(bound(rest), ["n"], "{rest}");
    }
    for rest in [
        "",
        "k[(1,)](x, 1, 64)",
        "k[(1,)](x, tl.constexpr(64), 64)",
        "SIZE = tl.constexpr(64)\nk[(1,)](x, SIZE, 64)",
        "k[(1,)](*args)",
        "k[(1,)](x, B=64, **more)",
        "k[(1,)](x, n, 64)\nk[(1,)](x, 1, 64)",
        "k[(1,)](x, n, 64)\n@triton.jit\ndef other(x):\n    k(x, 64, 64)",
    ] {
        assert_eq!(bound(rest), [""; 0], "{rest}");
    }
    let decorated = |decorator: &str| flagged(TRITON, decorator, "tl.arange(0, n)", LAUNCH);
    assert_eq!(decorated("@mine()"), [""; 0]);
    assert_eq!(decorated("@triton.autotune([triton.Config({'B': 64})], key=[])"), ["n"]);
    assert_eq!(decorated("@triton.autotune([triton.Config({'n': 1})], key=[])"), [""; 0]);
}

#[test]
fn assigned_names_are_run_time_values_unless_annotated() {
    for body in ["M = B", "M = B\nM = 2 * B", "M = B\nM += 1", "if n:\n    M = B\nelse:\n    M = 2"] {
        assert_eq!(flagged(TRITON, "", &format!("{body}\ntl.arange(0, M)"), ""), ["M"], "{body}");
    }
    assert_eq!(flagged(TRITON, "", "M: tl.constexpr = tl.program_id(0)\ntl.arange(0, M)", ""), ["M"]);
    for body in [
        "M: tl.constexpr = B * 2",
        "M: tl.constexpr\nM = B * 2",
        "M = B\nM: tl.constexpr = B",
        "for M in tl.static_range(1, 3):\n    pass",
        "M = B\nfor M in tl.static_range(1, 3):\n    pass",
        "with y:\n    M = B",
        "if (M := B) > 0:\n    pass",
    ] {
        assert_eq!(flagged(TRITON, "", &format!("{body}\ntl.arange(0, M)"), ""), [""; 0], "{body}");
    }
    assert_eq!(flagged(TRITON, "", "if n:\n    M = B\ntl.arange(0, M)", "M = tl.constexpr(64)"), [""; 0]);
    assert_eq!(flagged(TRITON, "", "tl.arange(0, tl.cdiv(B, 2))", LAUNCH), [""; 0], "3.9 accepts it");
    assert_eq!(flagged("from mine import tl\nimport triton", "", "M = B\ntl.arange(0, M)", LAUNCH), [""; 0]);
}

#[test]
fn sizes_are_judged_where_they_are_certain() {
    let sized = |body: &str, rest: &str| flagged(TRITON, "", body, rest).len();
    let launches = "k[(1,)](x, n, B=64)\nk[(1,)](x, n, B=48)";
    assert_eq!(sized("tl.arange(0, B)", launches), 1);
    assert_eq!(sized("if B > 50:\n    tl.arange(0, B)", launches), 0, "the other launch may not get there");
    assert_eq!(sized("if B > 50:\n    tl.arange(0, B)", "k[(1,)](x, n, B=48)"), 1);
    assert_eq!(sized("tl.arange(0, B * 2 - 32)", "k[(1,)](x, n, B=48)"), 0);
    assert_eq!(sized("tl.arange(0, B)", "def run(x, n, size=48):\n    k[(1,)](x, n, B=size)"), 0);
    assert_eq!(sized("tl.arange(B, 0)", ""), 1);
    assert_eq!(sized("tl.arange(0, 100)", ""), 1);
    assert_eq!(sized("tl.arange(0, 100)", "import torch_npu"), 0, "Triton-Ascend takes any size");
    assert_eq!(sized("tl.arange(0, 1 << 20)\ntl.arange(0, 0x40)\ntl.arange(False, True)", ""), 0);
    assert_eq!(sized("tl.arange(0, 1 << 21)", ""), 1);
    assert_eq!(sized("tl.arange(0, SIZE)", "SIZE = tl.constexpr(48)\nif x:\n    SIZE = tl.constexpr(64)"), 0);
}
