//! Triton's answers, mapped to positions in the user's files.

use std::path::PathBuf;

use model::kernel::Links;
use model::syntax::{Source, Span};

use super::extract::Extracted;
use super::protocol::{FrontEndError, LoweringReply};

/// Triton's verdict about a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Opinion {
    /// Triton compiles the kernel. The expressions have their types, if the type is the same in all iterations of
    /// loops.
    Accepts(Vec<(Span, Option<String>)>),
    /// Triton rejects the kernel.
    Refuses(CompilerError),
    /// The verdict is unknown, for this reason.
    Unknown(String),
}

/// An error of Triton.
#[derive(Clone, Debug, PartialEq)]
pub struct CompilerError {
    /// The span of the error in the kernel's file.
    pub span: Span,
    /// The message.
    pub message: String,
    /// The calls that lead to the error, and its place in a helper of another file.
    pub related: Vec<RelatedLocation>,
}

/// A related place of an error.
#[derive(Clone, Debug, PartialEq)]
pub struct RelatedLocation {
    /// The file; `None` for the kernel's own file.
    pub file: Option<PathBuf>,
    /// The span in the file.
    pub span: Span,
    /// How the place is related to the error.
    pub message: String,
}

/// The current files of a question.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// The kernel's file.
    pub source: &'a Source,
    /// The files that it imports.
    pub links: &'a Links,
    /// The slices that were sent to the compiler process.
    pub extracted: &'a [Extracted],
}

impl Files<'_> {
    fn text(&self, file: usize) -> Option<&str> {
        match self.extracted.get(file)?.file {
            None => Some(self.source.text()),
            Some(linked) => Some(&self.links.files().get(linked)?.text),
        }
    }

    fn path(&self, file: usize) -> Option<PathBuf> {
        let linked = self.extracted.get(file)?.file?;
        Some(self.links.files().get(linked)?.path.clone())
    }

    /// The byte offset in the original file of a line (from 1) and a column (in bytes) of a slice.
    fn offset(&self, file: usize, line: u32, column: u32) -> Option<usize> {
        let sent = self.extracted.get(file)?;
        let line = *sent.lines.get(line.checked_sub(1)? as usize)?;
        let text = self.text(file)?;
        let start = match line {
            0 => 0,
            line => text.match_indices('\n').nth(line as usize - 1)?.0 + 1,
        };
        let offset = start + column as usize;
        text.is_char_boundary(offset).then_some(offset)
    }

    fn span(&self, (file, line, column, end, end_column): (usize, u32, u32, u32, u32)) -> Option<Span> {
        let (start, end) = (self.offset(file, line, column)?, self.offset(file, end, end_column)?);
        (start <= end).then(|| self.first_line(file, Span::new(start, end)))
    }

    /// The part of a span on its first line, so that no whole loop is underlined.
    fn first_line(&self, file: usize, span: Span) -> Span {
        let text = self.text(file).and_then(|text| text.get(span.start..span.end)).unwrap_or("");
        let length = text.find(['\r', '\n']).unwrap_or(text.len());
        Span::new(span.start, span.start + length)
    }

    /// The span from a position to the end of its line.
    fn rest_of_line(&self, file: usize, line: u32, column: u32) -> Option<Span> {
        let start = self.offset(file, line, column)?;
        let rest = self.text(file)?.get(start..)?;
        let length = rest.find(['\r', '\n', '#']).unwrap_or(rest.len());
        Some(Span::new(start, start + rest[..length].trim_end().len()))
    }
}

/// Converts an answer. `head` is the span of the kernel's name, which is used for errors without a better place.
#[must_use]
pub(crate) fn opinion(answer: &LoweringReply, files: Files<'_>, head: Span) -> Opinion {
    if answer.accepted {
        let place = |&(file, line, column, end, end_column, _): &(usize, u32, u32, u32, u32, Vec<String>)| {
            let (start, end) = (files.offset(file, line, column)?, files.offset(file, end, end_column)?);
            (file == 0 && start <= end).then(|| Span::new(start, end))
        };
        let single = |kinds: &Vec<String>| kinds.first().filter(|_| kinds.len() == 1).cloned();
        return Opinion::Accepts(
            answer.types.iter().filter_map(|known| Some((place(known)?, single(&known.5)))).collect(),
        );
    }
    if let Some(error) = &answer.error {
        return match complaint(error, files, head) {
            Some(complaint) => Opinion::Refuses(complaint),
            None => {
                Opinion::Unknown(format!("the place of an error is not in the files that were sent: {}", error.message))
            }
        };
    }
    let why = answer.not_lowerable.as_ref().or(answer.crashed.as_ref()).map_or("it was not asked", String::as_str);
    Opinion::Unknown(why.to_owned())
}

