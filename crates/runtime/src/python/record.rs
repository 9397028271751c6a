//! The command line that runs a command of the user under the recorder.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use protocol::{RECORD_ENV, is_simulated};

use super::module::{ModuleError, bootstrap, unpack};

/// Why a command cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The worker module is missing or cannot be unpacked.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The command is not a Python program.
    #[error("cannot record `{0}`; give a Python command: `python FILE …`, `python -m MODULE …` or `pytest …`")]
    NotPython(String),
}

/// The command that runs `command` under the recorder, which reads its configuration from `config`.
///
/// `python FILE …` and `python -m MODULE …` keep the interpreter that they name (and its options); `pytest …` runs as a
/// module of `python`, the project's interpreter.
///
/// # Errors
/// Returns [`RecordError`] when the command is no Python program.
pub fn record_command(command: &[OsString], python: &Path, config: &Path) -> Result<Command, RecordError> {
    let not_python = || RecordError::NotPython(command.join(OsStr::new(" ")).to_string_lossy().into_owned());
    let (program, rest) = command.split_first().ok_or_else(not_python)?;
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    let (interpreter, options, argv): (PathBuf, &[OsString], Vec<OsString>) = if name.starts_with("python") {
        let start = first_argument(rest).ok_or_else(not_python)?;
        (PathBuf::from(program), &rest[..start], rest[start..].to_vec())
    } else if matches!(&*name, "pytest" | "py.test") {
        let module = [OsString::from("-m"), OsString::from("pytest")];
        (python.to_owned(), &[], module.into_iter().chain(rest.iter().cloned()).collect())
    } else {
        return Err(not_python());
    };
    let module = unpack()?;
    let mut recorded = Command::new(interpreter);
    recorded
        .args(options)
        .arg("-c")
        .arg(bootstrap(&module, "run_recorded(sys.argv[1:])"))
        .args(argv)
        .env(RECORD_ENV, config);
    if is_simulated() {
        recorded.env("TRITON_INTERPRET", "1");
    }
    Ok(recorded)
}

/// The index at which the interpreter's own options end, which is that of the script or of `-m`.
fn first_argument(args: &[OsString]) -> Option<usize> {
    let mut at = 0;
    while let Some(arg) = args.get(at).and_then(|arg| arg.to_str()) {
        match arg {
            "-m" => return Some(at),
            "-X" | "-W" => at += 2,
            "-c" | "-" => return None,
            _ if arg.starts_with('-') => at += 1,
            _ => return Some(at),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreters_options_end_at_the_script() {
        let at = |args: &[&str]| first_argument(&args.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(at(&["train.py", "--fast"]), Some(0));
        assert_eq!(at(&["-u", "-X", "dev", "train.py"]), Some(3));
        assert_eq!(at(&["-m", "pytest"]), Some(0));
        assert_eq!(at(&["-c", "pass"]), None);
        assert_eq!(at(&[]), None);
        assert!(matches!(
            record_command(&["make".into(), "test".into()], Path::new("python3"), Path::new("c")),
            Err(RecordError::NotPython(text)) if text == "make test"
        ));
    }
}
