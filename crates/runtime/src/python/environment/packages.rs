//! The installed packages of an interpreter, found in the file system.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use model::api::Version;

use super::VariableLookup;

/// The distributions that install a package `triton`. Forks of other vendors add their own names to it and are not
/// listed.
const DISTRIBUTIONS: [&str; 6] =
    ["triton", "pytorch_triton", "triton_windows", "pytorch_triton_rocm", "triton_rocm", "pytorch_triton_xpu"];

/// The package folders of an interpreter, in search order.
pub(super) fn site_packages(python: &Path, env: VariableLookup<'_>) -> Vec<PathBuf> {
    let mut found = Folders::default();
    // The link is not resolved, because the interpreter of an environment is a link to its base interpreter.
    if let Some(prefix) = prefix_of(python)
        && let Ok(config) = fs::read_to_string(prefix.join("pyvenv.cfg"))
    {
        let value = |key: &str| {
            config
                .lines()
                .filter_map(|line| line.split_once('='))
                .find(|(name, _)| name.trim() == key)
                .map(|(_, value)| value.trim())
        };
        let version = value("version").or_else(|| value("version_info")).and_then(series);
        found.add_prefix(&prefix, version.as_deref());
        if value("include-system-site-packages").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            && let Some(base) = value("home").and_then(|home| prefix_of(&Path::new(home).join("python")))
        {
            found.add_system(&base, version.as_deref(), env);
        }
        return found.0;
    }
    let resolved = fs::canonicalize(python).unwrap_or_else(|_| python.to_owned());
    if let Some(prefix) = prefix_of(&resolved) {
        let name = resolved.file_name().and_then(OsStr::to_str).unwrap_or("");
        found.add_system(&prefix, series(name.trim_start_matches(|c: char| !c.is_ascii_digit())).as_deref(), env);
    }
    found.0
}

/// `3.11.7` → `3.11`
fn series(version: &str) -> Option<String> {
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next()?, numbers.next()?);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(major) && is_number(minor)).then(|| format!("{major}.{minor}"))
}

/// `PREFIX/bin/python` and `PREFIX/Scripts/python.exe` → `PREFIX`; conda on Windows has `PREFIX/python.exe`.
fn prefix_of(python: &Path) -> Option<PathBuf> {
    let folder = python.parent()?;
    let is_bin = ["bin", "Scripts"].iter().any(|name| folder.file_name() == Some(OsStr::new(name)));
    Some(if is_bin { folder.parent()? } else { folder }.to_owned())
}

#[derive(Default)]
struct Folders(Vec<PathBuf>);

impl Folders {
    fn add(&mut self, folder: PathBuf) {
        let same = |known: &PathBuf| fs::canonicalize(known).ok() == fs::canonicalize(&folder).ok();
        if folder.is_dir() && !self.0.iter().any(same) {
            self.0.push(folder);
        }
    }

    /// Adds the folders of one prefix: those of one Python version if it is known, else of all versions, newest first.
    fn add_prefix(&mut self, prefix: &Path, version: Option<&str>) {
        for lib in [prefix.join("lib"), prefix.join("lib64")] {
            let mut versions: Vec<String> = fs::read_dir(&lib)
                .into_iter()
                .flatten()
                .filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.strip_prefix("python").and_then(series))
                .filter(|found| version.is_none_or(|wanted| wanted == found))
                .collect();
            versions.sort_by_key(|version| {
                std::cmp::Reverse(
                    version.split('.').filter_map(|number| number.parse::<u32>().ok()).collect::<Vec<_>>(),
                )
            });
            for version in versions {
                let library = lib.join(format!("python{version}"));
                self.add(library.join("site-packages"));
                self.add(library.join("dist-packages"));
            }
            self.add(lib.join("python3/dist-packages"));
        }
        self.add(prefix.join("Lib/site-packages"));
    }

    /// Adds the folders of an interpreter outside of a virtual environment: user packages, `/usr/local`, and its own.
    fn add_system(&mut self, prefix: &Path, version: Option<&str>, env: VariableLookup<'_>) {
        if let Some(home) = env("HOME").filter(|home| !home.is_empty()) {
            self.add_prefix(&Path::new(&home).join(".local"), version);
        }
        if prefix == Path::new("/usr") {
            self.add_prefix(Path::new("/usr/local"), version);
        }
        self.add_prefix(prefix, version);
    }
}

/// An installed Triton.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InstalledTriton {
    pub(super) version: Option<Version>,
    /// Whether the version is a published release.
    pub(super) is_release: bool,
    /// When it was installed.
    pub(super) at: Option<SystemTime>,
}

/// The newest Triton whose metadata is in a folder.
pub(super) fn installed_triton(folder: &Path) -> Option<InstalledTriton> {
    let mut found = Vec::new();
    for (entry, distribution, version) in distributions(folder) {
        if DISTRIBUTIONS.contains(&distribution.to_ascii_lowercase().replace('-', "_").as_str())
            && let Ok(parsed) = version.parse::<Version>()
        {
            let at = entry.metadata().and_then(|metadata| metadata.modified()).ok();
            found.push(InstalledTriton { version: Some(parsed), is_release: is_release(&version), at });
        }
    }
    found.into_iter().max()
}

/// The version of a distribution in a folder of packages.
pub(super) fn installed(folder: &Path, distribution: &str) -> Option<String> {
    distributions(folder).find(|(_, found, _)| found == distribution).map(|(.., version)| version)
}

/// The distributions whose metadata is in a folder, with their versions.
fn distributions(folder: &Path) -> impl Iterator<Item = (fs::DirEntry, String, String)> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok()?;
        let (distribution, version) = name.strip_suffix(".dist-info")?.split_once('-')?;
        let (distribution, version) = (distribution.to_owned(), version.to_owned());
        Some((entry, distribution, version))
    })
}

/// Whether a version is a published release: `3.6.0`, `3.6.0.post1` and `3.6.0+rocm6.4` are; `3.6.0+git1a2b3c`,
/// `3.6.0rc1` and `3.6.0.dev2026` are not.
fn is_release(version: &str) -> bool {
    let (public, local) = version.split_once('+').unwrap_or((version, ""));
    let public = public.replace(".post", ".");
    public.chars().all(|c| c.is_ascii_digit() || c == '.') && !local.contains("git")
}
