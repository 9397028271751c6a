//! Tests with hostile texts: no crash, no stack overflow, no hang.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

use std::time::{Duration, Instant};

use model::api::TritonTarget;
use model::kernel::{MAX_TEXT, Module};
use model::syntax::{Document, Encoding, Position, Source};
use rules::{Diagnostic, RuleContext, Selection};

/// A kernel whose findings show that the rest of a text is still analyzed.
const WRONG: &str = "@triton.jit\ndef wrong(x):\n    tl.cidv(x, 2)\n\n\n";
const HEADER: &str = "import triton\nimport triton.language as tl\n\n\n";

/// A limit of CPU time. What takes a second in a release build takes about ten seconds here; an algorithm that is
/// quadratic in the length of the text takes minutes.
const LIMIT: Duration = Duration::from_secs(30);

/// The CPU time of this thread; on systems that do not report it, the elapsed time.
fn time(begin: Instant) -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = statistics.split(' ').next().and_then(|number| number.parse().ok());
    nanoseconds.map_or_else(|| begin.elapsed(), Duration::from_nanos)
}

fn find(source: &Source, module: &Module) -> Vec<Diagnostic> {
    let found = rules::check(&RuleContext::new(source, module, TritonTarget::newest()), &Selection::default());
    // Other rules report many findings in such texts.
    found.into_iter().filter(|finding| finding.message.contains("cidv")).collect()
}

/// The findings of a fresh document, compared with those after an edit in the middle that is undone.
fn check(text: &str) -> Vec<Diagnostic> {
    let now = Instant::now();
    let begin = time(now);
    let mut document = Document::new(text);
    let source = document.source();
    let module = Module::build(&source);
    let found = find(&source, &module);
    let line = u32::try_from(source.lines().count() / 2).unwrap();
    let at = |column| Position { line, column };
    document.edit(at(0), at(0), "(", Encoding::Utf8).unwrap();
    let edited = document.source();
    let module = Module::rebuild(&edited, module, &source);
    find(&edited, &module);
    document.edit(at(0), at(1), "", Encoding::Utf8).unwrap();
    let back = document.source();
    let module = Module::rebuild(&back, module, &edited);
    assert_eq!(find(&back, &module), found);
    let took = time(now) - begin;
    assert!(
        took < LIMIT,
        "{took:?} for {} bytes: {:?}",
        text.len(),
        &text[text.len() / 2..].chars().take(40).collect::<String>()
    );
    found
}

/// A kernel with these lines, between two kernels that have one finding each.
fn between(lines: &str) -> String {
    format!("{HEADER}{WRONG}@triton.jit\ndef k(x, n):\n    {lines}\n\n\n{WRONG}")
}

#[test]
fn deeply_nested_texts_are_checked_without_a_crash() {
    let n = 20_000;
    let wrap = |open: &str, inner: &str, close: &str| format!("{}{inner}{}", open.repeat(n), close.repeat(n));
    for line in [
        format!("y = {}", wrap("(", "x", ")")),
        format!("y = {}", wrap("[", "x", "]")),
        format!("y = {}", wrap("tl.abs(", "x", ")")),
        format!("y = {}", wrap("x[", "0", "]")),
        format!("y = {}", wrap("-", "x", "")),
        format!("y = {}", wrap("not ", "x", "")),
        format!("y = {}", wrap("lambda: ", "x", "")),
        format!("y = {}", wrap("x if x else ", "x", "")),
        format!("y = {}", wrap("", "x", ".y")),
        format!("y = {}", wrap("", "x", "()")),
        format!("y = {}", wrap("", "x", " and x")),
        format!("y = {}", wrap("", "x", " + x")),
        format!("y = {}", wrap("", "x", " < x")),
        format!("{}x", "y = ".repeat(n)),
        format!("y = {}", wrap("(", "k[(1,)](x, 1, 2)", ")")),
        format!("y = {}", wrap("k[(1,)](", "x", ")")),
        format!("y = f'{}'", wrap("{", "x", "}")),
        format!("if x:\n        pass\n{}", "    elif x:\n        pass\n".repeat(n)),
    ] {
        assert_eq!(check(&between(&line)).len(), 2, "{}", &line[..40]);
    }
    // The bracket is never closed, and the next kernel is still found.
    for open in ["(", "[", "{", "tl.abs(", "x[", "f(x, *["] {
        assert_eq!(check(&between(&format!("y = {}", open.repeat(n)))).len(), 2, "{open}");
    }
}

#[test]
fn deep_blocks_are_survived() {
    for head in ["if x:", "for i in x:", "while x:", "def f():", "class C:", "with x:", "try:"] {
        let lines: String = (0..600).map(|depth| format!("{}{head}\n", " ".repeat(depth + 4))).collect();
        check(&between(&format!("pass\n{lines}{}k[(1,)](x)", " ".repeat(604))));
        check(&format!("{HEADER}{}", lines.replace("\n    ", "\n")));
    }
    let decorated = "@triton.autotune(\n".repeat(20_000);
    assert_eq!(check(&format!("{HEADER}{decorated}{WRONG}")).len(), 1);
}

#[test]
fn long_chains_are_survived() {
    let terms = |term: &str| vec![term; 100_000].join(" + ");
    for line in
        [format!("y = {}", terms("a")), format!("y = {}", terms("tl.load(x)")), format!("k[(1,)]({})", terms("a"))]
    {
        assert_eq!(check(&between(&line)).len(), 2);
    }
}

#[test]
fn texts_of_several_megabytes_are_checked_without_a_crash() {
    // A long text that is analyzed, and one that is too long for that.
    for (size, count) in [(MAX_TEXT / 16, 1), (5 << 20, 0)] {
        for text in [
            format!("x = '{}'\n", "a".repeat(size)),
            format!("# {}\n", "a".repeat(size)),
            format!("{} = 1\n", "a".repeat(size)),
            format!("x = [{}]\n", "1, ".repeat(size / 3)),
            "\n".repeat(size),
            "x = 1\n".repeat(size / 6),
            " ".repeat(size),
            format!("\"\"\"{}", "def f(x):\n    k[(1,)](x)\n".repeat(size / 26)),
        ] {
            assert_eq!(check(&format!("{HEADER}{WRONG}{text}")).len(), count, "{}", &text[..20]);
        }
    }
    assert_eq!(check(&format!("{HEADER}{}", WRONG.repeat(500))).len(), 500);
}

#[test]
fn unusual_line_ends_and_characters_are_checked_without_a_crash() {
    let text = between("tl.store(x, n)");
    for (odd, count) in [
        (text.replace('\n', "\r\n"), 2),
        (text.replace('\n', "\r"), 0),
        (text.replace("    ", "\t"), 2),
        (format!("\u{feff}{text}"), 2),
        (text.replace("n)", "n)\0"), 2),
        (text.replace("n)", "n)\u{c}"), 2),
        (text.replace("n)", "n)\\"), 2),
    ] {
        assert_eq!(check(&odd).len(), count, "{odd:?}");
    }
    for odd in
        ["", "\0", "\u{feff}", "\r", "\r\n", "\n", "\\", "@", "(", "\"\"\"", "'", "def", "f'{", "f'{x:", "\u{2028}"]
    {
        check(odd);
        check(&format!("{HEADER}{odd}"));
        assert_eq!(check(&format!("{HEADER}{WRONG}{odd}")).len(), 1, "{odd:?}");
    }
}
