//! The language server over stdio: the only module that knows LSP.
//!
//! One thread, the [`owner`], holds all state and handles one [`Event`](event::ServerEvent) at a time, in the order of
//! arrival. The protocol library (`tower-lsp-server`) only converts messages into events ([`backend`]); a request
//! waits there for the owner's answer. Requests to the *client* run on a task of their own ([`client`]), and the
//! answer comes back as an event, so the server never waits for a client that waits for the server.
//!
//! Invariants:
//! - No handler awaits before it has sent its event: this keeps edits in order.
//! - The owner never waits: not for the client, not for a device, not for a search.
//! - Texts are current after each edit; they are parsed and checked once the queue is empty.
//! - Every published diagnostic and every edit names the version it was made for.

mod backend;
mod capabilities;
mod client;
mod code_action;
mod code_lens;
mod compile;
mod completion;
mod definition;
mod diagnostics;
mod documents;
mod event;
mod feature;
mod framing;
mod from_lsp;
mod hover;
mod inlay_hints;
mod inspect;
mod interpreter;
mod ipython_magics;
mod jobs;
mod kernel_writing;
mod memory_writer;
mod model;
mod notebook;
mod offer;
mod optimize;
mod owner;
mod parent_process;
mod progress;
mod record;
mod report;
mod search;
mod semantic_tokens;
mod settings;
mod signature_help;
mod skill_memory;
mod status;
mod suppression;
mod survey;
mod symbols;
mod target;
mod to_lsp;
mod tools;
mod unit;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tower_lsp::{LspService, Server};

use backend::Backend;
use event::ServerEvent;
pub use memory_writer::MemoryNote;
use owner::Owner;
pub use tools::Tools;

/// Number of requests that may wait for their answer at once. A cancellation needs a free place too, so the limit
/// is higher than any client reaches.
const CONCURRENCY: usize = 1 << 16;
/// Threads for messages; the owner does the work itself.
const WORKERS: usize = 2;

/// Serves the editor on standard input and output until it sends `exit` or closes the streams.
///
/// The status is 0 after `shutdown` and `exit`, else 1.
///
/// # Errors
/// Returns an error when threads cannot be started.
pub fn serve() -> anyhow::Result<ExitCode> {
    serve_on(tokio::io::stdin(), tokio::io::stdout(), Tools::default())
}

/// Serves one client on any pair of streams, with the given tools.
///
/// # Errors
/// Returns an error when threads cannot be started.
pub fn serve_on<I, O>(input: I, output: O, tools: Tools) -> anyhow::Result<ExitCode>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("lsp")
        .enable_all()
        .build()
        .context("could not start the threads of the server")?;
    let shut_down = Arc::new(AtomicBool::new(false));
    let (events, inbox) = tokio::sync::mpsc::unbounded_channel();
    let (calls, outbox) = client::ClientSender::new();
    let (service, socket) = LspService::build(|client| {
        runtime.spawn(client::run(client, outbox, events.clone()));
        Backend::new(events.clone(), Arc::clone(&shut_down))
    })
    .custom_method("window/workDoneProgress/cancel", Backend::cancel_progress)
    .custom_method("$/setTrace", Backend::set_trace)
    .custom_method(status::METHOD, Backend::status)
    .custom_method(search::METHOD, Backend::search)
    .custom_method(framing::MALFORMED, Backend::malformed)
    .finish();
    let for_owner = events.clone();
    let owner = std::thread::Builder::new()
        .name("owner".to_owned())
        .spawn(move || Owner::new(tools, for_owner, calls).run(inbox))
        .context("could not start the owner's thread")?;

    let server = Server::new(framing::FrameReader::new(input), output, socket).concurrency_level(CONCURRENCY);
    runtime.block_on(server.serve(service));
    let _ = events.send(ServerEvent::Exit);
    let _ = owner.join();
    memory_writer::flush();
    // A thread that reads standard input cannot be interrupted, so it is left running.
    runtime.shutdown_background();
    Ok(if shut_down.load(Ordering::SeqCst) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
