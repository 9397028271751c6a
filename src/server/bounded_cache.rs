//! A cache that is emptied when it is full. What it holds can be computed again.

use std::collections::HashMap;
use std::hash::Hash;

/// A cache of at most `MOST` values.
pub(crate) struct BoundedCache<K, V, const MOST: usize>(HashMap<K, V>);

impl<K: Eq + Hash, V: Clone, const MOST: usize> BoundedCache<K, V, MOST> {
    /// The value that was cached under `key`.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.0.get(key).cloned()
    }

    /// Caches a value.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(key, value);
    }

    /// Drops the values whose keys are not wanted.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&K) -> bool) {
        self.0.retain(|key, _| is_wanted(key));
    }

    /// Drops all values.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl<K, V, const MOST: usize> Default for BoundedCache<K, V, MOST> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_begins_anew() {
        let mut cache = BoundedCache::<_, _, 2>::default();
        cache.insert(1, "a");
        cache.insert(2, "b");
        assert_eq!([cache.get(&1), cache.get(&2)], [Some("a"), Some("b")]);
        cache.insert(3, "c");
        assert_eq!([cache.get(&1), cache.get(&3)], [None, Some("c")]);
        cache.retain(|key| *key != 3);
        assert_eq!(cache.get(&3), None);
    }
}
