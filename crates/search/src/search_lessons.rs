//! Lessons of earlier searches on similar kernels: the prior for the choice among kinds of changes.
//!
//! They decide only the order in which changes are tried. A lesson is stored under the class of the kernel and what
//! bounds its time, so it applies to kernels of other files with other names. For the same reason, changes of tile
//! sizes are named after the dimension of the tile and not after the parameter.

use std::collections::{BTreeMap, HashMap, HashSet};

use judge::{Measured, Profile, Profiles};
use model::kernel::ast::walk_statements;
use model::kernel::{Kernel, Module};
use runtime::python::state_folder;
use store::{Lesson, Store, StoreError};

use super::request::SearchRequest;
use super::speedup::floor_share;

/// Share of the memory's bandwidth from which on the memory bounds a kernel.
const MEMORY_BOUND: f64 = 0.5;
/// Share of the time that a unit must be busy to bound a kernel.
const BUSY: f64 = 0.6;
/// Milliseconds below which most of the time is that of the launch.
const SHORT: f64 = 0.01;
/// Weight of a lesson from another device.
const ELSEWHERE: f64 = 0.25;
/// Weight of a lesson for kernels that are bounded by something else.
const OTHERWISE: f64 = 0.25;
/// Greatest weight of all lessons about a kind, in tries of this search.
const MOST: f64 = 4.0;

/// The prior for a kind of change: its weight in tries of this search, and the mean gain (a logarithm of speedup).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ExpectedGain {
    pub(super) weight: f64,
    pub(super) gain: f64,
}

/// The lessons for the kernels of a search.
#[derive(Default)]
pub(super) struct SearchLessons {
    /// `None` where nothing is learned.
    store: Option<Store>,
    device: String,
    lessons: Vec<Lesson>,
    /// The class of each kernel, by its name.
    classes: BTreeMap<String, &'static str>,
    bound: Option<&'static str>,
    /// Cache by class and kind; cleared when the bound becomes known.
    expected: HashMap<(String, String), Option<ExpectedGain>>,
}

impl SearchLessons {
    /// Loads the lessons for these kernels on a device. Without them a search only takes longer.
    pub(super) fn of(request: &SearchRequest, kernels: &[String], device: &str) -> Self {
        let (lessons, store) = if request.settings.optimize.learn { known() } else { Default::default() };
        let module = Module::build(&model::syntax::Source::parse(request.text.as_str()));
        Self { store, device: device.to_owned(), lessons, classes: classes(&module, kernels), ..Self::default() }
    }

    /// The prior for a kind of change, under the search's name of the kind: `num_warps up`, `softmax: BLOCK up`.
    pub(super) fn expected(&mut self, kind: &str) -> Option<ExpectedGain> {
        let key = self.key(kind)?;
        if let Some(known) = self.expected.get(&key) {
            return *known;
        }
        let worked_out = self.work_out(&key.0, &key.1);
        self.expected.insert(key, worked_out);
        worked_out
    }

    fn work_out(&self, class: &str, kind: &str) -> Option<ExpectedGain> {
        let (mut weight, mut gain) = (0.0, 0.0);
        for lesson in self.lessons.iter().filter(|lesson| lesson.class == class && lesson.kind == kind) {
            let here = if lesson.device == self.device { 1.0 } else { ELSEWHERE };
            let so = if self.bound.is_none_or(|bound| bound == lesson.bound) { 1.0 } else { OTHERWISE };
            weight += here * so * f64::from(lesson.count);
            gain += here * so * lesson.gain;
        }
        (weight > 0.0).then(|| ExpectedGain { weight: weight.min(MOST), gain: gain / weight })
    }

    /// Determines from the first measurement what bounds the original's time.
    pub(super) fn measured(&mut self, measured: &[Measured]) {
        if self.bound.is_none() && !measured.is_empty() {
            self.bound = Some(bound(measured));
            self.expected.clear();
        }
    }

    /// Determines from hardware counters what bounds the original's time, which is more reliable than its time
    /// alone.
    pub(super) fn counted(&mut self, profiles: &Profiles) {
        self.bound = Some(counted_bound(profiles));
        self.expected.clear();
    }

    /// Facts about the kernels, in sentences.
    pub(super) fn facts(&self) -> Vec<String> {
        let class = self.classes.iter().map(|(kernel, class)| format!("Class of `{kernel}`: {class}."));
        class.chain(self.bound.map(|bound| format!("What bounds the original's time: {bound}."))).collect()
    }

