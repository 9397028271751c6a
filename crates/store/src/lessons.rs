//! The statistics of proposals over all searches of a user: how often each kind made which kernels faster on a device.

use rusqlite::params;

use base::clock::now_milliseconds;

use super::{Store, StoreError};

/// The results of proposals of one kind on kernels of one class.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Lesson {
    /// The name of the device.
    pub device: String,
    /// The class of the kernels, such as `reduction`.
    pub class: String,
    /// What bounds the time of the kernels: `memory` or `launch`; `compute` or `latency` if profiling counters tell
    /// them apart, else `work`.
    pub bound: String,
    /// The kind of proposal, such as `num_warps up`.
    pub kind: String,
    /// How often such a proposal was tried.
    pub count: u32,
    /// How often its candidate was rejected.
    pub refused: u32,
    /// The sum of the natural logarithms of the speedups over the starting points; a rejection counts as a loss.
    pub gain: f64,
    /// The greatest speedup of a single proposal, as a factor.
    pub best: f64,
}

impl Store {
    /// The lessons of a device, or of all devices. Within a device, class and bound, the most frequent kind comes
    /// first.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn lessons(&self, device: Option<&str>) -> Result<Vec<Lesson>, StoreError> {
        let query = || -> rusqlite::Result<Vec<Lesson>> {
            let mut statement = self.connection.prepare_cached(
                "SELECT device, class, bound, kind, count, refused, gain, best FROM lessons
                 WHERE ?1 IS NULL OR device = ?1 ORDER BY device, class, bound, count DESC, kind",
            )?;
            let rows = statement.query_map([device], |row| {
                Ok(Lesson {
                    device: row.get(0)?,
                    class: row.get(1)?,
                    bound: row.get(2)?,
                    kind: row.get(3)?,
                    count: row.get(4)?,
                    refused: row.get(5)?,
                    gain: row.get(6)?,
                    best: row.get(7)?,
                })
            })?;
            rows.collect()
        };
        query().map_err(|error| self.error(error))
    }

    /// Adds the counts and gains of `seen` to the lesson of its device, class, bound and kind.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn learn(&mut self, seen: &Lesson) -> Result<(), StoreError> {
        let Lesson { device, class, bound, kind, count, refused, gain, best } = seen;
        self.transaction(|transaction| {
            transaction
                .prepare_cached(
                    "INSERT INTO lessons (device, class, bound, kind, count, refused, gain, best, learned)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                     ON CONFLICT DO UPDATE SET count = count + excluded.count, refused = refused + excluded.refused,
                     gain = gain + excluded.gain, best = max(best, excluded.best), learned = excluded.learned",
                )?
                .execute(params![device, class, bound, kind, count, refused, gain, best, now_milliseconds()])?;
            Ok(())
        })
    }

    /// Deletes all lessons. Returns how many there were.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn forget_lessons(&mut self) -> Result<usize, StoreError> {
        self.transaction(|transaction| transaction.execute("DELETE FROM lessons", []))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_lessons_are_summed() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("store.db")).unwrap();
        let seen = |device: &str, kind: &str, refused, gain: f64| Lesson {
            device: device.to_owned(),
            class: "reduction".to_owned(),
            bound: "memory".to_owned(),
            kind: kind.to_owned(),
            count: 1,
            refused,
            gain,
            best: gain.exp(),
        };
        for one in [seen("a", "looped", 0, 0.5), seen("a", "looped", 1, -1.0), seen("b", "exp2", 0, 0.1)] {
            store.learn(&one).unwrap();
        }
        let expected = Lesson { count: 2, refused: 1, gain: -0.5, ..seen("a", "looped", 0, 0.5) };
        assert_eq!(store.lessons(Some("a")).unwrap(), [expected]);
        assert_eq!(store.lessons(None).unwrap().len(), 2);
        assert_eq!(store.forget_lessons().unwrap(), 2);
        assert!(store.lessons(None).unwrap().is_empty());
    }
}
