//! The registry of the recorder: the calls that are kept, and how often each occurred.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use protocol::{
    ArgumentValue, EntryPoint, FailedLaunch, LaunchRecord, RecordConfig, RuntimeVersions, Workload, WorkloadSource,
};

use super::recorded_calls::{CallKey, RecordPurpose, RecordedCall, TrackedCall};

/// After this many calls that launch nothing, an entry counts as one that launches nothing.
const FRUITLESS: usize = 32;
/// The most calls that are kept of those that differ only in numbers and strings; further ones count as the last of
/// them.
const ALIKE: usize = 4;
/// The most shapes that are counted without being kept.
const TALLIED: usize = 4096;
/// The most failed launches that are kept.
const FAILED: usize = 16;
/// Up to this many times the number of calls that are kept of an entry, a call replaces a rarer one at once; after that
/// it must be far more frequent. Otherwise shapes that occur equally often would replace each other forever.
const REPLACED: usize = 4;

/// The state of a call in the registry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CallState {
    /// The call is to be recorded.
    New,
    /// The call is known and was counted.
    Seen {
        /// The key and number of the call, if its gradients are still to be recorded.
        tag: Option<(CallKey, u64)>,
        /// Whether the call can be made again.
        covers: bool,
    },
    /// The call counts unless a call around it can be made again.
    Open(CallKey),
    /// The call has launched nothing so far. If it does now, calls like it are to be recorded again.
    Fruitless,
}

impl CallState {
    const UNCOVERED: Self = Self::Seen { tag: None, covers: false };
}

/// The mark of a call that is not kept.
enum Mark {
    Kept(Box<TrackedCall>),
    /// The call launched nothing.
    Fruitless,
    /// The call has no tensor argument and returns no tensor.
    Empty,
}

/// All observed calls.
pub(super) struct CallRegistry {
    config: RecordConfig,
    numbers: HashMap<(PathBuf, String), usize>,
    seen: HashMap<CallKey, Mark>,
    /// The kept calls by entry and shapes.
    alike: HashMap<(usize, u64), Vec<CallKey>>,
    /// The number of calls that are not kept, by entry and shapes.
    tallies: HashMap<(usize, u64), u64>,
    /// The number of calls of an entry that were replaced by more frequent ones.
    replaced: HashMap<usize, usize>,
    /// The number of calls of an entry that have raised since the last successful one.
    raised: HashMap<usize, usize>,
    environment: RuntimeVersions,
    calls: u64,
    files: usize,
    /// Launches that have raised.
    failed: Vec<FailedLaunch>,
}

impl CallRegistry {
    pub(super) fn new(config: RecordConfig, environment: RuntimeVersions) -> Self {
        Self {
            config,
            numbers: HashMap::new(),
            seen: HashMap::new(),
            alike: HashMap::new(),
            tallies: HashMap::new(),
            replaced: HashMap::new(),
            raised: HashMap::new(),
            environment,
            calls: 0,
            files: 0,
            failed: Vec::new(),
        }
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.config.workspace
    }

    /// Whether a file belongs to the user.
    pub(super) fn is_own(&self, file: &Path) -> bool {
        file.strip_prefix(&self.config.workspace).is_ok_and(|inside| {
            inside.components().all(|part| {
                let part = part.as_os_str().to_string_lossy();
                part != "site-packages" && !part.starts_with('.')
            })
        })
    }

    /// The index of an entry that the configuration does not list.
    pub(super) fn entry(&mut self, point: EntryPoint) -> usize {
        let entries = &mut self.config.entries;
        *self.numbers.entry((point.file.clone(), point.qualname.clone())).or_insert_with(|| {
            entries.push(point);
            entries.len() - 1
        })
    }

    pub(super) fn next_call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    /// Whether a call needs recording; counts it otherwise. `what` says what the call would be kept for.
    pub(super) fn know(&mut self, key: CallKey, shapes: u64, wants_gradient: bool, what: RecordPurpose) -> CallState {
        let key = if self.seen.contains_key(&key) {
            key
        } else {
            match self.unseen(key, shapes, what) {
                Ok(counts_as) => counts_as,
                Err(known) => return known,
            }
        };
        let number = self.next_call();
        let seen = match self.seen.get_mut(&key) {
            Some(Mark::Kept(seen)) => seen,
            Some(Mark::Empty) => return CallState::UNCOVERED,
            Some(Mark::Fruitless) | None => return CallState::Fruitless,
        };
        match (seen.what, what) {
            // A launch of its own.
            (RecordPurpose::Case, RecordPurpose::All | RecordPurpose::Itself) => seen.what = what,
            (RecordPurpose::All | RecordPurpose::Itself, RecordPurpose::Case) => return CallState::Open(key),
            _ => {}
        }
        let tag = (wants_gradient && seen.gradient.is_none()).then_some((key, number));
        let counted = match &mut seen.gradient {
            Some((_, gradient)) if wants_gradient => gradient,
            _ => &mut seen.plain,
        };
        counted.workload.count += 1;
        // The last counts are written at the end. These intermediate ones are for a program that is killed.
        if counted.workload.count.is_power_of_two() {
            counted.save();
        }
        CallState::Seen { tag, covers: seen.what == RecordPurpose::All }
    }

