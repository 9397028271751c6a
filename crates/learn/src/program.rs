//! A program that can be lowered: a file with one kernel whose signature stands in a comment.

use compiler::protocol::{Request, SourceFile};
use compiler::{Certainty, Device, guesses};
use model::kernel::Module;
use model::syntax::Source;

/// How long one lowering may take. Those of small kernels take milliseconds, also on a busy machine.
const SECONDS: f64 = 30.0;

/// A whole Python file, and the kernel in it that is lowered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Program {
    /// The file.
    pub text: String,
    /// The kernel's name.
    pub kernel: String,
}

impl Program {
    /// A program; the text gives the kernel's signature in a comment.
    #[must_use]
    pub fn new(text: impl Into<String>, kernel: impl Into<String>) -> Self {
        Self { text: text.into(), kernel: kernel.into() }
    }

    /// The same kernel in another text.
    #[must_use]
    pub fn with(&self, text: impl Into<String>) -> Self {
        Self::new(text, self.kernel.clone())
    }

    /// What is asked of the compiler; `None` where the comment does not say what to lower the kernel with.
    #[must_use]
    pub fn request(&self, types: bool) -> Option<Request> {
        let source = Source::parse(self.text.as_str());
        let module = Module::build(&source);
        let kernel = module.kernel(&self.kernel)?;
        let guess = guesses(&module, kernel, &self.text).into_iter().next()?;
        if guess.certainty != Certainty::Written {
            return None;
        }
        let device = Device::default();
        let json = |(name, value): (&String, _)| (name.clone(), serde_json::to_value(value).unwrap_or_default());
        let arch = device.arch.parse::<u32>().map_or_else(|_| device.arch.clone().into(), Into::into);
        Some(Request {
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
