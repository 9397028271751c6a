//! The definitions of imported names in other files, as far as the kernels of a file use them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap as HashMap;

use super::{GlobalBinding, Kernel, Module};
use crate::syntax::Span;

/// The largest number of files that are followed from one file.
const MAX_FILES: usize = 64;

/// A file that another one imports from.
#[derive(Debug)]
pub struct ImportedFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Its text.
    pub text: Arc<str>,
    /// Its model, by [`Module::build_whole`].
    pub module: Module,
}

/// The target of an import: a file, or a member of it.
#[derive(Clone, Debug)]
pub struct ImportTarget {
    /// The file.
    pub file: Arc<ImportedFile>,
    /// The member of the file; `None` when the import names the file itself.
    pub member: Option<String>,
}

/// The meaning of a name that a file imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// A file, by its index in [`Links::files`].
    File(usize),
    /// The name `name` of another file.
    Member {
        /// Index of the file.
        file: usize,
        /// The name as that file defines it.
        name: String,
    },
}

/// The files that kernels of one file reach through imports.
#[derive(Clone, Debug, Default)]
pub struct Links {
    files: Vec<Arc<ImportedFile>>,
    /// By importing file (`None` for the root file) and the name that it binds.
    names: HashMap<Option<usize>, HashMap<String, Link>>,
    /// The names of the root file that were followed.
    wanted: BTreeSet<String>,
}

/// Links are equal when the same names have the same meaning in the same versions of files.
impl PartialEq for Links {
    fn eq(&self, other: &Self) -> bool {
        self.files.len() == other.files.len()
            && self.files.iter().zip(&other.files).all(|(a, b)| Arc::ptr_eq(a, b))
            && self.names == other.names
    }
}

impl Links {
    /// Follows the imports that the kernels of `module` use. `resolve` maps the path of a file and the dotted path of
    /// an import in it to the target of that import.
    #[must_use]
    pub fn follow(module: &Module, path: &Path, resolve: &mut dyn FnMut(&Path, &str) -> Option<ImportTarget>) -> Self {
        let wanted = module.imported_in_kernels();
        let mut links = Self { wanted: wanted.clone(), ..Self::default() };
        let mut waiting: Vec<(Option<usize>, String)> = wanted.into_iter().map(|name| (None, name)).collect();
        while let Some((at, name)) = waiting.pop() {
            if links.get(at, &name).is_some() {
                continue;
            }
            let (from, importer) = match at.and_then(|at| links.files.get(at)) {
                Some(file) => (&file.module, file.path.as_path()),
                None => (module, path),
            };
            let Some(GlobalBinding::Import(import)) = from.bindings.get(&name) else { continue };
            let Some(ImportTarget { file, member }) = resolve(importer, import) else { continue };
            let Some((number, is_new)) = links.number(&file) else { continue };
            if is_new {
                waiting.extend(file.module.imported_in_kernels().into_iter().map(|name| (Some(number), name)));
            }
            let link = match member {
                None => {
                    // The uses of the file's names are not visible here, so all its imports are followed as possible
                    // re-exports.
                    waiting.extend(file.module.imports_of_others().map(|name| (Some(number), name.to_owned())));
                    Link::File(number)
                }
                Some(member) => {
                    waiting.push((Some(number), member.clone()));
                    Link::Member { file: number, name: member }
                }
            };
            links.names.entry(at).or_default().insert(name, link);
        }
        links
    }

    /// The index of a file, and whether it was added now. `None` when there would be too many files.
    fn number(&mut self, file: &Arc<ImportedFile>) -> Option<(usize, bool)> {
        if let Some(known) = self.files.iter().position(|known| known.path == file.path) {
            return Some((known, false));
        }
        if self.files.len() >= MAX_FILES {
            return None;
        }
        self.files.push(Arc::clone(file));
        Some((self.files.len() - 1, true))
    }

    /// The meaning of `name` in file `at` (`None` for the root file).
    #[must_use]
    pub fn get(&self, at: Option<usize>, name: &str) -> Option<&Link> {
        self.names.get(&at)?.get(name)
    }

    /// The file that defines the dotted name `parts`, and its name there. `None` for a name that is not imported, and
    /// for a name that means a file.
    #[must_use]
    pub fn definition(&self, parts: &[&str]) -> Option<(&Arc<ImportedFile>, &str)> {
        let (first, mut rest) = parts.split_first()?;
        let mut link = self.get(None, first)?;
        for _ in 0..MAX_FILES {
            let (file, name) = match link {
                Link::Member { file, name } => (*file, name.as_str()),
                Link::File(file) => {
                    let (name, after) = rest.split_first()?;
                    rest = after;
                    // The same name borrowed from the file, because it must live as long as `self`.
                    (*file, self.files.get(*file)?.module.bindings.get_key_value(*name)?.0.as_str())
                }
            };
            match self.get(Some(file), name) {
                Some(next) => link = next,
                None => return rest.is_empty().then_some((self.files.get(file)?, name)),
            }
        }
        None
    }

    /// The files, by index.
    #[must_use]
    pub fn files(&self) -> &[Arc<ImportedFile>] {
        &self.files
    }

    /// The names of the root file that were followed.
    #[must_use]
    pub fn wanted(&self) -> &BTreeSet<String> {
        &self.wanted
    }
}

impl ImportedFile {
    /// The kernel of this name, when there is exactly one.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        let [only] = self.module.kernels_named(name)[..] else { return None };
        Some(&self.module.kernels[only])
    }

    /// Spans of the definitions that bind `name` at the top level: kernels, functions and assignments.
    #[must_use]
    pub fn bindings_of(&self, name: &str) -> Vec<Span> {
        let module = &self.module;
        let kernels = module.kernels_named(name).into_iter().map(|at| module.kernels[at].name_span);
        let functions = module.functions.iter().filter(|function| function.name == name).map(|found| found.name_span);
        let globals = module.globals.iter().filter(|global| global.name == name);
        let globals = globals.map(|global| Span::new(global.span.start, global.span.start + name.len()));
        let mut all: Vec<Span> = kernels.chain(functions).chain(globals).collect();
        all.sort_unstable();
        all
    }
}
