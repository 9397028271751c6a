//! Tests with real Neovims, which show the diagnostics of a Triton file and apply a quick fix.
//!
//! Neovim is downloaded once from Debian's archive into `target/`. Where that is not possible the tests fail and say
//! so, unless `WARPSMITH_SKIP_NEOVIM=1` is set; `WARPSMITH_NEOVIM` names an installed Neovim to use instead.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

#[path = "common/recording.rs"]
mod recording;
#[path = "common/replayed_sessions.rs"]
mod replayed_sessions;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use recording::Recording;
use replayed_sessions::Played;

const FILE: &str = r#"import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    é = "😀"; factor = tl.float32(n)
    tl.store(x_ptr + offsets, factor, mask=offsets < n)
"#;

/// A file with a kernel that is launched when the file is run.
const RUNS_ITSELF: &str = r#"import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(x_ptr + at, x * 2, mask=at < n)


def double(x):
    scale[(1,)](x, x.numel(), BLOCK=16)


if __name__ == "__main__":
    double(torch.ones(9))
"#;

/// The current Neovim, and the oldest version that the plugin supports.
const SUITES: [&str; 2] = ["forky", "trixie"];

/// The server and the plugin: those of this repository, or those that environment variables name.
fn tested() -> (PathBuf, PathBuf) {
    let named = |name, here: PathBuf| std::env::var_os(name).map_or(here, PathBuf::from);
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("editors/nvim");
    let server = named("WARPSMITH_TEST_SERVER", env!("CARGO_BIN_EXE_warpsmith").into());
    (server, named("WARPSMITH_TEST_PLUGIN", plugin))
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The Neovim of a Debian suite; `None` when the user skips these tests.
fn neovim(suite: &str) -> Option<PathBuf> {
    if std::env::var_os("WARPSMITH_SKIP_NEOVIM").is_some_and(|value| value == "1") {
        eprintln!("skipped: WARPSMITH_SKIP_NEOVIM is set");
        return None;
    }
    if let Some(path) = std::env::var_os("WARPSMITH_NEOVIM") {
        return Some(path.into());
    }
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("neovim-{suite}"));
    // One test installs Neovim while the others wait: nextest runs each in a separate process.
    let installing = File::create(prefix.with_extension("lock")).unwrap();
    installing.lock().unwrap();
    if !prefix.join("complete").exists() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/neovim/install.sh");
        let output = Command::new("bash").arg(script).arg(&prefix).arg(suite).output();
        let problem = match &output {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(said(output)),
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem {
            panic!(
                "Neovim could not be brought to this machine; it is unpacked from Debian's archive and needs apt and a \
                 network. Set WARPSMITH_NEOVIM to one that is installed, or WARPSMITH_SKIP_NEOVIM=1.\n{problem}"
            );
        }
    }
    Some(prefix.join("nvim"))
}

/// Runs a script of `tests/neovim/` with the plugin, the server and further arguments; returns its output.
fn run(neovim: &Path, script: &str, home: &Path, arguments: &[&Path]) -> String {
    run_with(neovim, script, home, arguments, &[])
}

/// Runs a script without the user's Neovim configuration.
fn script(neovim: &Path, script: &Path, server: &Path, home: &Path, arguments: &[&Path]) -> Command {
    let mut command = Command::new(neovim);
    command.args(["--headless", "--clean", "-l"]).arg(script).arg(tested().1).arg(server).args(arguments);
    for folder in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
        command.env(folder, home);
    }
    command
}

fn run_with(neovim: &Path, name: &str, home: &Path, arguments: &[&Path], variables: &[(&str, &str)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/neovim").join(name);
    let output = script(neovim, &path, &tested().0, home, arguments).envs(variables.iter().copied()).output().unwrap();
    let said = said(&output);
    assert!(output.status.success() && said.contains("ok done"), "{said}");
    said
}

fn session(suite: &str, way: &str) {
    let Some(neovim) = neovim(suite) else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("warpsmith.toml"), "").unwrap();
    let file = folder.path().join("kernel.py");
    std::fs::write(&file, FILE).unwrap();
    run(&neovim, "session.lua", folder.path(), &[&file, Path::new(way)]);
}

