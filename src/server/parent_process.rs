//! A watchdog that ends the server when the editor's process has died without a message.

use std::time::Duration;

/// Period of the check for the editor's process. The pipe usually closes when the process dies; this is for when it
/// cannot.
const PERIOD: Duration = Duration::from_secs(2);

/// Watches process `id`, from a thread of its own.
pub(crate) fn watch_parent(id: i32) {
    let watch = move || {
        while is_alive(id) {
            std::thread::park_timeout(PERIOD);
        }
        tracing::warn!(id, "the editor's process is gone; ending");
        std::process::exit(1);
    };
    if let Err(error) = std::thread::Builder::new().name("parent".to_owned()).spawn(watch) {
        tracing::warn!(%error, "cannot watch the editor's process");
    }
}

#[cfg(unix)]
fn is_alive(id: i32) -> bool {
    // Zero and negative numbers name groups of processes.
    if id <= 0 {
        return true;
    }
    #[expect(unsafe_code, reason = "signal 0 only asks whether the process exists")]
    let found = unsafe { libc::kill(id, 0) } == 0;
    found || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// On other systems a closed pipe is the only sign.
#[cfg(not(unix))]
fn is_alive(_: i32) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_was_waited_for() {
        assert!(is_alive(std::process::id().try_into().unwrap()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!is_alive(child.id().try_into().unwrap()));
    }
}
