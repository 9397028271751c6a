//! Property tests of edited documents: an edited document equals a fresh one with the same text, in its text, lines,
//! trees, model, kernel facts and findings.

use std::sync::LazyLock;

use model::analysis::types;
use model::api::{Table, TritonTarget};
use model::kernel::{Kernel, Module, ShiftSpans};
use model::syntax::{Document, Encoding, Position, Source, Span};
use proptest::prelude::*;
use rules::learned::{LearnedRule, LearnedRules, Releases, RuleOrigin, RuleState, TritonError};
use rules::{Diagnostic, RuleContext, Selection};
use tree_sitter::{Node, Parser, Tree, TreeCursor};

const KERNEL: &str = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(x, n, BLOCK: tl.constexpr):\n    \
    \"\"\"Docs.\"\"\"\n    i = tl.arange(0, BLOCK)\n    if n > 0:\n        tl.store(x + i, i, mask=i < n)\n    # é😀\n\n\n\
    def run(x):\n    k[(1,)](x, 3, BLOCK=[2 * i for i in (32, 64) if i][0])\n\n\nlanguage = tl\n\n\nclass Op:\n    def __call__(self, x):\n        \
    k[(2,)](x, 4)\n        return k[(1,)](x, 5), lambda: k[1](x)\n\n\n@triton.jit\ndef helper(x):\n    return language.abs(x)\n\n\n\
    SIZE = 100\n\n\nclass Pair(tuple):\n    pass\n\n\n@triton.jit\ndef lanes(x, m):\n    i = tl.arange(0, m)\n    \
    return tl.load(x + i, mask=i < SIZE) + tl.zeros([3], tl.float32)\n\n\n@triton.jit\ndef add(x, y, B: tl.constexpr):\n    \
    a = lanes(x, B)\n    b = lanes(y, SIZE)\n    tl.store(x + tl.arange(0, 64), a + b + missing)\n    \
    return tl.dot(Pair, Op)\n\n\nadd[(1,)](run, run, 64)\n\n\n\
    @triton.jit\ndef rows(x, out, n, B: tl.constexpr):\n    i = tl.arange(0, 48)\n    v = tl.load(x + i, mask=i < n)\n    \
    w = tl.load(x + i, mask=i < n, other=1.0)\n    e = tl.exp(w)\n    tl.store(out, tl.max(w) + tl.sum(v) + tl.sum(w + 1.0))\n    \
    tl.store(out + 1, tl.max(w))\n    tl.store(out + 2, e / tl.sum(e))\n    tl.store(out + n.to(tl.int64), tl.sum(v.to(tl.float16)))\n    \
    while n > 0:\n        break\n    return tl.float32(tl.cidv(n, 2))\n\n\n\
    rows[(4,)](run, run, run, SIZE)\n\n\n\
    if True:\n    @triton.jit\n    def nested(x):\n        helper(x)\n    nested[(1,)](run)\n";

/// The texts that are inserted, including brackets, quotes, indentation and every kind of line end.
const PIECES: [&str; 42] = [
    "",
    "x",
    "é",
    "😀",
    "\u{2028}",
    "\n",
    "\r\n",
    "\r",
    "\n    ",
    "    ",
    "\t",
    "(",
    ")",
    "[",
    "'",
    "\"\"\"",
    "# ",
    "\\",
    ":",
    "if x:\n",
    "@triton.jit\n",
    "def f(a, b):\n    return a\n",
    "y = tl.load(x)",
    "tl = 1\n",
    "language = tl.math\n",
    "k[(1,)](x)\n",
    "import triton.language as tl\n",
    "\u{c}",
    "tl.cidv(x)",
    "tl.float32(x)",
    "s = tl.sum(tl.load(x + i, mask=i < n))",
    "break",
    "# npu\n",
    "helper(x)",
    "f'{x",
    "}",
    "# warpsmith: ignore\n",
    "# warpsmith: signature x=*fp16\n",
    "SIZE = tl.constexpr(64)\n",
    "def SIZE(): pass\n",
    "def configs():\n    return [triton.Config({'B': b}) for b in [1, 2]]\n",
    "@triton.autotune(configs=[triton.Config({'B': b}) for b in [1, 2]], key=['n'])\n",
];

#[derive(Clone, Debug)]
struct Typed {
    /// The start and end of the edit, as fractions of the lines and columns of the text; above 1 they are past the end.
    start: (f64, f64),
    end: (f64, f64),
    text: String,
    encoding: Encoding,
    /// Whether the editor sends the whole new text.
    whole: bool,
    /// Whether the tree is read after the edit.
    parse: bool,
}

