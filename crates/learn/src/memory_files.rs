//! Memory files in a folder: the rules in one file, and each pattern in a file of its own.

use std::io;
use std::path::{Path, PathBuf};

use rules::learned::{LearnedRule, Patterns, write};

/// The reason why rules were not written into a folder.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The folder of the patterns cannot be created.
    #[error("cannot make {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Writes `skill-memory.toml` into a folder, and the patterns into its subfolder `learned`.
///
/// # Errors
/// Returns an error when a folder cannot be created or a file cannot be written; earlier files stay.
pub fn save_rules(folder: &Path, rules: &[LearnedRule]) -> Result<(), SaveError> {
    let patterns = folder.join("learned");
    std::fs::create_dir_all(&patterns).map_err(|source| SaveError::Folder { path: patterns.clone(), source })?;
    let file =
        |path: PathBuf, text: &str| std::fs::write(&path, text).map_err(|source| SaveError::File { path, source });
    file(folder.join("skill-memory.toml"), &write(rules, Patterns::Beside))?;
    rules.iter().try_for_each(|rule| file(patterns.join(format!("{}.scm", rule.name)), &rule.pattern))
}
