//! The compiler tier: Triton's own front end, which checks kernels in the background in the user's interpreter.
//!
//! - [`extract`]: the parts of the user's files that a kernel needs,
//! - [`guesses`]: the types and values with which a kernel is lowered,
//! - [`CompilerProcess`]: the process that runs Triton ([`protocol`] has its messages; `worker.py` runs in it).

mod compiler_errors;
mod extract;
mod inspection;
mod listing;
mod process;
pub mod protocol;
mod question;
mod service;
mod session;
mod signatures;
mod standalone_file;
mod survey;
mod verdict;

pub use compiler_errors::{CompilerError, Files, Opinion, RelatedLocation};
pub use extract::{Assumed, Extracted, extract};
pub use inspection::{Inspection, InspectionError, Listing, StageSelection};
pub use listing::{CompilerStage, Sources, annotated};
pub use process::{CompilerProcess, ProcessOutput, StartError};
pub use question::{CompileQuestion, CompileTarget, PendingQuestion, QuestionResult};
pub use service::{MessageSink, Service, ServiceEvent, ServiceStatus};
pub use session::CompilerSession;
pub use signatures::{Constant, Guess, GuessOrigin, Variant, Variants, guesses};
pub use standalone_file::{StandaloneFile, error_of};
pub use survey::Survey;
pub use verdict::said;
