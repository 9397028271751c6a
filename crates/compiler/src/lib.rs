//! The compiler tier: Triton's own front end, which checks kernels in the background in the user's interpreter.
//!
//! - [`extract`]: the parts of the user's files that a kernel needs,
//! - [`guesses`]: the types and values with which a kernel is lowered,
//! - [`Process`]: the process that runs Triton ([`protocol`] has its messages; `worker.py` runs in it).

mod extract;
mod inspection;
mod listing;
mod opinion;
mod process;
mod program;
pub mod protocol;
mod question;
mod service;
mod session;
mod signatures;
mod survey;
mod verdict;

pub use extract::{Assumed, Extracted, extract};
pub use inspection::{Failure, Inspection, Listing, Wanted};
pub use listing::{Sources, Stage, annotated};
pub use opinion::{Complaint, Files, Opinion, Place, opinion};
pub use process::{Heard, Process, StartError};
pub use program::{Program, error_of};
pub use question::{Device, Question, Settled, Trial};
pub use service::{Ears, Outcome, Service, Status};
pub use session::Session;
pub use signatures::{Certainty, Constant, Guess, Variant, Variants, certain_variants, guessed_variants, guesses};
pub use survey::Survey;
pub use verdict::said;
