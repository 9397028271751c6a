//! Tests of other clients, configured as in the manual: Helix, Emacs with Eglot, and pytest-lsp show, explain and fix a
//! finding.
//!
//! The clients are downloaded once from Debian's archive and from PyPI into `target/`. Where that is not possible the
//! tests fail and say so, unless `WARPSMITH_SKIP_EDITORS=1` is set.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/editors");

const FILE: &str = r#"import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    é = "😀"; factor = tl.float32(n)
    tl.store(x_ptr + offsets, factor, mask=offsets < n)
"#;

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The folder of a client; `None` when the user skips these tests.
fn installed(client: &str) -> Option<PathBuf> {
    if std::env::var_os("WARPSMITH_SKIP_EDITORS").is_some_and(|value| value == "1") {
        eprintln!("skipped: WARPSMITH_SKIP_EDITORS is set");
        return None;
    }
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("editors-{client}"));
    // One test installs the client while the others wait: nextest runs each in a separate process.
    let installing = File::create(prefix.with_extension("lock")).unwrap();
    installing.lock().unwrap();
    if !prefix.join("complete").exists() {
        let script = Path::new(SCRIPTS).join("install.sh");
        let output = Command::new("bash").arg(script).arg(&prefix).arg(client).output().unwrap();
        assert!(
            output.status.success(),
            "{client} could not be brought to this machine; it needs apt and pip with a network. Set WARPSMITH_SKIP_EDITORS=1 to \
             do without.\n{}",
            said(&output)
        );
    }
    Some(prefix)
}

/// The first code block in this language on a page of the manual.
fn configuration(page: &str, language: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src").join(page);
    let text = fs::read_to_string(path).unwrap();
    let block = text.split(&format!("```{language}\n")).nth(1).unwrap();
    block.split("```").next().unwrap().to_owned()
}

/// A user's home with a project of one file, and the server on the PATH.
struct User(tempfile::TempDir);

impl User {
    fn new() -> Self {
        let user = Self(tempfile::tempdir().unwrap());
        for folder in ["project", "programs", "config/helix", "state", "cache"] {
            fs::create_dir_all(user.path(folder)).unwrap();
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_warpsmith"), user.path("programs/warpsmith")).unwrap();
        fs::write(user.path("project/warpsmith.toml"), "select = [\"L002\"]\n").unwrap();
        fs::write(user.path("project/kernel.py"), FILE).unwrap();
        user
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a client in the project; returns its output.
    fn run(&self, command: &mut Command) -> String {
        let path = std::env::var("PATH").unwrap();
        let output = command
            .current_dir(self.path("project"))
            .env("PATH", format!("{}:{path}", self.path("programs").display()))
            // The user's own configuration is not read.
            .env("HOME", self.0.path())
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .output()
            .unwrap();
        let said = said(&output);
        assert!(output.status.success(), "{said}");
        eprintln!("{said}");
        said
    }

    fn assert_mended(&self) {
        let expected = FILE.replace("tl.float32(n)", "tl.cast(n, tl.float32)");
        assert_eq!(fs::read_to_string(self.path("project/kernel.py")).unwrap(), expected);
    }
}

#[test]
fn helix_shows_a_finding_and_applies_its_fix() {
    let Some(prefix) = installed("helix") else { return };
    let user = User::new();
    fs::write(user.path("config/helix/languages.toml"), configuration("helix.md", "toml")).unwrap();
    let script = Path::new(SCRIPTS).join("helix.sh");
    let said = user.run(Command::new("bash").arg(script).arg(&prefix).arg(user.path("project/kernel.py")));
    assert!(said.contains("ok done"), "{said}");
    user.assert_mended();
}

#[test]
fn emacs_shows_a_finding_and_applies_its_fix() {
    let Some(prefix) = installed("emacs") else { return };
    let user = User::new();
    fs::write(user.path("config/init.el"), configuration("emacs.md", "elisp")).unwrap();
    let mut emacs = Command::new(prefix.join("emacs"));
    emacs.args(["-Q", "--batch", "-l"]).arg(user.path("config/init.el"));
    let said = user.run(emacs.arg("-l").arg(Path::new(SCRIPTS).join("eglot.el")).arg("kernel.py"));
    assert!(said.contains("ok done"), "{said}");
    user.assert_mended();
}

#[test]
fn pytest_lsp_receives_a_finding_and_its_fix() {
    let Some(prefix) = installed("pytest") else { return };
    let user = User::new();
    let mut pytest = Command::new(prefix.join("bin/pytest"));
    pytest.args(["-q", "-p", "no:cacheprovider"]).arg(Path::new(SCRIPTS).join("test_client.py"));
    pytest.env("PYTHONDONTWRITEBYTECODE", "1").env("KERNEL", user.path("project/kernel.py"));
    let said = user.run(pytest.env("WARPSMITH", env!("CARGO_BIN_EXE_warpsmith")));
    assert!(said.contains("3 passed"), "{said}");
}
