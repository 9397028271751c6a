//! Tests of the context of the cursor.

use model::syntax::Span;

use crate::cursor::{Cursor, Inside, statement_end};

/// The cursor at `|`, and the text without it.
fn at(text: &str) -> (String, Cursor) {
    let offset = text.find('|').unwrap();
    let text = text.replacen('|', "", 1);
    let cursor = Cursor::at(&text, 0, offset);
    (text, cursor)
}

#[test]
fn the_receiver_is_the_expression_before_the_dot() {
    for (text, expected) in [
        ("x = tl.|", Some("tl")),
        ("x = tl.ma|th\n", Some("tl")),
        ("x = a + triton.language.|\n    y = 1", Some("triton.language")),
        ("f(tl.|", Some("tl")),
        ("x[0](1).|", Some("x[0](1)")),
        ("(a + b).|", Some("(a + b)")),
        ("x = 1.|", None),
        ("x = |tl.load", None),
    ] {
        let (text, cursor) = at(text);
        assert_eq!(cursor.receiver.map(|span| &text[span.start..span.end]), expected, "{text}");
    }
}

#[test]
fn the_cursor_detects_strings_and_comments() {
    for (text, inside) in [
        ("x = 'a|b'", Inside::String),
        ("x = 'ab|", Inside::String),
        ("x = 'ab'|", Inside::Code),
        ("x = 'it\\'s |'", Inside::String),
        ("'''\n'|\n'''", Inside::String),
        ("'''a'''\n|", Inside::Code),
        ("x = 'unfinished\ny = |", Inside::Code),
        ("# tl.|", Inside::Comment),
        ("# a\ntl|", Inside::Code),
        ("x = '#'; |", Inside::Code),
        ("'''\n |", Inside::String),
    ] {
        assert_eq!(at(text).1.inside, inside, "{text}");
    }
}

#[test]
fn calls_count_their_arguments() {
    for (text, callee, commas, keyword, fresh) in [
        ("tl.load(|", Some("tl.load"), 0, None, true),
        ("tl.load(p, |", Some("tl.load"), 1, None, true),
        ("tl.load(p + o, oth|", Some("tl.load"), 1, None, true),
        ("tl.load(p, mask=|", Some("tl.load"), 1, Some("mask"), false),
        ("tl.load(p, mask=a == b, other=(x, |", Some("tl.load"), 2, Some("other"), false),
        ("k[grid](x, |", Some("k[grid]"), 1, None, true),
        ("k[lambda m: (n,)](x, f=lambda a, b: (a, b), |", Some("k[lambda m: (n,)]"), 2, None, true),
        ("def f(a, |", None, 0, None, false),
        ("x = (a, |", None, 0, None, false),
        ("f(a)(|", Some("f(a)"), 0, None, true),
        ("f(a, b\ndef g(): |", None, 0, None, false),
        ("f(a == b, |", Some("f"), 1, None, true),
        ("f(a ]), |", None, 0, None, false),
    ] {
        let (text, cursor) = at(text);
        let slice = |span: Span| &text[span.start..span.end];
        let call = cursor.call();
        assert_eq!(call.and_then(|call| call.callee).map(slice), callee, "{text}");
        let Some(call) = call else { continue };
        assert_eq!((call.commas, call.keyword.map(slice)), (commas, keyword), "{text}");
        assert_eq!(cursor.fresh_argument().is_some(), fresh, "{text}");
    }
}

#[test]
fn the_cursor_accepts_any_text_and_offset() {
    let text = "a = '''é\\\nx(😀[{\"\"\"\\";
    for start in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
        for offset in start..=text.len() {
            let cursor = Cursor::at(text, start, offset);
            assert!(cursor.word.start <= offset && statement_end(text, &cursor) <= text.len());
        }
    }
}
