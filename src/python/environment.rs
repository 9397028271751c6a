//! Which Python a project uses and which Triton is installed there, read off the file system: nothing is executed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::api::{Certainty, Target, Version, VersionError};
use crate::settings::{Loaded, Settings};

/// A Python interpreter with what is installed for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// The interpreter to start. For one named in the settings it need not exist.
    pub python: PathBuf,
    /// What named it.
    pub origin: Origin,
    /// The folders with its packages, in the order in which Python searches them.
    pub site_packages: Vec<PathBuf>,
    /// The Triton installed there.
    pub triton: Option<Version>,
    /// Whether that is a published release, not a snapshot such as `3.5.0+git1a2b3c` that may have other names.
    pub release: bool,
}

/// What named an interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The setting `python`.
    Settings,
    /// The variable `VIRTUAL_ENV`.
    VirtualEnv,
    /// A folder `.venv` or `venv` beside the file or above it.
    Workspace,
    /// The variable `CONDA_PREFIX`.
    Conda,
    /// The variable `PATH`.
    Path,
}

/// Looks up an environment variable; tests have their own.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Distributions that install a package `triton`. Others that do (of other vendors) have names of their own in it.
const DISTRIBUTIONS: [&str; 6] =
    ["triton", "pytorch_triton", "triton_windows", "pytorch_triton_rocm", "triton_rocm", "pytorch_triton_xpu"];

impl Environment {
    /// The environment of a file or folder `start` in the workspace `root`. In this order: the setting `python`
    /// (relative to `root`), `VIRTUAL_ENV`, `.venv` or `venv` from `start` up to `root`, `CONDA_PREFIX`, `PATH`.
    #[must_use]
    pub fn find(start: &Path, root: &Path, settings_python: Option<&Path>, env: Variables<'_>) -> Option<Self> {
        if let Some(python) = settings_python {
            return Some(from_settings(python, root, start, env));
        }
        let of_variable =
            |name| env(name).filter(|value| !value.is_empty()).and_then(|prefix| in_prefix(Path::new(&prefix)));
        let (python, origin) = of_variable("VIRTUAL_ENV")
            .map(|python| (python, Origin::VirtualEnv))
            .or_else(|| in_workspace(start, root).map(|python| (python, Origin::Workspace)))
            .or_else(|| of_variable("CONDA_PREFIX").map(|python| (python, Origin::Conda)))
            .or_else(|| on_path(&["python3", "python"], start, env).map(|python| (python, Origin::Path)))?;
        Some(Self::of(python, origin, env))
    }

    /// The environment of `folder` under the settings that hold there, with the variables of this process.
    #[must_use]
    pub fn of_project(loaded: &Loaded, folder: &Path) -> Option<Self> {
        let python = loaded.settings.python.as_deref();
        Self::find(folder, &loaded.project(folder), python, &|name| std::env::var_os(name))
    }

    fn of(python: PathBuf, origin: Origin, env: Variables<'_>) -> Self {
        let site_packages = site_packages(&python, env);
        let installed = site_packages.iter().find_map(|folder| installed_triton(folder));
        let (triton, release) = installed.map_or((None, false), |(version, release)| (Some(version), release));
        Self { python, origin, site_packages, triton, release }
    }
}

/// The Triton version to check against: the one in the settings, else the installed one, else the newest, assumed.
///
/// # Errors
/// [`VersionError`] when the settings name something that is no version.
pub fn target_for(settings: &Settings, environment: Option<&Environment>) -> Result<Target, VersionError> {
    if let Some(version) = &settings.triton_version {
        return Ok(Target::of(version.parse()?));
    }
    let Some((environment, version)) = environment.and_then(|found| Some((found, found.triton?))) else {
        return Ok(Target::newest());
    };
    let target = Target::of(version);
    let snapshot = !environment.release && target.certainty == Certainty::Known;
    Ok(if snapshot { Target { certainty: Certainty::Assumed, ..target } } else { target })
}

/// The setting may be an interpreter, the folder of an environment, or a command on `PATH`.
fn from_settings(python: &Path, root: &Path, start: &Path, env: Variables<'_>) -> Environment {
    let is_command = python.components().count() == 1 && !root.join(python).exists();
    let command = python.to_str().filter(|_| is_command).and_then(|name| on_path(&[name], start, env));
    let path = command.unwrap_or_else(|| root.join(python));
    let path = if path.is_dir() { in_prefix(&path).unwrap_or(path) } else { path };
    Environment::of(path, Origin::Settings, env)
}

