//! Triton itself as a second opinion: its front end, asked in the background in the user's own interpreter.
//!
//! - [`extract`]: what of the user's files a kernel needs,
//! - [`guesses`]: what types and values it is lowered with,
//! - [`Process`]: the process that is asked ([`protocol`] has the words; `worker.py` is what runs there).

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
