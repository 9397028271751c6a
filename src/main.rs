//! The command line, the language server included: see `warpsmith::cli`.

fn main() -> std::process::ExitCode {
    warpsmith::cli::main()
}
