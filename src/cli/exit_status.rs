//! The exit status of a command and, when it could not run, the error on standard error.

use std::process::ExitCode;

/// Exit status for findings and for failed checks.
pub(super) const FOUND: u8 = 1;
/// Exit status for a command that could not run.
pub(super) const FAILED: u8 = 2;

/// The exit status of a command that has ended. An error is written to standard error.
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

/// Whether the reader of the output has closed it, as `head` does.
pub(super) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
