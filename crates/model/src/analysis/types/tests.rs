//! Tests of inferred types and reported errors, for each release.

use super::{ProblemKind, infer};
use crate::api::TritonTarget;
use crate::kernel::Module;
use crate::syntax::Source;

const HEAD: &str = "import math\nimport triton\nimport triton.language as tl\n\n";
const SIGNATURE: &str = "# warpsmith: signature x=*fp32 y=*fp16 n=i32 B=64 NONE=None\n";

fn program(before: &str, body: &str) -> String {
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    format!("{HEAD}{before}{SIGNATURE}@triton.jit\ndef k(x, y, n, B: tl.constexpr, NONE: tl.constexpr):\n{body}")
}

/// The type of the value that the last statement of a kernel assigns.
fn last(body: &str, version: &str) -> String {
    let text = program("", body);
    let source = Source::parse(text.as_str());
    let module = Module::build(&source);
    let facts = infer(&module, &text, TritonTarget::of(version.parse().unwrap()), 0, true);
    facts.types.last().map_or_else(String::new, |(_, value)| value.to_string())
}

/// The problems of the last kernel: the line of the text below the head, and the kind of problem.
fn problems(before: &str, body: &str, version: &str) -> Vec<(String, ProblemKind)> {
    let text = program(before, body);
    let source = Source::parse(text.as_str());
    let module = Module::build(&source);
    let last = module.kernels.len() - 1;
    let facts = infer(&module, &text, TritonTarget::of(version.parse().unwrap()), last, false);
    let line = |at: usize| text[..at].matches('\n').count();
    facts
        .problems
        .iter()
        .map(|problem| (text.lines().nth(line(problem.span.start)).unwrap().trim().to_owned(), problem.kind))
        .collect()
}

#[test]
fn expressions_have_tritons_types() {
    for (body, expected) in [
        ("v = tl.load(x + tl.arange(0, B))", "fp32[64]"),
        ("v = tl.load(y + tl.arange(0, B)) * 2.0", "fp16[64]"),
        ("v = tl.load(y) / tl.load(y)", "fp32"),
        ("v = tl.arange(0, B)[:, None] + tl.arange(0, 16)[None, :]", "int32[64, 16]"),
        ("v = x + n", "*fp32"),
        ("v = n < 3", "int1"),
        ("v = tl.zeros((16, B), tl.bfloat16)", "bf16[16, 64]"),
        ("v = tl.sum(tl.zeros((16, B), tl.float32), axis=1)", "fp32[16]"),
        ("v = tl.max(tl.zeros((16, B), tl.float16), axis=0, keep_dims=True)", "fp32[1, 64]"),
        ("v = tl.dot(tl.zeros((16, 32), tl.float16), tl.zeros((32, 64), tl.float16))", "fp32[16, 64]"),
        ("v = tl.zeros((16, B), tl.float32).to(tl.int8).T", "int8[64, 16]"),
        ("v: tl.constexpr = B * 2 + 1", "129"),
        ("v = tl.join(tl.arange(0, B), tl.arange(0, B))", "int32[64, 2]"),
        ("a, v = tl.split(tl.zeros((B, 2), tl.float32))", "fp32[64]"),
        ("v = tl.topk(tl.arange(0, B), 8)", "int32[8]"),
        ("v = n if NONE is None else x", "int32"),
    ] {
        assert_eq!(last(body, "3.6.0"), expected, "{body}");
    }
}

#[test]
fn a_release_decides_what_a_type_is() {
    for (body, version, expected) in [
        ("v = tl.sum(tl.zeros((B,), tl.bfloat16), axis=0)", "3.2.0", "fp32"),
        ("v = tl.sum(tl.zeros((B,), tl.bfloat16), axis=0)", "3.3.1", "bf16"),
        ("v = tl.trans(tl.zeros((4, 8, 16), tl.int8))", "3.6.0", "int8[4, 16, 8]"),
        ("v: tl.constexpr = min(B, 32)", "3.6.0", "32"),
        ("v: tl.constexpr = min(B, 32)", "3.5.1", "int32"),
        ("v: tl.constexpr = tl.cdiv(B, 3)", "3.7.1", "22"),
        ("a, v = n, 1.0", "3.1.0", "fp32"),
    ] {
        assert_eq!(last(body, version), expected, "{body} under {version}");
    }
}

