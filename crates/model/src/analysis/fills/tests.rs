//! Tests of padding after arithmetic, observed at the reductions that it reaches.

use super::super::interpret::lanes_that_count;
use super::Content;
use crate::kernel::Module;
use crate::syntax::Source;

const HEAD: &str = "
import triton
import triton.language as tl

@triton.jit
def k(x, y, m, n, mean, FLAG: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.arange(0, BN)
    rm = r < m
    cm = c < n
    v = tl.load(x + c, mask=cm, other=0.0)
    w = tl.load(y + c, mask=cm, other=0.0)
    one = tl.load(y + c, mask=cm, other=1.0)
    low = tl.load(x + c, mask=cm, other=-float('inf'))
    large = tl.load(x + c, mask=cm, other=-1e9)
    t = tl.load(x + r[:, None] * n + c[None, :], mask=rm[:, None] & cm[None, :], other=0)
    rows = tl.load(x + r[:, None] * n + c[None, :], mask=rm[:, None], other=0)
    full = tl.load(x + c)
    open = tl.load(x + c, mask=cm)
";

/// The reductions that padding reaches in [`HEAD`] followed by these lines, and the content of the padding there.
fn found(lines: &str) -> Vec<String> {
    let body: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    let source = Source::parse(format!("{HEAD}{body}    use(s)\n\nk[(1,)](x, y, m, n, mean, FLAG=f, BM=16, BN=64)\n"));
    assert!(!source.has_error(), "{lines}");
    let module = Module::build(&source);
    let found = lanes_that_count(&module, &module.kernels[0]).padded;
    let held = |content: Content| match content {
        Content::Number(number) => format!("{number:.2}"),
        Content::Other { nonnegative } => if nonnegative { ">= 0" } else { "?" }.to_owned(),
    };
    found.iter().map(|found| format!("{}: {}", source.slice(found.reduction.span), held(found.fill.content))).collect()
}

#[track_caller]
fn silent(value: &str) {
    assert_eq!(found(&format!("s = tl.sum({value})")), [""; 0], "{value}");
}

#[track_caller]
fn counts(value: &str, held: &str) {
    assert_eq!(found(&format!("s = tl.sum({value})")), [format!("tl.sum({value}): {held}")]);
}

#[test]
fn zero_stays_neutral_in_sums() {
    for value in [
        "v",
        "v.to(tl.float32)",
        "v * v",
        "v * mean",
        "v * full",
        "v / n",
        "-v",
        "v + w",
        "v - w",
        "(v - mean) * w",
        "w * tl.exp(v)",
        "tl.abs(v)",
        "tl.maximum(v, 0.0)",
        "tl.sqrt(v)",
        "v + 0.0",
        "tl.zeros((BN,), tl.float32) + v",
        "tl.exp(low)",
        "tl.exp(low - mean)",
        "tl.exp(low * 2.0 - tl.max(low))",
        "tl.exp(large - mean)",
        "tl.log(one)",
        "one - 1",
        "(v > 0)",
        "(v != 0).to(tl.int32)",
        "tl.exp(low) / one",
    ] {
        silent(value);
    }
}

#[test]
fn arithmetic_can_turn_zero_padding_into_other_values() {
    counts("v - mean", "?");
    counts("mean - v", "?");
    counts("v + 1", "1.00");
    counts("1 - v", "1.00");
    counts("tl.exp(v)", "1.00");
    counts("tl.exp(v - mean)", ">= 0");
    counts("tl.sigmoid(v)", "0.50");
    counts("(v - mean) * (v - mean)", "?");
    counts("(v - mean) / n", "?");
    counts("one", "1.00");
    counts("(v == 0).to(tl.int32)", "1.00");
    counts("low", "-inf");
    counts("(v - mean) * one", "?");
    counts("tl.cos(w)", "1.00");
    assert_eq!(found("d = v - mean\ns = tl.sum(d * d)"), ["tl.sum(d * d): >= 0"]);
    assert_eq!(found("s = tl.max(v - mean)"), ["tl.max(v - mean): ?"]);
}

#[test]
fn masks_and_unknown_functions_may_undo_padding() {
    for value in [
        "tl.where(cm, v - mean, 0.0)",
        "(v - mean) * cm",
        "(v - mean) * cm.to(tl.float32)",
        "(v - mean) * full",
        "(v - mean) + full",
        "helper(v - mean)",
        "tl.where(v > 0, v - mean, 0.0)",
        "tl.maximum(v - mean, 0.0)",
        "(v - mean).to(tl.int32)",
        "(v - mean) - (w - mean)",
        "(v - mean) * tl.load(y + c, mask=c < m, other=0.0)",
        "(v - mean) if FLAG else v",
        "open - mean",
        "v + open",
        "tl.floor(v - mean)",
    ] {
        silent(value);
    }
}

#[test]
fn only_padding_along_the_reduced_axis_is_reported() {
    assert_eq!(found("s = tl.sum(t - mean, axis=1)"), ["tl.sum(t - mean, axis=1): ?"]);
    assert_eq!(found("s = tl.sum(t - mean, axis=0)"), ["tl.sum(t - mean, axis=0): ?"]);
    assert_eq!(found("s = tl.sum(rows - mean, axis=1)"), [""; 0]);
    assert_eq!(found("s = tl.sum(rows - mean, axis=0)"), ["tl.sum(rows - mean, axis=0): ?"]);
    assert_eq!(found("s = tl.sum((rows - mean).T, axis=0)"), [""; 0]);
    assert_eq!(found("s = tl.sum((v - mean)[None, :], axis=1)"), ["tl.sum((v - mean)[None, :], axis=1): ?"]);
    assert_eq!(
        found("s = tl.sum(tl.exp(tl.max(rows, axis=1)), axis=0)"),
        ["tl.sum(tl.exp(tl.max(rows, axis=1)), axis=0): 1.00"]
    );
}

#[test]
fn accumulators_carry_padding() {
    let total = |value: &str| {
        found(&format!(
            "a = tl.zeros((BN,), tl.float32)\nfor i in range(n):\n    o = i * BN + c\n    k = o < n\n    u = tl.load(x + o, mask=k, other=0.0)\n    d = u - mean\n    a += {value}\ns = tl.sum(a)"
        ))
    };
    assert_eq!(total("u"), [""; 0]);
    assert_eq!(total("u * u"), [""; 0]);
    assert_eq!(total("d * d"), ["tl.sum(a): >= 0"]);
    assert_eq!(total("tl.exp(u)"), ["tl.sum(a): >= 0"]);
    assert_eq!(total("d"), [""; 0], "what a second round makes of it is not certain");
    assert_eq!(total("tl.where(k, d * d, 0.0)"), [""; 0]);
    assert_eq!(found("p = 0.0\nfor i in range(n):\n    p += tl.sum(v - mean)\ns = 0"), [""; 0]);
}
