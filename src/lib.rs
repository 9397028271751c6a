//! The program: its command line and its language server, as a library for the tests and the chores of the repository.
//!
//! Everything that is not about the command line or LSP is in the crates below `crates/`; `docs/src/architecture.md` has their map.

pub mod cli;
mod log;
pub mod server;
pub mod settings;
pub mod workspace;
