//! The user's interpreter: finding it, and the workers that run in it.

pub mod environment;
mod module;
mod record;
mod worker;

pub use module::{ModuleError, cache_folder, state_folder};
pub use record::{RecordError, record_command};
pub use worker::{Worker, WorkerError, simulated};
