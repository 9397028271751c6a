//! Kernels that Triton rejected, from which rules are learned, and kernels that it compiled, which no rule may flag.

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};

use base::clock::now_milliseconds;
use model::api::TritonError;

use super::compressed_texts::{self, LONGEST};
use super::{Store, StoreError};

/// The greatest number of failures that are kept, plus up to [`SLACK`]; the oldest are deleted first.
const FAILURES: u32 = 200_000;
/// The greatest number of compiling kernels that are kept, plus up to [`SLACK`].
const ACCEPTED: u32 = 20_000;
/// How many rows more than the limit a table may have before rows are deleted, so that most insertions delete none.
const SLACK: u32 = 1_000;
/// The number of bytes of an error message that are kept.
const MESSAGE: usize = 2_000;

/// The query whose columns [`read`] reads.
const SELECT: &str =
    "SELECT failures.id, exception, message, kernel, one.body, other.body, start, stop, triton, source, met, first, last
     FROM failures JOIN texts AS one ON one.id = text LEFT JOIN texts AS other ON other.id = relative";

/// A kernel that Triton rejected, with its error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedKernel {
    /// The text of a file that can be compiled again: the kernel, what it needs, and a comment with its signature.
    pub text: String,
    /// The name of the kernel's function.
    pub kernel: String,
    /// The most similar file that Triton compiles, if one is known.
    pub nearest_passing: Option<String>,
    /// Triton's error.
    pub error: TritonError,
    /// Where the error is in [`Self::text`]: first byte and end, in bytes.
    pub place: Option<(usize, usize)>,
    /// The version of Triton.
    pub triton: String,
    /// Where the failure occurred, in one word, such as `editor`.
    pub source: String,
}

/// A stored failure with how often and when it occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFailure {
    /// The row's id.
    pub id: i64,
    /// The failure.
    pub failure: RefusedKernel,
    /// How often it occurred.
    pub met: u64,
    /// When it occurred first, in milliseconds since 1970.
    pub first: i64,
    /// When it occurred last, in milliseconds since 1970.
    pub last: i64,
}

/// A kernel that Triton compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The text of a file that can be compiled again.
    pub text: String,
    /// The name of the kernel's function.
    pub kernel: String,
    /// The version of Triton.
    pub triton: String,
}

