//! The reaction to Ctrl-C and termination signals: a command ends in order, so that it leaves nothing behind.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status that shells use for a program that Ctrl-C has ended.
const INTERRUPTED: i32 = 130;

/// A flag that Ctrl-C and termination signals set. The second signal ends the process at once.
pub(super) fn stopping() -> Arc<AtomicBool> {
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stopped);
    let handler = move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    };
    // A handler that was set earlier in this process stays.
    let _ = ctrlc::set_handler(handler);
    stopped
}

/// A reader that also ends when this process is asked to end.
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

/// Waits a moment for bytes, or for the end of the stream.
#[expect(unsafe_code, reason = "nothing else waits for a descriptor of any kind")]
fn is_readable(of: &impl AsFd) -> io::Result<bool> {
    const MOMENT: i32 = 200;
    let mut asked = libc::pollfd { fd: of.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to a single local variable that is alive.
    match unsafe { libc::poll(&raw mut asked, 1, MOMENT) } {
        -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Ok(false),
        -1 => Err(io::Error::last_os_error()),
        found => Ok(found > 0),
    }
}