    /// The decision about a new call, or the known call that it counts as.
    fn unseen(&mut self, key: CallKey, shapes: u64, what: RecordPurpose) -> Result<CallKey, CallState> {
        let (mut kept, mut fruitless, mut empty, mut covers) = (0, 0, 0, false);
        for (_, mark) in self.seen.iter().filter(|(seen, _)| seen.entry == key.entry) {
            match mark {
                Mark::Kept(seen) => (kept, covers) = (kept + 1, covers || seen.what == RecordPurpose::All),
                Mark::Fruitless => fruitless += 1,
                Mark::Empty => empty += 1,
            }
        }
        let alike = self.alike.get(&(key.entry, shapes)).map_or(&[][..], Vec::as_slice);
        let is_full = kept >= self.config.distinct;
        if let Some(&last) = alike.last().filter(|_| is_full || alike.len() >= ALIKE) {
            return Ok(last);
        }
        if is_full && !self.is_frequent(key.entry, shapes, what) {
            return Err(CallState::Seen { tag: None, covers });
        }
        if fruitless >= FRUITLESS {
            return Err(CallState::Fruitless);
        }
        if empty >= FRUITLESS || self.is_failing(key.entry) {
            return Err(CallState::UNCOVERED);
        }
        Err(CallState::New)
    }

    /// Counts a call that there is no room for. Returns whether it is more frequent by now than one that was kept.
    fn is_frequent(&mut self, entry: usize, shapes: u64, what: RecordPurpose) -> bool {
        let count = self.tally(entry, shapes, 1);
        let Some((_, least)) = self.rarest(entry, what, None) else { return false };
        let replaced = self.replaced.get(&entry).copied().unwrap_or(0);
        count > if replaced < REPLACED * self.config.distinct { least } else { 2 * least }
    }

    fn tally(&mut self, entry: usize, shapes: u64, more: u64) -> u64 {
        let count = self.tallies.entry((entry, shapes)).or_default();
        *count += more;
        let count = *count;
        if self.tallies.len() > TALLIED {
            // Shapes that occurred once are forgotten.
            self.tallies.retain(|_, count| {
                *count /= 2;
                *count > 0
            });
        }
        count
    }

    /// The call of an entry that is removed first, and how often it occurred.
    fn rarest(&self, entry: usize, what: RecordPurpose, except: Option<CallKey>) -> Option<(CallKey, u64)> {
        let of_entry = self.seen.iter().filter(|(key, _)| key.entry == entry && Some(**key) != except);
        let candidates = of_entry.filter_map(|(key, mark)| match (mark, what) {
            (Mark::Kept(seen), RecordPurpose::Case) if seen.what != RecordPurpose::Case => None,
            (Mark::Kept(seen), RecordPurpose::Case) => Some((key, seen.count(), seen.number)),
            (Mark::Kept(seen), _) if seen.what == RecordPurpose::Case => Some((key, 0, seen.number)),
            (Mark::Kept(seen), _) => Some((key, seen.count(), seen.number)),
            _ => None,
        });
        let rarest = candidates.min_by_key(|&(_, count, number)| (count, std::cmp::Reverse(number)));
        rarest.map(|(key, count, _)| (*key, count))
    }

    /// Whether calls of an entry only raise. Now and then one of them is recorded all the same.
    fn is_failing(&mut self, entry: usize) -> bool {
        let Some(raised) = self.raised.get_mut(&entry).filter(|raised| **raised >= FRUITLESS) else { return false };
        *raised += 1;
        !raised.is_power_of_two()
    }

    /// The workload of a call that is being recorded.
    pub(super) fn draft(
        &self,
        key: CallKey,
        source: WorkloadSource,
        args: Vec<ArgumentValue>,
        kwargs: Vec<(String, ArgumentValue)>,
    ) -> Workload {
        let point = self.config.entries[key.entry].clone();
        let environment = self.environment.clone();
        Workload { source, file: point.file, entry: point.qualname, args, kwargs, environment, ..Workload::default() }
    }

    /// Keeps a new call, unless it launched nothing.
    pub(super) fn keep(&mut self, key: CallKey, shapes: u64, mut workload: Workload, what: RecordPurpose) {
        self.raised.remove(&key.entry);
        if workload.launches.is_empty() {
            self.seen.entry(key).or_insert(Mark::Fruitless);
            return;
        }
        workload.count = self.tallies.remove(&(key.entry, shapes)).unwrap_or(1);
        let plain = RecordedCall { path: self.next_file(&workload.entry), workload };
        plain.save();
        let number = self.files;
        self.seen.insert(key, Mark::Kept(Box::new(TrackedCall::new(plain, what, shapes, number))));
        self.alike.entry((key.entry, shapes)).or_default().push(key);
        self.make_room(key, what);
    }

