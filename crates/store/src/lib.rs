//! The SQLite databases that Warpsmith keeps between runs: `.warpsmith/store.db` of a workspace, and the user's own
//! `store.db`, which holds the skill memory.
//!
//! Each database uses a write-ahead log, so that several servers and commands can use it at the same time. Both have
//! the same tables. SQLite's `user_version` is the schema version; a database with a newer schema is left unchanged.

mod compressed_texts;
mod consents;
mod evaluations;
mod failures;
mod false_alarms;
mod learned;
mod lessons;
mod recordings;
mod spending;
mod summaries;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use base::clock::now_milliseconds;

pub use failures::{Accepted, RefusedKernel, StoredFailure};
pub use false_alarms::FalseAlarm;
pub use learned::{Disproof, RuleObjection, RuleTransaction, StoredRule};
pub use lessons::Lesson;
pub use recordings::{RecordedCommand, Recording, Retention, RetentionLimits, StoredWorkload};
pub use spending::{Reserved, Spending};
pub use summaries::{shapes, short};

/// The migrations from an empty file to the current schema, in order. A published migration never changes.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE recordings (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        recorded INTEGER NOT NULL, -- milliseconds since 1970
        command TEXT NOT NULL
    );
    CREATE TABLE workloads (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        recording INTEGER NOT NULL REFERENCES recordings (id) ON DELETE CASCADE,
        file TEXT NOT NULL,
        entry TEXT NOT NULL,
        device TEXT NOT NULL,
        gradients INTEGER NOT NULL,
        shapes TEXT NOT NULL,
        count INTEGER NOT NULL,
        launches TEXT NOT NULL, -- JSON, as in the body
        size INTEGER NOT NULL,
        body TEXT NOT NULL -- JSON
    );
    CREATE INDEX workloads_of_file ON workloads (file, entry);
    CREATE INDEX workloads_of_recording ON workloads (recording);
    CREATE TABLE evaluations (
        key BLOB PRIMARY KEY,
        verdict TEXT NOT NULL, -- JSON
        stored INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX evaluations_by_age ON evaluations (stored);
    CREATE TABLE false_alarms (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        rule TEXT NOT NULL,
        kernel TEXT NOT NULL,
        message TEXT NOT NULL,
        triton TEXT NOT NULL,
        warpsmith TEXT NOT NULL,
        date TEXT NOT NULL,
        UNIQUE (rule, kernel)
    );
",
    "
    -- How to run a command again, where that is known.
    ALTER TABLE recordings ADD COLUMN words TEXT; -- JSON
    ALTER TABLE recordings ADD COLUMN folder TEXT;
",
    "
    CREATE TABLE lessons (
        device TEXT NOT NULL,
        class TEXT NOT NULL,
        bound TEXT NOT NULL,
        kind TEXT NOT NULL,
        count INTEGER NOT NULL,
        refused INTEGER NOT NULL,
        gain REAL NOT NULL, -- the sum of logarithms
        best REAL NOT NULL,
        learned INTEGER NOT NULL, -- milliseconds since 1970
        PRIMARY KEY (device, class, bound, kind)
    ) WITHOUT ROWID;
",
    "
    -- Texts of kernels, each once, compressed.
    CREATE TABLE texts (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL UNIQUE, -- a hash of the text
        body BLOB NOT NULL
    );
    CREATE TABLE failures (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        key BLOB NOT NULL UNIQUE, -- a hash of the text, the error and the release
        signature TEXT NOT NULL,
        exception TEXT NOT NULL,
        message TEXT NOT NULL,
        kernel TEXT NOT NULL,
        text INTEGER NOT NULL REFERENCES texts (id),
        relative INTEGER REFERENCES texts (id),
        start INTEGER, -- the place in the text, in bytes
        stop INTEGER,
        triton TEXT NOT NULL,
        source TEXT NOT NULL,
        met INTEGER NOT NULL,
        first INTEGER NOT NULL, -- milliseconds since 1970
        last INTEGER NOT NULL
    );
    CREATE INDEX failures_of_signature ON failures (signature);
    CREATE INDEX failures_of_text ON failures (text);
    CREATE INDEX failures_of_relative ON failures (relative);
    -- Kernels that compile.
    CREATE TABLE accepted (
        text INTEGER NOT NULL REFERENCES texts (id),
        kernel TEXT NOT NULL,
        triton TEXT NOT NULL,
        seen INTEGER NOT NULL,
        PRIMARY KEY (text, kernel, triton)
    );
    CREATE INDEX accepted_by_age ON accepted (seen);
    -- Rules of the user's own, each as a memory file.
    CREATE TABLE learned_rules (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        body TEXT NOT NULL
    );
    -- What this user holds against rules, their own or shipped.
    CREATE TABLE objections (
        code TEXT PRIMARY KEY,
        muted INTEGER NOT NULL,
        pattern BLOB, -- of a rule that was disproved: a hash of its pattern
        kernel TEXT, -- what disproved it
        triton TEXT,
        made INTEGER NOT NULL
    ) WITHOUT ROWID;
",
    "
    -- What language models have cost this user.
    CREATE TABLE spending (
        day TEXT NOT NULL, -- UTC
        model TEXT NOT NULL,
        requests INTEGER NOT NULL,
        estimated INTEGER NOT NULL, -- requests whose tokens are not known
        input INTEGER NOT NULL,
        cached INTEGER NOT NULL,
        output INTEGER NOT NULL,
        cost INTEGER NOT NULL, -- 10^-12 dollars
        PRIMARY KEY (day, model)
    ) WITHOUT ROWID;
    -- What requests that are under way may cost at most; one of a process that died counts for its day.
    CREATE TABLE reservations (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        day TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        cost INTEGER NOT NULL
    );
    CREATE INDEX reservations_of_day ON reservations (day);
",
    "
    -- What this user has agreed to send to whom, by a hash of both.
    CREATE TABLE consents (
        key BLOB PRIMARY KEY,
        given INTEGER NOT NULL -- milliseconds since 1970
    ) WITHOUT ROWID;
    -- Kinds of failures that rules were looked for in, and how many there were then.
    CREATE TABLE looked_at (
        triton TEXT NOT NULL,
        signature TEXT NOT NULL,
        failures INTEGER NOT NULL,
        PRIMARY KEY (triton, signature)
    ) WITHOUT ROWID;
",
];

