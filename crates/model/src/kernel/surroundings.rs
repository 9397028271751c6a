//! What an analysis of a kernel may depend on, as a number: where it stays the same, so does what was found out.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use super::{Module, Part};
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
    /// Hashes of the names that its top level binds.
    bound: Vec<u64>,
    /// Of how it binds them.
    bindings: u64,
}

impl Words {
    fn of(text: &str, is_definition: bool, part: &Part) -> Self {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let code = from_first_statement(text).trim_ascii_end();
        // A definition with an error may have statements beside it.
        let is_definition = (is_definition || code.is_empty() || text.starts_with('@')) && part.globals == 0;
        let words = code.split(|c| !is_part(c)).filter(|word| !word.is_empty());
        let mut names: Vec<u64> = words.flat_map(readings).map(hash).collect();
        names.sort_unstable();
        names.dedup();
        let bound = part.bound.iter().map(|(name, _)| name).chain(part.bindings.iter().map(|(name, _)| name));
        let bound = bound.map(|name| hash(name.as_str())).collect();
        let bindings = hash((&part.bound, &part.bindings));
        Self { is_definition, hash: hash(code), marks: marks(text), names, bound, bindings }
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

/// Which segments name what, and where that is defined.
#[derive(Default)]
struct Names<'a> {
    words: Vec<Option<&'a Words>>,
    /// For each name that is bound, or that a kernel has, the segments that bind it.
    binders: Vec<Vec<usize>>,
    /// For each name the segments with kernels of that name.
    kernels: Vec<Vec<usize>>,
    /// For each name of a kernel the segments that name it.
    users: Vec<Vec<usize>>,
    /// For each segment the names in it.
    named: Vec<Vec<usize>>,
    /// For each segment the names of its kernels.
    defined: Vec<Vec<usize>>,
}

impl<'a> Names<'a> {
    fn of(module: &'a Module) -> Self {
        let parts = &module.parts;
        let mut all = Self { words: parts.iter().map(|part| part.words.0.as_ref()).collect(), ..Self::default() };
        let mut numbers: HashMap<u64, usize> = HashMap::default();
        let mut first_kernel = 0;
        for (at, part) in parts.iter().enumerate() {
            let mut number = |name| {
                let next = numbers.len();
                *numbers.entry(name).or_insert(next)
            };
            let kernels = &module.kernels[first_kernel..first_kernel + part.kernels];
            let defined: Vec<usize> = kernels.iter().map(|kernel| number(hash(kernel.name.as_str()))).collect();
            let bound: Vec<usize> =
                all.words[at].iter().flat_map(|words| &words.bound).map(|name| number(*name)).collect();
            all.binders.resize_with(numbers.len(), Vec::new);
            all.kernels.resize_with(numbers.len(), Vec::new);
            defined.iter().for_each(|&name| all.kernels[name].push(at));
            bound.iter().for_each(|&name| all.binders[name].push(at));
            all.defined.push(defined);
            first_kernel += part.kernels;
        }
        all.users.resize_with(numbers.len(), Vec::new);
        for (at, words) in all.words.iter().enumerate() {
            let named = words.iter().flat_map(|words| &words.names).filter_map(|name| numbers.get(name).copied());
            let named: Vec<usize> = named.collect();
            named.iter().filter(|name| !all.kernels[**name].is_empty()).for_each(|&name| all.users[name].push(at));
            all.named.push(named);
        }
        all
    }

    /// The segments that name a kernel of segment `at`, or one of a segment that does, and so on; they decide what it is
    /// given. Between segments stands the name: one that many kernels have makes no edge from each to each.
    fn callers(&self, at: usize) -> HashSet<usize> {
        let (mut seen, mut seen_names, mut waiting) = (HashSet::from_iter([at]), HashSet::default(), vec![at]);
        while let Some(at) = waiting.pop() {
            for &name in self.defined[at].iter().filter(|name| seen_names.insert(**name)) {
                waiting.extend(self.users[name].iter().filter(|user| seen.insert(**user)));
            }
        }
        seen
    }

    /// `from`, and the segments with kernels that those with kernels name, and so on: host code that names two kernels
    /// does not make one depend on the other. Then what launches those.
    fn used(&self, from: HashSet<usize>, parts: &[Part]) -> HashSet<usize> {
        let (mut seen, mut seen_names) = (from, HashSet::default());
        let mut waiting: Vec<usize> = seen.iter().copied().collect();
        while let Some(at) = waiting.pop() {
            if parts[at].kernels == 0 {
                continue;
            }
            let names = self.named[at].iter().chain(&self.defined[at]);
            for &name in names.filter(|name| !self.kernels[**name].is_empty() && seen_names.insert(**name)) {
                waiting.extend(self.kernels[name].iter().filter(|used| seen.insert(**used)));
            }
        }
        let launching = |at: &&usize| parts[**at].launches > 0;
        seen.extend(seen_names.iter().flat_map(|name| &self.users[*name]).filter(launching));
        seen
    }

    /// A number for `texts` and for what the names in them are bound to. Statements that bind such a name matter as a
    /// whole, and so do the names in them.
    fn sum(&self, texts: HashSet<usize>, everywhere: u64) -> u64 {
        let mut seen_names = HashSet::default();
        let mut waiting: Vec<usize> = texts.iter().copied().collect();
        // For each segment, in order, whether its text matters.
        let mut matter: BTreeMap<usize, bool> = texts.into_iter().map(|at| (at, true)).collect();
        while let Some(at) = waiting.pop() {
            for &name in self.named[at].iter().filter(|name| seen_names.insert(**name)) {
                for &binder in &self.binders[name] {
                    let is_statement = self.words[binder].is_some_and(|words| !words.is_definition);
                    let text = matter.entry(binder).or_default();
                    if is_statement && !*text {
                        *text = true;
                        waiting.push(binder);
                    }
                }
            }
        }
        let mut hasher = DefaultHasher::new();
        everywhere.hash(&mut hasher);
        for (at, text) in matter {
            let Some(words) = self.words[at] else { continue };
            (words.bindings, text.then_some(words.hash)).hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl Module {
    /// Tells each kernel of `source` what it depends on; facts found under other circumstances are forgotten.
    pub(super) fn set_surroundings(&mut self, source: &Source) {
        for at in 0..self.parts.len().min(source.segments().len()) {
            if !self.parts[at].words.is_known() {
                let segment = &source.segments()[at];
                let text = source.slice(Span::new(segment.start(), segment.end()));
                self.parts[at].words.0 = Some(Words::of(text, segment.is_plain_definition(), &self.parts[at]));
            }
        }
        let (everywhere, names) = (self.everywhere(), Names::of(self));
        let mut sums = Vec::with_capacity(self.kernels.len());
        for (at, part) in self.parts.iter().enumerate().filter(|(_, part)| part.kernels > 0) {
            let sum = names.sum(names.used(names.callers(at), &self.parts), everywhere);
            sums.extend(std::iter::repeat_n(sum, part.kernels));
        }
        drop(names);
        self.kernels.iter_mut().zip(sums).for_each(|(kernel, sum)| kernel.facts.keep_in(sum));
    }

    /// What matters to all kernels: what is imported, whether names may come from elsewhere, and what comments say.
    fn everywhere(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for part in &self.parts {
            let Some(words) = &part.words.0 else { continue };
            if words.marks != 0 || part.has_star_import || !part.imports.says_nothing() {
                (words.marks, &part.imports, part.has_star_import).hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}
