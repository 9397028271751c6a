//! The slice of a file that a kernel needs: the kernel itself, the functions and constants that it uses, and their
//! imports. Everything else is left out, so that loading needs neither torch nor a GPU, and edits elsewhere have no
//! effect.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde::Serialize;

use model::kernel::{Kernel, Link, Links, Module, Statement};
use model::syntax::Source;

/// Modules that can be imported without a GPU and with only Python and Triton installed.
const HARMLESS: &[&str] = &[
    "__future__",
    "abc",
    "builtins",
    "collections",
    "contextlib",
    "dataclasses",
    "enum",
    "functools",
    "inspect",
    "itertools",
    "math",
    "numbers",
    "operator",
    "os",
    "platform",
    "re",
    "string",
    "sys",
    "triton",
    "types",
    "typing",
    "typing_extensions",
    "warnings",
];

/// Parts of names of conditions that are false on the usual machine, which has an NVIDIA GPU under Linux of a
/// generation that needs no special treatment.
const UNUSUAL: &[&str] = &[
    "amd",
    "ascend",
    "blackwell",
    "cpu",
    "debug",
    "disable",
    "hip",
    "intel",
    "interpret",
    "legacy",
    "metax",
    "mlu",
    "mps",
    "musa",
    "npu",
    "rocm",
    "sm100",
    "sm120",
    "windows",
    "xpu",
];

/// A file as it is sent to the compiler process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extracted {
    /// The index of the file in [`Links`]; `None` for the kernel's own file.
    pub file: Option<usize>,
    /// The lines that are kept, unchanged.
    pub text: String,
    /// The original numbers of these lines, from 0.
    pub lines: Vec<u32>,
    /// Names that would need more of the user's code and of which only the truth value is used (`if IS_NVIDIA:`). Their
    /// values are guesses, so errors may be wrong.
    pub assumed: Vec<Assumed>,
    /// Names that it imports from other extracted files: the name, the index of the extracted file, and the member
    /// there (`None` for the file itself).
    pub imports: Vec<(String, usize, Option<String>)>,
}

/// A name whose truth value is assumed to be that on the usual machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Assumed {
    /// The name.
    pub name: String,
    /// The assumed truth value.
    pub truth: bool,
    /// Whether the name is called to get the truth value.
    pub is_called: bool,
}

impl Extracted {
    /// A file with all of its lines.
    pub(super) fn whole(source: &Source) -> Self {
        let text = source.text().to_string();
        let lines = (0..).zip(text.split_inclusive('\n')).map(|(number, _)| number).collect();
        Self { file: None, text, lines, assumed: Vec::new(), imports: Vec::new() }
    }

    /// The same file with each line at its original line number.
    #[must_use]
    pub fn in_place(&self) -> Self {
        let (mut text, mut next) = (String::new(), 0);
        for (line, &number) in self.text.split_inclusive('\n').zip(&self.lines) {
            while next < number {
                text.push('\n');
                next += 1;
            }
            text += line;
            next += 1;
        }
        Self { text, lines: (0..next).collect(), ..self.clone() }
    }
}

/// The slices of the files that `kernel` of `source` needs, its own file first.
///
/// # Errors
/// Returns the names that are needed and not available without running more of the user's code.
pub fn extract(source: &Source, module: &Module, kernel: &Kernel) -> Result<Vec<Extracted>, Vec<String>> {
    let mut extraction = Extraction { links: module.links(), files: Vec::new(), missing: BTreeSet::new() };
    extraction.files.push(File::new(None, source.clone()));
    let own = extraction.files[0].statements.iter().rposition(|own| own.span.contains(kernel.name_span));
    if !own.is_some_and(|own| extraction.include(0, own)) {
        extraction.missing.insert(kernel.name.clone());
    }
    if !extraction.missing.is_empty() {
        return Err(extraction.missing.into_iter().collect());
    }
    Ok(extraction.files.into_iter().map(File::finish).collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unknown,
    Included,
    Refused,
}

struct File {
    at: Option<usize>,
    source: Source,
    statements: Vec<Statement>,
    states: Vec<State>,
    by_name: HashMap<String, Vec<usize>>,
    imports: Vec<(String, usize, Option<String>)>,
    /// Names of which only the truth value is used, and whether they are called for it.
    assumed: BTreeMap<String, bool>,
}

struct Extraction<'a> {
    links: &'a Links,
    files: Vec<File>,
    missing: BTreeSet<String>,
}

