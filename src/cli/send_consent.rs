//! The user's consent to send text to a language model, asked for where there is a terminal.

use std::io::{self, IsTerminal};

/// Whether the user agrees, or has agreed by `--send`.
pub(super) fn agreed(question: &str, sends: bool) -> bool {
    if sends {
        return true;
    }
    if !io::stdin().is_terminal() {
        eprintln!("{question}\nNothing is sent: to agree, run it in a terminal, or with --send.");
        return false;
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    let _ = io::stdin().read_line(&mut answer);
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}
