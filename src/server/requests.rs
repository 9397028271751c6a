//! The requests of the client, each with its handler in a file of its own. [`backend`](super::backend) says which request goes to
//! which handler; `handle` runs on the owner's thread.

pub(super) mod code_action;
pub(super) mod code_lens;
pub(super) mod completion;
pub(super) mod definition;
pub(super) mod diagnostic;
pub(super) mod document_highlight;
pub(super) mod document_symbol;
pub(super) mod execute_command;
pub(super) mod hover;
pub(super) mod initialize;
pub(super) mod inlay_hint;
pub(super) mod references;
pub(super) mod run_report;
pub(super) mod semantic_tokens;
pub(super) mod shutdown;
pub(super) mod signature_help;
pub(super) mod status;