    /// Kinds of changes that have helped similar kernels, in sentences, the best first.
    pub(super) fn sentences(&self) -> Vec<String> {
        let classes: HashSet<&str> = self.classes.values().copied().collect();
        let mut sums: BTreeMap<&str, (f64, u32)> = BTreeMap::new();
        let is_near = |lesson: &&Lesson| {
            classes.contains(lesson.class.as_str()) && self.bound.is_none_or(|bound| bound == lesson.bound)
        };
        for lesson in self.lessons.iter().filter(is_near) {
            let sum = sums.entry(&lesson.kind).or_default();
            (sum.0, sum.1) = (sum.0 + lesson.gain, sum.1 + lesson.count);
        }
        let mut means: Vec<(&str, f64, u32)> =
            sums.into_iter().map(|(kind, (gain, count))| (kind, gain / f64::from(count.max(1)), count)).collect();
        means.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(other.0)));
        let told = means.into_iter().map(|(kind, mean, count)| {
            format!("{kind}: {:.2}× on average, tried {count} times on kernels of this class.", mean.exp())
        });
        told.collect()
    }

    /// Stores the gain of a change, as a logarithm of speedup, and whether the candidate was refused.
    pub(super) fn learn(&mut self, kind: &str, gain: f64, is_refused: bool) {
        let Some((class, kind)) = self.key(kind) else { return };
        let (device, bound) = (self.device.clone(), self.bound.unwrap_or("work").to_owned());
        let seen = Lesson {
            device,
            class,
            bound,
            kind,
            count: 1,
            refused: is_refused.into(),
            gain,
            best: gain.exp().max(1.0),
        };
        if let Some(store) = &mut self.store
            && let Err(error) = store.learn(&seen)
        {
            tracing::warn!(%error, "the gain of a change cannot be stored");
            self.store = None;
        }
    }

    /// The class of the kernel that is changed, and the kind without the names of the file.
    fn key(&self, kind: &str) -> Option<(String, String)> {
        let (class, kind) = match self.classes.first_key_value() {
            Some((_, &class)) if self.classes.len() == 1 => (class, kind),
            _ => {
                let (kernel, kind) = kind.split_once(": ")?;
                (*self.classes.get(kernel)?, kind)
            }
        };
        Some((class.to_owned(), common(kind)))
    }
}

/// The lessons of all searches; none if the store cannot be read.
fn known() -> (Vec<Lesson>, Option<Store>) {
    let open = || -> Result<_, StoreError> {
        let store = Store::of_user(&state_folder())?;
        Ok((store.lessons(None)?, Some(store)))
    };
    open().unwrap_or_else(|error| {
        tracing::warn!(%error, "the lessons of earlier searches cannot be read");
        Default::default()
    })
}

fn bound(measured: &[Measured]) -> &'static str {
    let is_memory = floor_share(measured).is_some_and(|(before, _)| before >= MEMORY_BOUND);
    let is_short = measured.iter().all(|one| one.times().0 < SHORT);
    if is_memory {
        "memory"
    } else if is_short {
        "launch"
    } else {
        "work"
    }
}

/// What bounds the time according to the counters: the memory, the multiprocessors, or neither, where warps wait
/// for latency.
fn counted_bound(profiles: &Profiles) -> &'static str {
    let all: f64 = profiles.values().map(|profile| profile.milliseconds).sum();
    let mean = |of: fn(&Profile) -> f64| {
        profiles.values().map(|profile| of(profile) * profile.milliseconds).sum::<f64>() / all.max(f64::MIN_POSITIVE)
    };
    let (memory, compute) = (mean(|profile| profile.memory), mean(|profile| profile.compute));
    let launches: u32 = profiles.values().map(|profile| profile.launches).sum();
    if memory.max(compute) >= BUSY {
        if memory >= compute { "memory" } else { "compute" }
    } else if all < SHORT * f64::from(launches) {
        "launch"
    } else {
        "latency"
    }
}

fn classes(module: &Module, kernels: &[String]) -> BTreeMap<String, &'static str> {
    let known = kernels.iter().filter_map(|name| Some((name.clone(), class(module, module.kernel(name)?))));
    known.collect()
}

/// The class of a kernel, by the operations that it contains, because these decide what makes it faster.
fn class(module: &Module, kernel: &Kernel) -> &'static str {
    let mut members: Vec<String> = Vec::new();
    walk_statements(&kernel.body, &mut |stmt| {
        for expr in stmt.exprs() {
            expr.walk(&mut |expr| {
                members.extend(expr.as_call().and_then(|call| module.language_member(kernel, &call.func)));
            });
        }
    });
    let has = |names: &[&str]| members.iter().any(|member| names.contains(&member.as_str()));
    let reduces = has(&["sum", "max", "min", "argmax", "argmin", "reduce", "xor_sum"]);
    match (has(&["dot", "dot_scaled"]), reduces) {
        (true, true) => "attention",
        (true, false) => "product",
        _ if has(&["associative_scan", "cumsum", "cumprod", "sort", "histogram"]) => "scan",
        (false, true) => "reduction",
        (false, false) => "pointwise",
    }
}

