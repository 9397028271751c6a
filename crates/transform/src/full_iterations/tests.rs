use protocol::Workload;

use super::*;
use crate::candidate::Candidate;

const ATTENTION: &str = "import triton
import triton.language as tl

@triton.jit
def k(q, kv, out, m, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    start_m = tl.program_id(0) * BM
    offs_m = start_m + tl.arange(0, BM)
    offs_d = tl.arange(0, D)
    x = tl.load(q + offs_m[:, None] * D + offs_d[None, :], mask=offs_m[:, None] < m, other=0.0)
    acc = tl.zeros((BM, D), tl.float32)
    end_n = tl.minimum(start_m + BM, n) if CAUSAL else n
    for start_n in range(0, end_n, BN):
        offs_n = start_n + tl.arange(0, BN)
        mask_n = offs_n < n
        y = tl.load(kv + offs_n[None, :] * D + offs_d[:, None], mask=mask_n[None, :], other=0.0)
        p = tl.dot(x, y)
        p = tl.where(mask_n[None, :], p, float(\"-inf\"))
        if CAUSAL:
            p = tl.where(offs_m[:, None] >= offs_n[None, :], p, float(\"-inf\"))
        z = tl.load(kv + offs_n[:, None] * D + offs_d[None, :], mask=(offs_n[:, None] < n) & (offs_d[None, :] < D), other=0.0)
        acc += tl.dot(p.to(tl.float16), z)
    tl.store(out + offs_m[:, None] * D + offs_d[None, :], acc, mask=offs_m[:, None] < m)

def run(q, kv, out):
    k[(1,)](q, kv, out, 64, 64, BM=32, BN=32, D=64, CAUSAL=True)
";

fn split_once(text: &str) -> Option<String> {
    let candidate = Candidate::original(text);
    let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
    let subject = Subject::new(&candidate, text, "k", &workload).unwrap();
    let turns = WholeRounds.turns(&subject, &mut Rng::new(1));
    turns.first().map(|turn| candidate.with(&turn.edits, &turn.changes).text)
}

#[test]
fn iterations_below_the_size_and_the_diagonal_have_no_masks() {
    let new = split_once(ATTENTION).unwrap();
    let both = "    whole = end_n
    whole = tl.minimum(whole, n)
    if CAUSAL:
        whole = tl.minimum(whole, start_m + 1)
    whole = tl.maximum(whole, 0) // BN * BN
    for start_n in range(0, whole, BN):
        offs_n = start_n + tl.arange(0, BN)
        y = tl.load(kv + offs_n[None, :] * D + offs_d[:, None])
        p = tl.dot(x, y)
        z = tl.load(kv + offs_n[:, None] * D + offs_d[None, :], mask=offs_d[None, :] < D, other=0.0)
        acc += tl.dot(p.to(tl.float16), z)
    for start_n in range(whole, end_n, BN):
        offs_n = start_n + tl.arange(0, BN)
        mask_n = offs_n < n
";
    assert!(new.contains(both), "{new}");
    let rest = ATTENTION.split_once("range(0, end_n, BN):").unwrap().1;
    assert!(new.ends_with(rest), "what is left of the rounds is as it was");
    assert_eq!(split_once(&new), None);
}

#[test]
fn remaining_conditions_keep_their_parentheses() {
    let more = ATTENTION.replace(
        "mask=mask_n[None, :], other",
        "mask=(offs_d[:, None] < D) & mask_n[None, :] & (offs_d[:, None] > -1), other",
    );
    let new = split_once(&more).unwrap();
    assert!(new.contains("mask=(offs_d[:, None] < D) & (offs_d[:, None] > -1), other=0.0)\n        p = "), "{new}");
    // A mask that has another use as well keeps its assignment.
    let used = ATTENTION.replace("        p = tl.dot(x, y)\n", "        p = tl.dot(x, y) + mask_n[None, :]\n");
    assert!(split_once(&used).unwrap().matches("        mask_n = offs_n < n\n").count() == 2);
}

#[test]
fn unsupported_loops_are_not_split() {
    for (from, to) in [
        ("range(0, end_n, BN)", "range(BN, end_n, BN)"),
        ("range(0, end_n, BN)", "range(0, end_n, 32)"),
        ("range(0, end_n, BN)", "range(end_n)"),
        ("        p = tl.dot(x, y)\n", "        p = tl.dot(x, y)\n        if start_n > 7:\n            break\n"),
        ("        p = tl.dot(x, y)\n", "        p = tl.dot(x, y)\n        end_n = end_n - 1\n"),
        ("    tl.store(out", "    acc += start_n\n    tl.store(out"),
    ] {
        assert_eq!(split_once(&ATTENTION.replace(from, to)), None, "{to}");
    }
    // A limit that changes, that is a tile or that is loaded gives no bound; the other masks are still removed.
    for (from, to, said) in [
        ("offs_n < n\n", "offs_n < n - start_n\n", "    if CAUSAL:\n        whole"),
        ("offs_n < n\n", "offs_n < tl.load(q + start_m)\n", "    if CAUSAL:\n        whole"),
        (
            "offs_m[:, None] >= offs_n[None, :]",
            "offs_m[:, None] <= offs_n[None, :]",
            "    whole = tl.minimum(whole, n)\n    whole = tl.max",
        ),
        (
            "offs_m[:, None] >= offs_n[None, :]",
            "offs_m[:, None] > offs_n[None, :]",
            "        whole = tl.minimum(whole, start_m)\n",
        ),
        (
            "offs_m[:, None] >= offs_n[None, :]",
            "2 * offs_m[:, None] >= offs_n[None, :]",
            "    whole = tl.minimum(whole, n)\n    whole = tl.max",
        ),
    ] {
        let new = split_once(&ATTENTION.replace(from, to)).unwrap();
        assert!(new.contains(said), "{to}: {new}");
    }
}
