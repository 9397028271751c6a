//! Substitutes for a value in a kernel. Each is assigned to a name in the line before, because some places accept only
//! a name.

use model::syntax::{Span, node_span};

use super::counterexamples::VariationBase;
use super::surrounding::statement_of;

/// The name to which the substitute is assigned.
const NAME: &str = "other_form";

/// Element types to which values are cast.
const TYPES: &[&str] = &["float32", "int32", "float16", "int64"];

/// The texts in which something else replaces the value at a place: the same value with another type or rank, tiles,
/// scalars, tuples, constants, and pointers that the kernel has.
pub(super) fn forms(
    ground: &VariationBase<'_>,
    span: Span,
    tl: &str,
    (sizes, pointers): (&[String], &[String]),
) -> Vec<String> {
    let source = &ground.parsed.source;
    let value = source.slice(span);
    let is_plain = !value.contains('\n') && value.len() < 60;
    let mut values: Vec<String> = Vec::new();
    if is_plain {
        values.extend(TYPES.iter().map(|element| format!("({value}).to({tl}{element})")));
        values.push(format!("({value}) != 0"));
        // For a pointer: a cast to other elements.
        values.push(format!("({value}).to({tl}pointer_type({tl}int64))"));
        values.push(format!("{tl}expand_dims({value}, 0)"));
        values.push(format!("{tl}sum({value}, 0)"));
        values.push(format!("({value}, {value})"));
    }
    for pointer in pointers {
        values.push(format!("({pointer}).to({tl}pointer_type({tl}int64))"));
        values.push(format!("({pointer}).to({tl}int64)"));
    }
    for size in sizes.iter().map(String::as_str).chain(["16"]).take(2) {
        values.push(format!("{tl}arange(0, {size})"));
        values.push(format!("{tl}zeros(({size},), {tl}float32)"));
        values.push(format!("{tl}zeros(({size}, {size}), {tl}float16)"));
        values.push(format!("{size} > 1"));
    }
    values.push(format!("{tl}zeros((16, 32), {tl}float32)"));
    values.push(format!("{tl}program_id(0)"));
    values.push(format!("{tl}program_id(0).to({tl}float32)"));
    values.push(format!("{tl}program_id(0) == 0"));
    values.extend(["16", "2.0", "None"].map(str::to_owned));
    values.iter().filter_map(|value| before(ground, span, value)).collect()
}

/// Whether the error is in the inserted assignment itself, so that it says nothing about the place.
pub(super) fn is_of_form(text: &str, failing: Option<Span>) -> bool {
    let Some(span) = failing else { return false };
    let line = text.get(..span.start).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
    let rest = text.get(span.start..).unwrap_or_default();
    format!("{line}{rest}").trim_start().starts_with(&format!("{NAME} = "))
}

/// The text with a value assigned in a line before the statement, and its name at the place.
fn before(ground: &VariationBase<'_>, span: Span, value: &str) -> Option<String> {
    let source = &ground.parsed.source;
    let statement = statement_of(source.node_at(span)?)?;
    let (text, start) = (source.text(), node_span(statement).start);
    let line = text[..start].rfind('\n').map_or(0, |end| end + 1);
    let indent = text.get(line..start).filter(|indent| indent.trim().is_empty())?;
    let (between, after) = (text.get(start..span.start)?, text.get(span.end..)?);
    Some(format!("{}{NAME} = {value}\n{indent}{between}{NAME}{after}", &text[..start]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsed_files::Parsed;
    use crate::program::KernelProgram;

    const TEXT: &str = "import triton\nimport triton.language as tl\n\n\n# warpsmith: signature n=i32 B=16\n@triton.jit\ndef k(n, B: tl.constexpr):\n    x = tl.arange(0, B)\n    if n > 1:\n        y = tl.exp(x)\n";

    fn texts() -> (Vec<String>, usize) {
        let (program, parsed) = (KernelProgram::new(TEXT, "k"), Parsed::new(TEXT));
        let at = TEXT.rfind("x)").unwrap_or_default();
        let ground = VariationBase::new(&program, &parsed);
        (forms(&ground, Span::new(at, at + 1), "tl.", (&["B".to_owned()], &["p + x".to_owned()])), at)
    }

    #[test]
    fn a_substitute_is_assigned_in_the_line_before() {
        let (texts, _) = texts();
        assert!(
            texts[0]
                .ends_with("    if n > 1:\n        other_form = (x).to(tl.float32)\n        y = tl.exp(other_form)\n"),
            "{}",
            texts[0]
        );
        assert!(texts.iter().any(|text| text.contains("other_form = tl.zeros((B,), tl.float32)\n")));
        assert!(texts.iter().any(|text| text.contains("other_form = (p + x).to(tl.pointer_type(tl.int64))\n")));
        assert!(texts.iter().all(|text| Parsed::new(text).module.kernel("k").is_some()));
    }

    #[test]
    fn an_error_in_the_inserted_line_is_recognized() {
        let (texts, at) = texts();
        let value = texts[0].find("(x).to").unwrap_or_default();
        assert!(is_of_form(&texts[0], Some(Span::new(value, value + 1))));
        let call = texts[0].rfind("tl.exp").unwrap_or_default();
        assert!(call > at && !is_of_form(&texts[0], Some(Span::new(call, call + 6))));
        assert!(!is_of_form(&texts[0], None));
    }
}
