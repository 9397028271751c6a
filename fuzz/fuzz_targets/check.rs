//! Any bytes: from the text to the findings, for a known and for an unknown version of Triton.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::api::Target;
use model::kernel::Module;
use rules::{Context, Selection, apply_edits};
use model::syntax::{Encoding, Source};

/// Without this nothing is Triton's; seeds need not bring it.
const HEADER: &str = "import triton\nimport triton.language as tl\n";

fuzz_target!(|bytes: &[u8]| {
    let text = format!("{HEADER}{}", String::from_utf8_lossy(bytes));
    let source = Source::parse(text.as_str());
    let module = Module::build(&source);
    let known = Target::of("3.6.0".parse().expect("a version"));
    for target in [known, Target::newest()] {
        for finding in rules::check(&Context::new(&source, &module, target), &Selection::default()) {
            assert!(text.get(finding.span.start..finding.span.end).is_some(), "{finding:?}");
            source.position(finding.span.end, Encoding::Utf16);
            if let Some(fix) = &finding.fix {
                apply_edits(&text, &fix.edits);
            }
        }
    }
});
