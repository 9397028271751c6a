//! The settings of each document: those of its settings file, overridden by those of the editor.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Map, Value};
use tower_lsp::gen_lsp_types as lsp;

use config::{Excludes, LoadedSettings, Settings};
use model::api::TritonTarget;
use rules::Selection;
use runtime::python::environment::{InterpreterSearch, PythonEnvironment};

use super::target;
use super::tools::Tools;
use crate::settings::{load, merge};

/// The server's section of the editor's settings.
pub(crate) const SECTION: &str = "warpsmith";

/// Keys in that section that are for the editor's extension and not for the server.
const EXTENSION_KEYS: [&str; 5] = ["enable", "path", "server", "trace", INTERPRETER];
/// The key of the interpreter that the user chose in the editor. It is no setting, because it ranks behind those of
/// the project.
const INTERPRETER: &str = "interpreter";

/// The resolved settings of one folder.
pub(crate) struct FolderSettings {
    /// The settings after merging.
    pub(crate) settings: Settings,
    /// The rules that they select.
    pub(crate) selection: Selection,
    /// The Triton version to check against.
    pub(crate) target: TritonTarget,
    /// The Python environment.
    pub(crate) environment: Option<PythonEnvironment>,
    /// The root of the workspace in which they apply.
    root: PathBuf,
    excludes: Option<Excludes>,
}

impl FolderSettings {
    /// Whether the settings exclude this file.
    pub(crate) fn excludes(&self, path: &Path) -> bool {
        self.excludes.as_ref().is_some_and(|excludes| excludes.cover(path, false))
    }
}

/// The location of a document.
pub(crate) struct DocumentLocation<'a> {
    /// The folder that contains it.
    pub(crate) folder: &'a Path,
    /// The root of its workspace.
    pub(crate) root: &'a Path,
    /// The workspace folder that contains it, by the client's address.
    pub(crate) workspace: Option<&'a lsp::Uri>,
}

/// All settings, with caches by folder.
#[derive(Default)]
pub(crate) struct SettingsStore {
    /// The settings from `initialize`, which apply where the client sends no later ones.
    initial: Value,
    /// The editor's settings, by workspace folder.
    client: HashMap<Option<lsp::Uri>, Value>,
    /// The interpreter chosen in the editor, by workspace folder, and the one at the start.
    chosen: HashMap<Option<lsp::Uri>, Option<PathBuf>>,
    chosen_initially: Option<PathBuf>,
    /// The contents of the settings files when they were last readable, by folder.
    files: HashMap<PathBuf, LoadedSettings>,
    resolved: HashMap<(PathBuf, Option<lsp::Uri>), Rc<FolderSettings>>,
    /// Problems that were not shown yet, and all problems so far.
    untold: Vec<String>,
    told: HashSet<String>,
}

impl SettingsStore {
    /// Stores the settings from `initialize`.
    pub(crate) fn set_initial(&mut self, value: Value, chosen: Option<PathBuf>) {
        self.chosen_initially = chosen.or_else(|| interpreter(&value).flatten());
        if let Some(value) = self.checked(value) {
            self.initial = value;
        }
    }

    /// Stores the editor's settings; `null` removes them. Where new settings cannot be used, the former ones stay.
    pub(crate) fn set_client(&mut self, answers: Vec<(Option<lsp::Uri>, Value)>) {
        for (folder, value) in answers {
            match interpreter(&value) {
                Some(chosen) => self.chosen.insert(folder.clone(), chosen),
                None => self.chosen.remove(&folder),
            };
            if value.is_null() {
                self.client.remove(&folder);
            } else if let Some(value) = self.checked(value) {
                self.client.insert(folder, value);
            }
        }
        self.resolved.clear();
    }

    fn checked(&mut self, value: Value) -> Option<Value> {
        let value = without_extension_keys(value);
        merge(&Settings::default(), &value).map_err(|error| self.complain(error.to_string())).ok().map(|_| value)
    }

    /// Reads the settings files again. Returns whether one of them has changed.
    pub(crate) fn reload(&mut self) -> bool {
        let mut changed = false;
        for (folder, known) in &mut self.files {
            match load(folder) {
                Ok(now) if now == *known => {}
                Ok(now) => {
                    *known = now;
                    changed = true;
                }
                // The former settings stay; the problem is reported when they are asked for.
                Err(_) => changed = true,
            }
        }
        if changed {
            self.resolved.clear();
        }
        changed
    }

    /// Drops what was found in the file system.
    pub(crate) fn forget(&mut self) {
        self.resolved.clear();
    }

