//! Programs in Python that the binary carries: unpacked once, started by the user's interpreter.

use std::path::PathBuf;
use std::{fs, io};

use super::module::{cache_folder, keep};

/// The part of a program that keeps what Python compiles.
pub const BYTECODE: (&str, &str) = ("warpsmith_bytecode.py", include_str!("bytecode.py"));

/// There is no place for a script.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to {path}: {source}; set XDG_CACHE_HOME to a folder that can be written")]
pub struct ScriptError {
    path: PathBuf,
    source: io::Error,
}

/// Writes the files of a program, by name and text, into a folder of their own, so that nothing beside them can be
/// imported by mistake. Returns the first, which is the one to start.
///
/// # Errors
/// [`ScriptError`] when there is no place for them.
pub fn unpack_scripts(program: &str, scripts: &[(&str, &str)]) -> Result<PathBuf, ScriptError> {
    let mut hash = blake3::Hasher::new();
    scripts.iter().for_each(|(_, text)| _ = hash.update(text.as_bytes()));
    let folder = cache_folder().join(program).join(&hash.finalize().to_hex()[..16]);
    for (name, text) in scripts {
        let path = folder.join(name);
        // Others may start it at the same time, and an editor of the user's may have been in there.
        if !fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            keep(&path, text.as_bytes()).map_err(|source| ScriptError { path, source })?;
        }
    }
    Ok(folder.join(scripts.first().map_or("", |(name, _)| name)))
}