/// Each case has the first release that rejects the code and the first release that accepts it again.
#[test]
fn code_that_the_front_end_rejects_is_a_problem_in_these_releases() {
    use ProblemKind::{
        Arange, Argument, Attribute, BranchType, Broadcast, Condition, Conversion, Dot, Global, LoopBounds,
    };
    use ProblemKind::{
        LoopCarried, MemoryAccess, Operand, Reduction, Return, Subscript, Syntax, UndefinedName, Unpacking,
    };
    const ALL: (u32, u32) = (1, 10);
    for (body, kind, (from, to)) in [
        ("tl.store(x, tl.load(x, mask=n))", MemoryAccess, ALL),
        ("tl.store(x, tl.arange(0, 8))", MemoryAccess, ALL),
        ("v = tl.arange(0, n)", Arange, ALL),
        ("v = tl.arange(0, 48)", Arange, ALL),
        ("v = tl.arange(0, 16) + tl.arange(0, 32)", Broadcast, ALL),
        ("v = tl.arange(0, 16)[0]", Subscript, ALL),
        ("v = tl.arange(0, 16)[..., None]", Subscript, ALL),
        ("v = n[:]", Subscript, (9, 10)),
        ("v = +n", Operand, ALL),
        ("v = x == None", Operand, ALL),
        ("v = B // 0", Operand, ALL),
        ("v = n + (1, 2)", Operand, ALL),
        ("f = tl.exp", Conversion, ALL),
        ("v = 'text'", Conversion, ALL),
        ("v = B.to(tl.float32)", Attribute, ALL),
        ("v = n.float()", Attribute, ALL),
        ("v = tl.sum(n)", Reduction, ALL),
        ("a, b, c = n, n", Unpacking, (3, 10)),
        ("a, *b = n, n", Unpacking, ALL),
        ("for i in range(0.5): pass", LoopBounds, ALL),
        ("for i in [1, 2]: pass", LoopBounds, ALL),
        ("a = 0\nfor i in range(n):\n    a = a + 0.5", LoopCarried, ALL),
        ("a = n\nif n > 0:\n    a = 1.5", BranchType, ALL),
        ("if tl.arange(0, 16) > 0:\n    pass", Condition, ALL),
        ("if n > 0:\n    a = n\nv = a", UndefinedName, ALL),
        ("v = sum((1, 2))", UndefinedName, ALL),
        ("v = 1 < n < 3", Syntax, (1, 9)),
        ("v: tl.float32 = 0.0", Syntax, (1, 2)),
        ("v = n\nreturn None", Return, (1, 7)),
        ("v = math.exp(n)", Argument, ALL),
        ("v = tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float32))", Dot, ALL),
        ("v = tl.dot(tl.zeros((8, 16), tl.float16), tl.zeros((16, 16), tl.float16))", Dot, (1, 5)),
        ("v = TABLE", Global, ALL),
        ("v = tl.flip(tl.arange(0, 16))", Reduction, (4, 9)),
        ("v = tl.load(x, eviction_policy='evict_normal')", Argument, (1, 9)),
    ] {
        for version in ["3.1.0", "3.2.0", "3.3.1", "3.4.0", "3.5.1", "3.6.0", "3.7.1", "3.8.0", "3.9.0"] {
            let minor: u32 = version[2..3].parse().unwrap();
            let found = problems("TABLE = [1]\n", body, version);
            let is_refused = found.iter().any(|(_, known)| *known == kind);
            assert_eq!(is_refused, (from..to).contains(&minor), "{body} under {version}: {found:?}");
            assert!(is_refused || found.is_empty(), "{body} under {version}: {found:?}");
        }
    }
}

#[test]
fn code_that_is_never_compiled_has_no_problems() {
    for body in [
        "if NONE is not None:\n    v = tl.nothing + 'a'\n    break",
        "if B > 100:\n    v = missing",
        "return\nv = missing",
        "v = n if B == 64 else missing",
        "for i in tl.static_range(0):\n    v = missing",
    ] {
        assert_eq!(problems("", body, "3.6.0"), [], "{body}");
    }
}

#[test]
fn helpers_are_analysed_for_their_arguments() {
    let helper = "@triton.jit\ndef h(a, b=2):\n    return a + b\n\n\n";
    assert_eq!(problems(helper, "v = h(n)\nw = h(tl.arange(0, 8), tl.arange(0, 8))", "3.6.0"), []);
    let found = problems(helper, "w = h(tl.arange(0, 8), tl.arange(0, 16))", "3.6.0");
    assert_eq!(found, [("return a + b".to_owned(), ProblemKind::Broadcast)]);
    let keyword = problems(helper, "w = h(n, c=1)", "3.6.0");
    assert_eq!(keyword, [("w = h(n, c=1)".to_owned(), ProblemKind::Keyword)]);
}

#[test]
fn a_helper_may_call_itself_for_other_constants() {
    let helper = "@triton.jit\ndef h(a, N: tl.constexpr):\n    if N == 0:\n        return a\n    else:\n        return h(a + 1, N - 1)\n\n\n";
    assert_eq!(problems(helper, "v = h(n, 3)", "3.6.0"), []);
    let endless = helper.replace("N - 1", "N");
    let found = problems(&endless, "v = h(n, 3)", "3.6.0");
    assert_eq!(found, [("return h(a + 1, N)".to_owned(), ProblemKind::Nesting)]);
}

#[test]
fn returned_constants_stay_constants_since_3_7() {
    let helper = "@triton.jit\ndef h(N: tl.constexpr):\n    return N * 2\n\n\n";
    assert_eq!(problems(helper, "v = tl.arange(0, h(B))", "3.7.1"), []);
    let found = problems(helper, "v = tl.arange(0, h(B))", "3.6.0");
    assert_eq!(found, [("v = tl.arange(0, h(B))".to_owned(), ProblemKind::Arange)]);
}

#[test]
fn combine_functions_are_analysed_for_two_lanes() {
    let helper = "@triton.jit\ndef h(a, b):\n    return a > b\n\n\n@triton.jit\ndef g(a, b):\n    return a * b\n\n\n";
    let body = |name: &str| format!("v = tl.reduce(tl.load(x + tl.arange(0, B)), 0, {name})");
    assert_eq!(problems(helper, &body("g"), "3.6.0"), []);
    assert_eq!(problems(helper, &body("h"), "3.6.0"), [(body("h"), ProblemKind::Reduction)]);
    assert_eq!(problems(helper, &body("tl.maximum"), "3.6.0"), [(body("tl.maximum"), ProblemKind::Reduction)]);
}

#[test]
fn a_line_continuation_adds_no_tuple_items() {
    assert_eq!(problems("", "a, b = n, \\\n    n + 1\nv = a + b", "3.9.0"), []);
}

#[test]
fn without_a_signature_only_certain_problems_are_reported() {
    let text =
        format!("{HEAD}@triton.jit\ndef k(x, n, B: tl.constexpr):\n    v = x + n * B\n    tl.store(v, tl.load(n))\n");
    let source = Source::parse(text.as_str());
    let module = Module::build(&source);
    assert_eq!(infer(&module, &text, TritonTarget::newest(), 0, false).problems, []);
}
