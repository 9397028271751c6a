//! Property tests over arbitrary texts and positions: nothing panics, and every returned position is inside the text.

use proptest::prelude::*;

use model::api::TritonTarget;
use model::kernel::Module;
use model::syntax::{Source, Span};

use super::kernel;
use crate::cursor_context::CursorContext;
use crate::hints::hints;
use crate::outline::outline;
use crate::tokens::tokens;
use crate::{complete, names, signature};

const PIECES: [&str; 24] = [
    "",
    "tl.",
    "tl.load(",
    "(",
    ")",
    "[",
    "]",
    "'",
    "\"\"\"",
    "# ",
    "\\",
    "\n",
    "\r\n    ",
    ":",
    ", ",
    "=",
    "lambda a, ",
    "é😀",
    "def f(a, *, b=",
    "@triton.jit\n",
    "scale[grid](",
    "for offsets in ",
    "x_ptr, n = n, ",
    "from triton.language import ",
];

/// Edits of a file as pairs of a place and a text, and the place of the cursor; places are fractions of the length.
fn edited() -> impl Strategy<Value = (String, usize)> {
    let edit = (0.0..1.0f64, 0.0..0.1f64, prop::sample::select(&PIECES[..]));
    (prop::collection::vec(edit, 0..6), 0.0..1.01f64).prop_map(|(edits, cursor)| {
        let mut text = kernel("x = tl.load(x_ptr + offsets, mask=offsets < n)\nhelper(x, b='a')");
        for (start, length, piece) in edits {
            let floor = |share: f64| {
                let at = (share * text.len() as f64) as usize;
                (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap()
            };
            let range = floor(start)..floor((start + length).min(1.0)).max(floor(start));
            text.replace_range(range, piece);
        }
        let cursor = (cursor * text.len() as f64) as usize;
        (text, cursor)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn requests_on_arbitrary_texts_neither_panic_nor_leave_the_text((text, offset) in edited()) {
        let source = Source::parse(text.as_str());
        let module = Module::build(&source);
        let all = Span::new(0, text.len());
        let is_of_text = |span: Span| span.start <= span.end && text.get(span.start..span.end).is_some();
        let place = CursorContext::new(&source, &module, TritonTarget::newest(), 0, offset);
        if let Some(offer) = complete::at(&place) {
            prop_assert!(is_of_text(offer.word) && offer.word.touches(place.cursor.offset));
        }
        if let Some(signature) = signature::at(&place) {
            prop_assert!(signature.active.is_none_or(|active| active < signature.params.len()));
            prop_assert!(signature.params.iter().all(|param| signature.label.get(param.span.start..param.span.end).is_some()));
        }
        prop_assert!(names::definitions(&source, &module, offset).into_iter().all(is_of_text));
        if let Some((symbol, span)) = names::at(&source, &module, offset) {
            let places = names::occurrences(&source, &module, symbol);
            prop_assert!(places.iter().any(|place| place.span == span), "{symbol:?} at {span:?} is not in {places:?}");
            prop_assert!(places.iter().all(|place| is_of_text(place.span)));
        }
        let tokens = tokens(&source, &module, TritonTarget::newest(), all);
        prop_assert!(tokens.is_sorted_by(|a, b| a.span.end <= b.span.start), "{tokens:?}");
        prop_assert!(hints(&module, &text, TritonTarget::newest(), all, &|_| true).iter().all(|hint| text.is_char_boundary(hint.offset)));
        prop_assert!(outline(&source, &module).iter().all(|entry| is_of_text(entry.span) && entry.span.contains(entry.name_span)));
    }
}
