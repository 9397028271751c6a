//! Inspections of the compiler's output that requests wait for.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tower_lsp::gen_lsp_types as lsp;

use compiler::Inspection;

use super::interpreters::Interpreter;
use super::reply::{ReplySender, answer, refused};

/// An inspection that a request waits for.
pub(crate) struct PendingInspection {
    pub(crate) inspection: Inspection,
    pub(crate) interpreter: Interpreter,
    /// The path that the text is written to.
    pub(crate) to: PathBuf,
    pub(crate) reply: ReplySender<Option<Value>>,
}

/// Inspections that were not begun or not finished, by their files.
pub(crate) type Inspections = VecDeque<(lsp::Uri, Box<PendingInspection>)>;

impl PendingInspection {
    /// The next question of the inspection, under the number `id`.
    pub(crate) fn request(&self, id: u64) -> Option<compiler::protocol::LoweringRequest> {
        self.inspection.request(id)
    }

    /// The path of the interpreter that is asked.
    pub(crate) fn python(&self) -> &Path {
        &self.interpreter.python
    }

    /// Answers the request with the reason why there is no text.
    pub(crate) fn refuse(self, reason: String) {
        answer(self.reply, || Err(refused(reason)));
    }
}
