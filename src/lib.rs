//! The program: its command line and its language server, as a library for the tests and the chores of the repository.
//!
//! All code that does not belong to the command line or LSP is in the crates below `crates/`; see the map in
//! `docs/src/architecture.md`.

pub mod cli;
mod log;
pub mod server;
pub mod settings;
pub mod workspace;
