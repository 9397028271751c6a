//! Tests with a real VS Code: its workbench in a browser, and its extension host, with the extension as users install
//! it.
//!
//! VS Code and the extension's packages are downloaded once from npm, and a browser from Debian's archive unless there
//! is one, into `target/`. Where that is not possible the tests fail and say so, unless `WARPSMITH_SKIP_VSCODE=1` is
//! set. Pictures of the sessions are left in `target/tmp/vscode-shots/`. `PICTURES=$PWD/editors/vscode/media/pictures`
//! renews the pictures of the READMEs, which show a search on a GPU.
//! `SESSIONS=$PWD/tests/gpu/sessions` renews the recorded session, which `tests/gpu/replay.py` replays.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

#[path = "common/recording.rs"]
mod recording;
#[path = "common/replayed_sessions.rs"]
mod replayed_sessions;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use recording::Recording;
use replayed_sessions::Played;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vscode");

/// The server in the extension: the one that was built here, or the one that users get.
fn server() -> PathBuf {
    std::env::var_os("WARPSMITH_TEST_SERVER").unwrap_or_else(|| env!("CARGO_BIN_EXE_warpsmith").into()).into()
}

/// Runs a command; returns what it said when it failed.
fn problem(command: &mut Command) -> Option<String> {
    match command.output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            Some(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
        }
        Err(error) => Some(error.to_string()),
    }
}

/// The files of a folder with the times of their last change.
fn state(path: &Path, out: &mut String) {
    let ours = |name: &str| !["node_modules", "dist", "server"].contains(&name);
    if path.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.retain(|entry| ours(&entry.file_name().unwrap_or_default().to_string_lossy()));
        entries.sort();
        entries.iter().for_each(|entry| state(entry, out));
    } else {
        let _ = writeln!(out, "{} {:?}", path.display(), fs::metadata(path).unwrap().modified().unwrap());
    }
}

