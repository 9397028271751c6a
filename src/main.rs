//! The entry point of the binary: it runs the command line, which includes the language server (see
//! `warpsmith::cli`).

#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Settings of the allocator: memory that is free goes back to the system at once, and few threads share one arena. The
/// server waits most of the time, beside editors and programs that need the memory.
#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "jemalloc finds its settings by the name of a symbol")]
// SAFETY: jemalloc documents the name and the type of this symbol, and nothing else in the program defines it.
#[unsafe(export_name = "malloc_conf")]
pub static SETTINGS: &[u8; 44] = b"narenas:1,dirty_decay_ms:0,muzzy_decay_ms:0\0";

fn main() -> std::process::ExitCode {
    warpsmith::cli::main()
}
