//! A cache of verdicts of the judge, by a hash of everything that they depend on.

use rusqlite::{OptionalExtension, params};

use base::clock::now_milliseconds;

use super::{Store, StoreError};

/// The greatest number of verdicts that are kept; the oldest are deleted first.
const MOST: i64 = 20_000;

impl Store {
    /// The cached verdict of a key, as JSON.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn evaluation(&self, key: &[u8]) -> Result<Option<String>, StoreError> {
        let query = || {
            let mut statement = self.connection.prepare_cached("SELECT verdict FROM evaluations WHERE key = ?1")?;
            statement.query_row([key], |row| row.get(0)).optional()
        };
        query().map_err(|error| self.error(error))
    }

    /// Caches a verdict, as JSON. `key` must depend on everything that the verdict depends on.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn keep_evaluation(&mut self, key: &[u8], verdict: &str) -> Result<(), StoreError> {
        self.keep_evaluation_of(key, verdict, MOST)
    }

    fn keep_evaluation_of(&mut self, key: &[u8], verdict: &str, most: i64) -> Result<(), StoreError> {
        self.transaction(|transaction| {
            transaction
                .prepare_cached("INSERT OR REPLACE INTO evaluations (key, verdict, stored) VALUES (?1, ?2, ?3)")?
                .execute(params![key, verdict, now_milliseconds()])?;
            let count: i64 = transaction.query_row("SELECT count(*) FROM evaluations", [], |row| row.get(0))?;
            if count > most {
                // This deletes a tenth at a time, so that not every insertion has to sort the table.
                transaction.execute(
                    "DELETE FROM evaluations WHERE key IN (SELECT key FROM evaluations ORDER BY stored LIMIT ?1)",
                    [(most / 10).max(count - most)],
                )?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_kept_replaced_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("store.db")).unwrap();
        assert_eq!(store.evaluation(b"a").unwrap(), None);
        store.keep_evaluation(b"a", "1").unwrap();
        store.keep_evaluation(b"a", "2").unwrap();
        assert_eq!(store.evaluation(b"a").unwrap().as_deref(), Some("2"));
        for key in 0..30_u8 {
            store.connection.execute("UPDATE evaluations SET stored = stored - 1000", []).unwrap();
            store.keep_evaluation_of(&[key], "x", 20).unwrap();
        }
        assert_eq!(store.evaluation(b"a").unwrap(), None, "the oldest go first");
        assert!(store.evaluation(&[29]).unwrap().is_some());
    }
}
