//! The calls that were seen, and the files in which they are written down at once: a program that is killed keeps what was
//! recorded until then.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::protocol::{EntryPoint, Environment, LaunchRecord, RecordConfig, Source, Value, Workload};

/// Calls that launch nothing are looked at so often; then the entry is one that launches nothing.
const FRUITLESS: usize = 32;
/// Calls that differ in numbers and strings alone; more count as the last of them.
const ALIKE: usize = 4;

/// Which call: the entry and a mark of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) entry: usize,
    pub(super) shapes: u64,
}

/// What is known of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Known {
    /// It is to be recorded.
    New,
    /// It is counted.
    Seen {
        /// Its number, when its gradients are still to be seen.
        tag: Option<(Key, u64)>,
        /// Whether it can be run again.
        covers: bool,
    },
    /// It launched nothing so far. If it does now, calls like it are to be recorded again.
    Fruitless,
}

/// What was seen of a new call.
pub(super) struct Call {
    pub(super) args: Vec<Value>,
    pub(super) kwargs: Vec<(String, Value)>,
    pub(super) mutated: Vec<usize>,
    pub(super) launches: Vec<LaunchRecord>,
    pub(super) blocked: Option<String>,
}

struct Kept {
    path: PathBuf,
    workload: Workload,
}

/// A call without and with gradients.
struct Seen {
    plain: Kept,
    gradient: Option<(u64, Kept)>,
    /// Calls whose gradients came after they were counted without.
    late: HashSet<u64>,
    covers: bool,
}

/// Everything that was seen.
pub(super) struct Book {
    config: RecordConfig,
    numbers: HashMap<(PathBuf, String), usize>,
    seen: HashMap<Key, Option<Seen>>,
    /// By the shapes alone: the calls that were kept.
    alike: HashMap<(usize, u64), Vec<Key>>,
    environment: Environment,
    calls: u64,
    files: usize,
}

impl Book {
    pub(super) fn new(config: RecordConfig, environment: Environment) -> Self {
        Self {
            config,
            numbers: HashMap::new(),
            seen: HashMap::new(),
            alike: HashMap::new(),
            environment,
            calls: 0,
            files: 0,
        }
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.config.workspace
    }

    /// Whether a file is the user's own.
    pub(super) fn is_own(&self, file: &Path) -> bool {
        file.strip_prefix(&self.config.workspace).is_ok_and(|inside| {
            inside.components().all(|part| {
                let part = part.as_os_str().to_string_lossy();
                part != "site-packages" && !part.starts_with('.')
            })
        })
    }

    /// The number of an entry that the configuration does not list.
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

    /// Whether a call needs recording; counts it otherwise.
    pub(super) fn know(&mut self, key: Key, shapes: u64, wants_gradient: bool) -> Known {
        let nothing = Known::Seen { tag: None, covers: true };
        let key = if self.seen.contains_key(&key) {
            key
        } else {
            let of_entry = self.seen.iter().filter(|(seen, _)| seen.entry == key.entry);
            let (kept, fruitless) =
                of_entry.fold(
                    (0, 0),
                    |(kept, fruitless), (_, seen)| {
                        if seen.is_some() { (kept + 1, fruitless) } else { (kept, fruitless + 1) }
                    },
                );
            let alike = self.alike.get(&(key.entry, shapes)).map_or(&[][..], Vec::as_slice);
            let is_full = kept >= self.config.distinct;
            match alike.last() {
                Some(&last) if is_full || alike.len() >= ALIKE => last,
                _ if is_full => return nothing,
                _ if kept == 0 && fruitless >= FRUITLESS => return Known::Fruitless,
                _ => return Known::New,
            }
        };
        let number = self.next_call();
        let Some(Some(seen)) = self.seen.get_mut(&key) else { return Known::Fruitless };
        let tag = (wants_gradient && seen.gradient.is_none()).then_some((key, number));
        let counted = match &mut seen.gradient {
            Some((_, gradient)) if wants_gradient => gradient,
            _ => &mut seen.plain,
        };
        counted.workload.count += 1;
        // The last counts are written at the end; these are for a program that is killed.
        if counted.workload.count.is_power_of_two() {
            counted.save();
        }
        Known::Seen { tag, covers: seen.covers }
    }

    /// Keeps a new call, unless it launched nothing.
    pub(super) fn keep(&mut self, key: Key, shapes: u64, source: Source, call: Call) {
        if call.launches.is_empty() {
            self.seen.entry(key).or_insert(None);
            return;
        }
        let point = self.config.entries[key.entry].clone();
        let workload = Workload {
            source,
            file: point.file,
            entry: point.qualname,
            args: call.args,
            kwargs: call.kwargs,
            mutated: call.mutated,
            launches: call.launches,
            count: 1,
            environment: self.environment.clone(),
            blocked: call.blocked,
            ..Workload::default()
        };
        let covers = workload.obstacle().is_none();
        let plain = Kept { path: self.next_file(&workload.entry), workload };
        plain.save();
        self.seen.insert(key, Some(Seen { plain, gradient: None, late: HashSet::new(), covers }));
        self.alike.entry((key.entry, shapes)).or_default().push(key);
    }

    /// An entry that launched nothing does: its calls are looked at again.
    pub(super) fn look_again(&mut self, entry: usize) {
        self.seen.retain(|key, seen| key.entry != entry || seen.is_some());
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

    /// Whether the gradients of a call are to be noted; counts them otherwise.
    pub(super) fn wants_gradient(&mut self, key: Key, call: u64) -> bool {
        let Some(Some(seen)) = self.seen.get_mut(&key) else { return false };
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

    /// Gradients went through a call, with these launches.
    pub(super) fn gradient(&mut self, key: Key, call: u64, launches: &[LaunchRecord]) {
        let Some(Some(seen)) = self.seen.get(&key) else { return };
        if seen.gradient.is_none() {
            let workload = Workload { gradients: true, count: 1, ..seen.plain.workload.clone() };
            let path = self.next_file(&workload.entry);
            if let Some(Some(seen)) = self.seen.get_mut(&key) {
                seen.plain.workload.count = seen.plain.workload.count.saturating_sub(1);
                seen.plain.save();
                seen.gradient = Some((call, Kept { path, workload }));
            }
        }
        if let Some(Some(Seen { gradient: Some((_, kept)), .. })) = self.seen.get_mut(&key) {
            kept.workload.launches.extend_from_slice(launches);
            kept.save();
        }
    }

    pub(super) fn save_counts(&self) {
        for seen in self.seen.values().flatten() {
            seen.plain.save();
            if let Some((_, gradient)) = &seen.gradient {
                gradient.save();
            }
        }
    }
}

impl Kept {
    /// A call that turned out to be another one is no file.
    fn save(&self) {
        let write = || -> std::io::Result<()> {
            if self.workload.count == 0 {
                return fs::remove_file(&self.path);
            }
            let partial = self.path.with_extension("partial");
            fs::write(&partial, serde_json::to_vec(&self.workload)?)?;
            fs::rename(partial, &self.path)
        };
        // A full disk must not disturb the user's program.
        let _ = write();
    }
}