/// VS Code and the folder with the built extension, packed and installed; `None` when the user skips these tests.
fn installed() -> Option<(PathBuf, PathBuf)> {
    if std::env::var_os("WARPSMITH_SKIP_VSCODE").is_some_and(|value| value == "1") {
        eprintln!("skipped: WARPSMITH_SKIP_VSCODE is set");
        return None;
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (prefix, build) = (target.join("vscode"), target.join("vscode-extension"));
    // One test installs and builds while the others wait: nextest runs each in a separate process.
    let working = File::create(target.join("vscode.lock")).unwrap();
    working.lock().unwrap();
    if !prefix.join("complete").exists() {
        let install = problem(Command::new("bash").arg(Path::new(SCRIPTS).join("install.sh")).arg(&prefix));
        if let Some(problem) = install {
            panic!(
                "VS Code could not be brought to this machine; it comes from npm and needs npm, a C++ compiler, a network and a \
                 Chromium or apt. Set WARPSMITH_SKIP_VSCODE=1 to do without.\n{problem}"
            );
        }
    }
    let mut now = String::new();
    let server = &*server();
    for source in [
        &Path::new(SCRIPTS).join("../../editors/vscode"),
        &Path::new(SCRIPTS).join("build.sh"),
        &Path::new(SCRIPTS).join("extensions.sh"),
        &Path::new(SCRIPTS).join("python"),
        &Path::new(SCRIPTS).join("models"),
        server,
    ] {
        state(source, &mut now);
    }
    let stamp = build.join("stamp");
    if fs::read_to_string(&stamp).ok().as_ref() != Some(&now) {
        let built = problem(Command::new("bash").arg(Path::new(SCRIPTS).join("build.sh")).arg(&build).arg(server));
        assert!(built.is_none(), "the extension could not be built: {}", built.unwrap_or_default());
        let script = Path::new(SCRIPTS).join("extensions.sh");
        let added = problem(Command::new("bash").arg(script).arg(&prefix).arg(&build));
        assert!(added.is_none(), "the extension could not be installed: {}", added.unwrap_or_default());
        fs::write(stamp, now).unwrap();
    }
    Some((prefix, build))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

/// A project folder of a user, with the contents of `examples/` and `tests/vscode/project/`.
struct Project(tempfile::TempDir);

/// The look of an editor in a picture: only the relevant parts, on a light background.
const LOOK: &str = r#""workbench.colorTheme": "Default Light Modern", "workbench.activityBar.location": "hidden",
    "window.commandCenter": false, "workbench.layoutControl.enabled": false, "breadcrumbs.enabled": false,
    "editor.fontFamily": "'DejaVu Sans Mono'", "editor.fontSize": 13, "editor.occurrencesHighlight": "off", "editor.selectionHighlight": false"#;

impl Project {
    fn empty() -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        // A `.git` folder makes this folder the workspace, wherever temporary folders are.
        fs::create_dir_all(project.path(".git")).unwrap();
        project
    }

    fn new() -> Self {
        let project = Self::empty();
        copy(&Path::new(SCRIPTS).join("project"), &project.path(""));
        fs::copy(Path::new(SCRIPTS).join("../../examples/mistakes.py"), project.path("mistakes.py")).unwrap();
        project
    }

    /// The same, with a Python that has Triton, and a search that ends after this number of candidates and changes only
    /// the launch.
    fn with_python(candidates: usize) -> Self {
        let project = Self::new();
        let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
        let settings = format!(
            "python = '{python}'\n[compiler]\ntarget = 'cuda:90'\n[optimize]\ncandidates = {candidates}\nparallel = 2\nrewrites = false\n"
        );
        fs::write(project.path("warpsmith.toml"), settings).unwrap();
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join("project").join(name)
    }

    /// Adds a folder to a window, with a selected interpreter and a rule that its settings ignore.
    fn add_folder(&self, name: &str, ignored: &str, python: &str) {
        fs::create_dir_all(self.path(name).join(".vscode")).unwrap();
        fs::copy(self.path("mistakes.py"), self.path(name).join("mistakes.py")).unwrap();
        fs::write(self.path(name).join("warpsmith.toml"), "triton-version = \"3.6.0\"\n").unwrap();
        fs::write(self.path(name).join("selected-python"), python).unwrap();
        let settings = format!("{{\"warpsmith.ignore\": [\"{ignored}\"]}}");
        fs::write(self.path(name).join(".vscode/settings.json"), settings).unwrap();
    }

    /// Runs a script against a VS Code of its own; returns its output.
    ///
    /// Starting a server takes a tenth of a second. If all tests shared one, a test that is killed could harm the others, and none
    /// could have variables, trust and settings of its own.
    fn run(&self, name: &str, script: &str, opened: &str, variables: &[(&str, &str)]) -> Option<String> {
        let (prefix, build) = installed()?;
        let shots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vscode-shots").join(name);
        fs::create_dir_all(&shots).unwrap();
        let mut command = Command::new("bash");
        command.arg(Path::new(SCRIPTS).join("with-vscode.sh")).arg(prefix).arg(self.0.path().join("data"));
        let extensions = match name {
            "folders" | "elsewhere" => "installed/python",
            "models" => "installed/models",
            _ => "installed/alone",
        };
        command.arg(build.join(extensions)).arg(Path::new(SCRIPTS).join(script)).arg(self.path(opened));
        if script == "api.js" {
            let own = self.0.path().join("extension");
            command.arg(if own.exists() { own } else { build.join("extension") }).arg(build.join("test.js"));
        }
        command.arg(shots).envs(variables.iter().copied());
        // The user's own folders are not used.
        for folder in ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
            command.env(folder, self.0.path().join(folder));
        }
        let output = command.output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && said.lines().any(|line| line.ends_with("done")), "{said}");
        eprintln!("{said}");
        Some(said)
    }

    /// Runs a suite of `editors/vscode/test/` in the extension host.
    fn suite(&self, name: &str, opened: &str, variables: &[(&str, &str)]) {
        let variables = [&[("API", "1"), ("WARPSMITH_SUITE", name)], variables].concat();
        drop(self.run(name, "api.js", opened, &variables));
    }
}

#[test]
fn vscode_checks_files_and_notebooks_and_survives_the_server() {
    // No device is visible, even if the machine has one.
    Project::new().suite("trusted", "", &[("CUDA_VISIBLE_DEVICES", "")]);
}

/// The folder's settings name a program that must not be run.
#[test]
fn vscode_runs_nothing_of_a_workspace_that_is_not_trusted() {
    let project = Project::new();
    let (program, mark) = (project.path("program"), project.path("was-run"));
    recording::write_program(&program, &format!("#!/bin/sh\ntouch '{}'\n", mark.display()));
    fs::create_dir(project.path(".vscode")).unwrap();
    let settings = format!("{{\"warpsmith.server.path\": {program:?}, \"warpsmith.python\": {program:?}}}");
    fs::write(project.path(".vscode/settings.json"), settings).unwrap();
    project.suite("untrusted", "", &[("TRUST", "1")]);
    assert!(!mark.exists(), "the workspace's program was run");
}

