//! False alarms: errors of rules in kernels that Triton compiles, kept on this machine so that users can report them.

use std::fs;
use std::path::Path;

use rusqlite::{Transaction, params};
use serde::{Deserialize, Serialize};

use base::clock;

use super::{Store, StoreError};

/// The greatest total length of the kernels, in characters; the oldest false alarms are deleted first.
const LIMIT: i64 = 1 << 20;
/// The number of bytes of a kernel that are kept.
const LONGEST: usize = 1 << 16;

/// An error of a rule in a kernel that Triton compiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FalseAlarm {
    /// The code of the rule.
    pub rule: String,
    /// The message of the rule.
    pub message: String,
    /// The text of the kernel alone, cut off at 64 KiB.
    pub kernel: String,
    /// The version of Triton that compiles it.
    pub triton: String,
    /// The version of Warpsmith that has the rule.
    pub warpsmith: String,
    /// The day (UTC), as `2026-11-21`.
    pub date: String,
}

impl FalseAlarm {
    /// A false alarm of today and of this version of Warpsmith.
    #[must_use]
    pub fn new(rule: &str, message: &str, kernel: &str, triton: &str) -> Self {
        Self {
            rule: rule.to_owned(),
            message: message.to_owned(),
            kernel: kernel[..kernel.floor_char_boundary(LONGEST)].to_owned(),
            triton: triton.to_owned(),
            warpsmith: env!("CARGO_PKG_VERSION").to_owned(),
            date: clock::day(clock::now().as_secs()),
        }
    }
}

impl Store {
    /// Stores a false alarm, unless one of the same rule and kernel is stored. Returns whether it was added.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn keep_false_alarm(&mut self, alarm: &FalseAlarm) -> Result<bool, StoreError> {
        self.transaction(|transaction| {
            let is_new = insert(transaction, alarm)?;
            transaction.execute(
                "DELETE FROM false_alarms WHERE id IN (
                    SELECT id FROM (SELECT id, sum(length(kernel)) OVER (ORDER BY id DESC) AS size FROM false_alarms)
                    WHERE size > ?1)",
                [LIMIT],
            )?;
            Ok(is_new)
        })
    }

    /// All stored false alarms, oldest first.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn false_alarms(&self) -> Result<Vec<FalseAlarm>, StoreError> {
        let query = || {
            let columns = "SELECT rule, message, kernel, triton, warpsmith, date FROM false_alarms ORDER BY id";
            let mut statement = self.connection.prepare(columns)?;
            let rows = statement.query_map([], |row| {
                Ok(FalseAlarm {
                    rule: row.get(0)?,
                    message: row.get(1)?,
                    kernel: row.get(2)?,
                    triton: row.get(3)?,
                    warpsmith: row.get(4)?,
                    date: row.get(5)?,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        query().map_err(|error| self.error(error))
    }

    /// Imports the file of JSON lines in which an earlier release kept false alarms, and removes it.
    ///
    /// # Errors
    /// Returns an error when SQLite fails; the file is then left in place.
    pub(crate) fn import_false_alarms(&mut self, file: &Path) -> Result<(), StoreError> {
        let Ok(bytes) = fs::read(file) else { return Ok(()) };
        let text = String::from_utf8_lossy(&bytes);
        let alarms: Vec<FalseAlarm> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        self.transaction(|transaction| alarms.iter().try_for_each(|alarm| insert(transaction, alarm).map(drop)))?;
        let _ = fs::remove_file(file);
        Ok(())
    }
}

fn insert(transaction: &Transaction<'_>, alarm: &FalseAlarm) -> rusqlite::Result<bool> {
    let FalseAlarm { rule, message, kernel, triton, warpsmith, date } = alarm;
    let added = transaction.execute(
        "INSERT OR IGNORE INTO false_alarms (rule, message, kernel, triton, warpsmith, date)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![rule, message, kernel, triton, warpsmith, date],
    )?;
    Ok(added == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("new/store.db")).unwrap();
        (folder, store)
    }

    #[test]
    fn each_kernel_counts_once_for_a_rule() {
        let (_folder, mut store) = store();
        assert_eq!(store.false_alarms().unwrap(), []);
        let alarm = |rule, kernel| FalseAlarm::new(rule, "no\nway", kernel, "3.6.0");
        assert!(store.keep_false_alarm(&alarm("L002", "def k(): pass")).unwrap());
        assert!(!store.keep_false_alarm(&alarm("L002", "def k(): pass")).unwrap());
        assert!(store.keep_false_alarm(&alarm("L003", "def k(): pass")).unwrap());
        assert!(store.keep_false_alarm(&alarm("L002", "def k(): return")).unwrap());
        let stored = store.false_alarms().unwrap();
        assert_eq!(stored.len(), 3);
        assert_eq!(stored[0], alarm("L002", "def k(): pass"));
        assert_eq!((stored[0].triton.as_str(), stored[0].warpsmith.as_str()), ("3.6.0", env!("CARGO_PKG_VERSION")));
    }

    #[test]
    fn false_alarms_are_limited_in_size_and_the_newest_are_kept() {
        let (_folder, mut store) = store();
        let alarm =
            |number: usize| FalseAlarm::new("L002", "no", &format!("{number:2}{}", "x".repeat(80_000)), "3.6.0");
        for number in 0..20 {
            assert!(store.keep_false_alarm(&alarm(number)).unwrap());
        }
        let stored = store.false_alarms().unwrap();
        assert_eq!(stored.len(), 16);
        assert_eq!(stored.last(), Some(&alarm(19)));
        assert!(stored.iter().all(|alarm| alarm.kernel.len() <= LONGEST));
    }

    #[test]
    fn false_alarms_of_an_earlier_release_are_imported_once() {
        let (folder, mut store) = store();
        let file = folder.path().join("false-alarms.jsonl");
        let alarm = FalseAlarm::new("L002", "no", "def k(): pass", "3.6.0");
        let line = serde_json::to_string(&alarm).unwrap();
        fs::write(&file, [line.as_bytes(), b"\n{\"rule\": \xff\n", line.as_bytes()].concat()).unwrap();
        store.import_false_alarms(&file).unwrap();
        assert_eq!(store.false_alarms().unwrap(), [alarm]);
        assert!(!file.exists());
        store.import_false_alarms(&file).unwrap();
    }
}