fn in_workspace(start: &Path, root: &Path) -> Option<PathBuf> {
    let inside = start.starts_with(root);
    let above = start.ancestors().take_while(|folder| inside && folder.starts_with(root));
    let outside = (!inside).then_some(root);
    above
        .chain(outside)
        .flat_map(|folder| [folder.join(".venv"), folder.join("venv")])
        .find_map(|prefix| in_prefix(&prefix))
}

/// The interpreter of the environment in a folder, on Unix or Windows.
fn in_prefix(prefix: &Path) -> Option<PathBuf> {
    ["bin/python", "bin/python3", "Scripts/python.exe", "python.exe"]
        .iter()
        .map(|relative| prefix.join(relative))
        .find(|python| python.exists())
}

fn on_path(names: &[&str], start: &Path, env: Variables<'_>) -> Option<PathBuf> {
    let path = env("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    names.iter().find_map(|name| folders.iter().find_map(|folder| executable(folder, name, start, env)))
}

fn executable(folder: &Path, name: &str, start: &Path, env: Variables<'_>) -> Option<PathBuf> {
    let candidates = [name.to_owned(), format!("{name}.exe")];
    let found = candidates.iter().map(|file| folder.join(file)).find(|path| path.is_file())?;
    if folder.file_name() == Some(OsStr::new("shims")) {
        // pyenv's shims are scripts: the interpreter is the chosen version's.
        return pyenv(folder.parent()?, name, start, env);
    }
    Some(found)
}

/// The interpreter that a shim of pyenv starts.
fn pyenv(root: &Path, name: &str, start: &Path, env: Variables<'_>) -> Option<PathBuf> {
    let chosen = env("PYENV_VERSION").and_then(|version| version.into_string().ok()).or_else(|| {
        let local = start.ancestors().map(|folder| folder.join(".python-version"));
        local.chain([root.join("version")]).find_map(|file| fs::read_to_string(file).ok())
    })?;
    let versions = chosen.split(|c: char| c.is_whitespace() || c == ':').filter(|version| !version.is_empty());
    versions.map(|version| root.join("versions").join(version).join("bin").join(name)).find(|python| python.is_file())
}

/// The folders with an interpreter's packages.
fn site_packages(python: &Path, env: Variables<'_>) -> Vec<PathBuf> {
    let mut found = Folders::default();
    // Not resolved: an environment's interpreter is a link to the one that it was made from.
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

    /// The folders of one prefix; those of one Python version when it is known, else of all, newest first.
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

    /// The folders of an interpreter that is no virtual environment: the user's own packages, the local ones, its own.
    fn add_system(&mut self, prefix: &Path, version: Option<&str>, env: Variables<'_>) {
        if let Some(home) = env("HOME").filter(|home| !home.is_empty()) {
            self.add_prefix(&Path::new(&home).join(".local"), version);
        }
        if prefix == Path::new("/usr") {
            self.add_prefix(Path::new("/usr/local"), version);
        }
        self.add_prefix(prefix, version);
    }
}

/// The newest Triton whose metadata lies in a folder, and whether it is a published release.
fn installed_triton(folder: &Path) -> Option<(Version, bool)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).ok()?.filter_map(Result::ok) {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Some((distribution, version)) = name.strip_suffix(".dist-info").and_then(|name| name.split_once('-'))
        else {
            continue;
        };
        if DISTRIBUTIONS.contains(&distribution.to_ascii_lowercase().replace('-', "_").as_str())
            && let Ok(parsed) = version.parse::<Version>()
        {
            found.push((parsed, is_release(version)));
        }
    }
    found.into_iter().max()
}