impl Store {
    /// Stores failures. A known failure is counted once more, and gets a relative if it had none. Failures whose text
    /// is longer than the limit are left out. Returns how many are new.
    ///
    /// # Errors
    /// Returns an error when SQLite fails; the transaction is then rolled back.
    pub fn keep_failures<'f>(
        &mut self,
        failures: impl IntoIterator<Item = &'f RefusedKernel>,
    ) -> Result<usize, StoreError> {
        self.transaction(|transaction| {
            let mut added = 0;
            for failure in failures.into_iter().filter(|failure| failure.text.len() <= LONGEST) {
                added += usize::from(insert(transaction, failure)?);
            }
            let count: u32 = transaction.query_row("SELECT count(*) FROM failures", [], |row| row.get(0))?;
            if count > FAILURES + SLACK {
                transaction.execute(
                    "DELETE FROM failures WHERE id IN (SELECT id FROM failures ORDER BY last, id LIMIT ?1)",
                    [count - FAILURES],
                )?;
                compressed_texts::sweep(transaction)?;
            }
            Ok(added)
        })
    }

    /// Calls `visit` on each failure, oldest first, without holding all of them in memory.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn each_failure(&self, visit: &mut dyn FnMut(StoredFailure)) -> Result<(), StoreError> {
        let mut query = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(&format!("{SELECT} ORDER BY failures.id"))?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                read(row)?.into_iter().for_each(&mut *visit);
            }
            Ok(())
        };
        query().map_err(|error| self.error(error))
    }

    /// The newest `most` failures with this signature on a version of Triton, newest first.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn newest_failures(
        &self,
        signature: &str,
        triton: &str,
        most: usize,
    ) -> Result<Vec<RefusedKernel>, StoreError> {
        let query = || -> rusqlite::Result<Vec<RefusedKernel>> {
            let mut statement = self
                .connection
                .prepare_cached(&format!("{SELECT} WHERE signature = ?1 AND triton = ?2 ORDER BY failures.id DESC"))?;
            let mut rows = statement.query([signature, triton])?;
            let mut found = Vec::new();
            while found.len() < most
                && let Some(row) = rows.next()?
            {
                found.extend(read(row)?.map(|stored| stored.failure));
            }
            Ok(found)
        };
        query().map_err(|error| self.error(error))
    }

    /// The signatures of all failures with the number of failures of each, the most frequent first.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn failure_signatures(&self) -> Result<Vec<(String, u64)>, StoreError> {
        let query = || {
            let columns =
                "SELECT signature, count(*) AS many FROM failures GROUP BY signature ORDER BY many DESC, signature";
            let mut statement = self.connection.prepare(columns)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        query().map_err(|error| self.error(error))
    }

    /// For each signature on a version of Triton, the number of failures when rules were last learned from them.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn learned_counts(&self, triton: &str) -> Result<HashMap<String, u64>, StoreError> {
        let query = || {
            let columns = "SELECT signature, failures FROM looked_at WHERE triton = ?1";
            let mut statement = self.connection.prepare(columns)?;
            let rows = statement.query_map([triton], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<HashMap<String, u64>>>()
        };
        query().map_err(|error| self.error(error))
    }

    /// Records that rules were learned from these signatures, with the number of failures that each had then.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn set_learned_counts(&mut self, triton: &str, signatures: &[(String, u64)]) -> Result<(), StoreError> {
        self.transaction(|transaction| {
            let keep = "INSERT OR REPLACE INTO looked_at (triton, signature, failures) VALUES (?1, ?2, ?3)";
            let mut statement = transaction.prepare(keep)?;
            for (signature, failures) in signatures {
                statement.execute(params![triton, signature, failures])?;
            }
            Ok(())
        })
    }

    /// Deletes all kernels, rejected and compiled. Returns how many there were.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn forget_failures(&mut self) -> Result<usize, StoreError> {
        let count = self.transaction(|transaction| {
            let count =
                transaction.execute("DELETE FROM failures", [])? + transaction.execute("DELETE FROM accepted", [])?;
            transaction.execute("DELETE FROM looked_at", [])?;
            compressed_texts::sweep(transaction)?;
            Ok(count)
        })?;
        self.connection.execute_batch("PRAGMA incremental_vacuum").map_err(|error| self.error(error))?;
        Ok(count)
    }

    /// Stores kernels that Triton compiled; the ones seen least recently are deleted when there are too many.
    ///
    /// # Errors
    /// Returns an error when SQLite fails; the transaction is then rolled back.
    pub fn keep_accepted<'a>(&mut self, kernels: impl IntoIterator<Item = &'a Accepted>) -> Result<(), StoreError> {
        self.transaction(|transaction| {
            for kernel in kernels.into_iter().filter(|kernel| kernel.text.len() <= LONGEST) {
                let text = compressed_texts::keep(transaction, &kernel.text)?;
                transaction
                    .prepare_cached(
                        "INSERT INTO accepted (text, kernel, triton, seen) VALUES (?1, ?2, ?3, ?4)
                         ON CONFLICT DO UPDATE SET seen = excluded.seen",
                    )?
                    .execute(params![text, kernel.kernel, kernel.triton, now_milliseconds()])?;
            }
            let count: u32 = transaction.query_row("SELECT count(*) FROM accepted", [], |row| row.get(0))?;
            if count > ACCEPTED + SLACK {
                transaction.execute(
                    "DELETE FROM accepted WHERE rowid IN (SELECT rowid FROM accepted ORDER BY seen LIMIT ?1)",
                    [count - ACCEPTED],
                )?;
                compressed_texts::sweep(transaction)?;
            }
            Ok(())
        })
    }

    /// Calls `visit` on each kernel that is known to compile, the most recently seen first.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn each_accepted(&self, visit: &mut dyn FnMut(Accepted)) -> Result<(), StoreError> {
        let mut query = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(
                "SELECT body, kernel, triton FROM accepted JOIN texts ON texts.id = text ORDER BY seen DESC, texts.id",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                if let Some(text) = compressed_texts::read(&row.get::<_, Vec<u8>>(0)?) {
                    visit(Accepted { text, kernel: row.get(1)?, triton: row.get(2)? });
                }
            }
            Ok(())
        };
        query().map_err(|error| self.error(error))
    }
}

