//! The verdict of Triton's own compiler about a kernel, cached with the kernel until something changes that may affect
//! it.

use std::sync::Arc;

use crate::kernel::{Kernel, ShiftSpans};
use crate::syntax::Span;

/// The result of compiling a kernel with Triton.
#[derive(Clone, Debug, PartialEq)]
pub struct FrontEndVerdict {
    /// The result.
    pub outcome: FrontEndOutcome,
    /// Span of the kernel: spans outside of it do not move with it.
    kernel: Span,
}

/// The possible results.
#[derive(Clone, Debug, PartialEq)]
pub enum FrontEndOutcome {
    /// It compiles for parameters of certain types.
    Accepted {
        /// The expressions in the kernel that were compiled.
        compiled: Vec<Span>,
        /// The types of expressions, if the types of the parameters were given.
        types: Vec<(Span, String)>,
    },
    /// It does not compile.
    Refused {
        /// Span of the error.
        span: Span,
        /// Triton's error message.
        message: String,
        /// Spans that explain the error, each with a text.
        related: Vec<(Span, String)>,
    },
    /// The result is not known, for this reason.
    Unknown(String),
}

impl FrontEndVerdict {
    /// A verdict about `kernel`. The span of a refusal must lie in the kernel.
    #[must_use]
    pub fn new(kernel: &Kernel, outcome: FrontEndOutcome) -> Self {
        Self { outcome, kernel: kernel.span }
    }

    /// The cached verdict about a kernel.
    #[must_use]
    pub fn of(kernel: &Kernel) -> Option<Arc<Self>> {
        kernel.facts.peek(0)
    }

    /// Caches the verdict with the kernel.
    pub fn keep(self, kernel: &Kernel) {
        kernel.facts.put(0, self);
    }

    /// Drops the cached verdict about a kernel. Returns whether there was one.
    pub fn forget(kernel: &Kernel) -> bool {
        kernel.facts.forget::<Self>(0)
    }

    /// The type that Triton gave an expression, if the types of the parameters were given.
    #[must_use]
    pub fn type_of(&self, span: Span) -> Option<&str> {
        let FrontEndOutcome::Accepted { types, .. } = &self.outcome else { return None };
        types.iter().find(|(known, _)| *known == span).map(|(_, kind)| kind.as_str())
    }

    /// Whether Triton has compiled the code in `span`.
    #[must_use]
    pub fn has_compiled(&self, span: Span) -> bool {
        match &self.outcome {
            FrontEndOutcome::Accepted { compiled, .. } => {
                compiled.iter().any(|known| span.contains(*known) || known.contains(span))
            }
            _ => false,
        }
    }
}

impl ShiftSpans for FrontEndVerdict {
    fn shift(&mut self, by: isize) {
        match &mut self.outcome {
            FrontEndOutcome::Accepted { compiled, types } => {
                compiled.shift(by);
                types.iter_mut().for_each(|(span, _)| span.shift(by));
            }
            FrontEndOutcome::Refused { span, related, .. } => {
                span.shift(by);
                let kernel = self.kernel;
                related.retain(|(place, _)| kernel.contains(*place));
                related.iter_mut().for_each(|(place, _)| place.shift(by));
            }
            FrontEndOutcome::Unknown(_) => {}
        }
        self.kernel.shift(by);
    }
}
