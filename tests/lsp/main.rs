//! End-to-end tests of the language server over LSP. Most run the real program over pipes; those that need a scripted
//! search or a rule that crashes run the same server in this process.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod actions;
mod cancellation;
mod compiler;
mod completion;
mod diagnostics;
mod documents;
mod harness;
mod hover;
mod imports;
mod inspect;
mod interpreter;
mod lenses;
mod lifecycle;
mod malformed;
mod memory;
mod models;
mod names;
mod notebooks;
mod optimize;
mod ordering;
mod record;
mod resources;
mod search;
mod searches;
mod settings;
