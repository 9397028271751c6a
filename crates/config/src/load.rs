//! Finds and reads the settings file of a place.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Settings;
use super::validate::{self, Check, SettingsProblem};

/// Settings and the file they come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadedSettings {
    /// The settings. Relative paths to an interpreter and to files were made absolute from the settings file's folder.
    pub settings: Settings,
    /// The file; absent when none was found and all is default.
    pub path: Option<PathBuf>,
}

impl LoadedSettings {
    /// The folder of the settings file.
    #[must_use]
    pub fn root(&self) -> Option<&Path> {
        self.path.as_deref()?.parent()
    }

    /// The root of the project that holds `folder`: the settings file's folder, else the nearest with `.git` or
    /// `pyproject.toml`, else `folder` itself.
    #[must_use]
    pub fn project(&self, folder: &Path) -> PathBuf {
        let is_root = |folder: &&Path| [".git", "pyproject.toml"].iter().any(|name| folder.join(name).exists());
        self.root().or_else(|| folder.ancestors().find(is_root)).unwrap_or(folder).to_path_buf()
    }
}

/// Settings that cannot be used. Displays as `file:line:column: what is wrong`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SettingsError {
    /// The file; absent when an editor sent the settings.
    pub path: Option<PathBuf>,
    /// One-based line and column (in code points), when the place is known.
    pub place: Option<(usize, usize)>,
    /// What is wrong, and what was probably meant.
    pub message: String,
}

impl SettingsError {
    pub(super) fn of_client(problem: SettingsProblem) -> Self {
        Self { path: None, place: None, message: problem.message }
    }

    pub(super) fn of_file(path: Option<&Path>, message: String) -> Self {
        Self { path: path.map(Path::to_path_buf), place: None, message }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}", path.display())?,
            None => f.write_str("settings of the editor")?,
        }
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// `path` made absolute and without `..`, so that the folders above it are those that hold it.
///
/// # Errors
/// When `path` is empty or the current folder is gone.
pub fn absolute(path: &Path) -> std::io::Result<PathBuf> {
    let mut clean = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        match part {
            Component::ParentDir => _ = clean.pop(),
            part => clean.push(part),
        }
    }
    Ok(clean)
}

/// Loads the settings that hold for `start`, a file or a folder: those of the nearest `warpsmith.toml`, or
/// `pyproject.toml` with a table `[tool.warpsmith]`, in its folder or above. `checks` say what the values of some of them must be.
///
/// # Errors
/// [`SettingsError`] when the file cannot be read or has unknown keys, wrong types or unknown rules.
pub fn load(start: &Path, checks: &[Check]) -> Result<LoadedSettings, SettingsError> {
    let start =
        absolute(start).map_err(|error| SettingsError::of_file(Some(start), format!("cannot be resolved: {error}")))?;
    let folder = if start.is_dir() { Some(start.as_path()) } else { start.parent() };
    for folder in folder.into_iter().flat_map(Path::ancestors) {
        for (name, below) in [("warpsmith.toml", &[][..]), ("pyproject.toml", &["tool", "warpsmith"][..])] {
            let path = folder.join(name);
            let text = match std::fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error)
                    if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
                {
                    continue;
                }
                Err(error) => return Err(SettingsError::of_file(Some(&path), format!("cannot be read: {error}"))),
            };
            if let Some(settings) = read(&path, &text, below, checks)? {
                return Ok(LoadedSettings { settings, path: Some(path) });
            }
        }
    }
    Ok(LoadedSettings::default())
}

/// The settings in `text`, below the tables named; `None` when there is no such table.
fn read(path: &Path, text: &str, below: &[&str], checks: &[Check]) -> Result<Option<Settings>, SettingsError> {
    let at = |span: Range<usize>, message: String| {
        let before = &text[..span.start];
        let line = before.rsplit('\n').next().unwrap_or_default();
        let place = Some((before.matches('\n').count() + 1, line.chars().count() + 1));
        SettingsError { path: Some(path.to_path_buf()), place, message }
    };
    let document = match DeTable::parse(text) {
        Ok(document) => document,
        // A broken pyproject.toml is another tool's to report, unless it is about Warpsmith.
        Err(_) if !below.is_empty() && !text.contains("tool.warpsmith") => return Ok(None),
        Err(error) => return Err(at(error.span().unwrap_or(0..0), error.message().to_owned())),
    };
    let mut table = document.get_ref();
    for key in below {
        match table.get(*key).and_then(|value| value.get_ref().as_table()) {
            Some(inner) => table = inner,
            None => return misspelt(table, below, key).map_or(Ok(None), |(span, message)| Err(at(span, message))),
        }
    }
    let mut settings = validate::settings(&table_to_json(table), checks)
        .map_err(|problem| at(locate(table, &problem), problem.message))?;
    if let (Some(python), Some(folder)) = (&settings.python, path.parent())
        && python.components().count() > 1
    {
        settings.python = Some(folder.join(python));
    }
    if let Some(folder) = path.parent() {
        let model = &mut settings.model;
        let files = [&mut model.script, &mut model.ca_file, &mut model.prompts];
        files.into_iter().flatten().for_each(|file| *file = folder.join(&*file));
    }
    Ok(Some(settings))
}

/// A table of `[tool]` that is nearly called `warpsmith`.
fn misspelt(table: &DeTable<'_>, below: &[&str], key: &str) -> Option<(Range<usize>, String)> {
    let name = *below.last().filter(|last| **last == key)?;
    // One wrong letter: with more it may be the table of another tool.
    let (found, _) = table.iter().find(|(found, _)| strsim::damerau_levenshtein(found.get_ref(), name) == 1)?;
    Some((found.span(), format!("unknown table `tool.{}`; did you mean `tool.{name}`?", found.get_ref())))
}

/// Where in the file the problem is.
fn locate(table: &DeTable<'_>, problem: &SettingsProblem) -> Range<usize> {
    let mut span = 0..0;
    let mut value: Option<&DeValue<'_>> = None;
    let last = problem.path.len().saturating_sub(1);
    for (depth, step) in problem.path.iter().enumerate() {
        let (key, inner): (Option<&Spanned<Cow<'_, str>>>, Option<&Spanned<DeValue<'_>>>) = match value {
            None => entry(table, step),
            Some(DeValue::Table(table)) => entry(table, step),
            Some(DeValue::Array(items)) => (None, step.parse::<usize>().ok().and_then(|index| items.get(index))),
            Some(_) => (None, None),
        };
        let Some(inner) = inner else { break };
        let want_key = problem.at_key && depth == last;
        span = key.filter(|_| want_key).map_or(inner.span(), Spanned::span);
        value = Some(inner.get_ref());
    }
    span
}

type Entry<'a, 'i> = (Option<&'a Spanned<Cow<'i, str>>>, Option<&'a Spanned<DeValue<'i>>>);

fn entry<'a, 'i>(table: &'a DeTable<'i>, name: &str) -> Entry<'a, 'i> {
    table.iter().find(|(key, _)| key.get_ref() == name).map_or((None, None), |(key, value)| (Some(key), Some(value)))
}

fn table_to_json(table: &DeTable<'_>) -> Value {
    let entries = table.iter().map(|(key, value)| (key.get_ref().to_string(), to_json(value.get_ref())));
    Value::Object(entries.collect::<Map<_, _>>())
}

fn to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(truth) => Value::Bool(*truth),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Datetime(moment) => Value::String(moment.to_string()),
        DeValue::Array(items) => items.iter().map(|item| to_json(item.get_ref())).collect(),
        DeValue::Table(table) => table_to_json(table),
    }
}