fn insert(connection: &Connection, failure: &RefusedKernel) -> rusqlite::Result<bool> {
    let RefusedKernel { text, kernel, nearest_passing: relative, error, place, triton, source } = failure;
    let message = &error.message[..error.message.floor_char_boundary(MESSAGE)];
    let mut hasher = blake3::Hasher::new();
    for part in [text, kernel, &error.kind, message, triton] {
        hasher.update(&part.len().to_le_bytes()).update(part.as_bytes());
    }
    let key = hasher.finalize();
    let relative = relative.as_ref().filter(|text| text.len() <= LONGEST);
    let relative = relative.map(|text| compressed_texts::keep(connection, text)).transpose()?;
    let now = now_milliseconds();
    let known = connection
        .prepare_cached(
            "UPDATE failures SET met = met + 1, last = ?2, relative = coalesce(relative, ?3) WHERE key = ?1",
        )?
        .execute(params![key.as_bytes(), now, relative])?;
    if known > 0 {
        return Ok(false);
    }
    let text = compressed_texts::keep(connection, text)?;
    let (start, stop) = place.unzip();
    connection
        .prepare_cached(
            "INSERT INTO failures (key, signature, exception, message, kernel, text, relative, start, stop, triton, source, met, first, last)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 1, ?12, ?12)",
        )?
        .execute(params![
            key.as_bytes(),
            error.signature(),
            error.kind,
            message,
            kernel,
            text,
            relative,
            start,
            stop,
            triton,
            source,
            now
        ])?;
    Ok(true)
}

