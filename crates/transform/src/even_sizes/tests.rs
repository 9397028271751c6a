use protocol::Workload;
use rules::apply_edits;

use super::*;
use crate::candidate::Candidate;

fn turned(text: &str, launches: Vec<LaunchRecord>) -> Vec<String> {
    let candidate = Candidate::original(text);
    let workload = Workload { entry: "run".to_owned(), launches, ..Workload::default() };
    let subject = Subject::new(&candidate, text, "k", &workload).unwrap();
    let turns = EvenSizes.turns(&subject, &mut Rng::new(1));
    turns.iter().map(|turn| apply_edits(text, &turn.edits)).collect()
}

const PRODUCT: &str = "import triton
import triton.language as tl

@triton.jit
def k(
    a, b, c, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(axis=1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        left = K - i * BK
        x = tl.load(a + m[:, None] * K + i * BK + ks[None, :], mask=(m[:, None] < M) & (ks[None, :] < left), other=0.0)
        y = tl.load(b + (i * BK + ks[:, None]) * N + n[None, :], mask=ks[:, None] < K - i * BK, other=0.0)
        acc += tl.dot(x, y)
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))

def run(a, b, c):
    M, K = a.shape
    N = b.shape[1]
    grid = lambda meta: (triton.cdiv(M, meta[\"BM\"]), triton.cdiv(N, 64))
    k[grid](a, b, c, M, N, K, BM=32, BN=64, BK=16)
";

#[test]
fn the_size_of_a_products_loop_is_proposed_first_and_alone() {
    let found = turned(PRODUCT, Vec::new());
    let expected = PRODUCT
        .replace(
            "@triton.jit",
            "@triton.heuristics({\"EVEN_K\": lambda args: args[\"K\"] % args[\"BK\"] == 0})\n@triton.jit",
        )
        .replace("BK: tl.constexpr,", "BK: tl.constexpr, EVEN_K: tl.constexpr,")
        .replace("(ks[None, :] < left)", "((ks[None, :] < left) | EVEN_K)")
        .replace("mask=ks[:, None] < K - i * BK,", "mask=(ks[:, None] < K - i * BK) | EVEN_K,");
    assert_eq!(found[0], expected);
    // The programs divide the other sizes; a tile passed as an expression counts like its name.
    assert_eq!(found.len(), 3);
    assert_eq!(found[1].matches("((m[:, None] < M) | EVEN_M)").count(), 2, "{}", found[1]);
    assert!(found[2].contains("((n[None, :] < N) | EVEN_N)"), "{}", found[2]);
    // A further proposal adds to the result, once for each size.
    let next = turned(&found[0], Vec::new());
    assert_eq!(next.len(), 2);
    assert!(next[0].contains("% args[\"BM\"] == 0})\n@triton.jit"), "{}", next[0]);
}

#[test]
fn grids_of_another_form_prove_no_program_bounds() {
    for (old, new) in [
        ("triton.cdiv(M, meta[\"BM\"])", "triton.cdiv(M, meta[\"BM\"]) + 1"),
        ("triton.cdiv(M, meta[\"BM\"])", "triton.cdiv(M, meta[\"BN\"])"),
        ("triton.cdiv(M, meta[\"BM\"])", "triton.cdiv(K, meta[\"BM\"])"),
        ("    M, K = a.shape\n", "    M, K = a.shape\n    M = M + 1\n"),
        ("tl.program_id(0) * BM", "tl.program_id(0) * BN"),
        ("tl.program_id(0) * BM", "(tl.program_id(0) + 1) * BM"),
    ] {
        assert_eq!(PRODUCT.matches(old).count(), 1, "{old}");
        let found = turned(&PRODUCT.replace(old, new), Vec::new());
        assert_eq!(found.len(), 2, "{new}");
        assert!(found.iter().all(|text| !text.contains("EVEN_M")), "{new}");
    }
}

const ROWS: &str = "import triton
import triton.language as tl

@triton.jit
def k(x, n, B: tl.constexpr, T: tl.constexpr = 1):
    for start in tl.range(0, n, B, num_stages=2):
        at = start + tl.arange(0, B)
        mask = at < n  # along the row
        tl.store(x + at, tl.load(x + at, mask=mask & (n > at)), mask=mask)

def run(x):
    k[(1,)](x, x.shape[0], 64)
";

fn one_tile() -> String {
    ROWS.replace("    for start in tl.range(0, n, B, num_stages=2):\n", "")
        .replace("start + ", "")
        .replace("        ", "    ")
}

#[test]
fn masks_of_tiled_and_single_tile_rows_are_relaxed() {
    let expected = ROWS
        .replace(
            "@triton.jit",
            "@triton.heuristics({\"EVEN_N\": lambda args: args[\"n\"] % args[\"B\"] == 0})\n@triton.jit",
        )
        .replace("constexpr = 1", "constexpr = 1, EVEN_N: tl.constexpr = False")
        .replace("mask = at < n  #", "mask = (at < n) | EVEN_N  #")
        .replace("(n > at)", "((n > at) | EVEN_N)");
    assert_eq!(turned(ROWS, Vec::new()), [expected.as_str()]);
    assert!(turned(&expected, Vec::new()).is_empty(), "once is enough");
    let found = turned(&one_tile(), Vec::new());
    assert!(found[0].contains("lambda args: args[\"n\"] >= args[\"B\"]})\n"), "{}", found[0]);
}

#[test]
fn sizes_that_were_never_even_are_left_alone() {
    let launch = |n: i64| {
        let arguments = vec![("n".to_owned(), ArgumentValue::Int(n)), ("B".to_owned(), ArgumentValue::Int(64))];
        LaunchRecord { kernel: "k".to_owned(), arguments, ..LaunchRecord::default() }
    };
    assert!(turned(ROWS, vec![launch(100)]).is_empty());
    assert_eq!(turned(ROWS, vec![launch(100), launch(128)]).len(), 1);
    assert!(turned(&one_tile(), vec![launch(63)]).is_empty());
    assert_eq!(turned(&one_tile(), vec![launch(64)]).len(), 1);
}

#[test]
fn masks_that_may_matter_for_even_sizes_are_kept() {
    for (old, new) in [
        ("tl.range(0, n, B", "tl.range(1, n, B"),
        ("tl.range(0, n, B", "tl.range(0, n + 1, B"),
        ("tl.range(0, n, B", "tl.range(0, n, T"),
        ("tl.arange(0, B)", "tl.arange(0, 64)"),
        ("tl.arange(0, B)", "tl.arange(1, B)"),
        ("at = start +", "at = start + 1 +"),
        ("at = start +", "at = start + start +"),
        ("        mask", "        at += 1\n        mask"),
        ("    for", "    n = n - 1\n    for"),
        ("x, n, B: tl.constexpr,", "x, n=64, B: tl.constexpr = 64,"),
        ("n, B: tl.constexpr", "n, B"),
        ("def run(x):", "@triton.jit\ndef other(x):\n    k(x, 1, 2)\n\ndef run(x):"),
    ] {
        assert_eq!(ROWS.matches(old).count(), 1, "{old}");
        assert!(turned(&ROWS.replace(old, new), Vec::new()).is_empty(), "{new}");
    }
}
