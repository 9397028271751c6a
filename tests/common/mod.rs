//! Helpers that the end-to-end tests share.

use model::api::TritonTarget;
use model::kernel::Module;
use model::syntax::Source;
use rules::{Diagnostic, RuleContext, Selection};

/// All findings in one file.
pub(crate) fn findings(source: &Source, target: TritonTarget) -> Vec<Diagnostic> {
    let module = Module::build(source);
    rules::check(&RuleContext::new(source, &module, target), &Selection::default())
}
