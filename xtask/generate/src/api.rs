//! `cargo xtask api`: the tables of `config/api/`.
//!
//! A wheel is downloaded with pip, its few Python files of interest are kept under `target/api-wheels/VERSION`, and they
//! are parsed, never imported: neither a GPU nor a matching Python is needed.

mod reader;
mod tensor;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use model::api::{Table, Version};

/// The Python version of the wheels: all releases have one for it.
const PYTHON: &str = "3.11";
const PLATFORMS: [&str; 4] =
    ["manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_27_x86_64", "manylinux_2_28_x86_64"];

/// A script that unpacks the files that [`reader`] reads, and an empty folder or file for each other submodule of
/// `triton`.
const UNPACK: &str = r#"
import pathlib, re, sys, zipfile
wanted = re.compile(r"triton/(__init__|language/.*|runtime/.*|compiler/.*|backends/(nvidia|amd)/compiler|[^/]*)\.py$")
folder = pathlib.Path(sys.argv[2])
with zipfile.ZipFile(sys.argv[1]) as wheel:
    wheel.extractall(folder, [name for name in wheel.namelist() if wanted.match(name)])
    for name in wheel.namelist():
        parts = name.split("/")
        if parts[0] == "triton" and len(parts) > 2:
            (folder / "triton" / parts[1]).mkdir(parents=True, exist_ok=True)
"#;

/// Arguments of `cargo xtask api`.
#[derive(clap::Args)]
pub(crate) struct ApiArgs {
    /// Releases to read, such as 3.6.0; those that have a table when none is named.
    releases: Vec<Version>,
}

/// Writes the tables.
pub(crate) fn run(root: &Path, args: &ApiArgs) -> Result<()> {
    let releases = if args.releases.is_empty() { Table::versions() } else { &args.releases };
    for &version in releases {
        let sources = sources(root, version)?;
        let table = reader::read(&sources, version)?;
        let path = root.join(format!("config/api/triton-{}.{}.json", version.major, version.minor));
        std::fs::write(&path, text(&table)?).with_context(|| format!("cannot write {}", path.display()))?;
        let members: usize = table.modules.values().map(std::collections::BTreeMap::len).sum();
        eprintln!("{}: {members} members, {} launch options", path.display(), table.launch_options.len());
    }
    Ok(())
}

/// The folder with the release's Python files; downloads its wheel when it is not there yet.
fn sources(root: &Path, release: Version) -> Result<PathBuf> {
    let cache = root.join("target/api-wheels");
    let folder = cache.join(release.to_string());
    if folder.join("triton/__init__.py").exists() {
        return Ok(folder);
    }
    let download = cache.join(format!("{release}.download"));
    std::fs::create_dir_all(&download)?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version", PYTHON]);
    PLATFORMS.iter().for_each(|platform| {
        pip.args(["--platform", platform]);
    });
    checked(pip.arg("--dest").arg(&download).arg(format!("triton=={release}")))?;
    let wheels = std::fs::read_dir(&download)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let [wheel] = wheels.as_slice() else { bail!("expected one wheel in {}, found {wheels:?}", download.display()) };
    let unpacked = cache.join(format!("{release}.unpacked"));
    checked(Command::new("python3").args(["-c", UNPACK]).arg(wheel).arg(&unpacked))?;
    std::fs::remove_dir_all(&download)?;
    std::fs::rename(&unpacked, &folder)?;
    Ok(folder)
}

fn checked(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}

/// The JSON of a table with one member per line, so that a diff shows the changes of a release.
fn text(table: &Table) -> Result<String> {
    let mut out = format!("{{\"version\":\"{}\",\n\"launch_options\":[\n", table.version);
    for (at, option) in table.launch_options.iter().enumerate() {
        writeln!(out, "{}{}", serde_json::to_string(option)?, comma(at, table.launch_options.len()))?;
    }
    out.push_str("],\n\"modules\":{\n");
    for (at, (module, members)) in table.modules.iter().enumerate() {
        writeln!(out, "\"{module}\":{{")?;
        for (at, (name, member)) in members.iter().enumerate() {
            writeln!(out, "\"{name}\":{}{}", serde_json::to_string(member)?, comma(at, members.len()))?;
        }
        writeln!(out, "}}{}", comma(at, table.modules.len()))?;
    }
    out.push_str("}}\n");
    Ok(out)
}

fn comma(at: usize, len: usize) -> &'static str {
    if at + 1 < len { "," } else { "" }
}