fn typed() -> impl Strategy<Value = Typed> {
    let place = || (0.0..1.05f64, 0.0..1.2f64);
    let text = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..4).prop_map(|pieces| pieces.concat());
    let encoding = prop::sample::select(&[Encoding::Utf8, Encoding::Utf16, Encoding::Utf32][..]);
    // Most edits are short: the end is near the start.
    let near = (prop::bool::weighted(0.7), place(), place());
    let whole = prop::bool::weighted(0.1);
    (near, text, encoding, whole, any::<bool>()).prop_map(|((near, start, end), text, encoding, whole, parse)| {
        let end = if near { (start.0, end.1.max(start.1)) } else { end };
        Typed {
            start: if start < end { start } else { end },
            end: if start < end { end } else { start },
            text,
            encoding,
            whole,
            parse,
        }
    })
}

/// The lines in the sense of LSP, each with its line end.
fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\n', '\r']) {
        let length = if rest[at..].starts_with("\r\n") { 2 } else { 1 };
        let (line, after) = rest.split_at(at + length);
        lines.push(line);
        rest = after;
    }
    lines.push(rest);
    lines
}

/// The position given by a fraction, and its byte offset according to LSP.
fn place(text: &str, (line, column): (f64, f64), encoding: Encoding) -> (Position, usize) {
    let lines = lines(text);
    let number = (line * lines.len() as f64) as usize;
    let Some(found) = lines.get(number) else {
        return (Position { line: number as u32, column: 3 }, text.len());
    };
    let content = found.trim_end_matches(['\n', '\r']);
    let units = |text: &str| match encoding {
        Encoding::Utf8 => text.len(),
        Encoding::Utf16 => text.encode_utf16().count(),
        Encoding::Utf32 => text.chars().count(),
    };
    let column = (column * (units(content) + 1) as f64) as usize;
    let inside = content.char_indices().map(|(at, _)| at).chain([content.len()]).rev();
    let byte = inside.into_iter().find(|&at| units(&content[..at]) <= column).expect("column 0 is inside");
    let start: usize = lines[..number].iter().map(|line| line.len()).sum();
    (Position { line: number as u32, column: column as u32 }, start + byte)
}

/// A node: kind, first and last byte, row and column, and whether it is an error or missing.
type Facts = (u16, usize, usize, usize, usize, bool, bool);

/// All nodes except the roots.
fn nodes<'a>(roots: impl Iterator<Item = Node<'a>>) -> Vec<Facts> {
    fn visit(cursor: &mut TreeCursor<'_>, out: &mut Vec<Facts>) {
        let (node, start) = (cursor.node(), cursor.node().start_position());
        let (first, last) = (node.start_byte(), node.end_byte());
        if node.parent().is_some() {
            out.push((node.kind_id(), first, last, start.row, start.column, node.is_error(), node.is_missing()));
        }
        if cursor.goto_first_child() {
            visit(cursor, out);
            while cursor.goto_next_sibling() {
                visit(cursor, out);
            }
            cursor.goto_parent();
        }
    }
    let mut out = Vec::new();
    roots.for_each(|root| visit(&mut root.walk(), &mut out));
    out
}

/// The tree of the whole text, parsed at once.
fn whole(text: &str) -> Tree {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_python::LANGUAGE.into()).expect("the grammar fits");
    parser.parse(text, None).expect("there is no time limit")
}

fn findings(source: &Source, module: &Module) -> Vec<Diagnostic> {
    rules::check_with(&RuleContext::new(source, module, TritonTarget::newest()), &Selection::default(), memory())
}

/// Learned rules that depend on a lot of state: values, names of the file, other text of it.
fn memory() -> &'static LearnedRules {
    static MEMORY: LazyLock<LearnedRules> = LazyLock::new(|| {
        let patterns = [
            "((attribute) @here (#unknown-member? @here))",
            "(call function: (_) @f arguments: (argument_list . (_) @here) (#api? @f \"tl.load\") (#not-constexpr? @here))",
            "((identifier) @here (#global? @here \"assigned\" \"function\" \"import\"))",
            "((identifier) @here (#undefined? @here))",
            "((binary_operator left: (_) @x) @here (#kind? @x \"int\" \"pointer\"))",
            "((identifier) @here (#inside? @here \"if_statement\"))",
        ];
        let rule = |(at, pattern): (usize, &&str)| LearnedRule {
            code: format!("S{:03}", at + 1),
            name: format!("rule-{at}"),
            sentence: "You cannot `{here}`.".to_owned(),
            state: RuleState::Promoted,
            origin: RuleOrigin::Synthesised(1),
            covered_by: Vec::new(),
            failures: 3,
            met: 3,
            first_seen: String::new(),
            last_seen: String::new(),
            error: TritonError::default(),
            triton: Releases {
                since: Table::versions().first().copied(),
                until: None,
                tried: Table::versions().to_vec(),
            },
            pattern: (*pattern).to_owned(),
            bad: String::new(),
            good: String::new(),
        };
        LearnedRules::new(patterns.iter().enumerate().map(rule))
    });
    &MEMORY
}