/// Each folder of a window has its own settings and the interpreter that is selected for it.
#[test]
fn vscode_uses_the_settings_and_interpreter_of_each_folder() {
    let project = Project::new();
    let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    project.add_folder("one", "L001", &python);
    project.add_folder("other", "L002", &python);
    let folders = r#"{"folders": [{"path": "one"}, {"path": "other"}]}"#;
    fs::write(project.path("both.code-workspace"), folders).unwrap();
    project.suite("folders", "both.code-workspace", &[]);
}

/// An extension without a server uses the one of the selected environment, then the one on the PATH, and reports when
/// there is none.
#[test]
fn vscode_finds_the_server_elsewhere() {
    let Some((_, build)) = installed() else { return };
    let project = Project::new();
    copy(&build.join("extension"), &project.0.path().join("extension"));
    fs::remove_dir_all(project.0.path().join("extension/server")).unwrap();
    for folder in ["environment/bin", "programs"] {
        let folder = project.0.path().join(folder);
        fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(server(), folder.join("warpsmith")).unwrap();
    }
    let python = project.0.path().join("environment/bin/python");
    fs::write(project.path("selected-python"), python.as_os_str().as_encoded_bytes()).unwrap();
    let path = format!("{}:/usr/bin:/bin", project.0.path().join("programs").display());
    project.suite("elsewhere", "", &[("PATH", &path)]);
}

#[test]
fn vscode_compiles_inspects_records_and_optimizes() {
    Project::with_python(8).suite("optimizing", "", &[("WARPSMITH_FAKE_DEVICE", "toy")]);
}

/// Models from another extension make the candidates, and need no key.
#[test]
fn vscode_asks_its_own_language_models() {
    let project = Project::with_python(4);
    let settings = fs::read_to_string(project.path("warpsmith.toml")).unwrap().replace("rewrites = false\n", "");
    let model = "[optimize.search]\nsmall-steps = 0\nlarge = 1.0\n[model]\nprovider = 'editor'\nshare = 1.0\n";
    fs::write(project.path("warpsmith.toml"), settings + model).unwrap();
    project.suite("models", "", &[("WARPSMITH_FAKE_DEVICE", "toy")]);
}

/// A session with mouse and keyboard, from a mistake to an applied offer.
#[test]
fn vscode_workbench_session_applies_an_offer() {
    let project = Project::with_python(8);
    drop(project.run("session", "session.js", "", &[("WARPSMITH_FAKE_DEVICE", "toy")]));
}

/// A panel that shows a search, from its first candidate to an applied offer, and again after the window is reloaded.
#[test]
fn vscode_panel_draws_a_running_search() {
    let project = Project::with_python(16);
    drop(project.run("panel", "panel.js", "", &[("WARPSMITH_FAKE_DEVICE", "toy")]));
}

/// The session that is played again on a GPU: from a finding to an edit that is saved.
#[test]
fn a_session_of_vscode_is_recorded() {
    let project = Project::new();
    let recording = Recording::new(&project.0.path().join("project"), &server());
    fs::create_dir(project.path(".vscode")).unwrap();
    let settings = format!("{{\"warpsmith.server.path\": {:?}}}", recording.server());
    fs::write(project.path(".vscode/settings.json"), settings).unwrap();
    if project.run("recorded", "recorded.js", "", &[("WARPSMITH_FAKE_DEVICE", "toy")]).is_some() {
        recording.end("VS Code", "vscode.jsonl");
    }
}

/// A search recorded on a GPU, replayed by a fake server: the panel draws it, and the measured edit is applied.
#[test]
fn vscode_replays_a_recorded_gpu_search_and_applies_its_edit() {
    let project = Project::empty();
    let played = Played::new("vscode-h200.jsonl");
    fs::write(project.path(recording::FILE), &played.before).unwrap();
    let server = project.0.path().join("stand-in");
    // For pictures, the replay takes as long as the search did, because the panel counts the seconds.
    played.stand_in(&server, if std::env::var_os("PICTURES").is_some() { 1 } else { 4 });
    fs::create_dir(project.path(".vscode")).unwrap();
    let settings = format!("{{{LOOK}, \"warpsmith.server.path\": {server:?}}}");
    fs::write(project.path(".vscode/settings.json"), settings).unwrap();
    if project.run("measured", "measured.js", "", &[("TITLE", &played.title)]).is_some() {
        assert_eq!(fs::read_to_string(project.path(recording::FILE)).unwrap(), played.after);
    }
}