    /// Looks for the Python environments again. Returns whether one has changed.
    pub(crate) fn refresh_environments(&mut self, tools: &Tools) -> bool {
        let is_another = |((folder, workspace), known): (&(PathBuf, Option<lsp::Uri>), &Rc<FolderSettings>)| {
            let settings = known.settings.python.as_deref();
            let search = InterpreterSearch {
                start: folder,
                root: &known.root,
                settings,
                editor: self.chosen(workspace.as_ref()),
            };
            (tools.environment)(&search) != known.environment
        };
        let changed = self.resolved.iter().any(is_another);
        if changed {
            self.resolved.clear();
        }
        changed
    }

    /// The package folders of an interpreter that is in use.
    pub(crate) fn packages_of(&self, python: &Path) -> Vec<PathBuf> {
        let mut environments = self.resolved.values().filter_map(|known| known.environment.as_ref());
        let found = environments.find(|environment| environment.python == python);
        found.map(|environment| environment.site_packages.clone()).unwrap_or_default()
    }

    /// The interpreter that was chosen in the editor for a workspace folder.
    fn chosen(&self, workspace: Option<&lsp::Uri>) -> Option<&Path> {
        let chosen = self.chosen.get(&workspace.cloned()).or_else(|| self.chosen.get(&None));
        chosen.map_or(self.chosen_initially.as_deref(), Option::as_deref)
    }

    /// The settings that apply at `place`.
    pub(crate) fn at(&mut self, place: &DocumentLocation<'_>, tools: &Tools) -> Rc<FolderSettings> {
        let key = (place.folder.to_path_buf(), place.workspace.cloned());
        if let Some(resolved) = self.resolved.get(&key) {
            return Rc::clone(resolved);
        }
        let resolved = Rc::new(self.resolve(place, tools));
        self.resolved.insert(key, Rc::clone(&resolved));
        resolved
    }

    fn resolve(&mut self, place: &DocumentLocation<'_>, tools: &Tools) -> FolderSettings {
        match load(place.folder) {
            Ok(loaded) => {
                self.files.insert(place.folder.to_path_buf(), loaded);
            }
            Err(error) => self.complain(error.to_string()),
        }
        let mut loaded = self.files.get(place.folder).cloned().unwrap_or_default();
        let client = self.client.get(&place.workspace.cloned()).or_else(|| self.client.get(&None));
        match merge(&loaded.settings, client.unwrap_or(&self.initial)) {
            Ok(settings) => loaded.settings = settings,
            Err(error) => self.complain(error.to_string()),
        }
        let excludes = match Excludes::new(&loaded, place.root) {
            Ok(excludes) => Some(excludes),
            Err(error) => {
                self.complain(error.to_string());
                None
            }
        };
        let settings = loaded.settings.python.as_deref();
        let editor = self.chosen(place.workspace);
        let environment =
            (tools.environment)(&InterpreterSearch { start: place.folder, root: place.root, settings, editor });
        FolderSettings {
            selection: crate::settings::selection(&loaded.settings),
            target: target::target_for(&loaded.settings, environment.as_ref()),
            environment,
            root: place.root.to_path_buf(),
            excludes,
            settings: loaded.settings,
        }
    }

    fn complain(&mut self, problem: String) {
        tracing::warn!(problem, "settings are ignored");
        if self.told.insert(problem.clone()) {
            self.untold.push(problem);
        }
    }

    /// Takes the problems that the user has not seen yet.
    pub(crate) fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.untold)
    }
}

/// The initialization options of the client.
#[derive(Default)]
pub(crate) struct Options {
    /// The editor's settings: the member `settings`, or the options as a whole.
    pub(crate) settings: Value,
    /// Whether the user trusts the workspace; false only with `workspaceTrusted: false`.
    pub(crate) trusted: bool,
    /// The interpreter that the user chose in the editor: `interpreter`.
    pub(crate) interpreter: Option<PathBuf>,
    /// Whether the client accepts `warpsmith/status`: `status: true`.
    pub(crate) status: bool,
    /// Whether it accepts `warpsmith/search`: `search: true`.
    pub(crate) search: bool,
    /// Whether it answers `warpsmith/model`: `languageModel: true`.
    pub(crate) language_model: bool,
}

/// Parses `initializationOptions`.
pub(crate) fn options(value: Option<Value>) -> Options {
    let Some(Value::Object(mut options)) = value else {
        return Options { trusted: true, ..Options::default() };
    };
    let interpreter = interpreter(&Value::Object(options.clone())).flatten();
    options.remove(INTERPRETER);
    let mut takes = |what: &str| options.remove(what) == Some(Value::Bool(true));
    let (status, search, language_model) = (takes("status"), takes("search"), takes("languageModel"));
    let trusted = options.remove("workspaceTrusted") != Some(Value::Bool(false));
    let settings = options.remove("settings").unwrap_or(Value::Object(options));
    Options { settings, trusted, interpreter, status, search, language_model }
}

