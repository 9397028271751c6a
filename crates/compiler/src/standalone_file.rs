//! Self-contained reproducers of questions: one file with the slice of a kernel and a signature comment.

use super::protocol::{FrontEndError, LoweringReply};
use super::question::CompileQuestion;
use super::signatures::{Constant, Guess};

/// A self-contained file, of which one kernel was lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandaloneFile {
    /// The text of the file.
    pub text: String,
    /// The number of bytes before the slice that was sent.
    before: usize,
}

impl StandaloneFile {
    /// The reproducer of a question under a guess; `None` if one file and a comment cannot express it.
    #[must_use]
    pub fn of(question: &CompileQuestion, guess: &Guess) -> Option<Self> {
        let [file] = question.extracted.as_slice() else { return None };
        if !file.imports.is_empty() || !file.assumed.is_empty() || question.is_of_file() {
            return None;
        }
        let constants = guess.constexprs.iter().map(|(name, value)| Some(format!("{name}={}", written(value)?)));
        let types = guess.signature.iter().map(|(name, word)| Some(format!("{name}={word}")));
        let pairs: Vec<String> = types.chain(constants).collect::<Option<_>>()?;
        let head = format!("# warpsmith: signature {}: {}\n", question.kernel, pairs.join(" "));
        Some(Self { before: head.len(), text: head + &file.text })
    }

    /// The start and end of an error's place in the text, in bytes, if it has one.
    #[must_use]
    pub fn place(&self, error: &FrontEndError) -> Option<(usize, usize)> {
        if let Some((_, 0, line, column)) = error.verifier.first() {
            let start = self.offset(*line, *column)?;
            let length = self.text[start..].find('\n').unwrap_or(self.text.len() - start);
            return Some((start, start + length));
        }
        let (_, line, column, end, end_column) = error.places.iter().rfind(|place| place.0 == 0)?;
        let (start, end) = (self.offset(*line, *column)?, self.offset(*end, *end_column)?);
        (start <= end).then_some((start, end))
    }

    /// The byte offset of a line (from 1) and a column (in bytes) of the slice that was sent.
    fn offset(&self, line: u32, column: u32) -> Option<usize> {
        let sent = &self.text[self.before..];
        let start = match line.checked_sub(1)? {
            0 => 0,
            line => sent.match_indices('\n').nth(line as usize - 1)?.0 + 1,
        };
        let offset = self.before + start + column as usize;
        self.text.is_char_boundary(offset).then_some(offset)
    }
}

/// The error of an answer, if any: the type of the exception and its message.
#[must_use]
pub fn error_of(answer: &LoweringReply) -> Option<(&str, &str)> {
    let error = answer.error.as_ref()?;
    let message = error.verifier.first().map_or(error.message.as_str(), |(message, ..)| message.as_str());
    Some((error.kind.as_str(), message))
}

/// A value in the syntax of a signature comment.
fn written(value: &Constant) -> Option<String> {
    Some(match value {
        Constant::None => "None".to_owned(),
        Constant::Bool(true) => "True".to_owned(),
        Constant::Bool(false) => "False".to_owned(),
        Constant::Int(value) => value.to_string(),
        Constant::Float(value) => format!("{value:?}"),
        Constant::Str(text) if !text.contains(['"', '\\', '\n']) => format!("\"{text}\""),
        Constant::Dtype(name) => format!("tl.{name}"),
        Constant::Str(_) | Constant::Tuple(_) | Constant::Dict(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompileTarget, GuessOrigin, guesses};
    use model::kernel::Module;
    use model::syntax::Source;

    const TEXT: &str = "import torch\nimport triton\nimport triton.language as tl\n\n\ndef host():\n    pass\n\n\n# warpsmith: signature x=*fp16 n=i32 \
        B=64 F=True K=\"a b\" E=1e-5 D=tl.float16 O=None\n@triton.jit\ndef k(x, n, B: tl.constexpr, F: tl.constexpr, K: tl.constexpr, E: tl.constexpr, D: \
        tl.constexpr, O: tl.constexpr):\n    y = tl.load(x + oops)\n";

    /// A reproducer leads to the same question again.
    #[test]
    fn a_reproducer_leads_to_the_same_question() {
        let source = Source::parse(TEXT);
        let module = Module::build(&source);
        let question = CompileQuestion::of(&source, &module, &module.kernels[0], &CompileTarget::default()).unwrap();
        let guess = &question.guesses[0];
        let program = StandaloneFile::of(&question, guess).unwrap();
        assert!(!program.text.contains("host"), "{}", program.text);
        let (again, line) = (Source::parse(program.text.as_str()), program.text.lines().count());
        let module = Module::build(&again);
        let known = guesses(&module, &module.kernels[0], &program.text);
        assert_eq!(known.len(), 1);
        assert_eq!((&known[0].signature, &known[0].constexprs), (&guess.signature, &guess.constexprs));
        assert_eq!(known[0].certainty, GuessOrigin::Written);
        let line = u32::try_from(line).unwrap() - 1;
        let places = vec![(1, 1, 0, 1, 3), (0, line, 20, line, 24)];
        let error =
            FrontEndError { kind: "NameError".to_owned(), message: String::new(), places, verifier: Vec::new() };
        let (start, end) = program.place(&error).unwrap();
        assert_eq!(&program.text[start..end], "oops");
        let verifier = vec![("no".to_owned(), 0, line, 4)];
        let (start, end) = program.place(&FrontEndError { verifier, ..error.clone() }).unwrap();
        assert_eq!(&program.text[start..end], "y = tl.load(x + oops)");
        assert_eq!(program.place(&FrontEndError { places: vec![(0, 99, 0, 99, 1)], ..error }), None);
    }
}
