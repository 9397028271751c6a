//! What an analysis of a kernel may depend on, as a number: where it stays the same, so does what was found out.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

use super::Module;
use crate::syntax::{Source, Span, from_first_statement};

/// Words of comments and strings that say something about kernels, wherever they stand.
const MARKS: [&str; 2] = ["warpsmith:", "TRITON_ALLOW"];

/// [`Words`], once they are needed: an edit needs them. They are of the text, so two models do not differ in them.
#[derive(Clone, Debug, Default)]
pub(super) struct Cached(Option<Words>);

impl PartialEq for Cached {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Cached {
    pub(super) fn is_known(&self) -> bool {
        self.0.is_some()
    }
}

/// The text of a segment, as far as others need to know it.
#[derive(Clone, Debug)]
struct Words {
    /// Whether it is one function or class, or nothing at all.
    is_definition: bool,
    /// Of the text without blank lines at its end, and without those and comments at its beginning.
    hash: u64,
    /// Of what [`marks`] looks at.
    marks: u64,
    /// Hashes of the names in it, sorted.
    names: Vec<u64>,
}

impl Words {
    fn of(text: &str, is_definition: bool) -> Self {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let code = from_first_statement(text).trim_ascii_end();
        let is_definition = is_definition || code.is_empty() || text.starts_with('@');
        let words = code.split(|c| !is_part(c)).filter(|word| !word.is_empty());
        let mut names: Vec<u64> = words.flat_map(readings).map(hash).collect();
        names.sort_unstable();
        names.dedup();
        Self { is_definition, hash: hash(code), marks: marks(text), names }
    }
}

/// A word, and what else may be a name in it: `0k`, which nobody writes for long, is a number and a name.
fn readings(word: &str) -> impl Iterator<Item = &str> {
    let is_number = word.starts_with(|c: char| c.is_ascii_digit());
    let starts = word.char_indices().skip(1).filter(move |(_, c)| is_number && !c.is_numeric());
    [word].into_iter().chain(starts.map(|(at, _)| &word[at..]))
}

/// What a text says about kernels besides what it does: marked lines, and the heads of classes, of which kernels may use
/// those for tuples.
fn marks(text: &str) -> u64 {
    let mut all = 0;
    for mark in MARKS {
        for at in memchr::memmem::find_iter(text.as_bytes(), mark) {
            all = hash((all, text[at..].lines().next()));
        }
    }
    for at in memchr::memmem::find_iter(text.as_bytes(), "class ") {
        all = hash((all, text[at..].split(':').next()));
    }
    all
}

/// `text` without the blank lines and comments at its end, where they stand at the beginning of a line.
pub(super) fn statements(text: &str) -> &str {
    let mut rest = text.trim_ascii_end();
    while let Some(line) = rest.rsplit('\n').next().filter(|line| line.starts_with('#')) {
        rest = rest[..rest.len() - line.len()].trim_ascii_end();
    }
    rest
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Hashes what is a hash already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

impl Module {
    /// Tells each kernel of `source` what it depends on; facts found under other circumstances are forgotten.
    pub(super) fn set_surroundings(&mut self, source: &Source) {
        for (part, segment) in self.parts.iter_mut().zip(source.segments()) {
            part.words.0.get_or_insert_with(|| {
                let text = source.slice(Span::new(segment.start(), segment.end()));
                Words::of(text, segment.is_plain_definition())
            });
        }
        let everywhere = self.everywhere();
        // Which segments define a kernel of a name, and which segments name what.
        let mut first_kernel = 0;
        // Between them stands the name: a name that many kernels have makes no edge from each to each.
        let mut names: HashMap<u64, usize, BuildHasherDefault<Hashed>> = HashMap::default();
        let (mut uses, mut users) = (vec![Vec::new(); self.parts.len()], vec![Vec::new(); self.parts.len()]);
        let mut places = Vec::new();
        for (at, part) in self.parts.iter().enumerate() {
            for kernel in &self.kernels[first_kernel..first_kernel + part.kernels] {
                let name = *names.entry(hash(kernel.name.as_str())).or_insert(uses.len());
                uses.resize_with(uses.len().max(name + 1), Vec::new);
                users.resize_with(uses.len(), Vec::new);
                uses[name].push(at);
                users[at].push(name);
                places.push(at);
            }
            first_kernel += part.kernels;
        }
        for (at, part) in self.parts.iter().enumerate() {
            let named = part.words.0.iter().flat_map(|words| &words.names);
            for &name in named.filter_map(|name| names.get(name)) {
                users[name].push(at);
                // Host code that names two kernels does not make one depend on the other.
                if part.kernels > 0 {
                    uses[at].push(name);
                }
            }
        }
        let reach = |from: &[usize], next: &[Vec<usize>]| {
            let (mut seen, mut waiting) = (HashSet::new(), from.to_vec());
            while let Some(at) = waiting.pop() {
                if seen.insert(at) {
                    waiting.extend(&next[at]);
                }
            }
            seen
        };
        for (kernel, place) in self.kernels.iter_mut().zip(places) {
            // Callers decide what a kernel is given, and may compute that with other kernels.
            let callers: Vec<usize> = reach(&[place], &users).into_iter().collect();
            let mut matter = reach(&callers, &uses);
            // What launches those that it names.
            let launching = |at: &usize| self.parts.get(*at).is_some_and(|part| part.launches > 0);
            let named: Vec<usize> = matter.iter().copied().filter(|at| *at >= self.parts.len()).collect();
            matter.extend(named.iter().flat_map(|name| &users[*name]).copied().filter(launching));
            let words = matter.iter().filter_map(|&at| self.parts.get(at)?.words.0.as_ref());
            let sum = words.fold(everywhere, |sum, words| sum.wrapping_add(words.hash));
            kernel.facts.keep_in(sum);
        }
    }

    /// What matters to all kernels: the top level but for the bodies of definitions, and what comments say.
    fn everywhere(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for part in &self.parts {
            let Some(words) = &part.words.0 else { continue };
            (words.marks, &part.bound, &part.imports, &part.bindings, part.has_star_import).hash(&mut hasher);
            // A definition with an error may have statements beside it.
            if !words.is_definition || part.globals > 0 {
                words.hash.hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}
