//! What the names mean that a file imports from other files, as far as its kernels use them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap as HashMap;

use super::{Binding, Kernel, Module};
use crate::syntax::Span;

/// More files than this are not followed from one.
const MAX_FILES: usize = 64;

/// A file that another one imports from.
#[derive(Debug)]
pub struct File {
    /// Where it is.
    pub path: PathBuf,
    /// Its text.
    pub text: Arc<str>,
    /// Its model, by [`Module::build_whole`].
    pub module: Module,
}

/// What an import names.
#[derive(Clone, Debug)]
pub struct Target {
    /// The file.
    pub file: Arc<File>,
    /// The member of the file; `None` when the import names the file itself.
    pub member: Option<String>,
}

/// What a name stands for that a file imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// A file, by its number.
    File(usize),
    /// What a file, by its number, binds to `name`.
    Member {
        /// The file.
        file: usize,
        /// The name there.
        name: String,
    },
}

/// The files that kernels of one file reach through imports.
#[derive(Clone, Debug, Default)]
pub struct Links {
    files: Vec<Arc<File>>,
    /// By the file that imports (`None` for the one that all starts from) and the name that it binds.
    names: HashMap<Option<usize>, HashMap<String, Link>>,
    /// The names that were asked for.
    wanted: BTreeSet<String>,
}

/// The same names mean the same in the same versions of files.
impl PartialEq for Links {
    fn eq(&self, other: &Self) -> bool {
        self.files.len() == other.files.len()
            && self.files.iter().zip(&other.files).all(|(a, b)| Arc::ptr_eq(a, b))
            && self.names == other.names
    }
}

impl Links {
    /// Follows the imports that the kernels of `module` use. `resolve` says what a file's import of a dotted path names.
    #[must_use]
    pub fn follow(module: &Module, path: &Path, resolve: &mut dyn FnMut(&Path, &str) -> Option<Target>) -> Self {
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
            let Some(Binding::Import(import)) = from.bindings.get(&name) else { continue };
            let Some(Target { file, member }) = resolve(importer, import) else { continue };
            let Some((number, is_new)) = links.number(&file) else { continue };
            if is_new {
                waiting.extend(file.module.imported_in_kernels().into_iter().map(|name| (Some(number), name)));
            }
            let link = match member {
                None => {
                    // Which of its names are used cannot be seen from here: all may be handed on.
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

    /// The number of a file, and whether it is a new one.
    fn number(&mut self, file: &Arc<File>) -> Option<(usize, bool)> {
        if let Some(known) = self.files.iter().position(|known| known.path == file.path) {
            return Some((known, false));
        }
        if self.files.len() >= MAX_FILES {
            return None;
        }
        self.files.push(Arc::clone(file));
        Some((self.files.len() - 1, true))
    }

    /// What file `at` (`None` for the one that all starts from) means by `name`.
    #[must_use]
    pub fn get(&self, at: Option<usize>, name: &str) -> Option<&Link> {
        self.names.get(&at)?.get(name)
    }

    /// The file that gives the dotted name `parts` its value, and the name there. `None` for what is no import, and for
    /// a file as such.
    #[must_use]
    pub fn definition(&self, parts: &[&str]) -> Option<(&Arc<File>, &str)> {
        let (first, mut rest) = parts.split_first()?;
        let mut link = self.get(None, first)?;
        for _ in 0..MAX_FILES {
            let (file, name) = match link {
                Link::Member { file, name } => (*file, name.as_str()),
                Link::File(file) => {
                    let (name, after) = rest.split_first()?;
                    rest = after;
                    // The name as the file has it, which lives as long as this.
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

    /// The files, by number.
    #[must_use]
    pub fn files(&self) -> &[Arc<File>] {
        &self.files
    }

    /// The names that were followed from the file that all starts from.
    #[must_use]
    pub fn wanted(&self) -> &BTreeSet<String> {
        &self.wanted
    }
}

impl File {
    /// The kernel of this name, when there is exactly one.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        let [only] = self.module.kernels_named(name)[..] else { return None };
        Some(&self.module.kernels[only])
    }

    /// Where the top level binds `name`: kernels, functions, variables.
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