/// Neovim shows the same findings in the files of `examples/` as the command line, and fixes one of them.
#[test]
fn neovim_shows_the_same_findings_in_the_examples_as_the_command_line() {
    let Some(neovim) = neovim("forky") else { return };
    let folder = tempfile::tempdir().unwrap();
    let examples = folder.path().join("examples");
    std::fs::create_dir(&examples).unwrap();
    std::fs::write(folder.path().join("warpsmith.toml"), "triton-version = \"3.6.0\"\n").unwrap();
    for file in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), examples.join(file.file_name())).unwrap();
    }
    let checked = Command::new(env!("CARGO_BIN_EXE_warpsmith"))
        .args(["check", "--format", "json"])
        .arg(&examples)
        .output()
        .unwrap();
    let found: Vec<serde_json::Value> = serde_json::from_slice(&checked.stdout).unwrap();
    let name = |path: &str| Path::new(path).file_name().unwrap().to_string_lossy().into_owned();
    let mut expected: Vec<String> = found
        .iter()
        .map(|found| {
            let (path, code) = (found["path"].as_str().unwrap(), found["code"].as_str().unwrap());
            format!("found {} {} {code}", name(path), found["line"])
        })
        .collect();
    // Good kernels may have hints, too.
    let wrong = found.iter().filter(|found| found["severity"] != "hint");
    let wrong: Vec<String> = wrong.map(|found| name(found["path"].as_str().unwrap())).collect();
    assert!(wrong.len() >= 5 && wrong.iter().all(|file| file == "mistakes.py"), "{expected:?}");

    let said = run(&neovim, "examples.lua", folder.path(), &[&examples]);
    let mut shown: Vec<String> =
        said.lines().filter(|line| line.starts_with("found ")).map(|line| line.trim_end().to_owned()).collect();
    expected.sort();
    shown.sort();
    assert_eq!(shown, expected);
    assert!(said.contains("fixed ") && said.contains("tl.cdiv("), "{said}");
}

/// A folder with a Python that has Triton, settings and a file.
fn project(settings: &str, name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("warpsmith.toml"), format!("python = '{python}'\n{settings}")).unwrap();
    let file = folder.path().join(name);
    std::fs::write(&file, text).unwrap();
    (folder, file)
}

const SIMULATED: [(&str, &str); 1] = [("WARPSMITH_FAKE_DEVICE", "toy")];

/// `:Warpsmith inspect` opens the compiler's output for the kernel at the cursor, below the resources that it uses.
#[test]
fn neovim_inspect_opens_the_compiler_output_of_a_kernel() {
    let text = FILE.replace("é = \"😀\"; factor = tl.float32(n)", "factor = n")
        + "\n\ndef run(x):\n    scale[(1,)](x, x.numel(), BLOCK=64)\n";
    for suite in SUITES {
        let Some(neovim) = neovim(suite) else { return };
        let (folder, file) = project("[compiler]\ntarget = 'cuda:90'\n", "kernel.py", &text);
        let said = run(&neovim, "inspect.lua", folder.path(), &[&file]);
        assert!(said.contains("ok scale.ptx // ptx of `scale`, by Triton 3."), "{said}");
    }
}

/// `:Warpsmith record` runs the file and keeps its calls.
#[test]
fn neovim_records_a_workload() {
    for suite in SUITES {
        let Some(neovim) = neovim(suite) else { return };
        let (folder, file) = project("", "scale.py", RUNS_ITSELF);
        let said = run_with(&neovim, "record.lua", folder.path(), &[&file], &SIMULATED);
        assert!(said.contains("ok Warpsmith: Recorded double in scale.py: 1 call, launches scale"), "{said}");
    }
}