/// Reads a row of [`SELECT`]; `None` if its text is damaged.
fn read(row: &Row<'_>) -> rusqlite::Result<Option<StoredFailure>> {
    let Some(text) = compressed_texts::read(&row.get::<_, Vec<u8>>(4)?) else { return Ok(None) };
    let relative = row.get::<_, Option<Vec<u8>>>(5)?.and_then(|body| compressed_texts::read(&body));
    let place: (Option<usize>, Option<usize>) = (row.get(6)?, row.get(7)?);
    let failure = RefusedKernel {
        text,
        kernel: row.get(3)?,
        nearest_passing: relative,
        error: TritonError { kind: row.get(1)?, message: row.get(2)? },
        place: place.0.zip(place.1),
        triton: row.get(8)?,
        source: row.get(9)?,
    };
    Ok(Some(StoredFailure { id: row.get(0)?, failure, met: row.get(10)?, first: row.get(11)?, last: row.get(12)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store.db")).unwrap();
        (folder, store)
    }

    fn failure(number: usize) -> RefusedKernel {
        RefusedKernel {
            text: format!("# {number}\n{}", "    y = tl.load(x + i, mask=i < n)\n".repeat(10)),
            kernel: "k".to_owned(),
            nearest_passing: None,
            error: TritonError { kind: "NameError".to_owned(), message: format!("name 'oops{number}' is not defined") },
            place: Some((3, 8)),
            triton: "3.6.0".to_owned(),
            source: "editor".to_owned(),
        }
    }

    fn all(store: &Store) -> Vec<StoredFailure> {
        let mut all = Vec::new();
        store.each_failure(&mut |one| all.push(one)).unwrap();
        all
    }

    #[test]
    fn a_failure_is_kept_once_and_counts() {
        let (_folder, mut store) = store();
        assert_eq!(store.keep_failures(&[failure(1), failure(2)]).unwrap(), 2);
        let with = RefusedKernel { nearest_passing: Some("good".to_owned()), ..failure(1) };
        assert_eq!(store.keep_failures(&[with.clone(), failure(3), failure(3)]).unwrap(), 1);
        let stored = all(&store);
        assert_eq!(stored.iter().map(|one| one.met).collect::<Vec<_>>(), [2, 1, 2]);
        assert_eq!((&stored[0].failure, &stored[1].failure), (&with, &failure(2)));
        assert_eq!(store.failure_signatures().unwrap(), [("NameError: name … is not defined".to_owned(), 3)]);
        let kind = "NameError: name … is not defined".to_owned();
        store.set_learned_counts("3.6.0", &[(kind.clone(), 2)]).unwrap();
        store.set_learned_counts("3.6.0", &[(kind.clone(), 3)]).unwrap();
        assert_eq!(store.learned_counts("3.6.0").unwrap(), HashMap::from([(kind, 3)]));
        assert!(store.learned_counts("3.9.0").unwrap().is_empty());
        let long = RefusedKernel { text: "x".repeat(LONGEST + 1), ..failure(4) };
        assert_eq!(store.keep_failures(&[long]).unwrap(), 0);
    }

    #[test]
    fn the_newest_of_a_signature_and_a_release_come_first() {
        let (_folder, mut store) = store();
        let elsewhere = RefusedKernel { triton: "3.9.0".to_owned(), ..failure(5) };
        let other = RefusedKernel {
            error: TritonError { kind: "TypeError".to_owned(), ..TritonError::default() },
            ..failure(6)
        };
        store.keep_failures(&[failure(1), failure(2), failure(3), elsewhere, other]).unwrap();
        let kind = "NameError: name … is not defined";
        assert_eq!(store.newest_failures(kind, "3.6.0", 2).unwrap(), [failure(3), failure(2)]);
        assert_eq!(store.newest_failures(kind, "3.6.0", 9).unwrap().len(), 3);
        // Damaged texts are skipped and do not count.
        store.connection.execute("UPDATE texts SET body = x'00' WHERE id = 3", []).unwrap();
        assert_eq!(store.newest_failures(kind, "3.6.0", 2).unwrap(), [failure(2), failure(1)]);
    }

    #[test]
    fn kernels_that_compile_are_kept_with_the_newest_first() {
        let (_folder, mut store) = store();
        let kernel =
            |text: &str| Accepted { text: text.to_owned(), kernel: "k".to_owned(), triton: "3.6.0".to_owned() };
        store.keep_accepted(&[kernel("a"), kernel("b")]).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(3));
        store.keep_accepted(&[kernel("a")]).unwrap();
        let mut texts = Vec::new();
        store.each_accepted(&mut |one| texts.push(one.text)).unwrap();
        assert_eq!(texts, ["a", "b"]);
    }

    /// A hundred thousand failures must fit into a gigabyte: each takes less than ten kilobytes. Names, numbers and
    /// lines differ as they do between kernels; every other failure has a relative of its own.
    #[test]
    fn many_failures_take_little_room() {
        let count: usize =
            std::env::var("WARPSMITH_FAILURES").ok().and_then(|count| count.parse().ok()).unwrap_or(2_000);
        let (folder, mut store) = store();
        let base = include_str!("../../../tests/gpu/optimize/layer_norm.py");
        let words: Vec<&str> = base.split_inclusive(' ').collect();
        let mut chance = 1_u64;
        let mut random = |below: usize| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(chance >> 33).unwrap_or_default() % below
        };
        let mut text = |number: usize| {
            let mut text: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            for _ in 0..40 {
                let at = random(text.len());
                text[at] = format!("name_{}_{number} ", random(1 << 20));
            }
            text.concat()
        };
        let started = std::time::Instant::now();
        for from in (0..count).step_by(500) {
            let batch: Vec<RefusedKernel> = (from..count.min(from + 500))
                .map(|number| {
                    let relative = (number % 2 == 0).then(|| text(number));
                    RefusedKernel { text: text(number), nearest_passing: relative, ..failure(number) }
                })
                .collect();
            assert_eq!(store.keep_failures(&batch).unwrap(), batch.len());
        }
        let wrote = started.elapsed();
        let size: u64 =
            std::fs::read_dir(folder.path()).unwrap().flatten().map(|file| file.metadata().unwrap().len()).sum();
        let started = std::time::Instant::now();
        let mut bytes = 0;
        store.each_failure(&mut |one| bytes += one.failure.text.len()).unwrap();
        println!("{count} failures: {size} bytes, {wrote:?} to write, {:?} to read {bytes} bytes", started.elapsed());
        assert!(size / count as u64 <= 10_000, "{size}");
    }

    #[test]
    fn texts_that_nothing_names_are_forgotten() {
        let (_folder, mut store) = store();
        let with = RefusedKernel { nearest_passing: Some("good".to_owned()), ..failure(1) };
        store.keep_failures(&[with, failure(2)]).unwrap();
        store
            .keep_accepted(&[Accepted { text: failure(2).text, kernel: "k".to_owned(), triton: String::new() }])
            .unwrap();
        let texts = |store: &Store| -> u32 {
            store.connection.query_row("SELECT count(*) FROM texts", [], |row| row.get(0)).unwrap()
        };
        assert_eq!(texts(&store), 3);
        store.connection.execute("DELETE FROM failures", []).unwrap();
        compressed_texts::sweep(&store.connection).unwrap();
        assert_eq!(texts(&store), 1);
    }
}
