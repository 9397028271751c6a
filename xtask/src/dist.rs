//! `cargo xtask dist`: the packages that users install, with checksums: the wheel, the program by itself, the extension
//! for VS Code and the plugin for Neovim. All of them hold the same program.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::installed;
use crate::process::{self, cargo, output, say};
use crate::python;

/// The tools that build the wheel and link for old systems.
const TOOLS: [&str; 2] = ["maturin==1.16.0", "ziglang==0.15.2"];
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
/// The oldest supported systems, as a wheel's platform tag, and their version of glibc.
const POLICY: &str = "manylinux2014";
const GLIBC: (u32, u32) = (2, 17);
/// The maximum size of the extension in bytes.
const VSIX_BYTES: u64 = 15_000_000;

/// The packages that were built.
pub(crate) struct Dist {
    pub(crate) version: String,
    pub(crate) wheel: PathBuf,
    pub(crate) archive: PathBuf,
    pub(crate) vsix: PathBuf,
    pub(crate) plugin: PathBuf,
}

pub(crate) fn run(root: &Path, is_tried: bool) -> anyhow::Result<()> {
    let dist = build(root)?;
    if is_tried {
        installed::run(root, &dist)?;
    }
    say("In target/dist:");
    for file in [&dist.wheel, &dist.archive, &dist.vsix, &dist.plugin] {
        let name = file.file_name().unwrap_or_default().display().to_string();
        eprintln!("    {name:60} {:8.1} MB", fs::metadata(file)?.len() as f64 / 1e6);
    }
    Ok(())
}

/// The version of the whole repository.
fn version() -> anyhow::Result<String> {
    let id = output(&mut cargo("pkgid --package warpsmith"))?;
    Ok(id.trim().rsplit(['#', '@']).next().unwrap_or_default().to_owned())
}

fn build(root: &Path) -> anyhow::Result<Dist> {
    let (out, work) = (root.join("target/dist"), root.join("target/dist-build"));
    if out.is_dir() {
        fs::remove_dir_all(&out)?;
    }
    fs::create_dir_all(&out)?;
    let version = version()?;

    say("The wheel");
    let wheel = wheel(root, &out, &work)?;
    let program = program(&wheel, &version, &work)?;
    let newest = newest_glibc(&fs::read(&program)?);
    ensure!(newest <= GLIBC, "the program, or the worker in it, needs glibc {newest:?}, and {POLICY} has {GLIBC:?}");

    say("The program by itself");
    let licences = ["LICENSE-MIT", "LICENSE-APACHE"].map(|name| root.join(name));
    let archive = out.join(format!("warpsmith-{version}-{TRIPLE}.tar.gz"));
    let files: Vec<PathBuf> = [program.clone(), root.join("README.md")].into_iter().chain(licences.clone()).collect();
    pack(root, &archive, &work.join(format!("warpsmith-{version}")), &files)?;

    say("The extension for VS Code");
    process::run(Command::new("bash").arg(root.join("tests/vscode/build.sh")).arg(work.join("vscode")).arg(&program))?;
    let vsix = out.join(format!("warpsmith-linux-x64-{version}.vsix"));
    fs::copy(work.join("vscode/warpsmith.vsix"), &vsix)?;
    let size = fs::metadata(&vsix)?.len();
    ensure!(size < VSIX_BYTES, "the extension has {size} bytes, more than {VSIX_BYTES}");

    say("The plugin for Neovim");
    let plugin = out.join(format!("warpsmith.nvim-{version}.tar.gz"));
    let inside = fs::read_dir(root.join("editors/nvim"))?.map(|entry| Ok(entry?.path()));
    let files: Vec<PathBuf> = inside.chain(licences.map(Ok)).collect::<std::io::Result<_>>()?;
    pack(root, &plugin, &work.join("warpsmith.nvim"), &files)?;

    let names = [&wheel, &archive, &vsix, &plugin].map(|path| path.file_name().unwrap_or_default().to_owned());
    let sums = output(Command::new("sha256sum").args(names).current_dir(&out))?;
    fs::write(out.join("SHA256SUMS"), sums)?;
    Ok(Dist { version, wheel, archive, vsix, plugin })
}

/// Builds the wheel, linked by zig against an old version of glibc.
fn wheel(root: &Path, out: &Path, work: &Path) -> anyhow::Result<PathBuf> {
    let python = python::environment(&root.join("target/dist-tools"), &TOOLS)?;
    let bin = python.parent().context("an interpreter is in a folder")?;
    let mut command = Command::new(bin.join("maturin"));
    command.args([
        "build",
        "--profile",
        "dist",
        "--zig",
        "--compatibility",
        POLICY,
        "--target",
        TRIPLE,
        "--target-dir",
    ]);
    command.arg(work).arg("--out").arg(out).current_dir(root);
    process::run(command.env("PATH", path_with(bin)))?;
    let mut wheels = fs::read_dir(out)?.flatten().map(|entry| entry.path());
    wheels.find(|path| path.extension().is_some_and(|extension| extension == "whl")).context("maturin made no wheel")
}

/// `PATH` with a folder before the others.
fn path_with(folder: &Path) -> OsString {
    let mut path = folder.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// The program in a wheel, unpacked.
fn program(wheel: &Path, version: &str, work: &Path) -> anyhow::Result<PathBuf> {
    let folder = work.join("wheel");
    if folder.is_dir() {
        fs::remove_dir_all(&folder)?;
    }
    process::run(Command::new("unzip").arg("-q").arg(wheel).arg("-d").arg(&folder))?;
    let program = folder.join(format!("warpsmith-{version}.data/scripts/warpsmith"));
    ensure!(program.is_file(), "the wheel holds no program of version {version}");
    Ok(program)
}

/// An archive of some files in one folder; the same files give the same bytes.
fn pack(root: &Path, archive: &Path, folder: &Path, files: &[PathBuf]) -> anyhow::Result<()> {
    if folder.is_dir() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    process::run(Command::new("cp").arg("-r").args(files).arg(folder))?;
    let time = output(Command::new("git").args(["log", "-1", "--format=@%ct"]).current_dir(root))?;
    let mut tar = Command::new("tar");
    tar.args([
        "--create",
        "--use-compress-program=gzip -n",
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
    ]);
    tar.arg(format!("--mtime={}", time.trim())).arg("--file").arg(archive);
    let (parent, name) = (folder.parent(), folder.file_name());
    process::run(tar.arg("--directory").arg(parent.context("a folder has a place")?).args(name))
}

/// The newest version of glibc's symbols in a program and the files that it contains.
fn newest_glibc(bytes: &[u8]) -> (u32, u32) {
    const PREFIX: &[u8] = b"GLIBC_";
    let versions = bytes.windows(PREFIX.len()).enumerate().filter(|(_, window)| *window == PREFIX).map(|(at, _)| {
        let rest = &bytes[at + PREFIX.len()..];
        let end = rest.iter().position(|byte| !(byte.is_ascii_digit() || *byte == b'.')).unwrap_or(rest.len());
        let mut numbers = rest[..end].split(|byte| *byte == b'.');
        let mut number = || numbers.next().and_then(|word| std::str::from_utf8(word).ok()?.parse().ok()).unwrap_or(0);
        (number(), number())
    });
    versions.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_symbol_determines_the_version() {
        let bytes = b"\0GLIBC_2.2.5\0memcpy\0GLIBC_2.17\0GLIBC_PRIVATE\0GLIBC_2.9\0";
        assert_eq!(newest_glibc(bytes), (2, 17));
        assert_eq!(newest_glibc(b"none"), (0, 0));
    }
}
