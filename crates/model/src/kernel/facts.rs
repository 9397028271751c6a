//! What analyses found out about a kernel, kept through the edits that do not concern it.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::shift::Shift;

/// Something found out about a kernel.
///
/// Its spans lie in the kernel, with which they move. What stands elsewhere (a launch, a helper, a global) is named
/// rather than given a place: it moves by itself.
pub trait Fact: Any + Shift + Send + Sync {}

impl<T: Any + Shift + Send + Sync> Fact for T {}

/// What is known about one kernel: one entry for each type of fact and each key.
///
/// An entry stays as long as nothing changes that may matter to it: the kernel, the kernels that it names and that name
/// it (and so on), the host code that names one of those, what the names in all these are bound to (with the statements
/// of the top level that bind them, and the names in those), and what the file imports.
#[derive(Default)]
pub struct Facts {
    /// What the entries depend on, as a number.
    surroundings: Option<u64>,
    entries: Mutex<Vec<Entry>>,
}

struct Entry {
    fact: TypeId,
    key: u64,
    value: Arc<dyn Any + Send + Sync>,
    shift: fn(&mut Arc<dyn Any + Send + Sync>, isize) -> bool,
}

impl Facts {
    /// The fact of this type and `key` (a Triton version, for example); `find` finds it when it is not known.
    pub fn get<T: Fact>(&self, key: u64, find: impl FnOnce() -> T) -> Arc<T> {
        self.get_while(key, |_| true, find)
    }

    /// The same, where what is known also `holds`; else it is found anew.
    pub fn get_while<T: Fact>(&self, key: u64, holds: impl FnOnce(&T) -> bool, find: impl FnOnce() -> T) -> Arc<T> {
        let known = |entry: &Entry| entry.fact == TypeId::of::<T>() && entry.key == key;
        let entries = || self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let value = entries().iter().find(|entry| known(entry)).map(|entry| Arc::clone(&entry.value));
        if let Some(value) = value.and_then(|value| value.downcast().ok()).filter(|value| holds(value)) {
            return value;
        }
        // Not under the lock: finding it may ask for other facts of the same kernel.
        let value = Arc::new(find());
        let mut entries = entries();
        entries.retain(|entry| !known(entry));
        entries.push(Entry { fact: TypeId::of::<T>(), key, value: Arc::<T>::clone(&value), shift: shift::<T> });
        value
    }

    /// The fact of this type and `key`, if it is known.
    pub fn peek<T: Fact>(&self, key: u64) -> Option<Arc<T>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let known = entries.iter().find(|entry| entry.fact == TypeId::of::<T>() && entry.key == key)?;
        Arc::clone(&known.value).downcast().ok()
    }

    /// Takes in a fact that was found elsewhere, in place of what was known.
    pub fn put<T: Fact>(&self, key: u64, value: T) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.fact != TypeId::of::<T>() || entry.key != key);
        entries.push(Entry { fact: TypeId::of::<T>(), key, value: Arc::new(value), shift: shift::<T> });
    }

    /// Forgets the fact of this type and `key`. Returns whether it was known.
    pub fn forget<T: Fact>(&self, key: u64) -> bool {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let before = entries.len();
        entries.retain(|entry| entry.fact != TypeId::of::<T>() || entry.key != key);
        entries.len() < before
    }

    /// Forgets everything when it was found in other surroundings.
    pub(super) fn keep_in(&mut self, surroundings: u64) {
        if self.surroundings.replace(surroundings).is_some_and(|before| before != surroundings) {
            self.entries.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

/// Moves a fact. Returns whether that could be done: not when somebody else still holds it.
fn shift<T: Fact>(value: &mut Arc<dyn Any + Send + Sync>, by: isize) -> bool {
    let value = Arc::get_mut(value).and_then(|value| value.downcast_mut::<T>());
    value.map(|value| value.shift(by)).is_some()
}

impl Shift for Facts {
    fn shift(&mut self, by: isize) {
        let entries = self.entries.get_mut().unwrap_or_else(PoisonError::into_inner);
        entries.retain_mut(|entry| (entry.shift)(&mut entry.value, by));
    }
}

/// A copy knows nothing yet.
impl Clone for Facts {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Kernels are compared by what they say, not by what is known about them.
impl PartialEq for Facts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts").finish_non_exhaustive()
    }
}
