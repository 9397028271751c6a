//! A program that can be compiled by itself: a file whose kernel has its signature in a comment.

use compiler::protocol::{LoweringRequest, SourceFile};
use compiler::{CompileTarget, GuessOrigin, guesses};
use model::kernel::Module;
use model::syntax::{Source, Span};

/// The time limit of one compilation, in seconds. Small kernels take milliseconds, even on a busy machine.
const SECONDS: f64 = 30.0;

/// The span of the line with the signature comment of the kernel that begins at a place: the last one above it.
pub(crate) fn signature_comment(text: &str, kernel_start: usize) -> Option<Span> {
    let start = text.get(..kernel_start)?.rfind("# warpsmith: signature")?;
    Some(Span::new(start, start + text[start..].find('\n')?))
}

/// A whole Python file and the name of the kernel in it that is compiled.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelProgram {
    /// The text of the file.
    pub text: String,
    /// The name of the kernel.
    pub kernel: String,
}

impl KernelProgram {
    /// A program from a text, which should give the kernel's signature in a comment.
    #[must_use]
    pub fn new(text: impl Into<String>, kernel: impl Into<String>) -> Self {
        Self { text: text.into(), kernel: kernel.into() }
    }

    /// The same kernel in another text.
    #[must_use]
    pub fn with(&self, text: impl Into<String>) -> Self {
        Self::new(text, self.kernel.clone())
    }

    /// The compilation request; `None` when no comment gives the kernel's signature.
    #[must_use]
    pub fn request(&self, types: bool) -> Option<LoweringRequest> {
        let source = Source::parse(self.text.as_str());
        let module = Module::build(&source);
        let kernel = module.kernel(&self.kernel)?;
        let guess = guesses(&module, kernel, &self.text).into_iter().next()?;
        if guess.certainty != GuessOrigin::Written {
            return None;
        }
        let device = CompileTarget::default();
        let json = |(name, value): (&String, _)| (name.clone(), serde_json::to_value(value).unwrap_or_default());
        let arch = device.arch.parse::<u32>().map_or_else(|_| device.arch.clone().into(), Into::into);
        Some(LoweringRequest {
            id: 0,
            files: vec![SourceFile { name: "program".to_owned(), text: self.text.clone(), ..SourceFile::default() }],
            kernel: self.kernel.clone(),
            signature: guess.signature.clone(),
            constexprs: guess.constexprs.iter().map(json).collect(),
            aligned: Vec::new(),
            target: (device.backend, arch, device.warp),
            options: Default::default(),
            types,
            full: None,
            seconds: SECONDS,
            in_series: !types,
        })
    }
}
