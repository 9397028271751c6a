//! Installs the packages of `cargo xtask dist` in clean places and uses them there, without the user's variables,
//! settings and caches.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, ensure};

use crate::dist::Dist;
use crate::process::{self, cargo, say};
use crate::python;

/// Where the system's own programs are.
const SYSTEM: &str = "/usr/bin:/bin";

pub(crate) fn run(root: &Path, dist: &Dist) -> anyhow::Result<()> {
    let place = root.join("target/dist-try");
    if place.is_dir() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(&place)?;
    checksums(dist)?;
    by_pip(root, dist, &place.join("pip"))?;
    unpacked(root, dist, &place.join("unpacked"))?;
    by_cargo(root, dist, &place.join("cargo"))?;
    in_editors(root, dist, &place.join("editors"))
}

fn checksums(dist: &Dist) -> anyhow::Result<()> {
    say("Trying the checksums");
    let folder = dist.wheel.parent().context("a file is in a folder")?;
    process::run(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(folder))
}

/// Tests an environment with Triton and the wheel: the program checks a file, asks Triton's front end, and Python loads
/// its worker.
fn by_pip(root: &Path, dist: &Dist, place: &Path) -> anyhow::Result<()> {
    say("Trying `pip install` of the wheel");
    let python = python::environment(&place.join("venv"), &[python::TRITON])?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"];
    process::run(Command::new(&python).args(pip).arg(&dist.wheel))?;
    let bin = python.parent().context("an interpreter is in a folder")?;
    let user = User::new(root, place)?;
    user.checks(bin, &dist.version)?;
    let compiled = user.warpsmith(bin, &["check", "--compile", "--select", "C", "mistakes.py"])?;
    ensure!(said(&compiled).contains("C001"), "Triton's front end was not asked: {}", said(&compiled));
    fs::write(user.folder.join("ran.py"), "print('ran')\n")?;
    let recorded = user.warpsmith(bin, &["record", "--", "python", "ran.py"])?;
    // Recording needs torch, which is missing. Only the worker reports that, so this shows that Python has loaded it.
    ensure!(said(&recorded).contains("No module named 'torch'"), "the worker does not answer: {}", said(&recorded));
    let workers = fs::read_dir(user.home.join(".cache/warpsmith/worker")).map_or(0, Iterator::count);
    ensure!(workers == 1, "{workers} workers were unpacked");
    Ok(())
}

/// Tests the program by itself, which checks files without Python.
fn unpacked(root: &Path, dist: &Dist, place: &Path) -> anyhow::Result<()> {
    say("Trying the program by itself");
    unpack(&dist.archive, place)?;
    User::new(root, place)?.checks(&place.join(format!("warpsmith-{}", dist.version)), &dist.version)
}

/// Tests the program that is built from the packed source.
fn by_cargo(root: &Path, dist: &Dist, place: &Path) -> anyhow::Result<()> {
    say("Trying `cargo install --path .`");
    process::run(cargo("install --locked --quiet --path . --root").arg(place).current_dir(root))?;
    let bin = place.join("bin");
    ensure!(fs::read_dir(&bin)?.count() == 1, "it is more than one file");
    User::new(root, place)?.checks(&bin, &dist.version)
}

/// Runs the tests of the editors with the packed plugin and the program that users get.
fn in_editors(root: &Path, dist: &Dist, place: &Path) -> anyhow::Result<()> {
    say("Trying the extension and the plugin in real editors");
    for archive in [&dist.plugin, &dist.archive] {
        unpack(archive, place)?;
    }
    fs::create_dir_all(place.join("vsix"))?;
    process::run(Command::new("unzip").arg("-q").arg(&dist.vsix).arg("-d").arg(place.join("vsix")))?;
    let program = place.join(format!("warpsmith-{}/warpsmith", dist.version));
    let inside = place.join("vsix/extension/server/warpsmith");
    ensure!(fs::read(&program)? == fs::read(&inside)?, "the extension holds another program");
    let manifest = fs::read_to_string(place.join("vsix/extension/package.json"))?;
    let manifest: serde_json::Value = serde_json::from_str(&manifest)?;
    ensure!(manifest["version"] == dist.version.as_str(), "the extension has another version");
    let mut tests = cargo("test --quiet --test vscode --test neovim -- neovim vscode_checks vscode_finds a_session");
    tests.env("WARPSMITH_TEST_SERVER", &program).env("WARPSMITH_TEST_PLUGIN", place.join("warpsmith.nvim"));
    let python = root.join("target/test-venv/bin/python");
    process::run(tests.env("WARPSMITH_TEST_PYTHON", python).current_dir(root))
}

fn unpack(archive: &Path, place: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(place)?;
    process::run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(place))
}

/// A user without variables, settings and caches, with a file that has mistakes.
struct User {
    home: PathBuf,
    folder: PathBuf,
}

impl User {
    fn new(root: &Path, place: &Path) -> anyhow::Result<Self> {
        let (home, folder) = (place.join("home"), place.join("project"));
        fs::create_dir_all(&home)?;
        fs::create_dir_all(folder.join(".git"))?;
        fs::copy(root.join("examples/mistakes.py"), folder.join("mistakes.py"))?;
        Ok(Self { home, folder })
    }

    /// Runs the program in a folder of the `PATH`.
    fn warpsmith(&self, bin: &Path, words: &[&str]) -> anyhow::Result<Output> {
        let mut command = Command::new(bin.join("warpsmith"));
        command.env_clear().env("HOME", &self.home).env("PATH", format!("{}:{SYSTEM}", bin.display()));
        Ok(command.args(words).current_dir(&self.folder).output()?)
    }

    /// Checks that the program has this version and finds the mistakes.
    fn checks(&self, bin: &Path, version: &str) -> anyhow::Result<()> {
        let told = self.warpsmith(bin, &["--version"])?;
        ensure!(said(&told).trim() == format!("warpsmith {version}"), "it is another version: {}", said(&told));
        let found = self.warpsmith(bin, &["check", "mistakes.py"])?;
        ensure!(found.status.code() == Some(1) && said(&found).contains("L001"), "it finds nothing: {}", said(&found));
        Ok(())
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
