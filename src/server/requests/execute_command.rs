//! The request `workspace/executeCommand`.

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::{Error, Result};

use crate::server::commands::inspect::INSPECT;
use crate::server::commands::optimize::OPTIMIZE;
use crate::server::commands::record::RECORD;
use crate::server::commands::report::REPORT;
use crate::server::commands::resources::RESOURCES;
use crate::server::commands::rule_memory::{DISPUTE, MUTE, REPRODUCER};
use crate::server::jobs::CANCEL;
use crate::server::owner::Owner;
use crate::server::reply::{ReplySender, answer, read};

/// The names of all commands.
pub(crate) const COMMANDS: [&str; 9] =
    [OPTIMIZE, CANCEL, RESOURCES, REPORT, INSPECT, RECORD, MUTE, DISPUTE, REPRODUCER];

#[derive(Deserialize)]
struct CancelParams {
    job: String,
}

/// Answers the request; an inspection is answered when the compiler has finished.
pub(crate) fn handle(owner: &mut Owner, params: lsp::ExecuteCommandParams, reply: ReplySender<Option<Value>>) {
    let argument = params.arguments.unwrap_or_default().into_iter().next().unwrap_or_default();
    match params.command.as_str() {
        INSPECT => owner.inspect(argument, reply),
        command => answer(reply, || run(owner, command, argument)),
    }
}

fn run(owner: &mut Owner, command: &str, argument: Value) -> Result<Option<Value>> {
    match command {
        OPTIMIZE => {
            let id = owner.start_search(read(argument)?)?;
            Ok(id.map(|id| json!({ "job": id })))
        }
        CANCEL => {
            let CancelParams { job } = read(argument)?;
            Ok(Some(json!({ "cancelled": owner.jobs.cancel(&job) })))
        }
        RECORD => {
            let id = owner.start_recording(read(argument)?)?;
            Ok(Some(json!({ "job": id })))
        }
        RESOURCES => owner.resources_command(argument),
        REPORT => owner.report_command(argument),
        MUTE => owner.mute_command(argument),
        DISPUTE => owner.dispute_command(argument),
        REPRODUCER => owner.reproducer_command(argument),
        other => Err(Error::invalid_params(format!("there is no command `{other}`"))),
    }
}
