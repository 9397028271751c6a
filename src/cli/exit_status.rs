//! How a command ends: its exit status and, when it could not run, the error on standard error.

use std::process::ExitCode;

/// Exit status for findings and for checks that failed.
pub(super) const FOUND: u8 = 1;
/// Exit status for what could not run.
pub(super) const FAILED: u8 = 2;

/// The status of a command that has ended, after its error was written.
pub(super) fn ended(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}

/// Whether the reader of our output went away, as `head` does.
pub(super) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
