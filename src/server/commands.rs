//! The commands of `workspace/executeCommand`, which code actions and lenses run too.

pub(super) mod inspect;
pub(super) mod optimize;
pub(super) mod record;
pub(super) mod report;
pub(super) mod resources;
pub(super) mod rule_memory;
