//! The queue of searches: one search at a time measures on the devices, in the order of arrival.
//!
//! Each search holds a ticket, a locked file whose name contains its time of arrival. The system releases the lock
//! when a process dies, so no search waits for a dead one; servers and commands of one user share the queue. Two
//! searches that measure at a time would distort each other's times, and twenty that compile at a time would finish
//! none.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use runtime::python::state_folder;

use crate::observer::{Observer, Progress};
use crate::outcome::OptimizeError;
use crate::request::SearchRequest;

/// Period at which a waiting search looks at the queue.
const GLANCE: Duration = Duration::from_millis(50);

/// A place in the queue, which is given up on drop.
pub(super) struct QueueTicket {
    path: PathBuf,
    /// Locked as long as it is open.
    _file: File,
}

impl QueueTicket {
    /// Joins the queue whose tickets are in `folder`.
    ///
    /// # Errors
    /// Returns an error when the ticket cannot be created, locked or renamed.
    pub(super) fn join(folder: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(folder)?;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{:024}-{:010}-{count:010}", since.as_nanos(), std::process::id()));
        // The draft is locked before other processes see it under its final name, because they remove tickets
        // without a lock.
        let draft = path.with_extension("draft");
        let file = OpenOptions::new().write(true).create_new(true).open(&draft)?;
        file.lock()?;
        fs::rename(&draft, &path)?;
        Ok(Self { path, _file: file })
    }

    /// Number of searches that arrived earlier and have not ended.
    pub(super) fn ahead_count(&self) -> usize {
        let others = self.path.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        let earlier = others.filter(|entry| {
            let path = entry.path();
            path.extension().is_none() && path < self.path && is_held(&path)
        });
        earlier.count()
    }

    /// Waits until no earlier search is left; returns `false` if `waiting`, which receives their number, returns
    /// `false` first.
    pub(super) fn wait(&self, mut waiting: impl FnMut(usize) -> bool) -> bool {
        loop {
            let before = self.ahead_count();
            if before == 0 {
                return true;
            }
            if !waiting(before) {
                return false;
            }
            std::thread::sleep(GLANCE);
        }
    }
}

impl Drop for QueueTicket {
    fn drop(&mut self) {
        // A ticket that cannot be removed is swept away by later searches.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether a process holds the ticket; a ticket without a lock is removed.
fn is_held(path: &Path) -> bool {
    let Ok(file) = OpenOptions::new().write(true).open(path) else { return false };
    match file.try_lock() {
        Ok(()) => {
            let _ = fs::remove_file(path);
            false
        }
        Err(fs::TryLockError::WouldBlock) => true,
        Err(fs::TryLockError::Error(_)) => false,
    }
}

/// Waits until no earlier search measures on the same devices. There is no waiting without a queue, nor for a pool,
/// whose GPUs searches share.
pub(super) fn wait_in_queue(
    request: &SearchRequest,
    observer: &dyn Observer,
) -> Result<Option<QueueTicket>, OptimizeError> {
    if !request.settings.evaluator.pool.is_empty() {
        return Ok(None);
    }
    let command = &request.settings.evaluator.command;
    let devices = if !request.settings.evaluator.predict.is_empty() {
        "nowhere".to_owned()
    } else if command.is_empty() {
        "here".to_owned()
    } else {
        blake3::hash(command.join("\0").as_bytes()).to_hex()[..16].to_owned()
    };
    let ticket = match QueueTicket::join(&state_folder().join("queue").join(devices)) {
        Ok(ticket) => ticket,
        Err(error) => {
            tracing::warn!(%error, "searches do not wait for each other");
            return Ok(None);
        }
    };
    let is_next = ticket.wait(|before| {
        let others = if before == 1 { "another search".to_owned() } else { format!("{before} other searches") };
        observer.progress(&Progress::before(format!("waiting for {others}")));
        !observer.cancelled()
    });
    if is_next { Ok(Some(ticket)) } else { Err(OptimizeError::Cancelled) }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn searches_are_served_in_order_of_arrival() {
        let folder = tempfile::tempdir().unwrap();
        let tickets: Vec<QueueTicket> = (0..10).map(|_| QueueTicket::join(folder.path()).unwrap()).collect();
        assert_eq!(tickets.iter().map(QueueTicket::ahead_count).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
        let served = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for (number, ticket) in tickets.into_iter().enumerate().rev() {
                let served = &served;
                scope.spawn(move || {
                    assert!(ticket.wait(|before| before <= number));
                    served.lock().unwrap().push(number);
                });
            }
        });
        assert_eq!(served.into_inner().unwrap(), (0..10).collect::<Vec<_>>());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn tickets_of_ended_processes_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(format!("{:024}-1-0", 5)), "").unwrap();
        let ticket = QueueTicket::join(folder.path()).unwrap();
        assert_eq!(ticket.ahead_count(), 0);
        let second = QueueTicket::join(folder.path()).unwrap();
        assert!(!second.wait(|_| false), "whoever is stopped waits no longer");
        drop(ticket);
        assert!(second.wait(|_| false));
    }
}
