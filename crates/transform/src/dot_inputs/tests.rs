//! Tests of kernels with products, before and after the change.

use protocol::Workload;
use rules::apply_edits;

use super::*;
use crate::candidate::Candidate;

const HEAD: &str = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, y, o, n, B: tl.constexpr):\n";
const TAIL: &str = "\ndef run(x):\n    k[(1,)](x, x, x, 7, 16)\n";

/// The kind of each proposal, with the changed body.
fn turned(body: &str) -> Vec<(String, String)> {
    let text = format!("{HEAD}{body}{TAIL}");
    let candidate = Candidate::original(&text);
    let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
    let subject = Subject::new(&candidate, &text, "k", &workload).unwrap();
    let turns = DotInputs.turns(&subject, &mut Rng::new(1)).into_iter();
    let body = |turn: &Proposal| {
        let new = apply_edits(&text, &turn.edits);
        new.strip_prefix(HEAD).and_then(|new| new.strip_suffix(TAIL)).unwrap().to_owned()
    };
    turns.map(|turn| (turn.kind.clone(), body(&turn))).collect()
}

#[test]
fn casts_of_both_factors_are_left_out() {
    let body = "    r = tl.arange(0, B)
    a = tl.load(x + r[:, None] * B + r).to(tl.float32)  # rows
    b = tl.load(y + r[:, None] * B + r)
    acc = tl.dot(a, tl.trans((b + b).to(tl.float32)))
    acc += tl.dot(tl.trans(a), b.to(tl.float32))
    tl.store(o + r[:, None] * B + r, acc)
";
    let expected = body.replace(".to(tl.float32)", "");
    assert_eq!(turned(body), [("dot_inputs".to_owned(), expected)]);
}

#[test]
fn an_fp32_factor_is_rounded_to_the_type_of_the_other() {
    let body = "    r = tl.arange(0, B)
    q = tl.load(x + r[:, None] * B + r)
    s = tl.dot(q, tl.trans(q))
    p = tl.exp(s)
    v = tl.load(y + r[:, None] * B + r).to(tl.float32)
    acc = tl.dot(p, v) + tl.dot(p * 2, q.to(tl.float32))
    tl.store(o + r[:, None] * B + r, acc)
";
    let expected = body
        .replace(".to(tl.float32)", "")
        .replace("tl.dot(p, v)", "tl.dot(p.to(v.dtype), v)")
        .replace("tl.dot(p * 2, q)", "tl.dot((p * 2).to(q.dtype), q)");
    assert_eq!(turned(body), [("dot_inputs rounded".to_owned(), expected)]);
}

#[test]
fn casts_with_other_uses_or_types_are_kept() {
    for body in [
        // A name that is also read outside of products.
        "    r = tl.arange(0, B)
    a = tl.load(x + r[:, None] * B + r).to(tl.float32)
    tl.store(o + r[:, None] * B + r, tl.dot(a, a) + a)
",
        // A name with two assignments.
        "    r = tl.arange(0, B)
    a = tl.load(x + r[:, None] * B + r).to(tl.float32)
    a = tl.load(y + r[:, None] * B + r).to(tl.float32)
    tl.store(o + r[:, None] * B + r, tl.dot(a, a))
",
        // Integers.
        "    r = tl.arange(0, B)
    tl.store(o + r[:, None] * B + r, tl.dot((r[:, None] + r).to(tl.float32), (r[:, None] - r).to(tl.float32)))
",
        // Another type of result is requested, and nothing is cast.
        "    r = tl.arange(0, B)
    a = tl.load(x + r[:, None] * B + r)
    tl.store(o + r[:, None] * B + r, tl.dot(a.to(tl.float32), a.to(tl.float32), out_dtype=tl.float32) + tl.dot(a, a))
",
        "    tl.store(o, tl.load(x).to(tl.float32))
",
    ] {
        assert_eq!(turned(body), [], "{body}");
    }
}
