//! The log of slow operations and failures, for finding their cause.

use tracing_subscriber::EnvFilter;

/// The crates of the program. In `WARPSMITH_LOG`, `warpsmith` means all of them.
const CRATES: [&str; 17] = [
    "warpsmith",
    "base",
    "compiler",
    "config",
    "fence",
    "ide",
    "judge",
    "learn",
    "llm",
    "model",
    "protocol",
    "rules",
    "runtime",
    "search",
    "store",
    "transform",
    "workload",
];

/// Starts logging to standard error (standard output has the protocol or the answer) at the levels in `WARPSMITH_LOG`;
/// by default, warnings.
pub(crate) fn start() {
    let directives = std::env::var("WARPSMITH_LOG").map(|directives| of_all_crates(&directives));
    let filter = directives.ok().and_then(|directives| EnvFilter::try_new(directives).ok());
    let filter = filter.unwrap_or_else(|| EnvFilter::new("warn"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    // This fails when a program that embeds this one has started a log, which is then used.
    let _ = subscriber.try_init();
}

/// The directives with one for each crate in place of one for `warpsmith`: `warpsmith=debug,h2=info`.
fn of_all_crates(directives: &str) -> String {
    let of_each = |directive: &str| match directive.trim().strip_prefix("warpsmith") {
        Some(level) if level.is_empty() || level.starts_with('=') => {
            CRATES.map(|name| format!("{name}{level}")).join(",")
        }
        _ => directive.to_owned(),
    };
    directives.split(',').map(of_each).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warpsmith_in_a_log_directive_means_all_crates() {
        let all = of_all_crates("warpsmith=debug,h2=info");
        assert!(all.contains("judge=debug,") && all.ends_with(",workload=debug,h2=info"), "{all}");
        assert_eq!(of_all_crates("warpsmith::server=debug,warn"), "warpsmith::server=debug,warn");
        assert!(of_all_crates("warpsmith").contains("judge,"));
        let folders = std::fs::read_dir("crates").unwrap().map(|entry| entry.unwrap().file_name());
        for folder in folders.filter(|folder| folder != "worker") {
            assert!(CRATES.iter().any(|name| folder == *name), "{folder:?} is missing");
        }
    }
}
