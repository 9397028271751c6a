//! Any edits: the model and the findings of an edited text are those of a fresh one.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::api::Target;
use model::kernel::Module;
use rules::{Context, Selection};
use model::syntax::{Document, Encoding, Position, Source};

const HEADER: &str = "import triton\nimport triton.language as tl\n";

/// The bytes are a text, `\xff`, and edits: line, column, length and what is typed, up to the next `\xff`.
fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.split(|&byte| byte == 0xff);
    let mut text = format!("{HEADER}{}", String::from_utf8_lossy(parts.next().unwrap_or_default()));
    let mut document = Document::new(&text);
    let mut before: Option<(Source, Module)> = None;
    for part in parts.take(50) {
        let &[line, column, length, ref typed @ ..] = part else { continue };
        let typed = String::from_utf8_lossy(typed);
        let source = Source::parse(text.as_str());
        let line = u32::from(line) % u32::try_from(source.lines().count()).unwrap_or(1);
        let start = source.offset(Position { line, column: column.into() }, Encoding::Utf8);
        let mut end = (start + usize::from(length)).min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let end = end.max(start);
        let place = |offset| source.position(offset, Encoding::Utf16);
        if document.edit(place(start), place(end), &typed, Encoding::Utf16).is_err() {
            continue;
        }
        // Between the `\r` and the `\n` of one line break no position is: the edit was elsewhere then.
        text = document.text();
        let (edited, fresh) = (document.source(), Source::parse(text.as_str()));
        let module = match before.take() {
            Some((source, module)) => Module::rebuild(&edited, module, &source),
            None => Module::build(&edited),
        };
        let fresh_module = Module::build(&fresh);
        assert_eq!(module, fresh_module, "{text:?}");
        let findings = |source, module| {
            rules::check(&Context::new(source, module, Target::newest()), &Selection::default())
        };
        assert_eq!(findings(&edited, &module), findings(&fresh, &fresh_module), "{text:?}");
        before = Some((edited, module));
    }
});
