//! The environments that uv, Poetry and PDM create for a project. Their paths are computed as these programs do it.

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::candidates::in_prefix;
use super::{InterpreterSearch, VariableLookup};

/// The environment of uv: `UV_PROJECT_ENVIRONMENT`, else `.venv`, beside the nearest `uv.lock`. The lock file of a uv
/// workspace may be above the root.
pub(super) fn uv(search: &InterpreterSearch<'_>, env: VariableLookup<'_>) -> Vec<PathBuf> {
    let Some(project) = above(search.start, "uv.lock") else { return Vec::new() };
    let set = env("UV_PROJECT_ENVIRONMENT").filter(|value| !value.is_empty());
    in_prefix(&project.join(set.unwrap_or_else(|| ".venv".into()))).into_iter().collect()
}

/// The interpreter of PDM, whose path is in the file `.pdm-python`.
pub(super) fn pdm(search: &InterpreterSearch<'_>, _: VariableLookup<'_>) -> Vec<PathBuf> {
    let noted =
        above(search.start, ".pdm-python").and_then(|folder| fs::read_to_string(folder.join(".pdm-python")).ok());
    let python = noted.map(|text| PathBuf::from(text.trim())).filter(|python| python.is_absolute() && python.is_file());
    python.into_iter().collect()
}

/// The environments of Poetry, named after the project, a hash of its path and the Python version; the activated one
/// is first.
pub(super) fn poetry(search: &InterpreterSearch<'_>, env: VariableLookup<'_>) -> Vec<PathBuf> {
    let Some(project) = search.start.ancestors().find(|folder| is_of_poetry(folder)) else { return Vec::new() };
    let Some(name) = table(&project.join("pyproject.toml")).as_ref().and_then(project_name) else { return Vec::new() };
    let Some(environments) = poetry_environments(project, env) else { return Vec::new() };
    let base = poetry_name(&name, &fs::canonicalize(project).unwrap_or_else(|_| project.to_owned()));
    let activated = table(&environments.join("envs.toml")).and_then(|activated| {
        let minor = activated.get(&base)?.get("minor")?.as_str()?.to_owned();
        Some(environments.join(format!("{base}-py{minor}")))
    });
    let others = versions_of(&environments, &format!("{base}-py"));
    activated.into_iter().chain(others).filter_map(|prefix| in_prefix(&prefix)).collect()
}

/// The folders whose name is `prefix` and a version, newest first.
fn versions_of(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let version = |path: &Path| -> Option<Vec<u32>> {
        let rest = path.file_name()?.to_str()?.strip_prefix(prefix)?;
        rest.split('.').map(|number| number.parse().ok()).collect()
    };
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<_> = entries.filter_map(|entry| Some((version(&entry.path())?, entry.path()))).collect();
    found.sort_by(|one, other| other.cmp(one));
    found.into_iter().map(|(_, path)| path).collect()
}

/// Whether Poetry manages the project in a folder.
fn is_of_poetry(folder: &Path) -> bool {
    let is_configured = || {
        let project = table(&folder.join("pyproject.toml"));
        project.is_some_and(|project| project.get("tool").and_then(|tool| tool.get("poetry")).is_some())
    };
    folder.join("poetry.lock").is_file() || is_configured()
}

fn project_name(project: &Table) -> Option<String> {
    let tables = [project.get("project"), project.get("tool").and_then(|tool| tool.get("poetry"))];
    let name = tables.into_iter().flatten().find_map(|table| table.get("name")?.as_str())?;
    Some(name.to_owned())
}

/// The folder where Poetry keeps environments, unless it keeps them in the projects.
fn poetry_environments(project: &Path, env: VariableLookup<'_>) -> Option<PathBuf> {
    let variable = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("HOME");
    let below_home = |folder: &str| home.as_ref().map(|home| home.join(folder));
    let (cache, config) = if cfg!(target_os = "macos") {
        (below_home("Library/Caches"), below_home("Library/Application Support"))
    } else {
        let or_below = |name: &str, folder: &str| variable(name).or_else(|| below_home(folder));
        (or_below("XDG_CACHE_HOME", ".cache"), or_below("XDG_CONFIG_HOME", ".config"))
    };
    let config = variable("POETRY_CONFIG_DIR").or_else(|| Some(config?.join("pypoetry")));
    let files = [Some(project.join("poetry.toml")), config.map(|folder| folder.join("config.toml"))];
    let settings: Vec<Table> = files.into_iter().flatten().filter_map(|file| table(&file)).collect();
    let set = |get: &dyn Fn(&Table) -> Option<&Value>| {
        settings.iter().find_map(|table| get(table)?.as_str().map(str::to_owned))
    };
    let cache = variable("POETRY_CACHE_DIR")
        .or_else(|| set(&|table| table.get("cache-dir")).map(PathBuf::from))
        .or_else(|| Some(cache?.join("pypoetry")));
    let named = variable("POETRY_VIRTUALENVS_PATH")
        .or_else(|| set(&|table| table.get("virtualenvs")?.get("path")).map(PathBuf::from));
    let Some(named) = named else { return Some(cache?.join("virtualenvs")) };
    match named.strip_prefix("{cache-dir}") {
        Ok(rest) => Some(cache?.join(rest)),
        Err(_) => Some(project.join(named)),
    }
}

/// Poetry's name for the environments of a project, without the version: the project's name and a hash of its path.
pub(super) fn poetry_name(name: &str, project: &Path) -> String {
    let is_odd = |c: char| " $`!*@\"\\\r\n\t".contains(c);
    let name: String = name.to_lowercase().chars().map(|c| if is_odd(c) { '_' } else { c }).take(42).collect();
    let hash = ring::digest::digest(&ring::digest::SHA256, project.as_os_str().as_encoded_bytes());
    let mut hash = url_safe(hash.as_ref());
    hash.truncate(8);
    format!("{name}-{hash}")
}

/// URL-safe Base64 of the complete groups of three bytes; remaining bytes are dropped.
fn url_safe(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let groups =
        bytes.chunks_exact(3).map(|group| group.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte)));
    groups.flat_map(|bits| [18, 12, 6, 0].map(|by| char::from(LETTERS[bits >> by & 63]))).collect()
}

/// The nearest folder with a file of this name.
fn above<'a>(start: &'a Path, name: &str) -> Option<&'a Path> {
    start.ancestors().find(|folder| folder.join(name).is_file())
}

fn table(path: &Path) -> Option<Table> {
    fs::read_to_string(path).ok()?.parse().ok()
}