/// `:Warpsmith optimize` is shown, stopped and resumed; its result is a diff that is discarded, or accepted and undone.
/// The server may die meanwhile.
fn optimizes(suite: &str) {
    let Some(neovim) = neovim(suite) else { return };
    // A search that ends soon and changes only the launch.
    let settings = "[optimize]\ncandidates = 8\nparallel = 2\nrewrites = false\n";
    let text = RUNS_ITSELF
        .replace("(1,)", "(triton.cdiv(x.numel(), 16),)")
        .replace("ones(9)", "ones(100)")
        .replace("at = tl.arange(0, BLOCK)", "at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)");
    let (folder, file) = project(settings, "scale.py", &text);
    let said = run_with(&neovim, "optimize.lua", folder.path(), &[&file], &SIMULATED);
    assert!(said.contains("× faster"), "{said}");
}

#[test]
fn current_neovim_shows_the_result_of_a_search() {
    optimizes("forky");
}

#[test]
fn neovim_0_10_shows_the_result_of_a_search() {
    optimizes("trixie");
}

/// The session that is played again on a GPU: from a finding to an edit that is written.
#[test]
fn a_session_of_neovim_is_recorded() {
    let Some(neovim) = neovim("forky") else { return };
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("project");
    std::fs::create_dir_all(folder.join(".git")).unwrap();
    let recording = Recording::new(&folder, &tested().0);
    let session = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu/session.lua");
    let file = folder.join(recording::FILE);
    let mut command = script(&neovim, &session, &recording.server(), home.path(), &[&file, Path::new("apply")]);
    let output = command.envs(SIMULATED).output().unwrap();
    let said = said(&output);
    assert!(output.status.success() && said.contains("1.33× faster"), "{said}");
    recording.end("Neovim 0.12", "neovim.jsonl");
}

/// A search recorded on a GPU, replayed by a fake server: Neovim asks with the measured speedup and applies that edit.
#[test]
fn neovim_replays_a_recorded_gpu_search_and_applies_its_edit() {
    let Some(neovim) = neovim("forky") else { return };
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("project");
    std::fs::create_dir_all(folder.join(".git")).unwrap();
    let (file, server, played) =
        (folder.join(recording::FILE), home.path().join("stand-in"), Played::new("neovim-h200.jsonl"));
    std::fs::write(&file, &played.before).unwrap();
    played.stand_in(&server, 10);
    let session = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu/session.lua");
    let output = script(&neovim, &session, &server, home.path(), &[&file, Path::new("apply")]).output().unwrap();
    let said = said(&output);
    assert!(output.status.success() && said.contains(&played.title), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), played.after);
}

/// Without a server every command reports the problem; the server is found in every place where it may be.
#[test]
fn neovim_commands_report_a_missing_server() {
    for suite in SUITES {
        let Some(neovim) = neovim(suite) else { return };
        let (folder, file) = project("", "kernel.py", FILE);
        run(&neovim, "commands.lua", folder.path(), &[&file]);
    }
}

#[test]
fn neovim_reports_its_health() {
    for suite in SUITES {
        let Some(neovim) = neovim(suite) else { return };
        let (folder, file) = project("", "kernel.py", FILE);
        run_with(&neovim, "health.lua", folder.path(), &[&file], &SIMULATED);
    }
}

/// The plugin below `pack/`, with its help; and `lsp/warpsmith.lua` alone.
#[test]
fn neovim_takes_the_plugin_as_a_package() {
    for suite in SUITES {
        let Some(neovim) = neovim(suite) else { return };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kernel.py");
        std::fs::write(&file, FILE).unwrap();
        let start = folder.path().join("packages/pack/all/start");
        copy(&tested().1, &start.join("warpsmith"));
        run(&neovim, "package.lua", folder.path(), &[&file, &folder.path().join("packages")]);
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).unwrap();
        }
    }
}

#[test]
fn neovim_of_today_enables_the_server_and_applies_a_quick_fix() {
    session("forky", "enable");
}

#[test]
fn neovim_of_today_works_with_setup() {
    session("forky", "setup");
}

#[test]
fn neovim_0_10_works_with_setup() {
    session("trixie", "setup");
}
