//! Recordings of editor sessions. `SESSIONS=$PWD/tests/gpu/sessions` keeps what the tests record, for
//! `tests/gpu/replay.py`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file of `examples/` that the sessions optimize.
pub(crate) const FILE: &str = "layer_norm.py";
/// Settings of a short search on a simulated device.
const SETTINGS: &str = "[compiler]\ntarget = 'cuda:90'\n[optimize]\ncandidates = 2\nparallel = 2\n[optimize.search]\nsmall-steps = 0\nlarge = 1.0\n";

/// A session that is being recorded in a folder.
pub(crate) struct Recording(PathBuf);

impl Recording {
    /// Copies a kernel into the folder, and writes a server beside the folder that logs all messages.
    pub(crate) fn new(folder: &Path, server: &Path) -> Self {
        let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(FILE), folder.join(FILE)).unwrap();
        fs::write(folder.join("warpsmith.toml"), format!("python = '{python}'\n{SETTINGS}")).unwrap();
        let recording = Self(folder.to_owned());
        let start = format!(
            "#!/bin/sh\nexec '{python}' '{}' tee '{}' '{}' \"$@\"\n",
            script().display(),
            recording.traffic().display(),
            server.display()
        );
        write_program(&recording.server(), &start);
        recording
    }

    /// The program that is started instead of the server.
    pub(crate) fn server(&self) -> PathBuf {
        self.0.with_extension("server")
    }

    fn traffic(&self) -> PathBuf {
        self.0.with_extension("jsonl")
    }

    /// Writes the session from the logged messages, and keeps it if `SESSIONS` is set.
    pub(crate) fn end(&self, editor: &str, name: &str) {
        let kept = std::env::var_os("SESSIONS")
            .map_or_else(|| self.0.with_extension("session"), |kept| PathBuf::from(kept).join(name));
        let made = Command::new(std::env::var("WARPSMITH_TEST_PYTHON").unwrap())
            .arg(script())
            .arg("session")
            .arg(self.traffic())
            .args(["--editor", editor, "--file"])
            .arg(self.0.join(FILE))
            .arg("--out")
            .arg(&kept)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let session = fs::read_to_string(kept).unwrap();
        for step in [
            r#"{"request": "initialize""#,
            r#"{"request": "textDocument/hover""#,
            r#""command": "warpsmith.optimize""#,
            r#"{"answer": "window/showMessageRequest", "result": {"title": "Run it once"}"#,
            r#"{"answer": "workspace/applyEdit", "result": {"applied": true}"#,
            r#""contentChanges": "${changes}""#,
            r#"{"notify": "textDocument/didSave""#,
        ] {
            assert!(session.contains(step), "no {step} in\n{session}");
        }
        assert!(!session.contains(&*self.0.to_string_lossy()), "a path of this machine in\n{session}");
    }
}

/// Writes an executable file.
pub(crate) fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu/traffic.py")
}
