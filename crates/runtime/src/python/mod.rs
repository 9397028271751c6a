//! The user's Python interpreter: finding it, and starting workers in it.

mod ending;
pub mod environment;
mod forker;
mod module;
mod record;
mod scripts;
mod strays;

pub use ending::end_within;
pub use forker::{Child, Ended, Forker, ForkerError, On};
pub use module::{ModuleError, cache_folder, module_call, state_folder};
pub use record::{RecordError, record_command};
pub use scripts::{BYTECODE, ScriptError, unpack_scripts};
