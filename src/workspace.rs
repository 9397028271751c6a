//! Facts about a file from outside of it: the files that it imports, resolved as Python would and each read once,
//! and the recorded launches of its kernels.
//!
//! Imports are resolved only within the folders of the importing file and above. Installed packages and changes of
//! `sys.path` at run time are not followed, so names from there stay unknown.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use model::kernel::{ImportTarget, ImportedFile, Links, MAX_TEXT, Module, RecordedLaunch};
use model::syntax::Source;
use workload::{RecordedCommand, RecordingsVersion};

/// Number of folders above a file in which imports are looked up.
const MAX_DEPTH: usize = 16;

/// The version of a file: its time of modification and its size in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stamp(Option<SystemTime>, u64);

/// A cache of imported files, import resolutions and recorded launches. It may be shared between threads.
#[derive(Debug, Default)]
pub struct Workspace {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    files: HashMap<PathBuf, Known>,
    /// Resolved imports, by folder and dotted path.
    imports: HashMap<(PathBuf, String), Option<ImportTarget>>,
    /// Number of calls of [`Workspace::refresh`].
    round: u64,
    /// The links of files, with the round in which they were resolved.
    links: HashMap<PathBuf, (u64, Arc<Links>)>,
    /// The recorded launches of files, with the recordings that existed and the round of the last look.
    recorded: HashMap<PathBuf, (u64, RecordingsVersion, Arc<[RecordedLaunch]>)>,
    /// The same for the commands that made the recordings.
    runs: HashMap<PathBuf, (u64, RecordingsVersion, Option<RecordedCommand>)>,
}

#[derive(Debug)]
struct Known {
    stamp: Stamp,
    round: u64,
    file: Option<Arc<ImportedFile>>,
}

impl Workspace {
    /// Adds to `module`, the model of the file at `path`, what its kernels import and how they were launched.
    pub fn complete(&self, module: &mut Module, path: &Path) {
        if let Some(links) = self.links(module, path) {
            module.link(links);
        }
        if let Some(recorded) = self.recorded(module, path) {
            module.observe(recorded);
        }
    }

    /// Whether `module` holds these facts already, as they are now.
    #[must_use]
    pub fn has_completed(&self, module: &Module, path: &Path) -> bool {
        self.links(module, path).is_none_or(|links| *links == *module.links())
            && self.recorded(module, path).is_none_or(|recorded| recorded == *module.recorded())
    }

    /// The recorded launches of a file; `None` when it has no kernels.
    fn recorded(&self, module: &Module, path: &Path) -> Option<Arc<[RecordedLaunch]>> {
        if module.kernels.is_empty() {
            return None;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let round = state.round;
        let known = state.recorded.get(path);
        if let Some((_, _, launches)) = known.filter(|(of, ..)| *of == round) {
            return Some(Arc::clone(launches));
        }
        let seen = RecordingsVersion::around(path);
        let launches = match known {
            Some((_, before, launches)) if *before == seen => Arc::clone(launches),
            _ => workload::of_file(&seen, path),
        };
        state.recorded.insert(path.to_owned(), (round, seen, Arc::clone(&launches)));
        Some(launches)
    }

    /// The newest command that made calls of the file at `path` and can be run again.
    #[must_use]
    pub fn run_of(&self, path: &Path) -> Option<RecordedCommand> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let round = state.round;
        if let Some((_, _, run)) = state.runs.get(path).filter(|(of, ..)| *of == round) {
            return run.clone();
        }
        let seen = RecordingsVersion::around(path);
        let run = match state.runs.get(path) {
            Some((_, before, run)) if *before == seen => run.clone(),
            _ => workload::run_of(&seen, path),
        };
        state.runs.insert(path.to_owned(), (round, seen, run.clone()));
        run
    }

