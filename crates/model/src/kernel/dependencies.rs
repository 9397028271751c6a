//! A hash of everything that an analysis of a kernel depends on. While it stays the same, cached facts remain valid.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use super::{Module, Part};
use crate::syntax::{Source, Span, from_first_statement};

/// Words in comments, strings and calls that affect kernels or host code wherever they occur.
const MARKS: [&str; 3] = ["warpsmith:", "TRITON_ALLOW", "set_default_dtype"];

/// The [`Words`] of a segment, computed at its first edit. They follow from the text, so they do not matter when models
/// are compared.
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

/// A summary of the text of a segment, for the analysis of other segments.
#[derive(Clone, Debug)]
struct Words {
    /// Whether the segment is one function or class, or empty.
    is_definition: bool,
    /// Hash of the text, without the comments and blank lines at its beginning and the white space at its end.
    hash: u64,
    /// The hash that [`marks`] computes.
    marks: u64,
    /// Hashes of the names in the text, sorted.
    names: Vec<u64>,
    /// Hashes of the names that its top level binds.
    bound: Vec<u64>,
    /// Hash of the ways in which its top level binds them.
    bindings: u64,
}

impl Words {
    fn of(text: &str, is_definition: bool, part: &Part) -> Self {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let code = from_first_statement(text).trim_ascii_end();
        // Next to a definition with a syntax error there may be statements.
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

/// A word and the names that it may contain: a word such as `0k`, which occurs while code is typed, is a number and a
/// name.
fn readings(word: &str) -> impl Iterator<Item = &str> {
    let is_number = word.starts_with(|c: char| c.is_ascii_digit());
    let starts = word.char_indices().skip(1).filter(move |(_, c)| is_number && !c.is_numeric());
    [word].into_iter().chain(starts.map(|(at, _)| &word[at..]))
}

/// Hash of text that affects kernels without being code they refer to: marked lines, and the heads of classes, because
/// kernels may use named tuples.
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

/// `text` without the white space at its end and the comments there that begin in the first column.
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

/// An index of the names that segments use and define. Names and segments are numbered.
#[derive(Default)]
struct Names<'a> {
    words: Vec<Option<&'a Words>>,
    /// For each name that is bound, or that a kernel has: the segments that bind it.
    binders: Vec<Vec<usize>>,
    /// For each name: the segments that define kernels of that name.
    kernels: Vec<Vec<usize>>,
    /// For each name of a kernel: the segments that use the name.
    users: Vec<Vec<usize>>,
    /// For each segment: the names in it.
    named: Vec<Vec<usize>>,
    /// For each segment: the names of its kernels.
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

    /// The segments that use a kernel of segment `at`, directly or through other segments: they decide what arguments
    /// it gets. The search goes from segments to names to segments, so a name that many kernels share does not cost an
    /// edge for each pair of segments.
    fn callers(&self, at: usize) -> HashSet<usize> {
        let (mut seen, mut seen_names, mut waiting) = (HashSet::from_iter([at]), HashSet::default(), vec![at]);
        while let Some(at) = waiting.pop() {
            for &name in self.defined[at].iter().filter(|name| seen_names.insert(**name)) {
                waiting.extend(self.users[name].iter().filter(|user| seen.insert(**user)));
            }
        }
        seen
    }

    /// The segments in `from`, the segments of the kernels that they use (directly or through other kernels), and the
    /// segments that launch any of these. Host code is not followed: when it uses two kernels, one does not depend on
    /// the other.
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

    /// The host code in segment `at`, the kernels that it names, and what these use.
    fn used_by_host(&self, at: usize, parts: &[Part]) -> HashSet<usize> {
        let kernels = self.named[at].iter().flat_map(|name| &self.kernels[*name]).copied();
        self.used(kernels.chain([at]).collect(), parts)
    }

    /// Hash of the segments in `texts` and of the bindings of the names in them. A statement that binds such a name
    /// counts with its whole text, and so do the names in it.
    fn sum(&self, texts: HashSet<usize>, everywhere: u64) -> u64 {
        let mut seen_names = HashSet::default();
        let mut waiting: Vec<usize> = texts.iter().copied().collect();
        // For each segment, in order: whether its text counts, or only its bindings.
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
    /// Computes for each kernel and each host function of `source` the hash of what it depends on. Facts cached under another hash are
    /// dropped.
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
        let mut host_sums = Vec::with_capacity(self.hosts.len());
        for (at, part) in self.parts.iter().enumerate().filter(|(_, part)| part.hosts > 0) {
            let sum = names.sum(names.used_by_host(at, &self.parts), everywhere);
            host_sums.extend(std::iter::repeat_n(sum, part.hosts));
        }
        drop(names);
        self.kernels.iter_mut().zip(sums).for_each(|(kernel, sum)| kernel.facts.keep_in(sum));
        self.hosts.iter_mut().zip(host_sums).for_each(|(host, sum)| host.facts.keep_in(sum));
    }

    /// Hash of what affects all kernels: imports, star imports and marked comments.
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
