//! The conversion of a question's result to the verdict that is kept with the kernel.

use std::path::Path;

use model::analysis::verdict::FrontEndOutcome;
use model::kernel::{Kernel, Module};
use model::syntax::Source;

use super::compiler_errors::{CompilerError, Files, Opinion, opinion};
use super::question::{CompileQuestion, QuestionResult};

/// The verdict of a settled question, with positions in the current file.
#[must_use]
pub fn said(
    source: &Source,
    module: &Module,
    kernel: &Kernel,
    question: &CompileQuestion,
    settled: QuestionResult,
) -> FrontEndOutcome {
    let (answer, is_certain) = match settled {
        QuestionResult::Accepted(answer, is_certain) => (answer, is_certain),
        QuestionResult::Refused(answer) => (answer, true),
        QuestionResult::Unknown(why) => return FrontEndOutcome::Unknown(why),
    };
    let files = Files { source, links: module.links(), extracted: &question.extracted };
    match opinion(&answer, files, kernel.name_span) {
        Opinion::Accepts(types) => {
            let own: Vec<_> = types.into_iter().filter(|(span, _)| kernel.span.contains(*span)).collect();
            let compiled = own.iter().map(|(span, _)| *span).collect();
            let types = own.into_iter().filter(|_| is_certain).filter_map(|(span, kind)| Some((span, kind?)));
            FrontEndOutcome::Accepted { compiled, types: types.collect() }
        }
        Opinion::Refuses(complaint) => refused(kernel, complaint),
        Opinion::Unknown(why) => FrontEndOutcome::Unknown(why),
    }
}

/// The error with a place in the kernel: an error in a helper is shown where the kernel calls the helper.
fn refused(kernel: &Kernel, complaint: CompilerError) -> FrontEndOutcome {
    let CompilerError { span, mut message, related } = complaint;
    let mut places: Vec<_> =
        related.iter().filter(|place| place.file.is_none()).map(|place| (place.span, place.message.clone())).collect();
    for place in related.iter().filter(|place| place.file.is_some()) {
        let name = place.file.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        message = format!("{message} (in a helper of {})", name.unwrap_or_default());
    }
    if kernel.span.contains(span) {
        return FrontEndOutcome::Refused { span, message, related: places };
    }
    let call = places.iter().position(|(place, _)| kernel.span.contains(*place)).map(|at| places.remove(at).0);
    places.push((span, "the error is in here".to_owned()));
    FrontEndOutcome::Refused { span: call.unwrap_or(kernel.name_span), message, related: places }
}