impl Extraction<'_> {
    /// Makes a name available. Returns whether that succeeded.
    fn need(&mut self, file: usize, name: &str) -> bool {
        if self.files[file].imports.iter().any(|(known, ..)| known == name) {
            return true;
        }
        if let Some(link) = self.links.get(self.files[file].at, name).cloned() {
            return self.import(file, name, link);
        }
        let binding = self.files[file].by_name.get(name).cloned().unwrap_or_default();
        let mut is_there = true;
        for statement in binding {
            is_there &= self.include(file, statement);
        }
        if !is_there {
            self.missing.insert(name.to_owned());
        }
        is_there
    }

    /// Makes a name available of which only the truth value is used.
    fn ask(&mut self, file: usize, name: &str, is_called: bool) -> bool {
        let missing = self.missing.clone();
        if !self.need(file, name) {
            self.missing = missing;
            self.files[file].assumed.insert(name.to_owned(), is_called);
        }
        true
    }

    fn import(&mut self, file: usize, name: &str, link: Link) -> bool {
        let (of, member) = match link {
            Link::File(of) => (of, None),
            Link::Member { file, name } => (file, Some(name)),
        };
        let Some(other) = self.file(of) else { return false };
        self.files[file].imports.push((name.to_owned(), other, member.clone()));
        let Some(member) = member else {
            // The members that are used are unknown, so all are included; unavailable ones are left out.
            let missing = self.missing.clone();
            for statement in 0..self.files[other].statements.len() {
                if !self.files[other].statements[statement].is_import {
                    self.include(other, statement);
                }
            }
            self.missing = missing;
            return true;
        };
        self.need(other, &member)
    }

    /// The index of a linked file among the extracted ones.
    fn file(&mut self, at: usize) -> Option<usize> {
        if let Some(known) = self.files.iter().position(|file| file.at == Some(at)) {
            return Some(known);
        }
        let source = Source::parse(Arc::clone(&self.links.files().get(at)?.text));
        self.files.push(File::new(Some(at), source));
        Some(self.files.len() - 1)
    }

    /// Keeps a statement and what it needs. Returns whether that succeeded.
    fn include(&mut self, file: usize, at: usize) -> bool {
        let this = &mut self.files[file];
        if this.states[at] != State::Unknown {
            return this.states[at] == State::Included;
        }
        // Functions may be mutually recursive.
        this.states[at] = State::Included;
        if let Some(parent) = this.statements[at].parent
            && !self.include(file, parent)
        {
            self.files[file].states[at] = State::Refused;
            return false;
        }
        let statement = &self.files[file].statements[at];
        let root = |module: &String| module.split('.').next().is_some_and(|root| HARMLESS.contains(&root));
        let is_harmless = !statement.binds.is_empty() && statement.modules.iter().all(root);
        let (uses, conditions) = (statement.uses.clone(), statement.conditions.clone());
        let is_there = is_harmless
            && uses.iter().fold(true, |all, name| match conditions.get(name) {
                Some(is_called) => self.ask(file, name, *is_called) && all,
                None => self.need(file, name) && all,
            });
        if !is_there {
            self.files[file].states[at] = State::Refused;
        }
        is_there
    }
}

impl File {
    fn new(at: Option<usize>, source: Source) -> Self {
        let statements = Statement::all(&source);
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, statement) in statements.iter().enumerate() {
            for name in &statement.binds {
                by_name.entry(name.clone()).or_default().push(number);
            }
        }
        let state = |statement| if is_future(statement) { State::Included } else { State::Unknown };
        let states = statements.iter().map(state).collect();
        Self { at, source, statements, states, by_name, imports: Vec::new(), assumed: BTreeMap::new() }
    }

    fn finish(self) -> Extracted {
        let text = self.source.text();
        let mut kept = vec![false; text.len()];
        let is_included = |at: usize| self.states[at] == State::Included;
        // A branch must not be empty, so a number replaces what is left out.
        let mut numbers = HashSet::new();
        for (at, statement) in self.statements.iter().enumerate() {
            let span = statement.span;
            if is_included(at) {
                kept[span.start..span.end].fill(true);
                statement.wrappers.iter().for_each(|span| kept[span.start..span.end].fill(false));
            } else if statement.parent.is_some_and(is_included) {
                kept[span.start..span.end].fill(false);
                numbers.insert(span.start);
            }
        }
        let (mut left, mut lines, mut start) = (String::new(), Vec::new(), 0);
        for (number, line) in (0..).zip(text.split_inclusive('\n')) {
            let span = start..start + line.len();
            start = span.end;
            if kept[span.clone()].contains(&true) || span.clone().any(|at| numbers.contains(&at)) {
                let ending = line.trim_end_matches(['\r', '\n']).len();
                // Each dropped byte becomes a blank, because columns are counted in bytes.
                let chars = line.char_indices().flat_map(|(at, c)| {
                    let first = match kept[span.start + at] || at >= ending {
                        true => return vec![c],
                        false if numbers.contains(&(span.start + at)) => '0',
                        false => ' ',
                    };
                    let mut blank = vec![' '; c.len_utf8()];
                    blank[0] = first;
                    blank
                });
                left.extend(chars);
                lines.push(number);
            }
        }
        let assumed = self.assumed.into_iter().map(|(name, is_called)| Assumed::of(name, is_called)).collect();
        Extracted { file: self.at, text: left, lines, assumed, imports: self.imports }
    }
}

fn is_future(statement: &Statement) -> bool {
    statement.modules.iter().any(|module| module == "__future__")
}

impl Assumed {
    fn of(name: String, is_called: bool) -> Self {
        let lower = name.to_ascii_lowercase();
        Self { truth: !UNUSUAL.iter().any(|part| lower.contains(part)), name, is_called }
    }
}

#[cfg(test)]
mod tests;