/// The interpreter in an object: a path, or a list that begins with one. `null` resets the choice.
fn interpreter(value: &Value) -> Option<Option<PathBuf>> {
    let chosen = value.get(INTERPRETER)?;
    let path = chosen.as_str().or_else(|| chosen.get(0)?.as_str());
    Some(path.filter(|path| !path.is_empty()).map(PathBuf::from))
}

/// The server's section of settings that a client sent unasked: the member with its name, or the value as a whole.
pub(crate) fn section(settings: Value) -> Value {
    match settings {
        Value::Object(mut sections) => sections.remove(SECTION).unwrap_or(Value::Object(sections)),
        other => other,
    }
}

fn without_extension_keys(value: Value) -> Value {
    let Value::Object(entries) = value else { return Value::Object(Map::new()) };
    let is_ours = |key: &str| !EXTENSION_KEYS.contains(&key.split('.').next().unwrap_or(key));
    Value::Object(entries.into_iter().filter(|(key, _)| is_ours(key)).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn initialization_options_hold_settings_in_a_key_or_at_the_top() {
        for (value, settings, trusted) in [
            (json!({"settings": {"ignore": ["L"]}, "workspaceTrusted": false}), json!({"ignore": ["L"]}), false),
            (json!({"ignore": ["L"]}), json!({"ignore": ["L"]}), true),
            (json!(null), json!(null), true),
        ] {
            let options = options(Some(value));
            assert_eq!((options.settings, options.trusted), (settings, trusted));
        }
    }

    #[test]
    fn settings_of_the_extension_are_ignored() {
        let value = json!({"enable": true, "server.path": "x", "trace": {"server": "off"}, "ignore": []});
        assert_eq!(without_extension_keys(value), json!({"ignore": []}));
        assert_eq!(without_extension_keys(json!(null)), json!({}));
        assert_eq!(section(json!({"warpsmith": {"a": 1}, "other": 2})), json!({"a": 1}));
    }

    #[test]
    fn the_folders_last_chosen_interpreter_is_used() {
        let options = options(Some(json!({"interpreter": "/start/python", "ignore": ["L"], "status": true})));
        assert_eq!((options.settings, options.status), (json!({"ignore": ["L"]}), true));
        let mut store = SettingsStore::default();
        store.set_initial(json!({}), options.interpreter);
        let folder: lsp::Uri = "file:///a".parse().unwrap();
        let chosen =
            |store: &SettingsStore| store.chosen(Some(&folder)).map(|path| path.to_string_lossy().into_owned());
        assert_eq!(chosen(&store).unwrap(), "/start/python");
        store.set_client(vec![(None, json!({"interpreter": ["/all/python", "-X"]}))]);
        assert_eq!(chosen(&store).unwrap(), "/all/python");
        store.set_client(vec![(Some(folder.clone()), json!({"interpreter": "/own/python"}))]);
        assert_eq!(chosen(&store).unwrap(), "/own/python");
        store.set_client(vec![(Some(folder.clone()), json!({"interpreter": null}))]);
        assert_eq!(chosen(&store), None);
        store.set_client(vec![(Some(folder.clone()), json!({})), (None, json!(null))]);
        assert_eq!(chosen(&store).unwrap(), "/start/python");
        assert_eq!(store.take_problems(), [""; 0]);
    }

    #[test]
    fn invalid_settings_are_reported_once_and_the_former_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let place = DocumentLocation { folder: folder.path(), root: folder.path(), workspace: None };
        let (mut store, tools) = (SettingsStore::default(), Tools::default());
        store.set_client(vec![(None, json!({"optimize": {"budget": 7}}))]);
        for _ in 0..2 {
            store.set_client(vec![(None, json!({"optimize": {"budget": "much"}}))]);
        }
        assert_eq!(store.take_problems().len(), 1);
        assert_eq!(store.at(&place, &tools).settings.optimize.budget, 7.0);

        std::fs::write(folder.path().join("warpsmith.toml"), "ignore = ['L001']\n").unwrap();
        assert!(store.reload());
        assert!(!store.reload());
        assert_eq!(store.at(&place, &tools).settings.ignore, ["L001"]);
        std::fs::write(folder.path().join("warpsmith.toml"), "ignore = 3\n").unwrap();
        assert!(store.reload());
        let resolved = store.at(&place, &tools);
        assert_eq!(
            (resolved.settings.ignore.as_slice(), resolved.settings.optimize.budget),
            (&["L001".to_owned()][..], 7.0)
        );
        assert_eq!(store.take_problems().len(), 1);
    }
}
