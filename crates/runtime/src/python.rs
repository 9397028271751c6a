//! The user's Python interpreter: finding it, and starting workers in it.

pub mod environment;
mod forker;
mod module;
mod orphans;
mod process_exit;
mod record;
mod scripts;

pub use forker::{Child, ChildExit, ComputeDevice, Forker, ForkerError};
pub use module::{ModuleError, cache_folder, module_call, state_folder};
pub use process_exit::end_within;
pub use record::{RecordError, record_command};
pub use scripts::{BYTECODE, ScriptError, unpack_scripts};