/// `3.6.0`, `3.6.0.post1` and `3.6.0+rocm6.4` are; `3.6.0+git1a2b3c`, `3.6.0rc1` and `3.6.0.dev2026` are not.
fn is_release(version: &str) -> bool {
    let (public, local) = version.split_once('+').unwrap_or((version, ""));
    let public = public.replace(".post", ".");
    public.chars().all(|c| c.is_ascii_digit() || c == '.') && !local.contains("git")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    struct Fake {
        folder: tempfile::TempDir,
        variables: HashMap<&'static str, OsString>,
    }

    impl Fake {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap(), variables: HashMap::new() }
        }

        fn path(&self, relative: &str) -> PathBuf {
            // The temporary folder may itself be a link.
            fs::canonicalize(self.folder.path()).unwrap().join(relative)
        }

        fn file(&self, relative: &str, text: &str) -> PathBuf {
            let path = self.path(relative);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        }

        /// An environment with `distribution` in it, as `python -m venv` lays it out.
        fn venv(&self, prefix: &str, distribution: &str) {
            self.file(&format!("{prefix}/pyvenv.cfg"), "home = /nowhere/bin\nversion = 3.12.1\n");
            self.file(&format!("{prefix}/bin/python"), "");
            self.file(&format!("{prefix}/lib/python3.12/site-packages/{distribution}.dist-info/METADATA"), "");
        }

        fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
            self.variables.insert(name, value.into());
        }

        fn find(&self, python: Option<&str>) -> Option<Environment> {
            let start = self.path("work/pkg/kernels.py");
            Environment::find(&start, &self.path("work"), python.map(Path::new), &|name| {
                self.variables.get(name).cloned()
            })
        }

        fn found(&self, python: Option<&str>) -> (Origin, Option<String>) {
            let found = self.find(python).unwrap();
            (found.origin, found.triton.map(|version| version.to_string()))
        }
    }

    fn some(version: &str) -> Option<String> {
        Some(version.to_owned())
    }

    #[test]
    fn each_place_is_looked_at_in_its_turn() {
        let mut fake = Fake::new();
        assert_eq!(fake.find(None), None);
        fake.venv("system", "triton-3.1.0");
        fake.file("system/bin/python3", "");
        fake.set("PATH", std::env::join_paths([fake.path("empty"), fake.path("system/bin")]).unwrap());
        assert_eq!(fake.found(None), (Origin::Path, some("3.1.0")));
        fake.venv("conda", "triton-3.2.0");
        fake.set("CONDA_PREFIX", fake.path("conda"));
        assert_eq!(fake.found(None), (Origin::Conda, some("3.2.0")));
        fake.venv("work/venv", "triton-3.3.0");
        assert_eq!(fake.found(None), (Origin::Workspace, some("3.3.0")));
        fake.venv("work/pkg/.venv", "triton-3.4.0");
        assert_eq!(fake.found(None), (Origin::Workspace, some("3.4.0")));
        fake.venv(".venv", "triton-3.5.0"); // above the workspace: not the project's
        fake.venv("active", "triton-3.6.0");
        fake.set("VIRTUAL_ENV", fake.path("active"));
        assert_eq!(fake.found(None), (Origin::VirtualEnv, some("3.6.0")));
        fake.venv("named", "triton-3.7.0");
        assert_eq!(fake.found(Some("../named/bin/python")), (Origin::Settings, some("3.7.0")));
        assert_eq!(fake.found(Some("../named")), (Origin::Settings, some("3.7.0")));
        assert_eq!(fake.found(Some("python3")), (Origin::Settings, some("3.1.0")));
    }

    #[test]
    fn a_place_without_an_interpreter_is_passed_by() {
        let mut fake = Fake::new();
        fake.file("work/.venv/pyvenv.cfg", "");
        fake.set("VIRTUAL_ENV", fake.path("deleted"));
        fake.set("CONDA_PREFIX", "");
        fake.set("PATH", "relative");
        assert_eq!(fake.find(None), None);
        // What the settings name is not replaced by something else, so that it can be reported.
        let named = fake.find(Some("missing/python")).unwrap();
        assert_eq!((named.python, named.triton), (fake.path("work/missing/python"), None));
    }

    #[test]
    fn every_build_of_triton_counts_and_forks_do_not() {
        for (distribution, triton, release) in [
            ("triton-3.6.0", some("3.6.0"), true),
            ("pytorch_triton-3.5.0+git7416ffcb", some("3.5.0"), false),
            ("pytorch_triton_rocm-3.4.0", some("3.4.0"), true),
            ("triton_windows-3.2.0.post19", some("3.2.0"), true),
            ("triton-3.7.0rc1", some("3.7.0"), false),
            ("triton_ascend-3.2.0", None, false),
            ("tritonclient-2.5.0", None, false),
        ] {
            let fake = Fake::new();
            fake.venv("work/.venv", distribution);
            let found = fake.find(None).unwrap();
            assert_eq!(
                (found.triton.map(|version| version.to_string()), found.release),
                (triton, release),
                "{distribution}"
            );
        }
    }

    #[test]
    fn windows_has_its_own_layout() {
        let fake = Fake::new();
        fake.file("work/.venv/Scripts/python.exe", "");
        fake.file("work/.venv/Lib/site-packages/triton_windows-3.3.1.post19.dist-info/METADATA", "");
        let found = fake.find(None).unwrap();
        assert_eq!(found.python, fake.path("work/.venv/Scripts/python.exe"));
        assert_eq!(found.triton, Some("3.3.1".parse().unwrap()));
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_the_interpreters_own_packages() {
        let mut fake = Fake::new();
        let real = fake.file("opt/python/bin/python3.11", "");
        fake.file("opt/python/lib/python3.11/site-packages/triton-3.6.0.dist-info/METADATA", "");
        fake.file("opt/python/lib/python3.12/site-packages/triton-3.9.0.dist-info/METADATA", "");
        fs::create_dir_all(fake.path("bin")).unwrap();
        std::os::unix::fs::symlink(real, fake.path("bin/python3")).unwrap();
        fake.set("PATH", fake.path("bin"));
        assert_eq!(fake.found(None), (Origin::Path, some("3.6.0")));
        // The user's own packages come first.
        fake.file("home/.local/lib/python3.11/site-packages/triton-3.5.0.dist-info/METADATA", "");
        fake.set("HOME", fake.path("home"));
        assert_eq!(fake.found(None), (Origin::Path, some("3.5.0")));
    }

    #[test]
    fn an_environment_may_see_the_packages_of_its_base() {
        let fake = Fake::new();
        let base = fake.path("base/bin");
        fake.file("base/lib/python3.12/dist-packages/triton-3.4.0.dist-info/METADATA", "");
        fake.file("work/.venv/bin/python", "");
        fs::create_dir_all(fake.path("work/.venv/lib/python3.12/site-packages")).unwrap();
        for (sees, triton) in [("true", some("3.4.0")), ("false", None)] {
            let home = base.display();
            let config = format!("home = {home}\ninclude-system-site-packages = {sees}\nversion = 3.12.1\n");
            fake.file("work/.venv/pyvenv.cfg", &config);
            assert_eq!(fake.found(None), (Origin::Workspace, triton));
        }
    }

    #[test]
    fn a_shim_of_pyenv_leads_to_the_version_chosen() {
        let mut fake = Fake::new();
        fake.file("pyenv/shims/python3", "#!/bin/sh");
        for (python, triton) in [("3.11.7", "3.6.0"), ("3.12.1", "3.9.0")] {
            let series = &python[..4];
            fake.file(&format!("pyenv/versions/{python}/bin/python3"), "");
            fake.file(
                &format!("pyenv/versions/{python}/lib/python{series}/site-packages/triton-{triton}.dist-info/METADATA"),
                "",
            );
        }
        fake.file("pyenv/version", "3.11.7\n");
        fake.set("PATH", fake.path("pyenv/shims"));
        assert_eq!(fake.found(None), (Origin::Path, some("3.6.0")));
        fake.file("work/.python-version", "3.12.1\n");
        assert_eq!(fake.found(None), (Origin::Path, some("3.9.0")));
    }

    #[test]
    fn the_target_is_set_installed_or_assumed() {
        let fake = Fake::new();
        let target = |settings: &Settings| {
            let found = fake.find(None);
            target_for(settings, found.as_ref()).map(|target| (target.table.version.to_string(), target.certainty))
        };
        let newest = crate::api::Table::newest().version.to_string();
        assert_eq!(target(&Settings::default()), Ok((newest, Certainty::Assumed)));
        fake.venv("work/.venv", "triton-3.5.0");
        assert_eq!(target(&Settings::default()), Ok(("3.5.1".to_owned(), Certainty::Known)));
        let set = |version: &str| Settings { triton_version: Some(version.to_owned()), ..Settings::default() };
        assert_eq!(target(&set("3.2")), Ok(("3.2.0".to_owned(), Certainty::Known)));
        assert_eq!(target(&set("newest")), Err(VersionError("newest".to_owned())));
        fake.venv("work/.venv", "triton-3.6.0+git1a2b3c"); // beside 3.5.0: the newer counts
        assert_eq!(target(&Settings::default()), Ok(("3.6.0".to_owned(), Certainty::Assumed)));
    }
}
