//! Variations of the arguments with which a failing kernel is compiled. What a pattern flags may compile for pointers to
//! other elements, for which patterns have no words.

use super::counterexamples::{VariationBase, replaced_in_turn};
use super::program::{KernelProgram, signature_comment};
use model::syntax::Span;

const ELEMENTS: &[&str] = &["i32", "fp32", "fp16", "i64"];
const SIZES: &[&str] = &["16", "1", "2", "100", "1024"];

/// The programs in which one argument of the kernel has another type or, while compiling, another value. Each argument
/// has its turn.
pub(crate) fn argument_variants(ground: &VariationBase<'_>) -> Vec<KernelProgram> {
    let text = &ground.program.text;
    let kernel = ground.parsed.module.kernel(&ground.program.kernel);
    let comment = kernel.and_then(|kernel| signature_comment(text, kernel.def_span.start));
    let Some(comment) = comment else { return Vec::new() };
    let (start, line) = (comment.start, ground.parsed.source.slice(comment));
    let arguments: Vec<(Span, Vec<String>)> = line
        .split(' ')
        .filter_map(|word| {
            let (_, value) = word.split_once('=')?;
            let at = start + (value.as_ptr() as usize - line.as_ptr() as usize);
            Some((Span::new(at, at + value.len()), others(value)))
        })
        .collect();
    replaced_in_turn(ground, &arguments)
}

/// What may stand in the comment in place of the type or value of an argument.
fn others(value: &str) -> Vec<String> {
    let (of, pointer) = value.strip_prefix('*').map_or((value, ""), |element| (element, "*"));
    let words = if of.parse::<i64>().is_ok() { SIZES } else { ELEMENTS };
    words.iter().filter(|word| **word != of).map(|word| format!("{pointer}{word}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsed_files::Parsed;

    #[test]
    fn each_argument_gets_other_types_or_values_in_turn() {
        let text =
            "import triton\n\n\n# warpsmith: signature k: p=*fp32 n=i32 B=64\n@triton.jit\ndef k(p, n, B):\n    pass\n";
        let (program, parsed) = (KernelProgram::new(text, "k"), Parsed::new(text));
        let found = argument_variants(&VariationBase::new(&program, &parsed));
        let lines: Vec<&str> = found.iter().take(4).filter_map(|program| program.text.lines().nth(3)).collect();
        assert_eq!(
            lines,
            [
                "# warpsmith: signature k: p=*i32 n=i32 B=64",
                "# warpsmith: signature k: p=*fp32 n=fp32 B=64",
                "# warpsmith: signature k: p=*fp32 n=i32 B=16",
                "# warpsmith: signature k: p=*fp16 n=i32 B=64",
            ]
        );
    }
}
