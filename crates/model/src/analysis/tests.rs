//! Tests of the interpreter of undefined lanes and of the values that launches pass.

use super::interpret::{UndefinedReduction, undefined_reductions};
use super::launches::{certainly_launched, promises_full_tiles, settings};
use crate::kernel::Module;
use crate::syntax::Source;

/// The code before each body: a tile of rows `r`, one of columns `c`, their masks, and one load of each kind.
const HEAD: &str = "
import triton
import triton.language as tl

@triton.jit
def k(x, y, m, n, flag, BM: tl.constexpr, BN: tl.constexpr, FLAG: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.arange(0, BN)
    rm = r < m
    cm = c < n
    v = tl.load(x + c, mask=cm)
    t = tl.load(x + r[:, None] * n + c[None, :], mask=rm[:, None] & cm[None, :])
    rows = tl.load(x + r[:, None] * n + c[None, :], mask=rm[:, None])
    filled = tl.load(x + c, mask=cm, other=0.0)
    low = tl.load(x + c, mask=cm, other=-float('inf'))
    full = tl.load(x + c)
";

/// The reductions found in [`HEAD`] followed by these lines, as source text, with a `+` where a zero is neutral.
fn found(lines: &str) -> Vec<String> {
    let body: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    let source = Source::parse(format!("{HEAD}{body}\nk[(1,)](x, y, m, n, f, BM=16, BN=64, FLAG=g)\n"));
    assert!(!source.has_error(), "{lines}");
    let module = Module::build(&source);
    let show = |found: &UndefinedReduction<'_>| {
        format!("{}{}", source.slice(found.reduction.span), if found.zero_is_neutral { " +" } else { "" })
    };
    undefined_reductions(&module, &module.kernels[0]).iter().map(show).collect()
}

#[track_caller]
fn silent(lines: &str) {
    assert_eq!(found(&format!("{lines}\nuse(s)")), [""; 0], "{lines}");
}

#[track_caller]
fn finds(lines: &str, expected: &str) {
    assert_eq!(found(&format!("{lines}\nuse(s)")), [expected], "{lines}");
}

#[test]
fn reductions_along_undefined_lanes_are_found() {
    finds("s = tl.sum(v)", "tl.sum(v) +");
    finds("s = tl.sum(v, 0)", "tl.sum(v, 0) +");
    finds("s = tl.sum(v, AXIS)", "tl.sum(v, AXIS) +");
    finds("s = v.sum()", "v.sum() +");
    finds("s = tl.max(v, axis=0)", "tl.max(v, axis=0)");
    finds("s = tl.argmin(v, axis=0)", "tl.argmin(v, axis=0)");
    finds("s = tl.reduce(v, 0, combine)", "tl.reduce(v, 0, combine)");
    finds("s = helper(1, tl.sum(v))", "tl.sum(v) +");
    for axis in ["0", "1", "-1", "-2", "None"] {
        finds(&format!("s = tl.sum(t, axis={axis})"), &format!("tl.sum(t, axis={axis}) +"));
    }
    silent("s = tl.sum(t, axis=AXIS)");
    silent("s = tl.sum(t, axis=2)");
    silent("s = tl.sum(rows, axis=1)");
    silent("s = tl.sum(rows, axis=-1)");
    finds("s = tl.sum(rows, axis=0)", "tl.sum(rows, axis=0) +");
    finds("s = tl.sum(rows)", "tl.sum(rows) +");
    finds("s = tl.sum(tl.sum(rows, axis=1), axis=0)", "tl.sum(tl.sum(rows, axis=1), axis=0) +");
    finds("s = tl.sum(tl.max(rows, axis=1), axis=0)", "tl.sum(tl.max(rows, axis=1), axis=0)");
    finds("s = tl.sum(tl.sum(rows, 1, keep_dims=True), 0)", "tl.sum(tl.sum(rows, 1, keep_dims=True), 0) +");
    silent("s = tl.sum(tl.sum(rows, 1, keep_dims=True), 1)");
    silent("s = tl.cumsum(v, 0)");
    silent("s = tl.sum(filled) + tl.max(low) + tl.sum(full)");
}

#[test]
fn shape_operations_move_undefined_lanes() {
    finds("s = tl.sum(v[None, :], axis=1)", "tl.sum(v[None, :], axis=1) +");
    silent("s = tl.sum(v[None, :], axis=0)");
    silent("s = tl.sum(tl.expand_dims(v, 1), axis=1)");
    finds("s = tl.sum(tl.expand_dims(v, -1), axis=0)", "tl.sum(tl.expand_dims(v, -1), axis=0) +");
    finds("s = tl.sum(tl.trans(rows), axis=1)", "tl.sum(tl.trans(rows), axis=1) +");
    silent("s = tl.sum(rows.T, axis=0)");
    silent("s = tl.sum(tl.reshape(t, (BM * BN,)), axis=0)");
    finds("s = tl.sum(t + v[None, :], axis=0)", "tl.sum(t + v[None, :], axis=0)");
    finds("s = tl.sum(tl.broadcast_to(v[None, :], (BM, BN)), 1)", "tl.sum(tl.broadcast_to(v[None, :], (BM, BN)), 1) +");
}

