//! Tests of definitions, references, semantic tokens, the outline and hints.

use model::api::TritonTarget;
use model::kernel::Module;
use model::syntax::{Source, Span};

use super::kernel;
use crate::hints::{HintKind, hints};
use crate::names::{self, definitions};
use crate::outline::{OutlineItem, outline};
use crate::tokens::{Token, TokenKind, tokens};

const FLOW: &str = r#"import triton
import triton.language as tl

LIMIT: tl.constexpr = 4

@triton.autotune([triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def flow(p, n, BLOCK: tl.constexpr):
    acc = tl.zeros([BLOCK], tl.float32)  # 1
    for i in range(0, n):
        acc += helper(acc, b=i)  # 2
        x = acc  # 3
    if n > LIMIT:
        y = x  # 4
    else:
        y = x + 1  # 5
    z = y  # 6
    y = 0  # 7
    tl.store(p, y)  # 8

@triton.jit
def helper(a, b):
    return a + b  # 9

def run(n):
    flow[(n,)](n, n, BLOCK=64)  # 10
"#;

/// The lines (by their numbers in comments, else their text) that define the name at the cursor.
fn defined(text: &str) -> Vec<String> {
    let offset = text.find('|').unwrap();
    let source = Source::parse(text.replacen('|', "", 1));
    let found = definitions(&source, &Module::build(&source), offset);
    let line = |span: Span| {
        let lines = source.lines();
        let text = &source.text()[lines.range(source.text(), lines.line_of(span.start))];
        let number = text.split("  # ").nth(1).unwrap_or(text).to_owned();
        format!("{}@{number}", source.slice(span))
    };
    found.into_iter().map(line).collect()
}

#[test]
fn definitions_of_a_use_are_the_reaching_assignments() {
    let param = "def flow(p, n, BLOCK: tl.constexpr):";
    for (at, expected) in [
        ("x = a|cc", vec!["acc@2"]),
        ("helper(a|cc", vec!["acc@1", "acc@2"]),
        ("a|cc += ", vec!["acc@1", "acc@2"]),
        ("y = |x  # 4", vec!["x@3"]),
        ("z = y|  # 6", vec!["y@4", "y@5"]),
        ("tl.store(p, y|)", vec!["y@7"]),
        ("|y = 0", vec!["y@7"]),
        ("b=i|)", vec!["i@    for i in range(0, n):"]),
    ] {
        let text = FLOW.replacen(&at.replace('|', ""), at, 1);
        assert_eq!(defined(&text), expected, "{at}");
    }
    for (at, expected) in [
        ("zeros([BLO|CK]", format!("BLOCK@{param}")),
        ("BLOCK|=64)", format!("BLOCK@{param}")),
        ("{\"BLO|CK\": 64}", format!("BLOCK@{param}")),
        ("key=[\"n|\"]", format!("n@{param}")),
        ("tl.store(p|, y)", format!("p@{param}")),
        ("def flow(p|", format!("p@{param}")),
        ("n > LI|MIT", "LIMIT@LIMIT: tl.constexpr = 4".to_owned()),
        ("f|low[(n,)]", format!("flow@{param}")),
        ("hel|per(acc", "helper@def helper(a, b):".to_owned()),
        ("helper(acc, |b=i", "b@def helper(a, b):".to_owned()),
    ] {
        let text = FLOW.replacen(&at.replace('|', ""), at, 1);
        assert_eq!(defined(&text), [expected], "{at}");
    }
    // Members, names that the host binds itself, and places without a name.
    for at in ["tl.sto|re", "flow[(n|,)", "# 1|0", "\"BLOCK\"|: 64", "import tri|ton"] {
        let text = FLOW.replacen(&at.replace('|', ""), at, 1);
        assert_eq!(defined(&text), [""; 0], "{at}");
    }
}

#[test]
fn references_include_all_occurrences_of_a_name() {
    let places = |at: &str| {
        let text = FLOW.replacen(&at.replace('|', ""), at, 1);
        let offset = text.find('|').unwrap();
        let source = Source::parse(FLOW);
        let module = Module::build(&source);
        let (symbol, _) = names::at(&source, &module, offset).unwrap();
        let places = names::occurrences(&source, &module, symbol);
        (places.len(), places.iter().filter(|place| place.is_binding).count())
    };
    assert_eq!(places("a|cc += "), (4, 2));
    assert_eq!(places("zeros([BLO|CK]"), (4, 1));
    assert_eq!(places("n > |LIMIT"), (2, 1));
    assert_eq!(places("hel|per(acc"), (2, 1));
    // The `n` of the kernel is not that of the host.
    assert_eq!(places("range(0, n|)"), (4, 1));
}

/// While a call is typed, a number may directly precede a name.
#[test]
fn a_name_directly_after_a_number_is_an_occurrence() {
    let text = FLOW.replace("BLOCK=64)", "BLOCK=64flow[n]");
    let source = Source::parse(text.as_str());
    let module = Module::build(&source);
    let (symbol, span) = names::at(&source, &module, text.find("64flow").unwrap() + 2).unwrap();
    assert!(names::occurrences(&source, &module, symbol).iter().any(|place| place.span == span));
}

/// The parser skips text that it cannot read, and continues in the middle of a word.
#[test]
fn a_name_after_unparsable_text_is_an_occurrence() {
    let text = "import triton\nimport triton.language as tl\n\nLIMIT = # \n\n@triton.jit\ndef helper(a, b=1):\n    return a + b\n\n\
                @triton.jit\ndef scale(x_ptr, n, BLO\\nstexpr):\n    offsets = tl.arange(0, BLOCK)\n    \
                x = tl.load(x_ptr + offsets, mask=offsets < n)\n    hel(x, grid):\n    scale[grid](x, 3, BLOCK=64)\n\n\
                @triton.jit\ndef after(y):\n    return helper(y)\n";
    let source = Source::parse(text);
    let module = Module::build(&source);
    let (symbol, span) = names::at(&source, &module, text.find("stexpr").unwrap()).unwrap();
    assert!(names::occurrences(&source, &module, symbol).iter().any(|place| place.span == span));
}

#[test]
fn the_outline_has_kernels_configurations_and_launches() {
    fn names(entries: &[OutlineItem]) -> Vec<String> {
        entries.iter().map(|entry| format!("{}: {}", entry.name, entry.detail)).collect()
    }
    let source = Source::parse(FLOW);
    let entries = outline(&source, &Module::build(&source));
    assert_eq!(names(&entries), ["LIMIT: 4", "flow: kernel", "helper: helper", "run: launches flow"]);
    assert_eq!(names(&entries[1].children), ["BLOCK=64: configuration", "BLOCK: BLOCK: tl.constexpr"]);
    assert_eq!(names(&entries[3].children), ["flow: launch on (n,)"]);
    fn inside(entry: &OutlineItem) -> bool {
        entry.span.contains(entry.name_span)
            && entry.children.iter().all(|child| entry.span.contains(child.span) && inside(child))
    }
    assert!(entries.iter().all(inside));
}

/// What is known about the names of the kernel's body: `C`onstexpr, `P`ointer, `T`ile; several letters for a name with
/// several properties.
fn classes(body: &str) -> Vec<String> {
    let text = kernel(body);
    let source = Source::parse(text.as_str());
    let module = Module::build(&source);
    let span = module.kernel("scale").unwrap().span;
    let mut out: Vec<String> = tokens(&source, &module, TritonTarget::newest(), span)
        .into_iter()
        .map(|Token { span, class, .. }| {
            let marks = [(class.constexpr, "C"), (class.pointer, "P"), (class.tile, "T")];
            let marks = marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| mark);
            format!("{}:{}", source.slice(span), marks.collect::<String>())
        })
        .filter(|text| !text.ends_with(':') && !text.starts_with("BLOCK") && !text.starts_with("offsets"))
        .collect();
    out.sort();
    out.dedup();
    out
}

#[test]
fn names_are_classified_as_pointers_and_tiles_by_type() {
    for (body, expected) in [
        ("tl.store(x_ptr + offsets, 1)", &["x_ptr:P"][..]),
        ("q = x_ptr + offsets\nv = tl.load(q)\nw = v * n", &["q:PT", "v:T", "w:T", "x_ptr:P"]),
        ("mask = offsets < n\nv = tl.load(x_ptr + n * 4)", &["mask:T", "x_ptr:P"]),
        ("x_ptr += n * 2\nv = tl.load(x_ptr + offsets[None, :])", &["v:T", "x_ptr:P"]),
        ("b = tl.make_block_ptr(x_ptr, [n], [1], [0], [BLOCK], [0])\nv = tl.load(b)", &["b:P", "v:T", "x_ptr:P"]),
        ("S: tl.constexpr = BLOCK * 2\nv = tl.zeros([S], tl.float32)", &["S:C", "v:T"]),
        ("v = foreign(x_ptr)\nw = v + offsets", &[]),
        // Each occurrence has the class of its own value.
        ("v = 1\nw = v + 1\nv = offsets", &["v:T"]),
        ("a, b = tl.split(tl.zeros([BLOCK, 2], tl.float32))", &["a:T", "b:T"]),
    ] {
        assert_eq!(classes(body), expected, "{body}");
    }
}

#[test]
fn semantic_tokens_are_in_order_and_cover_kernel_names() {
    let text = kernel("mask = offsets < LIMIT\ntl.store(x_ptr + offsets, n * 2, mask=mask)\nhelper(n)");
    let source = Source::parse(text.as_str());
    let module = Module::build(&source);
    let all = tokens(&source, &module, TritonTarget::newest(), Span::new(0, text.len()));
    assert!(all.is_sorted_by(|a, b| a.span.end <= b.span.start));
    let of = |name: &str| all.iter().filter(|token| source.slice(token.span) == name).collect::<Vec<_>>();
    assert_eq!(of("BLOCK").len(), 2);
    assert!(of("BLOCK").iter().all(|token| token.class.constexpr && token.kind == TokenKind::Parameter));
    assert!(of("LIMIT").iter().all(|token| token.class.constexpr && token.kind == TokenKind::Variable));
    assert!(of("x_ptr").iter().all(|token| token.class.pointer) && of("x_ptr")[0].is_binding);
    assert_eq!(of("mask").len(), 2, "the keyword is no variable");
    assert!(of("mask").iter().all(|token| token.class.tile));
    assert_eq!(of("helper").len(), 3);
    assert_eq!(of("scale").len(), 2);
    let line = Span::new(text.find("mask =").unwrap(), text.find("mask =").unwrap() + 4);
    assert_eq!(tokens(&source, &module, TritonTarget::newest(), line).len(), 1);
}

fn labels(text: &str, wanted: &dyn Fn(HintKind) -> bool) -> Vec<String> {
    let source = Source::parse(text);
    let module = Module::build(&source);
    let hints = hints(&module, text, TritonTarget::newest(), Span::new(0, text.len()), wanted);
    hints
        .into_iter()
        .map(|hint| format!("{}{}", &text[..hint.offset].rsplit(['(', ',']).next().unwrap().trim(), hint.label))
        .collect()
}

#[test]
fn hints_show_the_values_that_launches_pass() {
    let hint = |text: &str| labels(text, &|kind| kind == HintKind::Value);
    let text = kernel("pass");
    assert_eq!(hint(&text), ["BLOCK: tl.constexpr = 64"]);
    let twice = text.replace("BLOCK=64)", "BLOCK=64)\n    scale[grid](x, 3, BLOCK=128)");
    assert_eq!(hint(&twice), ["BLOCK: tl.constexpr ∈ {64, 128}"]);
    let open = text.replace("BLOCK=64)", "BLOCK=64)\n    scale[grid](x, 3, BLOCK=n)");
    assert_eq!(hint(&open), [""; 0]);
    assert_eq!(hint(&text.replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr = 64")), [""; 0], "it is written");
    let configs: Vec<String> = (4..9).map(|bits| format!("triton.Config({{'BLOCK': {}}})", 1 << bits)).collect();
    let tuned = text.replace(", BLOCK=64)", ")").replace(
        "@triton.jit\ndef scale",
        &format!("@triton.autotune([{}], key=[])\n@triton.jit\ndef scale", configs.join(", ")),
    );
    assert_eq!(hint(&tuned), ["BLOCK: tl.constexpr ∈ {16, 32, 64, 128, …}"]);
    assert_eq!(labels(&text, &|_| false), [""; 0]);
}
