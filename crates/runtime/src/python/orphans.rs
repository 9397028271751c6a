//! Ending stray processes: those whose supervisors were killed.
//!
//! NVIDIA's tools start processes of their own. A process of `compute-sanitizer` whose parent was killed waits forever
//! for its answer and occupies a core (`TreeLauncherSubreaper`, 2026.4).

#![expect(unsafe_code, reason = "processes are ended by system calls")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use fence::process_tree;

/// The environment variable that marks all descendants of a forker.
pub(super) const MARK_ENV: &str = "WARPSMITH_FORKER";

/// How often processes are searched; a process that is starting a program shows no environment for a moment.
const LOOKS: usize = 3;
const PAUSE: Duration = Duration::from_millis(20);

/// A value for [`MARK_ENV`] that no other forker of this machine has.
pub(super) fn mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{}-{}-{now}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Kills all processes with this value of [`MARK_ENV`]. This is for a forker that was killed together with the
/// supervisors of its children.
pub(super) fn end_marked(mark: &str) {
    let variable = format!("{MARK_ENV}={mark}");
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(PAUSE);
        }
        for number in process_tree::all() {
            let environment = std::fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes()) {
                tracing::debug!(number, "an orphaned process is ended");
                // SAFETY: no pointers.
                unsafe { libc::kill(number, libc::SIGKILL) };
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn only_processes_with_the_mark_are_killed() {
        let (ours, other) = (mark(), mark());
        assert_ne!(ours, other);
        let sleeps = |mark: &str| Command::new("sleep").arg("60").env(MARK_ENV, mark).spawn().unwrap();
        let (mut stray, mut stays) = (sleeps(&ours), sleeps(&other));
        end_marked(&ours);
        assert_eq!(stray.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert_eq!(stays.try_wait().unwrap(), None);
        stays.kill().unwrap();
        stays.wait().unwrap();
    }
}
