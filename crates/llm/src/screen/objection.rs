//! What a screen finds, and its kinds.

use std::fmt;

/// The kind of an objection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ObjectionKind {
    /// The candidate imports what a kernel does not need.
    Import,
    /// The candidate runs text as code, or uses computed names.
    Dynamic,
    /// The candidate uses files, programs, the network or native code.
    Outside,
    /// The candidate depends on addresses of tensors or objects.
    Address,
    /// The candidate keeps values between calls.
    Keeps,
    /// The candidate changes modules, classes or settings of the process that it does not own.
    Patch,
    /// The candidate reads or changes the environment.
    Environment,
    /// The candidate leaves work to threads, streams or hooks.
    Concurrency,
    /// The candidate inspects its own process: frames, objects, the interpreter.
    Inspection,
    /// The candidate names a narrower type or precision.
    Precision,
    /// The candidate leaves work to torch.
    Fallback,
}

impl ObjectionKind {
    /// Whether the candidate is refused without being judged. The judge decides about the other kinds.
    pub(super) fn refuses(self) -> bool {
        !matches!(self, Self::Precision | Self::Fallback)
    }
}

impl fmt::Display for ObjectionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Import => "imports what a kernel does not need",
            Self::Dynamic => "executes text as code, or uses names that cannot be resolved",
            Self::Outside => "uses files, programs, the network or native code",
            Self::Address => "goes by addresses of tensors or objects",
            Self::Keeps => "keeps values from call to call",
            Self::Patch => "changes what belongs to others",
            Self::Environment => "reads or changes the environment",
            Self::Concurrency => "leaves work to threads, streams or hooks",
            Self::Inspection => "inspects its own process",
            Self::Precision => "names a narrower type or precision",
            Self::Fallback => "leaves work to torch",
        })
    }
}

/// An objection: something that a candidate does and its original does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// The line of the candidate, from 1.
    pub(crate) line: usize,
    /// The kind of the objection.
    pub(crate) kind: ObjectionKind,
    /// One sentence for the report.
    pub text: String,
    /// Whether the candidate is refused without being judged.
    pub refuses: bool,
}

/// A use of something in a text.
#[derive(Debug)]
pub(super) struct ScreenHit {
    pub(super) kind: ObjectionKind,
    /// The byte offset in the text.
    pub(super) at: usize,
    /// A key that is equal for equal uses.
    pub(super) key: String,
}
