//! What the tests over whole programs share.

use std::sync::LazyLock;

use warpsmith::api::{Certainty, Table, Target, Version};
use warpsmith::kernel::Module;
use warpsmith::rules::{self, Context, Diagnostic, Selection};
use warpsmith::syntax::Source;

/// Somebody with this version of Triton installed; without one, somebody of whom nothing is known.
pub(crate) fn target(version: Option<&str>) -> Target {
    // A package without tables describes nothing of any version.
    static BARE: LazyLock<Table> = LazyLock::new(|| Table {
        version: Version { major: 3, minor: 9, patch: 0 },
        modules: Default::default(),
        launch_options: Vec::new(),
    });
    match version {
        _ if Table::all().is_empty() => Target { table: &BARE, certainty: Certainty::Assumed },
        Some(version) => Target::of(version.parse().unwrap()),
        None => Target::newest(),
    }
}

/// All findings in one file.
pub(crate) fn findings(source: &Source, target: Target) -> Vec<Diagnostic> {
    let module = Module::build(source);
    rules::check(&Context { source, module: &module, target }, &Selection::default())
}