/// How long a connection waits for another connection's write to finish.
const PATIENCE: Duration = Duration::from_secs(10);

/// An error of opening, reading or writing a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A later release of Warpsmith wrote the file.
    #[error("{path} was written by a newer warpsmith (its schema is {found}, this one knows {}); update, or move it away", MIGRATIONS.len())]
    Newer {
        /// The path of the database file.
        path: PathBuf,
        /// The schema version of the file.
        found: usize,
    },
    /// SQLite returned an error.
    #[error("{path}: {source}")]
    Sqlite {
        /// The path of the database file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// A file operation failed.
    #[error("{path}: {source}")]
    Io {
        /// The path of the database file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl StoreError {
    fn is_damage(&self) -> bool {
        let Self::Sqlite { source, .. } = self else { return false };
        matches!(source.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
    }
}

/// An open database with one connection.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
}

impl Store {
    /// Opens a store and creates the file if it is missing. A damaged file is renamed, and a new one takes its place.
    ///
    /// # Errors
    /// Returns [`StoreError`] when a newer release wrote the file or the file cannot be written.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        match Self::open_sound(path, false) {
            Err(error) if error.is_damage() => Self::replace(path),
            other => other,
        }
    }

    /// Opens the user's own store in `folder`, Warpsmith's data folder, and imports the file in which earlier releases
    /// kept false alarms.
    ///
    /// # Errors
    /// Returns the errors of [`Self::open`].
    pub fn of_user(folder: &Path) -> Result<Self, StoreError> {
        let mut store = Self::open(&folder.join("store.db"))?;
        store.import_false_alarms(&folder.join("false-alarms.jsonl"))?;
        Ok(store)
    }

    /// Opens a store that is not damaged. `is_alone` says that the caller holds the lock of [`alone`].
    fn open_sound(path: &Path, is_alone: bool) -> Result<Self, StoreError> {
        let io = |source| StoreError::Io { path: path.to_owned(), source };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(io)?;
        }
        private(path).map_err(io)?;
        let sqlite = |source| StoreError::Sqlite { path: path.to_owned(), source };
        let mut connection = Connection::open(path).map_err(sqlite)?;
        connection.busy_timeout(PATIENCE).map_err(sqlite)?;
        // SQLite's busy timeout doesn't apply while another process switches an empty file to a write-ahead log.
        let is_new = version(&connection).map_err(sqlite)? == 0;
        let _alone = if is_new && !is_alone { Some(alone(path)?) } else { None };
        let found = prepare(&mut connection).map_err(sqlite)?;
        if found > MIGRATIONS.len() {
            return Err(StoreError::Newer { path: path.to_owned(), found });
        }
        Ok(Self { path: path.to_owned(), connection })
    }

    /// Renames a damaged file and creates a new one. Only one process does this; the others then open the new file.
    fn replace(path: &Path) -> Result<Self, StoreError> {
        let io = |source| StoreError::Io { path: path.to_owned(), source };
        let _alone = alone(path)?;
        match Self::open_sound(path, true) {
            Err(error) if error.is_damage() => {}
            other => return other,
        }
        let aside = with_suffix(path, &format!(".damaged-{}", now_milliseconds()));
        tracing::warn!(file = %path.display(), aside = %aside.display(), "a damaged store is set aside");
        fs::rename(path, aside).map_err(io)?;
        for left in ["-wal", "-shm"] {
            let _ = fs::remove_file(with_suffix(path, left));
        }
        Self::open_sound(path, true)
    }

    fn error(&self, source: rusqlite::Error) -> StoreError {
        StoreError::Sqlite { path: self.path.clone(), source }
    }

    /// Runs `work` in one transaction and commits it. Other connections see all of its changes or none.
    fn transaction<T>(
        &mut self,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let transact = |connection: &mut Connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let made = work(&transaction)?;
            transaction.commit()?;
            Ok(made)
        };
        transact(&mut self.connection).map_err(|source| StoreError::Sqlite { path: self.path.clone(), source })
    }
}