/// A record of everything that an analysis of a kernel might read.
#[derive(Clone, Debug, PartialEq)]
struct Fact {
    spans: Vec<Span>,
    texts: Vec<String>,
}

impl ShiftSpans for Fact {
    fn shift(&mut self, by: isize) {
        self.spans.shift(by);
    }
}

fn fact(source: &Source, module: &Module, kernel: &Kernel) -> Fact {
    let mut texts = Vec::new();
    let mut seen: Vec<Span> = Vec::new();
    let mut waiting: Vec<&Kernel> = vec![kernel];
    let names =
        |text: &str, name: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
    while let Some(kernel) = waiting.pop() {
        if seen.contains(&kernel.span) {
            continue;
        }
        seen.push(kernel.span);
        let text = source.slice(kernel.span);
        texts.push(text.to_owned());
        texts.extend(module.launches_of(&kernel.name).map(|launch| source.slice(launch.span).to_owned()));
        let hosts = module.launches_of(&kernel.name).filter_map(|launch| module.hosts.get(launch.host?));
        texts.extend(hosts.map(|host| source.slice(host.span).to_owned()));
        waiting.extend(module.kernels.iter().filter(|other| names(text, &other.name)));
    }
    texts.extend(
        module
            .kernels
            .iter()
            .filter(|caller| names(source.slice(caller.span), &kernel.name))
            .map(|caller| source.slice(caller.span).to_owned()),
    );
    // Globals that the texts mention, and those that their values mention.
    let mut rest: Vec<_> = module.globals.iter().collect();
    while let Some(at) = rest.iter().position(|global| texts.iter().any(|text| names(text, &global.name))) {
        texts.push(source.slice(rest.remove(at).span).to_owned());
    }
    texts.push(format!(
        "{} {}",
        module.uncertain.contains(&kernel.name),
        module.called_in_kernels().contains(&kernel.name)
    ));
    Fact { spans: kernel.body.iter().map(|stmt| stmt.span).chain([kernel.span]).collect(), texts }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn edits_lead_to_the_text_lines_and_tree_of_a_fresh_document(
        begin in prop::sample::select(vec![KERNEL.to_owned(), KERNEL.replace('\n', "\r\n"), KERNEL.replace('\n', "\r"), String::new()]),
        edits in prop::collection::vec(typed(), 1..25),
    ) {
        let mut document = Document::new(&begin);
        let mut last: Option<(Source, Module)> = None;
        let mut text = begin;
        for edit in edits {
            let (start, start_byte) = place(&text, edit.start, edit.encoding);
            let (end, end_byte) = place(&text, edit.end, edit.encoding);
            if end < start {
                prop_assert!(document.edit(start, end, &edit.text, edit.encoding).is_err());
                continue;
            }
            let mut now = text.clone();
            now.replace_range(start_byte..end_byte, &edit.text);
            if edit.whole {
                document.set_text(&now);
            } else {
                document.edit(start, end, &edit.text, edit.encoding).unwrap();
            }
            text = now;
            prop_assert_eq!(document.text(), text.as_str());
            if edit.parse {
                let (edited, fresh) = (document.source(), Source::parse(text.as_str()));
                prop_assert_eq!(&**edited.text(), text.as_str());
                prop_assert_eq!(edited.lines().count(), lines(&text).len());
                prop_assert_eq!(nodes(edited.roots()), nodes(fresh.roots()), "{:?}", text);
                if !fresh.has_error() {
                    let whole = whole(&text);
                    prop_assert_eq!(nodes(fresh.roots()), nodes([whole.root_node()].into_iter()), "{:?}", text);
                }
                let module = match last {
                    Some((source, module)) => Module::rebuild(&edited, module, &source),
                    None => Module::build(&edited),
                };
                let fresh_module = Module::build(&fresh);
                prop_assert_eq!(&module, &fresh_module, "{:?}", text);
                prop_assert_eq!(findings(&edited, &module), findings(&fresh, &fresh_module), "{:?}", text);
                for at in 0..module.kernels.len() {
                    let target = TritonTarget::newest();
                    let known = types::facts(&module, &text, target, at);
                    prop_assert_eq!(&*known, &types::infer(&fresh_module, &text, target, at, false), "{:?}", text);
                }
                for (kernel, fresh_kernel) in module.kernels.iter().zip(&fresh_module.kernels) {
                    let known = kernel.facts.get(0, || fact(&edited, &module, kernel));
                    prop_assert_eq!(&*known, &fact(&fresh, &fresh_module, fresh_kernel), "{:?}", text);
                }
                last = Some((edited, module));
            }
        }
    }
}
