//! What a command does when somebody wants it to end: it ends by itself, so that nothing of it is left behind.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a shell calls the end of what Ctrl-C has ended.
const INTERRUPTED: i32 = 130;

/// Set by Ctrl-C and by the signals that ask a process to end. The second one ends it at once.
pub(super) fn stopping() -> Arc<AtomicBool> {
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stopped);
    let handler = move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    };
    // Whoever has set another one in this process keeps it.
    let _ = ctrlc::set_handler(handler);
    stopped
}

/// Bytes that end as well when this process is asked to end.
pub(super) struct InterruptibleReader<T> {
    pub(super) inner: T,
    pub(super) stopped: Arc<AtomicBool>,
}

impl<T: Read + AsFd> Read for InterruptibleReader<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.stopped.load(Ordering::Relaxed) {
            if is_readable(&self.inner)? {
                return self.inner.read(buffer);
            }
        }
        Ok(0)
    }
}

/// Waits a moment for bytes, or for the end of them.
#[expect(unsafe_code, reason = "nothing else waits for a descriptor of any kind")]
fn is_readable(of: &impl AsFd) -> io::Result<bool> {
    const MOMENT: i32 = 200;
    let mut asked = libc::pollfd { fd: of.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to one live local.
    match unsafe { libc::poll(&raw mut asked, 1, MOMENT) } {
        -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Ok(false),
        -1 => Err(io::Error::last_os_error()),
        found => Ok(found > 0),
    }
}