#[test]
fn arithmetic_keeps_undefined_lanes_and_whether_zero_fill_suffices() {
    for (value, neutral) in [
        ("v.to(tl.float32)", true),
        ("tl.cast(v, tl.float32)", true),
        ("v * 2", true),
        ("v * v", true),
        ("v * n", true),
        ("v / n", true),
        ("-v", true),
        ("tl.abs(v)", true),
        ("tl.sqrt(v * v)", true),
        ("tl.zeros((BN,), tl.float32) + v", true),
        ("v + tl.load(x + c + 1, mask=cm)", true),
        ("v + 1", false),
        ("1 / v", false),
        ("v - tl.sum(filled)", false),
        ("v + c", false),
        ("v + filled", false),
        ("tl.exp(v)", false),
        ("v > 0", false),
        ("tl.maximum(v, 0.0)", false),
        ("v if FLAG else v * 2", true),
        ("tl.where(flag > 0, v, v + 1)", false),
    ] {
        let reduction = format!("tl.sum({value})");
        let found = found(&format!("s = {reduction}\nuse(s)"));
        assert!(!found.is_empty(), "{value}");
        let expected = format!("{reduction}{}", if neutral { " +" } else { "" });
        assert!(found.iter().all(|found| *found == expected), "{found:?} for {value}");
    }
    finds("s = tl.max(tl.abs(v))", "tl.max(tl.abs(v)) +");
    finds("s = tl.max(v * v)", "tl.max(v * v) +");
    finds("s = tl.max(-tl.abs(v))", "tl.max(-tl.abs(v))");
}

#[test]
fn masks_and_unknown_functions_may_undo_undefined_lanes() {
    for value in [
        "tl.where(cm, v, 0.0)",
        "v * cm",
        "v * cm.to(tl.float32)",
        "v * filled",
        "v * full",
        "v + low",
        "v + tl.where(cm, 0.0, -float('inf'))",
        "tl.minimum(v, low)",
        "helper(v)",
        "v if FLAG else filled",
        "tl.where(v > 0, v, 0.0)",
        "v.foo()",
        "tl.sort(v)",
    ] {
        silent(&format!("s = tl.sum({value})"));
    }
    silent("v = tl.where(cm, v, 0.0)\ns = tl.sum(v)");
    silent("v *= cm\ns = tl.sum(v)");
}

#[test]
fn masks_that_do_not_certainly_vary_cause_no_finding() {
    for mask in [
        "flag > 0",
        "tl.program_id(0) < m",
        "c < BN",
        "c >= 0",
        "full > 0",
        "helper(c)",
        "(c < n) | (flag > 0)",
        "c % 2 == 0",
        "None",
        "True",
    ] {
        silent(&format!("s = tl.sum(tl.load(x + c, mask={mask}))"));
    }
    for mask in ["c + 4 < n", "n > c", "(c < n) & (full > 0)", "cm and flag > 0", "~(c < n)", "c * 2 != n"] {
        let reduction = format!("tl.sum(tl.load(x + c, mask={mask}))");
        finds(&format!("s = {reduction}"), &format!("{reduction} +"));
    }
    finds("s = tl.sum(tl.load(x + c, cm, None))", "tl.sum(tl.load(x + c, cm, None)) +");
    silent("s = tl.sum(tl.load(x + c, cm, 0))");
    silent("s = tl.sum(tl.load(unknown + c, mask=cm))");
    silent("s = tl.sum(tl.load(x + c, **options))");
}

#[test]
fn loops_and_branches_are_followed() {
    finds(
        "a = tl.zeros((BN,), tl.float32)\nfor i in range(n):\n    a += tl.load(x + c, mask=cm)\ns = tl.sum(a)",
        "tl.sum(a) +",
    );
    finds("a = filled\nfor i in range(n):\n    a = tl.load(x + c, mask=cm)\ns = tl.sum(a)", "tl.sum(a) +");
    finds("a = filled\nfor i in range(n):\n    s = tl.sum(a)\n    use(s)\n    a = v\ns = 0", "tl.sum(a) +");
    silent("a = v\nfor i in range(n):\n    a = filled\ns = tl.sum(a)");
    silent("if FLAG:\n    a = v\nelse:\n    a = filled\ns = tl.sum(a)");
    finds("if FLAG:\n    a = v\nelse:\n    a = v * 2\ns = tl.sum(a)", "tl.sum(a) +");
    finds("if FLAG:\n    s = tl.sum(v)\nelse:\n    s = 0", "tl.sum(v) +");
    silent("if False:\n    s = tl.sum(v)\nelse:\n    s = 0");
    silent("a = v\nif FLAG:\n    a = filled\ns = tl.sum(a)");
    finds("a = filled\nif FLAG:\n    a = v\nelse:\n    return\ns = tl.sum(a)", "tl.sum(a) +");
    silent("a = v\nif FLAG:\n    a = v\nelif flag > 1:\n    a = v\nelif flag > 2:\n    a = filled\ns = tl.sum(a)");
    silent("a, b = v, filled\ns = tl.sum(b)");
    finds("a, b = v, filled\ns = tl.sum(a)", "tl.sum(a) +");
    silent("a, b = helper(v)\ns = tl.sum(a)");
    silent("return\ns = tl.sum(v)");
}

