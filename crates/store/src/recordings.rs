//! Recordings: the recorded calls (workloads) of a workspace and the commands that made them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rusqlite::types::Value as Sql;
use rusqlite::{OptionalExtension, Transaction, params, params_from_iter};

use base::clock::now_milliseconds;
use protocol::{LaunchRecord, Workload};

use super::summaries::shapes;
use super::{Store, StoreError};

/// Limits of what is kept of recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionLimits {
    /// The greatest total size of all workloads, in bytes.
    pub size: u64,
    /// The greatest number of workloads of one entry.
    pub shapes: usize,
}

impl From<&config::WorkloadSettings> for RetentionLimits {
    fn from(settings: &config::WorkloadSettings) -> Self {
        // The setting is in MiB.
        Self { size: settings.max_size.saturating_mul(1 << 20), shapes: settings.max_shapes }
    }
}

/// Whether a new workload was kept, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// The workload is stored.
    Retained,
    /// It exceeds [`RetentionLimits::shapes`]: other calls of the entry are more frequent.
    TooRare,
    /// It exceeds [`RetentionLimits::size`]; this is its size in bytes.
    TooLarge(u64),
}

/// A recording: one run of a command under the recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// When it was recorded, in milliseconds since 1970.
    pub recorded: i64,
    /// The command line, for display.
    pub command: String,
    /// How to run the command again, if known.
    pub run: Option<RecordedCommand>,
}

/// A command that can be run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCommand {
    /// The program and its arguments, one element each.
    pub words: Vec<String>,
    /// The working folder of the command.
    pub folder: PathBuf,
}

/// A stored workload with its id and its recording.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredWorkload {
    /// The workload's id.
    pub id: i64,
    /// When it was recorded, in milliseconds since 1970.
    pub recorded: i64,
    /// The command line, for display.
    pub command: String,
    /// Size in bytes.
    pub size: u64,
    /// The recorded call itself.
    pub workload: Workload,
}

/// The order of lists: the newest recording first, within a recording the most frequent call first.
const ORDER: &str = "ORDER BY workloads.recording DESC, workloads.count DESC, workloads.entry, workloads.id";

