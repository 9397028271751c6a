//! server

use std::process::ExitCode;

/// Runs the language server on standard input and output until the client ends it.
///
/// # Errors
/// When it cannot start.
pub fn serve() -> anyhow::Result<ExitCode> {
    anyhow::bail!("the language server is not built in")
}
