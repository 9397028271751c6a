//! What Triton itself said about a kernel, kept with the kernel until something changes that may matter.

use std::sync::Arc;

use crate::kernel::{Kernel, Shift};
use crate::syntax::Span;

/// What Triton said about a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What it said.
    pub outcome: Outcome,
    /// Where the kernel stands: what is said of other places does not move with it.
    kernel: Span,
}

/// What came of asking.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It compiles for parameters of some types.
    Accepted {
        /// The expressions in the kernel that were compiled.
        compiled: Vec<Span>,
        /// Their types, where somebody said what the parameters are.
        types: Vec<(Span, String)>,
    },
    /// It does not compile.
    Refused {
        /// Where.
        span: Span,
        /// What Triton says.
        message: String,
        /// Places that explain it.
        related: Vec<(Span, String)>,
    },
    /// Nobody can tell, for this reason.
    Unknown(String),
}

impl Verdict {
    /// A verdict about a kernel. Of a refusal, the place must be in the kernel.
    #[must_use]
    pub fn new(kernel: &Kernel, outcome: Outcome) -> Self {
        Self { outcome, kernel: kernel.span }
    }

    /// The verdict about a kernel, if it is known.
    #[must_use]
    pub fn of(kernel: &Kernel) -> Option<Arc<Self>> {
        kernel.facts.peek(0)
    }

    /// Keeps the verdict with the kernel.
    pub fn keep(self, kernel: &Kernel) {
        kernel.facts.put(0, self);
    }

    /// Forgets the verdict about a kernel. Returns whether there was one.
    pub fn forget(kernel: &Kernel) -> bool {
        kernel.facts.forget::<Self>(0)
    }

    /// The type that Triton gave an expression, for parameters whose types somebody has said.
    #[must_use]
    pub fn type_of(&self, span: Span) -> Option<&str> {
        let Outcome::Accepted { types, .. } = &self.outcome else { return None };
        types.iter().find(|(known, _)| *known == span).map(|(_, kind)| kind.as_str())
    }

    /// Whether Triton has compiled what stands in `span`.
    #[must_use]
    pub fn has_compiled(&self, span: Span) -> bool {
        match &self.outcome {
            Outcome::Accepted { compiled, .. } => {
                compiled.iter().any(|known| span.contains(*known) || known.contains(span))
            }
            _ => false,
        }
    }
}

impl Shift for Verdict {
    fn shift(&mut self, by: isize) {
        match &mut self.outcome {
            Outcome::Accepted { compiled, types } => {
                compiled.shift(by);
                types.iter_mut().for_each(|(span, _)| span.shift(by));
            }
            Outcome::Refused { span, related, .. } => {
                span.shift(by);
                let kernel = self.kernel;
                related.retain(|(place, _)| kernel.contains(*place));
                related.iter_mut().for_each(|(place, _)| place.shift(by));
            }
            Outcome::Unknown(_) => {}
        }
        self.kernel.shift(by);
    }
}
