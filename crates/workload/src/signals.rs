//! Forwarding of signals to the recorded command, which runs on the user's terminal. The recorder itself has to outlive
//! the command.

use std::io;
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};

const PASSED: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// The signals to forward, one bit each.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// A guard that installs the signal handlers; while it exists, these signals do not end this process.
pub(super) struct SignalShield {
    before: Vec<(libc::c_int, libc::sigaction)>,
}

#[expect(unsafe_code, reason = "which process a signal comes from is told in a struct of C's")]
extern "C" fn note(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // The terminal sends its signals (Ctrl-C) to the command as well.
    let is_for_all = if cfg!(target_os = "linux") {
        // SAFETY: the system gives a live struct to a handler that asks for it.
        unsafe { (*info).si_code > 0 }
    } else {
        signal != libc::SIGTERM
    };
    if !is_for_all {
        ASKED.fetch_or(1 << signal, Ordering::Relaxed);
    }
}

#[expect(unsafe_code, reason = "handlers that are told who sends, and signals to a child, are the system's")]
impl SignalShield {
    pub(super) fn new() -> Self {
        ASKED.store(0, Ordering::Relaxed);
        let mut before = Vec::new();
        for signal in PASSED {
            // SAFETY: all zeros are a valid struct, with an empty mask.
            let (mut new, mut old): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
            new.sa_sigaction = note as *const () as usize;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            // SAFETY: the pointers are to live locals, and the handler only stores a number.
            unsafe {
                libc::sigaction(signal, std::ptr::null(), &raw mut old);
                // An ignored signal (`nohup`) stays ignored, also in the command.
                if old.sa_sigaction != libc::SIG_IGN && libc::sigaction(signal, &raw const new, &raw mut old) == 0 {
                    before.push((signal, old));
                }
            }
        }
        Self { before }
    }

    /// Forwards the signals that have arrived to the command.
    pub(super) fn pass(&self, process: &Child) -> io::Result<()> {
        let asked = ASKED.swap(0, Ordering::Relaxed);
        let id = i32::try_from(process.id()).map_err(io::Error::other)?;
        for (signal, _) in self.before.iter().filter(|(signal, _)| asked & 1 << signal != 0) {
            // SAFETY: a system call without memory; the child was not waited for, so the number is its own.
            unsafe { libc::kill(id, *signal) };
        }
        Ok(())
    }
}

#[expect(unsafe_code, reason = "handlers are put back as they were")]
impl Drop for SignalShield {
    fn drop(&mut self) {
        for (signal, old) in &self.before {
            // SAFETY: the pointer is to what the system gave.
            unsafe { libc::sigaction(*signal, std::ptr::from_ref(old), std::ptr::null_mut()) };
        }
    }
}