impl Store {
    /// Stores a recording. It replaces earlier calls of the same shapes; then the oldest workloads beyond `limits` are
    /// deleted. Returns the fate of each call of `workloads`.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn keep_recording(
        &mut self,
        recording: &Recording,
        workloads: &[Workload],
        limits: RetentionLimits,
    ) -> Result<Vec<Retention>, StoreError> {
        let words = recording.run.as_ref().and_then(|run| serde_json::to_string(&run.words).ok());
        let folder = recording.run.as_ref().map(|run| run.folder.to_string_lossy().into_owned());
        let fates = self.transaction(|transaction| {
            transaction.execute(
                "INSERT INTO recordings (recorded, command, words, folder) VALUES (?1, ?2, ?3, ?4)",
                params![recording.recorded, recording.command, words, folder],
            )?;
            let id = transaction.last_insert_rowid();
            let rows = workloads.iter().map(|workload| insert(transaction, id, workload));
            let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            prune_shapes(transaction, limits)?;
            let mut is_there = transaction.prepare("SELECT 1 FROM workloads WHERE id = ?1")?;
            let frequent = rows.iter().map(|(row, _)| is_there.exists([row])).collect::<rusqlite::Result<Vec<_>>>()?;
            prune_size(transaction, limits)?;
            let mut fate = |(&(row, size), frequent): (&(i64, u64), bool)| {
                let is_kept = is_there.exists([row])?;
                Ok(if is_kept {
                    Retention::Retained
                } else if frequent {
                    Retention::TooLarge(size)
                } else {
                    Retention::TooRare
                })
            };
            rows.iter().zip(frequent).map(&mut fate).collect::<rusqlite::Result<Vec<_>>>()
        })?;
        self.shrink()?;
        Ok(fates)
    }

    /// The workloads of a file and an entry, newest first; `None` means any file or any entry.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn workloads(&self, file: Option<&Path>, entry: Option<&str>) -> Result<Vec<StoredWorkload>, StoreError> {
        let mut query = "SELECT workloads.id, recorded, command, size, body FROM workloads
            JOIN recordings ON recordings.id = recording WHERE true"
            .to_owned();
        let mut values = Vec::new();
        if let Some(file) = file {
            values.push(Sql::Text(file.to_string_lossy().into_owned()));
            query += &format!(" AND file = ?{}", values.len());
        }
        if let Some(entry) = entry {
            values.push(Sql::Text(entry.to_owned()));
            query += &format!(" AND entry = ?{}", values.len());
        }
        self.rows(&format!("{query} {ORDER}"), values)
    }

    /// The workload with an id.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn workload(&self, id: i64) -> Result<Option<StoredWorkload>, StoreError> {
        let query = "SELECT workloads.id, recorded, command, size, body FROM workloads
            JOIN recordings ON recordings.id = recording WHERE workloads.id = ?1";
        Ok(self.rows(query, vec![Sql::Integer(id)])?.into_iter().next())
    }

    fn rows(&self, query: &str, values: Vec<Sql>) -> Result<Vec<StoredWorkload>, StoreError> {
        let read = || -> rusqlite::Result<Vec<StoredWorkload>> {
            let mut statement = self.connection.prepare(query)?;
            let mut rows = statement.query(params_from_iter(values))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let body: String = row.get(4)?;
                // Workloads of other releases that this one cannot parse are left out.
                if let Ok(workload) = serde_json::from_str(&body) {
                    let (id, recorded, command, size) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
                    found.push(StoredWorkload { id, recorded, command, size, workload });
                }
            }
            Ok(found)
        };
        read().map_err(|error| self.error(error))
    }

    /// The launches inside recorded calls of a file, from its newest recording alone.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn launches(&self, file: &Path) -> Result<Vec<LaunchRecord>, StoreError> {
        let read = || -> rusqlite::Result<Vec<LaunchRecord>> {
            let mut statement = self
                .connection
                .prepare(&format!("SELECT recording, launches FROM workloads WHERE file = ?1 {ORDER}"))?;
            let mut rows = statement.query([file.to_string_lossy()])?;
            let (mut newest, mut found) = (None, Vec::new());
            while let Some(row) = rows.next()? {
                let recording: i64 = row.get(0)?;
                if *newest.get_or_insert(recording) != recording {
                    break;
                }
                let launches: String = row.get(1)?;
                found.extend(serde_json::from_str::<Vec<LaunchRecord>>(&launches).unwrap_or_default());
            }
            Ok(found)
        };
        read().map_err(|error| self.error(error))
    }

    /// The newest command that called functions of a file and can be run again.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn run_of(&self, file: &Path) -> Result<Option<RecordedCommand>, StoreError> {
        let read = || -> rusqlite::Result<Option<(String, String)>> {
            let query = "SELECT words, recordings.folder FROM recordings JOIN workloads ON recordings.id = recording
                WHERE file = ?1 AND words IS NOT NULL ORDER BY recordings.id DESC LIMIT 1";
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            self.connection.query_row(query, [file.to_string_lossy()], row).optional()
        };
        let found = read().map_err(|error| self.error(error))?;
        Ok(found.and_then(|(words, folder)| {
            Some(RecordedCommand { words: serde_json::from_str(&words).ok()?, folder: folder.into() })
        }))
    }

    /// Removes the workload with an id. Returns whether there was one.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn remove_workload(&mut self, id: i64) -> Result<bool, StoreError> {
        Ok(self.remove("id = ?1", Sql::Integer(id))? > 0)
    }

    /// Removes the workloads of an entry. Returns how many there were.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn remove_entry(&mut self, entry: &str) -> Result<usize, StoreError> {
        self.remove("entry = ?1", Sql::Text(entry.to_owned()))
    }

    /// Removes all workloads. Returns how many there were.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn remove_workloads(&mut self) -> Result<usize, StoreError> {
        self.remove("?1", Sql::Integer(1))
    }

    fn remove(&mut self, which: &str, value: Sql) -> Result<usize, StoreError> {
        let removed = self.transaction(|transaction| {
            let removed = transaction.execute(&format!("DELETE FROM workloads WHERE {which}"), [value])?;
            remove_empty(transaction)?;
            Ok(removed)
        })?;
        self.shrink()?;
        Ok(removed)
    }

    /// Returns free pages of the database to the file system.
    fn shrink(&self) -> Result<(), StoreError> {
        let vacuum = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare("PRAGMA incremental_vacuum")?;
            let mut rows = statement.query([])?;
            while rows.next()?.is_some() {}
            drop(rows);
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).optional()?;
            Ok(())
        };
        vacuum().map_err(|error| self.error(error))
    }
}