    /// The resolved imports of a file; `None` when its kernels import nothing.
    fn links(&self, module: &Module, path: &Path) -> Option<Arc<Links>> {
        let wanted = module.imported_in_kernels();
        if wanted.is_empty() && module.links().wanted().is_empty() {
            return None;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let round = state.round;
        let known = state.links.get(path).filter(|(of, links)| *of == round && *links.wanted() == wanted);
        let links = match known {
            Some((_, links)) => Arc::clone(links),
            None => Arc::new(Links::follow(module, path, &mut |from, import| state.resolve(from, import))),
        };
        state.links.insert(path.to_owned(), (round, Arc::clone(&links)));
        Some(links)
    }

    /// Notes that files and recordings may have changed. Those that have are read again when they are needed.
    pub fn refresh(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.round += 1;
        state.imports.clear();
        state.links.clear();
    }
}

impl State {
    /// The target of `import` in the file at `from`.
    fn resolve(&mut self, from: &Path, import: &str) -> Option<ImportTarget> {
        let folder = from.parent()?;
        let key = (folder.to_owned(), import.to_owned());
        if let Some(known) = self.imports.get(&key) {
            return known.clone();
        }
        let found = self.find(folder, import);
        self.imports.insert(key, found.clone());
        found
    }

    fn find(&mut self, folder: &Path, import: &str) -> Option<ImportTarget> {
        let names = import.trim_start_matches('.');
        let parts: Vec<&str> = names.split('.').collect();
        let dots = import.len() - names.len();
        if dots == 0 {
            return roots(folder).iter().find_map(|root| self.find_in(root, &parts));
        }
        // `from . import a` is `..a`, and `from ..a import b` is `..a.b`.
        let level = if parts.len() == 1 { dots - 1 } else { dots };
        let base = folder.ancestors().nth(level.checked_sub(1)?)?;
        self.find_in(base, &parts)
    }

    /// The member that the last part names; if there is none, the module that all parts name.
    fn find_in(&mut self, root: &Path, parts: &[&str]) -> Option<ImportTarget> {
        let (last, module) = parts.split_last()?;
        let holder = module_at(root, module).and_then(|path| self.read(&path));
        let member = holder.filter(|file| file.module.bindings.contains_key(*last));
        if let Some(file) = member {
            return Some(ImportTarget { file, member: Some((*last).to_owned()) });
        }
        let file = module_at(root, parts).and_then(|path| self.read(&path))?;
        Some(ImportTarget { file, member: None })
    }

