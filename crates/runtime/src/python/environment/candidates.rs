//! The places where a project's interpreter may be, in order of preference.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::{InterpreterOrigin, InterpreterSearch, VariableLookup, managers};

type Look = fn(&InterpreterSearch<'_>, VariableLookup<'_>) -> Vec<PathBuf>;

/// The places to search, in this order, if the settings name no interpreter.
pub(super) const PLACES: [(InterpreterOrigin, Look); 8] = [
    (InterpreterOrigin::Editor, |search, env| {
        let chosen = search.editor.map(|python| named(python, search, env));
        chosen.filter(|python| python.is_file()).into_iter().collect()
    }),
    (InterpreterOrigin::VirtualEnv, |_, env| of_variable("VIRTUAL_ENV", env)),
    (InterpreterOrigin::Workspace, |search, _| in_workspace(search.start, search.root)),
    (InterpreterOrigin::Conda, |_, env| of_variable("CONDA_PREFIX", env)),
    (InterpreterOrigin::Uv, managers::uv),
    (InterpreterOrigin::Poetry, managers::poetry),
    (InterpreterOrigin::Pdm, managers::pdm),
    (InterpreterOrigin::Path, |search, env| {
        ["python3", "python"].iter().filter_map(|name| on_path(name, search.start, env)).collect()
    }),
];

/// The interpreter of a setting, which is a path to an interpreter, the folder of an environment, or a command on
/// `PATH`.
pub(super) fn named(python: &Path, search: &InterpreterSearch<'_>, env: VariableLookup<'_>) -> PathBuf {
    let is_command = python.components().count() == 1 && !search.root.join(python).exists();
    let command = python.to_str().filter(|_| is_command).and_then(|name| on_path(name, search.start, env));
    let path = command.unwrap_or_else(|| search.root.join(python));
    if path.is_dir() { in_prefix(&path).unwrap_or(path) } else { path }
}

fn of_variable(name: &str, env: VariableLookup<'_>) -> Vec<PathBuf> {
    let prefix = env(name).filter(|value| !value.is_empty());
    prefix.and_then(|prefix| in_prefix(Path::new(&prefix))).into_iter().collect()
}

fn in_workspace(start: &Path, root: &Path) -> Vec<PathBuf> {
    let inside = start.starts_with(root);
    let above = start.ancestors().take_while(|folder| inside && folder.starts_with(root));
    let outside = (!inside).then_some(root);
    above
        .chain(outside)
        .flat_map(|folder| [folder.join(".venv"), folder.join("venv")])
        .filter_map(|prefix| in_prefix(&prefix))
        .collect()
}

/// The interpreter of the environment in a folder, on Unix or Windows.
pub(super) fn in_prefix(prefix: &Path) -> Option<PathBuf> {
    ["bin/python", "bin/python3", "Scripts/python.exe", "python.exe"]
        .iter()
        .map(|relative| prefix.join(relative))
        .find(|python| python.exists())
}

fn on_path(name: &str, start: &Path, env: VariableLookup<'_>) -> Option<PathBuf> {
    let path = env("PATH")?;
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .find_map(|folder| executable(&folder, name, start, env))
}

fn executable(folder: &Path, name: &str, start: &Path, env: VariableLookup<'_>) -> Option<PathBuf> {
    let candidates = [name.to_owned(), format!("{name}.exe")];
    let found = candidates.iter().map(|file| folder.join(file)).find(|path| path.is_file())?;
    if folder.file_name() == Some(OsStr::new("shims")) {
        // pyenv's shims are scripts, so the interpreter of the chosen version is used instead.
        return pyenv(folder.parent()?, name, start, env);
    }
    Some(found)
}

/// The interpreter that a shim of pyenv starts.
fn pyenv(root: &Path, name: &str, start: &Path, env: VariableLookup<'_>) -> Option<PathBuf> {
    let chosen = env("PYENV_VERSION").and_then(|version| version.into_string().ok()).or_else(|| {
        let local = start.ancestors().map(|folder| folder.join(".python-version"));
        local.chain([root.join("version")]).find_map(|file| fs::read_to_string(file).ok())
    })?;
    let versions = chosen.split(|c: char| c.is_whitespace() || c == ':').filter(|version| !version.is_empty());
    versions.map(|version| root.join("versions").join(version).join("bin").join(name)).find(|python| python.is_file())
}