/// Inserts a workload in the place of older ones of the same shapes. Returns its id and its size in bytes.
fn insert(transaction: &Transaction<'_>, recording: i64, workload: &Workload) -> rusqlite::Result<(i64, u64)> {
    let json = |error: serde_json::Error| rusqlite::Error::ToSqlConversionFailure(error.into());
    let body = serde_json::to_string(workload).map_err(json)?;
    let launches = serde_json::to_string(&workload.launches).map_err(json)?;
    let (file, shapes) = (workload.file.to_string_lossy(), shapes(workload));
    let device = &workload.environment.device;
    transaction.execute(
        "DELETE FROM workloads WHERE recording < ?1 AND file = ?2 AND entry = ?3 AND device = ?4 AND gradients = ?5
            AND shapes = ?6",
        params![recording, file, workload.entry, device, workload.gradients, shapes],
    )?;
    transaction.execute(
        "INSERT INTO workloads (recording, file, entry, device, gradients, shapes, count, launches, size, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            recording,
            file,
            workload.entry,
            device,
            workload.gradients,
            shapes,
            workload.count,
            launches,
            body.len() + launches.len(),
            body
        ],
    )?;
    Ok((transaction.last_insert_rowid(), (body.len() + launches.len()) as u64))
}

/// The order in which workloads are worth keeping: the newest first, within a recording the most frequent first.
const WORTH: &str = "ORDER BY recording DESC, count DESC, id";

/// Removes the calls beyond the greatest number for an entry.
fn prune_shapes(transaction: &Transaction<'_>, limits: RetentionLimits) -> rusqlite::Result<()> {
    transaction.execute(
        &format!(
            "DELETE FROM workloads WHERE id IN (SELECT id FROM (
                SELECT id, row_number() OVER (PARTITION BY file, entry, device, gradients {WORTH}) AS place FROM workloads)
                WHERE place > ?1)"
        ),
        [limits.shapes],
    )?;
    Ok(())
}

/// Removes workloads until their total size is within the limit.
fn prune_size(transaction: &Transaction<'_>, limits: RetentionLimits) -> rusqlite::Result<()> {
    let size = i64::try_from(limits.size).unwrap_or(i64::MAX);
    // A single workload above the limit must not displace the others.
    transaction.execute("DELETE FROM workloads WHERE size > ?1", [size])?;
    transaction.execute(
        &format!(
            "DELETE FROM workloads WHERE id IN (SELECT id FROM (
                SELECT id, sum(size) OVER ({WORTH} ROWS UNBOUNDED PRECEDING) AS total FROM workloads) WHERE total > ?1)"
        ),
        [size],
    )?;
    remove_empty(transaction)
}

fn remove_empty(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM recordings WHERE id NOT IN (SELECT recording FROM workloads)", [])?;
    Ok(())
}

impl Recording {
    /// A recording of now whose command is not known well enough to be run again.
    #[must_use]
    pub fn now(command: &str) -> Self {
        Self { recorded: now_milliseconds(), command: command.to_owned(), run: None }
    }

