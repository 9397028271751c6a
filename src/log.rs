//! What is logged, for whoever looks for what takes long or went wrong.

use tracing_subscriber::EnvFilter;

/// Logs to standard error (standard output is the protocol, or the answer), at the level that `WARPSMITH_LOG` says.
pub(crate) fn start() {
    let filter = EnvFilter::try_from_env("WARPSMITH_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    // Already started by an embedding program: its choice stands.
    let _ = subscriber.try_init();
}
