//! The language server over stdio: the only module that knows LSP.
//!
//! One thread, the [`owner`], holds all state and runs one task at a time, in the order of arrival. [`backend`] has a line for
//! each message of the client: it sends the owner a task with the message's handler, which is in [`requests`] or
//! [`notifications`]. Requests to the *client* run on a task of their own ([`client`]), and what comes of them, and of threads
//! that search, compile or record, returns as a task for the owner, so the server never waits for a client that waits
//! for the server.
//!
//! Invariants:
//! - No handler awaits before it has sent its event: this keeps edits in order.
//! - The owner never waits: not for the client, not for a device, not for a search.
//! - Texts are current after each edit; they are parsed and checked once the queue is empty.
//! - Every published diagnostic and every edit names the version it was made for.

mod action_request;
mod backend;
mod bounded_cache;
mod client;
mod client_features;
mod commands;
mod compile;
mod compiler_queue;
mod diagnostics;
mod documents;
mod framing;
mod from_lsp;
mod idle_timer;
mod interpreter_changes;
mod interpreters;
mod ipython_magics;
mod jobs;
mod kernel_writing;
mod memory_state;
mod memory_writer;
mod model;
mod notebook;
mod notifications;
mod offer;
mod owner;
mod parent_process;
mod pending_inspection;
mod progress;
mod quiet_learning;
mod reply;
mod requests;
mod search_feed;
mod server_status;
mod settings;
mod skill_memory;
mod suppression;
mod survey;
mod survey_queue;
mod target;
mod to_lsp;
mod tools;
mod unit;
mod writable;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tower_lsp::{LspService, Server};

use backend::Backend;
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
    let (events, inbox) = owner::events();
    let (calls, outbox) = client::ClientSender::new();
    let (service, socket) = LspService::build(|client| {
        runtime.spawn(client::run(client, outbox));
        Backend::new(events.clone(), Arc::clone(&shut_down))
    })
    .custom_method("window/workDoneProgress/cancel", Backend::cancel_progress)
    .custom_method("$/setTrace", Backend::set_trace)
    .custom_method(server_status::METHOD, Backend::status)
    .custom_method(search_feed::METHOD, Backend::run_report)
    .custom_method(framing::MALFORMED, Backend::malformed)
    .finish();
    let for_owner = events.clone();
    let owner = std::thread::Builder::new()
        .name("owner".to_owned())
        .spawn(move || Owner::new(tools, for_owner, calls).run(inbox))
        .context("could not start the owner's thread")?;

    let server = Server::new(framing::FrameReader::new(input), output, socket).concurrency_level(CONCURRENCY);
    runtime.block_on(server.serve(service));
    events.exit();
    let _ = owner.join();
    memory_writer::flush();
    // A thread that reads standard input cannot be interrupted, so it is left running.
    runtime.shutdown_background();
    Ok(if shut_down.load(Ordering::SeqCst) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