    /// A recording of now of a command that can be run again in `folder`.
    #[must_use]
    pub fn of(command: &[OsString], folder: &Path) -> Self {
        let shown: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        let words = command.iter().map(|word| word.to_str().map(str::to_owned)).collect::<Option<Vec<String>>>();
        let run = words.map(|words| RecordedCommand { words, folder: folder.to_owned() });
        Self { run, ..Self::now(&shown.join(" ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{ArgumentValue, TensorSpec};

    const LIMITS: RetentionLimits = RetentionLimits { size: 1 << 20, shapes: 3 };

    fn call(entry: &str, size: i64, count: u64) -> Workload {
        let spec =
            TensorSpec { shape: vec![size], stride: vec![1], dtype: "float32".to_owned(), ..TensorSpec::default() };
        let launches =
            vec![LaunchRecord { kernel: format!("{entry}_kernel"), grid: vec![size], ..LaunchRecord::default() }];
        Workload {
            file: "/f.py".into(),
            entry: entry.to_owned(),
            args: vec![ArgumentValue::Tensor(spec)],
            count,
            launches,
            ..Workload::default()
        }
    }

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store.db")).unwrap();
        (folder, store)
    }

    fn listed(store: &Store) -> Vec<(String, i64, u64)> {
        let size = |row: &StoredWorkload| row.workload.launches[0].grid[0];
        let rows = store.workloads(None, None).unwrap();
        rows.iter().map(|row| (row.workload.entry.clone(), size(row), row.workload.count)).collect()
    }

    #[test]
    fn newer_calls_replace_those_of_the_same_shapes() {
        let (_folder, mut store) = store();
        let recording = Recording { recorded: 7, ..Recording::now("python a.py") };
        store.keep_recording(&recording, &[call("f", 8, 2), call("g", 8, 9)], LIMITS).unwrap();
        store.keep_recording(&Recording::now("python b.py"), &[call("f", 8, 5), call("f", 9, 6)], LIMITS).unwrap();
        let expected = [("f".to_owned(), 9, 6), ("f".to_owned(), 8, 5), ("g".to_owned(), 8, 9)];
        assert_eq!(listed(&store), expected);
        let old = &store.workloads(Some(Path::new("/f.py")), Some("g")).unwrap()[0];
        assert_eq!((old.recorded, old.command.as_str(), &old.workload), (7, "python a.py", &call("g", 8, 9)));
        assert_eq!(store.workload(old.id).unwrap().as_ref(), Some(old));
        assert!(store.workloads(Some(Path::new("/other.py")), None).unwrap().is_empty());
        let kernels =
            store.launches(Path::new("/f.py")).unwrap().into_iter().map(|launch| (launch.kernel, launch.grid[0]));
        assert!(kernels.eq([("f_kernel".to_owned(), 9), ("f_kernel".to_owned(), 8)]));
    }

    #[test]
    fn gradients_make_another_workload() {
        let (_folder, mut store) = store();
        let both = [call("f", 8, 2), Workload { gradients: true, ..call("f", 8, 3) }];
        store.keep_recording(&Recording::now(""), &both, LIMITS).unwrap();
        assert_eq!(listed(&store).len(), 2);
    }

    #[test]
    fn the_oldest_recordings_beyond_the_limit_are_removed() {
        let (_folder, mut store) = store();
        for size in 1..=5 {
            store.keep_recording(&Recording::now(""), &[call("f", size, 1), call("g", size, 2)], LIMITS).unwrap();
        }
        let sizes = |store: &Store| listed(store).into_iter().map(|(entry, size, _)| (entry, size)).collect::<Vec<_>>();
        let both = |size| [("g".to_owned(), size), ("f".to_owned(), size)];
        assert_eq!(sizes(&store), [both(5), both(4), both(3)].concat());
        let one = store.workloads(None, None).unwrap()[0].size;
        let limits = RetentionLimits { size: one * 3 + one / 2, ..LIMITS };
        store.keep_recording(&Recording::now(""), &[call("g", 6, 2), call("f", 6, 1)], limits).unwrap();
        assert_eq!(sizes(&store), [&both(6)[..], &both(5)[..1]].concat());
        let recordings: i64 =
            store.connection.query_row("SELECT count(*) FROM recordings", [], |row| row.get(0)).unwrap();
        assert_eq!(recordings, 2);
    }

    #[test]
    fn a_call_above_the_size_limit_is_refused_without_removing_others() {
        let (_folder, mut store) = store();
        let data = protocol::TensorContents::Integers(vec![1; 10_000]);
        let big = Workload {
            args: vec![ArgumentValue::Tensor(TensorSpec { data, ..TensorSpec::default() })],
            ..call("big", 8, 9)
        };
        store.keep_recording(&Recording::now(""), &[call("f", 8, 1)], LIMITS).unwrap();
        let limits = RetentionLimits { size: 10_000, ..LIMITS };
        let fates = store.keep_recording(&Recording::now(""), &[big, call("g", 8, 1)], limits).unwrap();
        assert!(matches!(fates[..], [Retention::TooLarge(20_000..), Retention::Retained]), "{fates:?}");
        let fates = [1, 2, 3, 4].map(|size| call("h", size, 10 - size.unsigned_abs()));
        let fates = store.keep_recording(&Recording::now(""), &fates, limits).unwrap();
        assert_eq!(fates, [Retention::Retained, Retention::Retained, Retention::Retained, Retention::TooRare]);
        store.remove_entry("h").unwrap();
        assert_eq!(listed(&store), [("g".to_owned(), 8, 1), ("f".to_owned(), 8, 1)]);
    }

    /// The size of the file is bounded, not only that of its rows.
    #[test]
    fn the_file_shrinks_with_its_contents() {
        let (folder, mut store) = store();
        let values = protocol::TensorContents::Integers((0..100_000).collect());
        let spec = TensorSpec { data: values, ..TensorSpec::default() };
        let big = Workload { args: vec![ArgumentValue::Tensor(spec)], ..call("f", 8, 1) };
        store.keep_recording(&Recording::now(""), &[big], LIMITS).unwrap();
        let size = || std::fs::metadata(folder.path().join("store.db")).unwrap().len();
        let before = size();
        assert!(before > 500_000, "{before}");
        assert_eq!(store.remove_workloads().unwrap(), 1);
        // The first pages of tables and indices remain.
        assert!(size() < 200_000, "{}", size());
    }

    #[test]
    fn the_newest_command_of_a_file_can_be_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("store.db")).unwrap();
        let file = call("f", 8, 5).file;
        assert_eq!(store.run_of(&file).unwrap(), None);
        let command = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let recording = Recording::of(&command(&["pytest", "-k", "two words"]), Path::new("/w"));
        assert_eq!(recording.command, "pytest -k two words");
        store.keep_recording(&recording, &[call("f", 8, 5)], LIMITS).unwrap();
        // A recording that cannot be run again, and one of another file.
        store.keep_recording(&Recording::now("python b.py"), &[call("f", 9, 5)], LIMITS).unwrap();
        let other = Workload { file: "/other.py".into(), ..call("f", 8, 5) };
        store.keep_recording(&Recording::of(&command(&["python", "c.py"]), Path::new("/")), &[other], LIMITS).unwrap();
        let expected = RecordedCommand {
            words: vec!["pytest".to_owned(), "-k".to_owned(), "two words".to_owned()],
            folder: "/w".into(),
        };
        assert_eq!(store.run_of(&file).unwrap(), Some(expected));
    }

    #[test]
    fn workloads_are_removed_by_number_and_by_entry() {
        let (_folder, mut store) = store();
        let calls = [call("f", 1, 1), call("f", 2, 2), call("g", 3, 3)];
        store.keep_recording(&Recording::now(""), &calls, LIMITS).unwrap();
        let id = store.workloads(None, Some("f")).unwrap()[0].id;
        assert!(store.remove_workload(id).unwrap());
        assert!(!store.remove_workload(id).unwrap());
        assert_eq!(listed(&store), [("g".to_owned(), 3, 3), ("f".to_owned(), 1, 1)]);
        assert_eq!(store.remove_entry("f").unwrap(), 1);
        assert_eq!(store.remove_entry("f").unwrap(), 0);
        assert_eq!(listed(&store).len(), 1);
    }
}
