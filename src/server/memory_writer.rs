//! The writer of the skill memory, on a thread of its own, because the store may have to wait for other processes.

use learn::SkillMemory as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use rules::learned::{LearnedRule, LearnedRules};
use runtime::python::state_folder;
use store::{Accepted, RefusedKernel, Store, StoreError};

/// Number of kernels that may wait to be written; further ones are dropped.
const WAITING: usize = 256;
/// Number of messages that are handled at once.
const BATCH: usize = 64;
/// Time limit at the end of the server for notes that are not written yet.
const PATIENCE: Duration = Duration::from_secs(3);

/// A note for the skill memory.
#[derive(Clone, Debug, PartialEq)]
pub enum MemoryNote {
    /// Triton has refused a kernel.
    Failed(Box<RefusedKernel>),
    /// Triton has accepted a kernel.
    Compiled(Accepted),
    /// Triton has accepted a kernel that a rule flags.
    Disproved {
        /// The disproved rule.
        rule: Box<LearnedRule>,
        /// The kernel that the rule flags.
        kernel: String,
        /// The version of Triton that accepted it.
        triton: String,
    },
    /// The user has muted the rule with this code.
    Muted(String),
}

enum Message {
    Note(MemoryNote),
    /// Answered when all earlier notes are written.
    Flush(SyncSender<()>),
}

static WRITER: OnceLock<Option<Sender<Message>>> = OnceLock::new();
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The skill memory of this user; the shipped one when the user's cannot be read.
pub(crate) fn memory() -> LearnedRules {
    // The notes of this server are written first, so that they are included.
    flush();
    Store::memory_or_shipped(&state_folder())
}

/// Queues a note to be written.
pub(crate) fn remember(note: MemoryNote) {
    let writer = WRITER.get_or_init(|| {
        let (sender, notes) = channel();
        let started = std::thread::Builder::new().name("memory".to_owned()).spawn(move || run(&notes));
        started.inspect_err(|error| tracing::warn!(%error, "the skill memory writer cannot start")).ok().map(|_| sender)
    });
    let Some(writer) = writer else { return };
    let may_be_left_out = matches!(note, MemoryNote::Failed(_) | MemoryNote::Compiled(_));
    if may_be_left_out && COUNT.load(Ordering::Relaxed) >= WAITING {
        tracing::info!("too many notes wait to be written; a kernel is dropped");
        return;
    }
    COUNT.fetch_add(1, Ordering::Relaxed);
    let _ = writer.send(Message::Note(note));
}

/// Waits until all notes are written, up to a time limit.
pub(crate) fn flush() {
    let Some(Some(writer)) = WRITER.get() else { return };
    let (done, written) = sync_channel(1);
    if writer.send(Message::Flush(done)).is_ok() && written.recv_timeout(PATIENCE).is_err() {
        tracing::warn!("the skill memory could not be written in time");
    }
}

fn run(messages: &Receiver<Message>) {
    while let Ok(first) = messages.recv() {
        let (mut notes, mut waiting) = (Vec::new(), Vec::new());
        for message in std::iter::once(first).chain(messages.try_iter().take(BATCH)) {
            match message {
                Message::Note(note) => notes.push(note),
                Message::Flush(done) => waiting.push(done),
            }
        }
        COUNT.fetch_sub(notes.len(), Ordering::Relaxed);
        let written = Store::of_user(&state_folder()).and_then(|mut store| write(&mut store, &notes));
        if let Err(error) = written {
            tracing::warn!(%error, "the skill memory cannot be written");
        }
        for done in waiting {
            // The receiver may have stopped waiting.
            let _ = done.send(());
        }
    }
}

fn write(store: &mut Store, notes: &[MemoryNote]) -> Result<(), StoreError> {
    let failures =
        notes.iter().filter_map(|note| if let MemoryNote::Failed(failure) = note { Some(&**failure) } else { None });
    store.keep_failures(failures)?;
    let taken =
        notes.iter().filter_map(|note| if let MemoryNote::Compiled(kernel) = note { Some(kernel) } else { None });
    store.keep_accepted(taken)?;
    for note in notes {
        match note {
            MemoryNote::Disproved { rule, kernel, triton } => store.disprove(rule, kernel, triton)?,
            MemoryNote::Muted(code) => store.mute(code, true)?,
            MemoryNote::Failed(_) | MemoryNote::Compiled(_) => {}
        }
    }
    Ok(())
}
