//! A temporary folder of files in which tests run the program.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// A temporary folder of files in which the program is run.
pub(crate) struct Folder(tempfile::TempDir);

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Folder {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            folder.write(path, text.as_bytes());
        }
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpsmith"));
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null());
        // Packages that are installed on this machine must not matter.
        for name in ["VIRTUAL_ENV", "CONDA_PREFIX", "PATH", "WARPSMITH_FAKE_DEVICE", "FORCE_COLOR", "RUST_BACKTRACE"] {
            command.env_remove(name);
        }
        command.env("XDG_STATE_HOME", self.path().join(".state"));
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, |_| {})
    }

    pub(crate) fn run_with(&self, arguments: &[&str], adjust: impl FnOnce(&mut Command)) -> Ran {
        let mut command = self.command(arguments);
        adjust(&mut command);
        let output = command.output().unwrap();
        Ran {
            code: output.status.code().expect("not killed"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The findings of `check`, as paths with line numbers.
    pub(crate) fn found(&self, arguments: &[&str]) -> Vec<String> {
        let ran = self.run(&[&["check", "--format", "json"], arguments].concat());
        assert!(ran.code < 2, "{}", ran.err);
        let all: Value = serde_json::from_str(&ran.out).unwrap();
        let entry = |it: &Value| format!("{}:{}", it["path"].as_str().unwrap(), it["line"]);
        all.as_array().unwrap().iter().map(entry).collect()
    }
}
