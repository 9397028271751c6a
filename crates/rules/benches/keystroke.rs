//! The work of one keystroke: the edit, the trees and the model of what changed, and all rules.
//!
//! `cargo bench -p rules` prints the times for the middle of a file of about 1,000 lines, in a comment, in the body of a kernel
//! and in a host function. The server does this once for each batch of edits, on the thread of the owner.

use divan::{Bencher, black_box};
use model::api::TritonTarget;
use model::kernel::Module;
use model::syntax::{Document, Encoding, Position, Source};
use rules::{Diagnostic, RuleContext, Selection};

fn main() {
    divan::main();
}

/// A kernel with the function that launches it, about 40 lines.
const PART: &str = include_str!("../../../examples/layer_norm.py");
const PARTS: usize = 17;

/// The text that is typed and removed again, and where.
const PLACES: [&str; 3] = ["comment", "kernel", "host"];

fn file() -> String {
    let part = |number: usize| PART.replace("layer_norm", &format!("layer_norm_{number}"));
    (0..PARTS).map(part).collect()
}

/// The position of the middle of the file at which the edits are made.
fn position(text: &str, place: &str) -> Position {
    let anchor = match place {
        "comment" => "#",
        "kernel" => "tl.load(",
        _ => "torch.empty",
    };
    let middle = text.len() / 2;
    let at = middle + text[middle..].find(anchor).expect("the example has the anchor") + anchor.len();
    let line = text[..at].matches('\n').count();
    let column = at - text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    Position { line: u32::try_from(line).unwrap_or(0), column: u32::try_from(column).unwrap_or(0) }
}

/// An open file, as the server keeps it.
struct Open {
    document: Document,
    source: Source,
    module: Option<Module>,
}

impl Open {
    fn new(text: &str) -> Self {
        let mut document = Document::new(text);
        let source = document.source();
        let module = Some(Module::build(&source));
        Self { document, source, module }
    }

    /// Types `text`, or removes it, and checks the file.
    fn keystroke(&mut self, at: Position, text: &str, is_removal: bool) -> Vec<Diagnostic> {
        let width = u32::try_from(text.len()).unwrap_or(0);
        let end = Position { column: at.column + if is_removal { width } else { 0 }, ..at };
        let typed = if is_removal { "" } else { text };
        self.document.edit(at, end, typed, Encoding::Utf8).expect("the range is not inverted");
        let source = self.document.source();
        let module = match self.module.take() {
            Some(before) => Module::rebuild(&source, before, &self.source),
            None => Module::build(&source),
        };
        let found = check(&source, &module);
        (self.source, self.module) = (source, Some(module));
        found
    }
}

fn check(source: &Source, module: &Module) -> Vec<Diagnostic> {
    rules::check(&RuleContext::new(source, module, TritonTarget::newest()), &Selection::default())
}

#[divan::bench(args = PLACES)]
fn keystroke(bencher: Bencher<'_, '_>, place: &str) {
    let text = file();
    let at = position(&text, place);
    let mut open = Open::new(&text);
    black_box(open.keystroke(at, "x", false));
    black_box(open.keystroke(at, "x", true));
    let mut is_removal = true;
    bencher.bench_local(|| {
        is_removal = !is_removal;
        black_box(open.keystroke(at, "x", is_removal))
    });
}

#[divan::bench]
fn open_and_check(bencher: Bencher<'_, '_>) {
    let text = file();
    bencher.bench_local(|| {
        let source = Source::parse(text.as_str());
        let module = Module::build(&source);
        black_box(check(&source, &module))
    });
}