fn complaint(error: &FrontEndError, files: Files<'_>, head: Span) -> Option<CompilerError> {
    if let Some((message, file, line, column)) = error.verifier.first() {
        let span = files.rest_of_line(*file, *line, *column)?;
        if *file == 0 {
            return Some(CompilerError { span, message: plain(message), related: Vec::new() });
        }
        let place = RelatedLocation { file: files.path(*file), span, message: "the operation".to_owned() };
        return Some(CompilerError { span: head, message: plain(message), related: vec![place] });
    }
    let message = plain(&error.message);
    if error.places.is_empty() {
        return Some(CompilerError { span: head, message, related: Vec::new() });
    }
    // The error is shown at the innermost place in this file; outer and inner places are related.
    let here = error.places.iter().rposition(|place| place.0 == 0)?;
    let related = error.places.iter().enumerate().filter(|(at, _)| *at != here).filter_map(|(at, place)| {
        let message = if at < here { "called from here" } else { "the error is in here" };
        Some(RelatedLocation { file: files.path(place.0), span: files.span(*place)?, message: message.to_owned() })
    });
    Some(CompilerError { span: files.span(error.places[here])?, message, related: related.collect() })
}

/// The message of an error without repeated lines.
fn plain(message: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in message.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.is_empty() { "Triton refuses this and does not say why".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract;
    use model::kernel::Module;

    const TEXT: &str = "import torch\nimport triton\nimport triton.language as tl\n\nx = torch.ones(1)\n\n@triton.jit\ndef helper(é):\n    return tl.abs(é) + oops\n\n@triton.jit\ndef k(x):\n    for i in range(3):\n        helper(x)\n";

    fn judged(answer: &LoweringReply) -> Opinion {
        let source = Source::parse(TEXT);
        let module = Module::build(&source);
        let kernel = module.kernel("k").unwrap();
        let extracted = extract(&source, &module, kernel).unwrap();
        // The slice has two imports, the helper on lines 3 to 5 and the kernel on lines 6 to 9.
        assert_eq!(extracted[0].lines, [1, 2, 6, 7, 8, 10, 11, 12, 13]);
        opinion(answer, Files { source: &source, links: module.links(), extracted: &extracted }, kernel.name_span)
    }

    fn refusal(places: &[(usize, u32, u32, u32, u32)], message: &str) -> LoweringReply {
        let error = FrontEndError {
            kind: "NameError".to_owned(),
            message: message.to_owned(),
            places: places.to_vec(),
            verifier: Vec::new(),
        };
        LoweringReply { error: Some(error), ..LoweringReply::default() }
    }

    fn slice(span: Span) -> &'static str {
        &TEXT[span.start..span.end]
    }

    #[test]
    fn error_positions_are_mapped_to_the_original_file() {
        let answer = refusal(&[(0, 9, 8, 9, 17), (0, 5, 24, 5, 28)], "oops is not defined");
        let Opinion::Refuses(complaint) = judged(&answer) else { panic!() };
        assert_eq!(slice(complaint.span), "oops");
        assert_eq!(complaint.message, "oops is not defined");
        assert_eq!(complaint.related.iter().map(|place| slice(place.span)).collect::<Vec<_>>(), ["helper(x)"]);
    }

    #[test]
    fn long_statements_are_marked_by_their_first_line() {
        let Opinion::Refuses(complaint) = judged(&refusal(&[(0, 8, 4, 9, 17)], "no")) else { panic!() };
        assert_eq!(slice(complaint.span), "for i in range(3):");
    }

    #[test]
    fn verifier_errors_are_shown_at_their_position() {
        let mut answer = refusal(&[], "");
        answer.error.as_mut().unwrap().verifier = vec![("'tt.load' op no".to_owned(), 0, 9, 8)];
        let Opinion::Refuses(complaint) = judged(&answer) else { panic!() };
        assert_eq!((slice(complaint.span), complaint.message.as_str()), ("helper(x)", "'tt.load' op no"));
    }

    #[test]
    fn an_error_without_a_position_is_shown_at_the_kernels_name() {
        let Opinion::Refuses(complaint) = judged(&refusal(&[], "it isn't\nit isn't")) else { panic!() };
        assert_eq!((slice(complaint.span), complaint.message.as_str()), ("k", "it isn't"));
    }

    #[test]
    fn accepted_types_are_mapped_and_a_missing_answer_has_a_reason() {
        let types = vec![
            (0, 5, 18, 5, 20, vec!["fp32".to_owned()]),
            (0, 9, 8, 9, 17, vec!["fp32".to_owned(), "int32".to_owned()]),
        ];
        let Opinion::Accepts(types) = judged(&LoweringReply { accepted: true, types, ..LoweringReply::default() })
        else {
            panic!()
        };
        let types: Vec<_> = types.iter().map(|(span, kind)| (slice(*span), kind.as_deref())).collect();
        assert_eq!(types, [("é", Some("fp32")), ("helper(x)", None)]);
        let answer = LoweringReply { crashed: Some("signal 6".to_owned()), ..LoweringReply::default() };
        assert_eq!(judged(&answer), Opinion::Unknown("signal 6".to_owned()));
    }
}