    /// Removes a call that is rarer than the one that was just kept, where there are too many.
    fn make_room(&mut self, new: CallKey, what: RecordPurpose) {
        let is_kept = |(key, mark): (&CallKey, &Mark)| key.entry == new.entry && matches!(mark, Mark::Kept(_));
        if self.seen.iter().filter(|&one| is_kept(one)).count() <= self.config.distinct {
            return;
        }
        let Some((rarest, _)) = self.rarest(new.entry, what, Some(new)) else { return };
        *self.replaced.entry(new.entry).or_default() += 1;
        let Some(removed) = self.forget(rarest) else { return };
        let alike = self.alike.get(&(rarest.entry, removed.shapes)).and_then(|alike| alike.last().copied());
        if let Some(Mark::Kept(other)) = alike.and_then(|alike| self.seen.get_mut(&alike)) {
            other.plain.workload.count += removed.count();
        } else {
            self.tally(rarest.entry, removed.shapes, removed.count());
        }
    }

    fn forget(&mut self, key: CallKey) -> Option<Box<TrackedCall>> {
        let Some(Mark::Kept(seen)) = self.seen.remove(&key) else { return None };
        seen.remove();
        if let Some(alike) = self.alike.get_mut(&(key.entry, seen.shapes)) {
            alike.retain(|one| *one != key);
        }
        Some(seen)
    }

    /// Whether the user named this entry.
    pub(super) fn is_wanted(&self, entry: usize) -> bool {
        self.config.wanted == Some(entry)
    }

    /// Marks a call without any tensors, which cannot be a workload. Its launches become workloads of their own.
    pub(super) fn note_empty(&mut self, key: CallKey) {
        self.raised.remove(&key.entry);
        self.seen.insert(key, Mark::Empty);
    }

    /// Counts a call that has raised.
    pub(super) fn note_raised(&mut self, entry: usize) {
        *self.raised.entry(entry).or_default() += 1;
    }

    /// Decides about launches when the call around them has ended: `covered` says whether that call can be made again
    /// instead of them. Each launch comes with how often it is still to be counted.
    pub(super) fn settle(&mut self, launches: HashMap<CallKey, u64>, covered: bool) {
        for (key, more) in launches {
            let Some(seen) = self.kept(key) else { continue };
            if !covered {
                seen.plain.workload.count += more;
                seen.what = RecordPurpose::Itself;
            } else if seen.what == RecordPurpose::Case {
                self.forget(key);
            }
        }
    }

    /// Records calls again of an entry that launched nothing before and does now.
    pub(super) fn look_again(&mut self, entry: usize) {
        self.seen.retain(|key, mark| key.entry != entry || !matches!(mark, Mark::Fruitless));
    }

    fn kept(&mut self, key: CallKey) -> Option<&mut TrackedCall> {
        if let Some(Mark::Kept(seen)) = self.seen.get_mut(&key) { Some(seen) } else { None }
    }

    fn next_file(&mut self, entry: &str) -> PathBuf {
        self.files += 1;
        self.config.output.join(format!(
            "{}-{}-{}.json",
            entry.replace(['<', '>', '/'], ""),
            std::process::id(),
            self.files
        ))
    }

    /// Keeps a workspace kernel's launch that has raised, once.
    pub(super) fn note_failed(&mut self, failed: FailedLaunch) {
        if self.failed.len() >= FAILED || self.failed.contains(&failed) || !self.is_own(&failed.file) {
            return;
        }
        let path = self.next_file(&failed.launch.kernel).with_extension(FailedLaunch::EXTENSION);
        // Without this file there is less to learn from, and nothing else changes.
        let _ = serde_json::to_vec(&failed).map(|text| fs::write(path, text));
        self.failed.push(failed);
    }

    /// Whether the gradients of a call are to be recorded; counts them otherwise.
    pub(super) fn wants_gradient(&mut self, key: CallKey, call: u64) -> bool {
        let Some(seen) = self.kept(key) else { return false };
        match &mut seen.gradient {
            Some((of, _)) if *of == call => true,
            None => true,
            Some((_, gradient)) => {
                if seen.late.insert(call) && seen.plain.workload.count > 0 {
                    seen.plain.workload.count -= 1;
                    gradient.workload.count += 1;
                }
                false
            }
        }
    }

    /// Records that gradients were computed for a call, with these launches.
    pub(super) fn gradient(&mut self, key: CallKey, call: u64, launches: &[LaunchRecord]) {
        let Some(seen) = self.kept(key) else { return };
        if seen.gradient.is_none() {
            let workload = Workload { gradients: true, count: 1, ..seen.plain.workload.clone() };
            seen.plain.workload.count = seen.plain.workload.count.saturating_sub(1);
            seen.plain.save();
            let path = self.next_file(&workload.entry);
            if let Some(seen) = self.kept(key) {
                seen.gradient = Some((call, RecordedCall { path, workload }));
            }
        }
        if let Some(TrackedCall { gradient: Some((_, kept)), .. }) = self.kept(key) {
            kept.workload.launches.extend_from_slice(launches);
            kept.save();
        }
    }

    pub(super) fn save_counts(&self) {
        for mark in self.seen.values() {
            let Mark::Kept(seen) = mark else { continue };
            seen.plain.save();
            if let Some((_, gradient)) = &seen.gradient {
                gradient.save();
            }
        }
    }
}