/// Takes the file lock that a process holds while it creates or replaces the database.
fn alone(path: &Path) -> Result<File, StoreError> {
    let io = |source| StoreError::Io { path: path.to_owned(), source };
    let lock = File::create(with_suffix(path, ".lock")).map_err(io)?;
    lock.lock().map_err(io)?;
    Ok(lock)
}

/// Migrates a database to the current schema. Returns its schema version, which is greater than the number of
/// migrations if a newer release wrote it.
fn prepare(connection: &mut Connection) -> rusqlite::Result<usize> {
    let found = version(connection)?;
    if found > MIGRATIONS.len() {
        return Ok(found);
    }
    if found == 0 {
        // This setting takes effect only in an empty file.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    // On a file system without shared memory, SQLite continues without the write-ahead log.
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    if found < MIGRATIONS.len() {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have migrated it in the meantime.
        let found = version(&transaction)?;
        for step in MIGRATIONS.iter().skip(found) {
            transaction.execute_batch(step)?;
        }
        if found < MIGRATIONS.len() {
            transaction.pragma_update(None, "user_version", MIGRATIONS.len())?;
        }
        transaction.commit()?;
    }
    version(connection)
}

fn version(connection: &Connection) -> rusqlite::Result<usize> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

/// Creates the file with access for the user alone, because it holds code. SQLite gives its log files the same mode.
fn private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_a_newer_release_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        drop(Store::open(&path).unwrap());
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        drop(connection);
        let before = fs::read(&path).unwrap();
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains("newer warpsmith (its schema is 99, this one knows 6)"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    /// Rows of the first schema are kept and get the columns of the current one.
    #[test]
    fn a_store_of_an_older_release_is_brought_up_to_date() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(MIGRATIONS[0]).unwrap();
        connection.execute("INSERT INTO recordings (recorded, command) VALUES (7, 'python a.py')", []).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        drop(connection);
        let store = Store::open(&path).unwrap();
        let query = "SELECT command, words FROM recordings";
        let row = store.connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(row, ("python a.py".to_owned(), None::<String>));
    }

    #[test]
    fn a_damaged_store_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        for damage in
            [&b"no database at all, but long enough to be taken for the header of one......................"[..], b""]
        {
            fs::write(&path, damage).unwrap();
            let store = Store::open(&path).unwrap();
            assert!(store.evaluation(b"k").unwrap().is_none());
        }
        let aside =
            fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
        assert_eq!(aside.filter(|name| name.starts_with("store.db.damaged-")).count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn store_files_are_readable_only_by_the_user() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/store.db");
        let mut store = Store::open(&path).unwrap();
        store.keep_evaluation(b"k", "{}").unwrap();
        for name in ["store.db", "store.db-wal", "store.db-shm"] {
            let mode = fs::metadata(path.with_file_name(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{name}");
        }
    }

    /// Several processes create the file and write to it at the same time. Threads with their own connections play
    /// them.
    #[test]
    fn concurrent_processes_can_create_and_write_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        std::thread::scope(|scope| {
            for writer in 0..8_u8 {
                let path = &path;
                scope.spawn(move || {
                    let mut store = Store::open(path).unwrap();
                    for key in 0..20 {
                        // The last connection that closes removes the log.
                        if writer % 2 == 0 {
                            drop(store);
                            store = Store::open(path).unwrap();
                        }
                        store.keep_evaluation(&[writer, key], "{}").unwrap();
                    }
                });
            }
        });
        let store = Store::open(&path).unwrap();
        let kept = |writer: u8| (0..20).filter(|&key| store.evaluation(&[writer, key]).unwrap().is_some()).count();
        assert_eq!((0..8).map(kept).sum::<usize>(), 160);
    }
}