#[test]
fn unread_running_totals_cause_no_finding() {
    let carried = "p = 0.0\nfor i in range(n):\n    o = i * BN + c\n    w = tl.load(x + o, mask=o < n)\n    tl.store(y + o, p + tl.cumsum(w, 0), mask=o < n)\n    p += tl.sum(w)\ns = 0";
    silent(carried);
    finds(&carried.replace("s = 0", "s = p"), "tl.sum(w) +");
    finds(&carried.replace("\ns = 0", "\n    use(p)\ns = 0"), "tl.sum(w) +");
    silent("p = tl.sum(v)\ns = 0");
}

#[test]
fn helpers_that_are_never_launched_are_not_checked() {
    let source = Source::parse(
        "
import triton
import triton.language as tl

@triton.jit
def helper(x, n, N: tl.constexpr):
    c = tl.arange(0, N)
    return tl.sum(tl.load(x + c, mask=c < n))

@triton.jit
def k(x, n, N: tl.constexpr):
    tl.store(x, helper(x, n, N))

k[(1,)](x, n, 64)
",
    );
    let module = Module::build(&source);
    assert!(!certainly_launched(&module, &module.kernels[0]) && certainly_launched(&module, &module.kernels[1]));
    assert_eq!(undefined_reductions(&module, &module.kernels[0]), []);
}

#[test]
fn assertions_of_the_host_about_sizes_are_respected() {
    let file = |host: &str, pass: &str| {
        let text = format!(
            "
import triton
import triton.language as tl

@triton.jit
def k(x, n, N: tl.constexpr, D: tl.constexpr):
    c = tl.arange(0, N)
    tl.store(x, tl.sum(tl.load(x + c, mask=c < n)))
    tl.store(x, tl.sum(tl.load(x + c, mask=c < D)))

def run(x, n, block):
{host}
    wrap(k)[(1,)](x, n, block, 16)
    k[(1,)](x, n, {pass})
"
        );
        let module = Module::build(&Source::parse(text));
        let found = undefined_reductions(&module, &module.kernels[0]).len();
        (found, promises_full_tiles(&module, &module.kernels[0]))
    };
    assert_eq!(file("    pass", "block, 16"), (2, false));
    assert_eq!(file("    pass", "block, block"), (1, false), "the tile is as long as the row");
    assert_eq!(file("    assert n % block == 0, 'whole tiles'", "block, 16"), (2, true));
    assert_eq!(file("    if n % 16 != 0:\n        raise ValueError", "block, 16"), (2, true));
    assert_eq!(file("    assert n % 8 == 0", "block, 16"), (2, false));
    assert_eq!(file("    print(n % block)", "block, 16"), (2, false));
}

#[test]
fn deeply_nested_loops_are_analysed_in_time() {
    let mut lines = String::new();
    for depth in 0..40 {
        lines.push_str(&format!("{}for i{depth} in range(n):\n", "    ".repeat(depth)));
    }
    lines.push_str(&format!("{}s = tl.sum(v)\n", "    ".repeat(40)));
    finds(&lines, "tl.sum(v) +");
    let chain: String = (0..4000).map(|at| format!("elif flag == {at}:\n    s = 0\n")).collect();
    silent(&format!("if FLAG:\n    s = 1\n{chain}"));
    let loops = |count: usize| -> String {
        (0..count).map(|at| format!("n{at} = 0\nfor i in range(n):\n    n{at} += 1\n")).collect()
    };
    finds(&format!("{}s = tl.sum(v)", loops(100)), "tl.sum(v) +");
    silent(&format!("{}s = tl.sum(v)", loops(1200)));
}

#[test]
fn constexpr_values_come_from_launches_and_configurations() {
    let source = Source::parse(
        "
import triton
import triton.language as tl

SIZE = 32

@triton.autotune([triton.Config({'A': 1}), triton.Config({'A': 2})], key=[])
@triton.jit
def k(x, n, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr = 7, D: tl.constexpr = 8):
    pass

def run(x, size):
    block = 64
    k[(1,)](x, 3, B=block, D=SIZE)
    k[(1,)](x, size, B=size, D=later)
",
    );
    let module = Module::build(&source);
    let values: Vec<Vec<Option<i128>>> = settings(&module, &module.kernels[0])
        .iter()
        .map(|setting| ["n", "A", "B", "C", "D"].map(|name| setting.value(name).map(|(value, _)| value)).to_vec())
        .collect();
    assert_eq!(
        values,
        [
            [Some(3), Some(1), Some(64), Some(7), Some(32)],
            [Some(3), Some(2), Some(64), Some(7), Some(32)],
            [None, Some(1), None, Some(7), None],
            [None, Some(2), None, Some(7), None],
        ]
    );
}
