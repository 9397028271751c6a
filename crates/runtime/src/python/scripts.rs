//! Embedded Python programs, which are unpacked once and started by the user's interpreter.

use std::path::PathBuf;
use std::{fs, io};

use super::module::{cache_folder, keep};

/// The name and text of the file that caches bytecode, which the programs include.
pub const BYTECODE: (&str, &str) = ("warpsmith_bytecode_cache.py", include_str!("bytecode_cache.py"));

/// An error: a file of a program cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to {path}: {source}; set XDG_CACHE_HOME to a folder that can be written")]
pub struct ScriptError {
    path: PathBuf,
    source: io::Error,
}

/// Writes the files of a program, by name and text, into a folder of their own, so that no other file can be imported
/// by mistake. Returns the path of the first file, which is the one to start.
///
/// # Errors
/// Returns [`ScriptError`] when a file cannot be written.
pub fn unpack_scripts(program: &str, scripts: &[(&str, &str)]) -> Result<PathBuf, ScriptError> {
    let mut hash = blake3::Hasher::new();
    scripts.iter().for_each(|(_, text)| _ = hash.update(text.as_bytes()));
    let folder = cache_folder().join(program).join(&hash.finalize().to_hex()[..16]);
    for (name, text) in scripts {
        let path = folder.join(name);
        // Other processes may start it at the same time, and the user may have edited a file.
        if !fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            keep(&path, text.as_bytes()).map_err(|source| ScriptError { path, source })?;
        }
    }
    Ok(folder.join(scripts.first().map_or("", |(name, _)| name)))
}
