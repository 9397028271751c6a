//! Helpers that the end-to-end tests share.

use model::api::Target;
use model::kernel::Module;
use model::syntax::Source;
use rules::{Context, Diagnostic, Selection};

/// All findings in one file.
pub(crate) fn findings(source: &Source, target: Target) -> Vec<Diagnostic> {
    let module = Module::build(source);
    rules::check(&Context::new(source, &module, target), &Selection::default())
}
