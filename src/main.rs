//! The entry point of the binary: it runs the command line, which includes the language server (see
//! `warpsmith::cli`).

#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    warpsmith::cli::main()
}
