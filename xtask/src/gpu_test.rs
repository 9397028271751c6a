//! `cargo xtask gpu-test`: runs on a real GPU: optimization from the command line and from Neovim, recorded sessions of
//! editors, the fence around candidates, the test suite and the figures of the judge with and without torch, the cost
//! of recording, searches over a suite of files, and the predictions of a GPU model for the same candidates.

use std::path::Path;
use std::process::Command;

use anyhow::ensure;

use crate::process::{self, cargo, say};
use crate::python;

/// Packages whose kernels are judged against themselves, and their dependencies.
const PUBLISHED: [&str; 4] = ["liger-kernel==0.8.5", "fla-core==0.6.0", "einops==0.8.2", "packaging==26.0"];

pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let interpreter = python::interpreter()?;
    ensure!(
        python::has(&interpreter, &["torch", "triton"]),
        "{} has no torch or no Triton: activate an environment that has both",
        interpreter.display()
    );
    say("Building");
    process::run(&mut cargo("build --release"))?;
    say("Neovim");
    let nvim = root.join("target/neovim-gpu");
    if !nvim.join("complete").exists() {
        process::run(Command::new("bash").arg(root.join("tests/neovim/install.sh")).arg(&nvim).arg("forky"))?;
    }
    say("Published kernels");
    let packages = root.join("target/published");
    process::run(
        Command::new(&interpreter)
            .args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"])
            .args(PUBLISHED)
            .arg("--dest")
            .arg(&packages),
    )?;
    let wheels = std::fs::read_dir(&packages)?.flatten().map(|entry| entry.path());
    let wheels: Vec<_> = wheels.filter(|path| path.extension().is_some_and(|extension| extension == "whl")).collect();
    let script = |name: &str| {
        let mut command = Command::new(&interpreter);
        command.arg(root.join("tests/gpu").join(name));
        command
    };
    let (warpsmith, results) = (root.join("target/release/warpsmith"), root.join("target/gpu-results.json"));
    let judged = root.join("target/gpu-evaluation.json");
    say("On the GPU");
    let mut failed = Vec::new();
    let mut optimizing = script("run.py");
    optimizing.arg("--warpsmith").arg(&warpsmith).arg("--nvim").arg(nvim.join("nvim")).arg("--out").arg(&results);
    let mut judging = script("evaluation.py");
    judging.arg("--warpsmith").arg(&warpsmith).arg("--python").arg(&interpreter).arg("--out").arg(&judged);
    judging.args(["--seconds", "5400", "--packages"]).args(&wheels);
    let mut launches = script("torch_free.py");
    launches.arg("--warpsmith").arg(&warpsmith).arg("--python").arg(&interpreter);
    let mut recording = script("recording.py");
    recording.arg("--warpsmith").arg(&warpsmith).arg("--python").arg(&interpreter).arg("--packages").args(&wheels);
    let mut stopping = script("searches.py");
    stopping.arg("--warpsmith").arg(&warpsmith).arg("--python").arg(&interpreter);
    let (searched, journals) = (root.join("target/gpu-optimize.json"), root.join("target/gpu-journals"));
    let mut searching = script("optimize.py");
    searching.arg("--warpsmith").arg(&warpsmith).arg("--python").arg(&interpreter).arg("--out").arg(&searched);
    searching.args(["--limit", "14400", "--journals"]).arg(&journals);
    let mut predicting = script("predicted.py");
    predicting.arg("--warpsmith").arg(&warpsmith).arg("--python").arg(&interpreter).arg("--journals").arg(&journals);
    predicting.arg("--out").arg(root.join("target/gpu-predicted.json"));
    let mut modelled = script("models.py");
    modelled.arg("--warpsmith").arg(&warpsmith).arg("--python").arg(&interpreter);
    modelled.arg("--out").arg(root.join("target/gpu-models.json"));
    let replayed = |editor: &str| {
        let mut command = script("replay.py");
        command.arg(root.join("tests/gpu/sessions").join(editor).with_extension("jsonl"));
        command.arg("--warpsmith").arg(&warpsmith).arg("--python").arg(&interpreter);
        command.arg("--out").arg(root.join(format!("target/gpu-{editor}.json")));
        command
    };
    let all = [
        ("optimizing", optimizing),
        ("a session of VS Code", replayed("vscode")),
        ("a session of Neovim", replayed("neovim")),
        ("recording", recording),
        ("the fence", script("fence.py")),
        ("kernels by themselves", launches),
        ("judging", judging),
        ("searches that are stopped, killed and crowded", stopping),
        ("the suite of files to optimize", searching),
        ("predicting what was measured there", predicting),
        ("a model that cheats", modelled),
    ];
    for (what, mut command) in all {
        // A failure does not stop the other programs.
        if let Err(error) = process::run(&mut command) {
            say(&format!("{what}: {error}"));
            failed.push(what);
        }
    }
    let all = [&results, &judged, &searched].map(|path| path.display().to_string()).join(", ");
    say(&format!("Results in {all}: keep those that count in docs/results/"));
    ensure!(failed.is_empty(), "not as it should be: {}", failed.join(", "));
    Ok(())
}
