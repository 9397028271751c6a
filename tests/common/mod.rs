//! What the tests over whole programs share.

use warpsmith::api::Target;
use warpsmith::kernel::Module;
use warpsmith::rules::{self, Context, Diagnostic, Selection};
use warpsmith::syntax::Source;

/// All findings in one file.
pub(crate) fn findings(source: &Source, target: Target) -> Vec<Diagnostic> {
    let module = Module::build(source);
    rules::check(&Context::new(source, &module, target), &Selection::default())
}
