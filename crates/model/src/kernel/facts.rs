//! Cached results of analyses of a kernel or a host function, which survive edits that do not affect them.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::span_shift::ShiftSpans;

/// A result of an analysis of one kernel or host function.
///
/// Its spans lie in the function and move with it. It refers to other items (a launch, a helper, a global) by name rather
/// than by span, because those move independently.
pub trait Fact: Any + ShiftSpans + Send + Sync {}

impl<T: Any + ShiftSpans + Send + Sync> Fact for T {}

/// The cache of one function: one entry for each type of fact and each key.
///
/// An entry of a kernel is valid as long as nothing changes that may affect it: the kernel; the kernels that it names and that name
/// it, transitively; the host code that names one of those; the bindings of the names in all of these (with the
/// top-level statements that bind them, and the names in those); and the imports of the file. An entry of a host
/// function is valid as long as nothing of this changes: the function, the kernels that it names and what these use,
/// the bindings of the names in all of these, and the imports of the file.
#[derive(Default)]
pub struct FactCache {
    /// Hash of everything that the entries depend on.
    surroundings: Option<u64>,
    entries: Mutex<Vec<Entry>>,
}

struct Entry {
    fact: TypeId,
    key: u64,
    value: Arc<dyn Any + Send + Sync>,
    shift: fn(&mut Arc<dyn Any + Send + Sync>, isize) -> bool,
}

impl FactCache {
    /// The fact of this type and `key` (for example a Triton version); computed by `find` when it is not cached.
    pub fn get<T: Fact>(&self, key: u64, find: impl FnOnce() -> T) -> Arc<T> {
        self.get_while(key, |_| true, find)
    }

    /// The same as [`Self::get`], but a cached fact is used only if `holds` returns true for it; otherwise it is
    /// computed anew.
    pub fn get_while<T: Fact>(&self, key: u64, holds: impl FnOnce(&T) -> bool, find: impl FnOnce() -> T) -> Arc<T> {
        let known = |entry: &Entry| entry.fact == TypeId::of::<T>() && entry.key == key;
        let entries = || self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let value = entries().iter().find(|entry| known(entry)).map(|entry| Arc::clone(&entry.value));
        if let Some(value) = value.and_then(|value| value.downcast().ok()).filter(|value| holds(value)) {
            return value;
        }
        // Computed without the lock, because `find` may ask for other facts of the same kernel.
        let value = Arc::new(find());
        let mut entries = entries();
        entries.retain(|entry| !known(entry));
        entries.push(Entry { fact: TypeId::of::<T>(), key, value: Arc::<T>::clone(&value), shift: shift::<T> });
        value
    }

    /// The fact of this type and `key`, if it is cached.
    pub fn peek<T: Fact>(&self, key: u64) -> Option<Arc<T>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let known = entries.iter().find(|entry| entry.fact == TypeId::of::<T>() && entry.key == key)?;
        Arc::clone(&known.value).downcast().ok()
    }

    /// Stores a fact that was computed elsewhere; replaces a cached one.
    pub fn put<T: Fact>(&self, key: u64, value: T) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.fact != TypeId::of::<T>() || entry.key != key);
        entries.push(Entry { fact: TypeId::of::<T>(), key, value: Arc::new(value), shift: shift::<T> });
    }

    /// Drops the fact of this type and `key`. Returns whether it was cached.
    pub fn forget<T: Fact>(&self, key: u64) -> bool {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let before = entries.len();
        entries.retain(|entry| entry.fact != TypeId::of::<T>() || entry.key != key);
        entries.len() < before
    }

    /// Drops all entries when they were computed under another hash of the surroundings.
    pub(super) fn keep_in(&mut self, surroundings: u64) {
        if self.surroundings.replace(surroundings).is_some_and(|before| before != surroundings) {
            self.entries.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

/// Moves the spans of a fact by `by` bytes. Returns false when that is impossible, because the fact is still shared.
fn shift<T: Fact>(value: &mut Arc<dyn Any + Send + Sync>, by: isize) -> bool {
    let value = Arc::get_mut(value).and_then(|value| value.downcast_mut::<T>());
    value.map(|value| value.shift(by)).is_some()
}

impl ShiftSpans for FactCache {
    fn shift(&mut self, by: isize) {
        let entries = self.entries.get_mut().unwrap_or_else(PoisonError::into_inner);
        entries.retain_mut(|entry| (entry.shift)(&mut entry.value, by));
    }
}

/// A copy starts with an empty cache.
impl Clone for FactCache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Kernels are compared by their content, so their caches count as equal.
impl PartialEq for FactCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for FactCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts").finish_non_exhaustive()
    }
}