/// The kind of a change without the names of a file: `BLOCK_M up` becomes `tile M up`.
fn common(kind: &str) -> String {
    let Some((name, direction)) = kind.rsplit_once(' ').filter(|(_, way)| ["up", "down"].contains(way)) else {
        return kind.to_owned();
    };
    // Options of launches and loops have the same names everywhere.
    if name.starts_with("num_") || name == "programs" || name.contains(' ') {
        return kind.to_owned();
    }
    let upper = name.to_uppercase();
    let last = upper.rsplit('_').next().unwrap_or(&upper);
    let role = match last.strip_prefix('B').unwrap_or(last) {
        _ if upper.contains("ROW") => " of rows",
        _ if upper.contains("SPLIT") => " split",
        "M" => " M",
        "N" => " N",
        "K" => " K",
        _ => "",
    };
    format!("tile{role} {direction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_unit_is_the_bound() {
        let profile =
            |milliseconds, memory, compute| Profile { launches: 1, milliseconds, memory, compute, warps: 0.5 };
        let of = |all: &[Profile]| {
            counted_bound(&all.iter().enumerate().map(|(at, profile)| (at.to_string(), profile.clone())).collect())
        };
        assert_eq!(of(&[profile(1.0, 0.8, 0.3)]), "memory");
        assert_eq!(of(&[profile(1.0, 0.3, 0.8)]), "compute");
        assert_eq!(of(&[profile(1.0, 0.3, 0.3)]), "latency");
        assert_eq!(of(&[profile(0.004, 0.3, 0.3), profile(0.004, 0.3, 0.3)]), "launch");
        // The kernel that takes longer counts more.
        assert_eq!(of(&[profile(9.0, 0.8, 0.3), profile(1.0, 0.1, 0.9)]), "memory");
    }

    fn lesson(device: &str, bound: &str, kind: &str, count: u32, gain: f64) -> Lesson {
        let (device, bound, kind) = (device.to_owned(), bound.to_owned(), kind.to_owned());
        Lesson { device, class: "reduction".to_owned(), bound, kind, count, refused: 0, gain, best: 1.0 }
    }

    fn memory(lessons: Vec<Lesson>) -> SearchLessons {
        let classes = BTreeMap::from([("softmax".to_owned(), "reduction")]);
        SearchLessons { device: "H200".to_owned(), lessons, classes, ..SearchLessons::default() }
    }

    #[test]
    fn kinds_are_normalized_to_common_names() {
        let said = [
            "BLOCK_M up",
            "bk down",
            "BLOCK up",
            "ROWS_PER_PROGRAM up",
            "num_warps up",
            "programs up",
            "looped",
            "loop num_stages up",
        ];
        let common: Vec<String> = said.iter().map(|kind| common(kind)).collect();
        let expected = [
            "tile M up",
            "tile K down",
            "tile up",
            "tile of rows up",
            "num_warps up",
            "programs up",
            "looped",
            "loop num_stages up",
        ];
        assert_eq!(common, expected);
    }

    #[test]
    fn lessons_are_listed_with_the_best_first() {
        let mut memory = memory(vec![
            lesson("H200", "memory", "exp2", 2, -0.2),
            lesson("H200", "memory", "looped", 2, 0.4),
            lesson("A100", "memory", "looped", 2, 0.4),
            lesson("A100", "compute", "descriptors", 2, 2.0),
        ]);
        memory.bound = Some("memory");
        let told = memory.sentences();
        assert!(told[0].starts_with("looped: 1.22× on average, tried 4 times"), "{told:?}");
        assert!(told[1].starts_with("exp2: 0.90×") && told.len() == 2, "{told:?}");
        assert_eq!(memory.facts(), ["Class of `softmax`: reduction.", "What bounds the original's time: memory."]);
    }

    #[test]
    fn what_was_learned_on_this_device_and_bound_counts_most() {
        let mut memory = memory(vec![
            lesson("H200", "memory", "looped", 2, 1.0),
            lesson("A100", "memory", "looped", 8, -2.0),
            lesson("H200", "work", "exp2", 100, 10.0),
        ]);
        let looped = memory.expected("looped").unwrap();
        assert_eq!(looped, ExpectedGain { weight: 4.0, gain: (1.0 - 0.5) / 4.0 });
        assert_eq!(memory.expected("exp2"), Some(ExpectedGain { weight: 4.0, gain: 0.1 }));
        memory.bound = Some("memory");
        memory.expected.clear();
        assert_eq!(memory.expected("exp2"), Some(ExpectedGain { weight: 4.0, gain: 0.1 }), "there is nothing nearer");
        assert_eq!(memory.expected("single_tile"), None);
        memory.classes.insert("other".to_owned(), "pointwise");
        assert_eq!(memory.expected("other: looped"), None);
        assert!(memory.expected("softmax: looped").is_some());
    }

    #[test]
    fn kernels_are_classified_by_their_operations() {
        let kernel = |body: &str| {
            let text = format!("import triton\nimport triton.language as tl\n@triton.jit\ndef k(x):\n    {body}\n");
            let module = Module::build(&model::syntax::Source::parse(text.as_str()));
            class(&module, &module.kernels[0])
        };
        let seen =
            ["y = tl.dot(x, x)", "y = tl.max(tl.dot(x, x), 1)", "y = tl.sum(x)", "y = tl.cumsum(x)", "y = tl.exp(x)"];
        assert_eq!(seen.map(kernel), ["product", "attention", "reduction", "scan", "pointwise"]);
    }
}
