use protocol::{Workload, WorkloadSource};
use rules::apply_edits;

use super::*;
use crate::candidate::Candidate;

fn turned_of(text: &str, source: WorkloadSource) -> Option<String> {
    let candidate = Candidate::original(text);
    let workload = Workload { entry: "run".to_owned(), source, ..Workload::default() };
    let subject = Subject::new(&candidate, text, "k", &workload)?;
    let turns = NarrowOffsets.turns(&subject, &mut Rng::new(1));
    assert!(turns.len() <= 1);
    turns.first().map(|turn| apply_edits(text, &turn.edits))
}

fn turned(text: &str) -> Option<String> {
    turned_of(text, WorkloadSource::default())
}

/// The test for a call; `None` where there is no proposal.
fn test_of(text: &str) -> Option<String> {
    let turned = turned(text)?;
    let (_, rest) = turned.split_once("lambda args: ").unwrap();
    Some(rest.split_once("})\n").unwrap().0.to_owned())
}

const ROWS: &str = "import triton
import triton.language as tl

@triton.jit
def k(X, Y, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(X + row * stride + cols, mask=cols < N)
    tl.store(Y + row * stride + cols, x * 2, mask=cols < N)

def run(x, y):
    k[(x.shape[0],)](x, y, x.stride(0), x.shape[1], 64)
";

const MEMORY: &str = "all(hasattr(args[name], \"untyped_storage\") and args[name].untyped_storage().nbytes() // \
                      args[name].element_size() < 2**31 for name in";

#[test]
fn rows_are_narrow_where_the_tensors_are_small() {
    let test = format!(
        "all(isinstance(args[name], int) and args[name] >= 0 for name in [\"BLOCK\", \"stride\"])\n    and {MEMORY} [\"X\", \"Y\"])"
    );
    let expected = ROWS
        .replace("@triton.jit", &format!("@triton.heuristics({{\"NARROW\": lambda args: {test}}})\n@triton.jit"))
        .replace("BLOCK: tl.constexpr)", "BLOCK: tl.constexpr, NARROW: tl.constexpr)")
        .replace(
            "row = tl.program_id(0).to(tl.int64)",
            "row = (tl.program_id(0) if NARROW else tl.program_id(0).to(tl.int64))",
        );
    assert_eq!(turned(ROWS).as_deref(), Some(expected.as_str()));
    assert_eq!(turned(&expected), None, "once is enough");
    assert_eq!(turned_of(ROWS, WorkloadSource::Launch), None);
}

#[test]
fn inline_casts_and_advancing_pointers_are_supported() {
    let inline = ROWS
        .replace("tl.program_id(0).to(tl.int64)", "tl.program_id(0)")
        .replace("X + row *", "X + tl.cast(row, tl.int64) *")
        .replace("Y + row *", "Y + (row + 0).to(dtype=tl.int64) *");
    let found = turned(&inline).unwrap();
    assert!(found.contains("tl.load(X + (row if NARROW else tl.cast(row, tl.int64)) * stride + cols,"), "{found}");
    assert!(found.contains("Y + (row + 0 if NARROW else (row + 0).to(dtype=tl.int64)) * stride + cols,"), "{found}");
    let moved = ROWS
        .replace("    cols =", "    X += row * stride\n    for i in range(0, N, BLOCK):\n        X += i\n    cols =")
        .replace("X + row * stride", "X")
        .replace("x * 2", "x.to(X.dtype.element_ty)");
    assert!(turned(&moved).is_some());
    let in_loop = ROWS
        .replace("    row =", "    for i in tl.range(tl.program_id(0), N, tl.num_programs(0)):\n      row =")
        .replace("tl.program_id(0).to", "i.to")
        .replace("    cols =", "      cols =");
    assert!(turned(&in_loop).is_some_and(|text| text.contains("(i if NARROW else i.to(tl.int64))")));
    assert_eq!(turned(&in_loop.replace("tl.num_programs(0))", "step=-1)")), None);
    assert_eq!(turned(&in_loop.replace("tl.num_programs(0))", "-1)")), None);
}

const FLAT: &str = "import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({'B': 64}), triton.Config({'B': 128})], key=['n'])
@triton.jit
def k(x, bias, out, n, cols, B: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    mask = at < n
    value = tl.load(x + at, mask=mask) + tl.load(bias + at % cols, mask=mask)
    tl.store(out + at, value, mask=mask)

def run(x, bias, out):
    n = x.numel()
    k[lambda meta: (triton.cdiv(n, meta['B']),)](x, bias, out, n, bias.numel())
";

#[test]
fn compared_or_divided_offsets_need_a_bound() {
    let found = turned(FLAT).unwrap();
    assert!(found.contains("key=['n'])\n@triton.heuristics("), "{found}");
    let numbers = "all(isinstance(args[name], int) and args[name] >= 0 for name in [\"B\", \"cols\", \"n\"])";
    let bound = "triton.cdiv(args[\"n\"], args[\"B\"]) * args[\"B\"] + args[\"B\"] < 2**31";
    assert_eq!(test_of(FLAT), Some(format!("{numbers}\n    and {bound}")));
    // The number of programs is unknown, and a wrapped offset would be below the size.
    for (old, new) in [
        ("triton.cdiv(n, meta['B'])", "count(n)"),
        ("(triton.cdiv(n, meta['B']),)", "grid"),
        ("    n = x.numel()\n", "    n = x.numel()\n    n = n + 1\n"),
        ("    k[", "    k[(9,)](x, bias, out, 9, 9)\n    k["),
        ("n, cols,", "n=7, cols=7,"),
        ("tl.arange(0, B)", "tl.arange(end=B, start=0)"),
        ("at % cols", "at % (cols - 1)"),
    ] {
        assert_eq!(FLAT.matches(old).count(), 1, "{old}");
        assert_eq!(turned(&FLAT.replace(old, new)), None, "{new}");
    }
}

#[test]
fn casts_that_may_matter_are_kept() {
    let below = "    at = 0\n    for _ in range(N):\n        at = at - 1\n    row =";
    let rows = ROWS.replace("    row =", below);
    assert!(turned(&rows).is_some());
    for (old, new) in [
        // Loaded or negative numbers.
        ("tl.program_id(0).to", "tl.load(X).to"),
        ("tl.program_id(0).to", "(tl.program_id(0) - 1).to"),
        ("X + row * stride", "X - row * stride"),
        ("X + row * stride", "X + row * stride + tl.load(Y)"),
        ("X + row * stride", "X + row * stride - 4"),
        ("X + row * stride", "X + row * -stride"),
        ("X + row * stride", "X + (row - 1) * stride"),
        // Numbers that matter in every program.
        ("mask=cols < N)\n    tl.store", "mask=row < N)\n    tl.store"),
        ("X + row * stride", "X + row // 2 * stride"),
        ("x * 2", "row"),
        ("x * 2", "x.to(row.dtype)"),
        ("    x =", "    if row > 5:\n        return\n    x ="),
        ("    x =", "    tl.device_print('row', row)\n    x ="),
        ("    x =", "    helper(row)\n    x ="),
        ("    x =", "    helper(X + row * stride)\n    x ="),
        // Names whose type would change.
        ("    x =", "    for i in range(N):\n        row = row + 1\n    x ="),
        ("    x =", "    row += stride\n    x ="),
        ("tl.program_id(0).to", "at.to"),
        ("tl.program_id(0).to", "(tl.program_id(0) % 2.5).to"),
        ("X + row * stride", "X + (row + at) * stride"),
        // The arguments of the test are unknown.
        ("X, Y, stride, N, BLOCK: tl.constexpr", "X, Y, stride=1, N=1, BLOCK: tl.constexpr = 1"),
        ("@triton.jit", "@other\n@triton.jit"),
        ("@triton.jit", "@triton.heuristics(others)\n@triton.jit"),
        ("def run", "@triton.jit\ndef other(x):\n    k(x, x, 1, 2, 64)\n\ndef run"),
        (".to(tl.int64)", ".to(tl.int32)"),
        (".to(tl.int64)", ""),
    ] {
        assert!(rows.contains(old), "{old}");
        let text = rows.replacen(old, new, 1);
        assert_eq!(turned(&text), None, "{new}");
    }
}