    /// The file at `path`, from the cache if it is unchanged; `None` when it cannot be read.
    fn read(&mut self, path: &Path) -> Option<Arc<ImportedFile>> {
        let round = self.round;
        if let Some(known) = self.files.get(path).filter(|known| known.round == round) {
            return known.file.clone();
        }
        let stamp = stamp(path)?;
        if let Some(known) = self.files.get_mut(path).filter(|known| known.stamp == stamp) {
            known.round = round;
            return known.file.clone();
        }
        let file = load(path, stamp).map(Arc::new);
        self.files.insert(path.to_owned(), Known { stamp, round, file: file.clone() });
        file
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::metadata(path).ok()?;
    Some(Stamp(meta.modified().ok(), meta.len()))
}

fn load(path: &Path, Stamp(_, size): Stamp) -> Option<ImportedFile> {
    if size > MAX_TEXT as u64 {
        return None;
    }
    let source = Source::parse(fs::read_to_string(path).ok()?);
    let module = Module::build_whole(&source);
    Some(ImportedFile { path: path.to_owned(), text: Arc::clone(source.text()), module })
}

/// The folders from which Python may import by absolute names in a file of `folder`, nearest first: the folders
/// around it that belong to no package, and their `src` folders.
fn roots(folder: &Path) -> Vec<PathBuf> {
    let is_outside = |folder: &&Path| !folder.join("__init__.py").is_file();
    let around = folder.ancestors().take(MAX_DEPTH).filter(is_outside);
    around.flat_map(|root| [root.to_owned(), root.join("src")]).collect()
}

/// The file of the module with these names below `root`.
fn module_at(root: &Path, parts: &[&str]) -> Option<PathBuf> {
    if parts.is_empty() {
        return Some(root.join("__init__.py")).filter(|file| file.is_file());
    }
    let path = parts.iter().fold(root.to_owned(), |path, part| path.join(part));
    [path.join("__init__.py"), path.with_extension("py")].into_iter().find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "import triton\nimport triton.language as tl\n";

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    /// The targets of the names that the kernel in `path` uses, relative to the folder.
    fn links(folder: &tempfile::TempDir, path: &str) -> Vec<String> {
        let path = folder.path().join(path);
        let mut module = Module::build(&Source::parse(fs::read_to_string(&path).unwrap()));
        Workspace::default().complete(&mut module, &path);
        let links = module.links();
        let shown = |name: &String| {
            let link = links.get(None, name)?;
            let (file, member) = match link {
                model::kernel::Link::File(file) => (*file, None),
                model::kernel::Link::Member { file, name } => (*file, Some(name)),
            };
            let path = links.files()[file].path.strip_prefix(folder.path()).unwrap().display().to_string();
            Some(format!("{name} = {path}{}", member.map_or(String::new(), |member| format!(":{member}"))))
        };
        links.wanted().iter().filter_map(shown).collect()
    }

    fn kernel(imports: &str, body: &str) -> String {
        format!("{HEAD}{imports}\n@triton.jit\ndef k(x):\n    {body}\n")
    }

    #[test]
    fn names_are_found_as_python_finds_them() {
        let helper = format!("{HEAD}@triton.jit\ndef f(x):\n    return x\n");
        let files = [
            ("p/__init__.py", ""),
            ("p/ops/__init__.py", "from .op import f as again\n"),
            ("p/ops/op.py", helper.as_str()),
            ("src/q/op.py", helper.as_str()),
        ];
        let folder = folder(&files);
        for (imports, body, expected) in [
            ("from p.ops.op import f", "f(x)", "f = p/ops/op.py:f"),
            ("from .op import f as g", "g(x)", "g = p/ops/op.py:f"),
            ("from . import op", "op.f(x)", "op = p/ops/op.py"),
            ("from .. import ops", "ops.op.f(x)", "ops = p/ops/__init__.py"),
            ("from ..ops.op import f", "f(x)", "f = p/ops/op.py:f"),
            ("from p.ops import again", "again(x)", "again = p/ops/__init__.py:again"),
            ("import p.ops.op as o", "o.f(x)", "o = p/ops/op.py"),
            ("from q.op import f", "f(x)", "f = src/q/op.py:f"),
        ] {
            fs::write(folder.path().join("p/ops/k.py"), kernel(imports, body)).unwrap();
            assert_eq!(links(&folder, "p/ops/k.py"), [expected], "{imports}");
        }
        // Python does not search a package's own folder; names that kernels do not use are not followed.
        for (imports, body) in
            [("from op import f", "f(x)"), ("from gone import f", "f(x)"), ("from p.ops.op import f", "x")]
        {
            fs::write(folder.path().join("p/ops/k.py"), kernel(imports, body)).unwrap();
            assert_eq!(links(&folder, "p/ops/k.py"), [""; 0], "{imports}");
        }
    }

    #[test]
    fn a_file_is_read_again_when_it_has_changed_and_the_facts_with_it() {
        let folder = folder(&[("op.py", "A = 1\n"), ("k.py", &kernel("from op import A", "x + A"))]);
        let path = folder.path().join("k.py");
        let workspace = Workspace::default();
        let mut module = Module::build(&Source::parse(fs::read_to_string(&path).unwrap()));
        let mut files = |workspace: &Workspace| {
            workspace.complete(&mut module, &path);
            module.links().files().to_vec()
        };
        let first = files(&workspace);
        workspace.refresh();
        let same = files(&workspace);
        assert!(Arc::ptr_eq(&first[0], &same[0]));
        fs::write(folder.path().join("op.py"), "A = 1000\n").unwrap();
        assert!(Arc::ptr_eq(&first[0], &files(&workspace)[0]), "nobody has said that files changed");
        workspace.refresh();
        assert_eq!(&*files(&workspace)[0].text, "A = 1000\n");
    }

    #[test]
    fn cyclic_imports_of_files_terminate() {
        let a = "from b import f\n";
        let folder =
            folder(&[("a.py", a), ("b.py", "from a import f\n"), ("k.py", &kernel("from a import f", "f(x)"))]);
        assert_eq!(links(&folder, "k.py"), ["f = a.py:f"]);
    }
}
