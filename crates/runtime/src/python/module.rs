//! The embedded worker module, which is unpacked once and loaded by the user's interpreter.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The bytes of the extension module; `None` if this binary was built without it.
#[cfg(feature = "embed-worker")]
const MODULE: Option<&[u8]> = Some(include_bytes!(env!("WARPSMITH_WORKER_SO")));
#[cfg(not(feature = "embed-worker"))]
const MODULE: Option<&[u8]> = None;

/// Why the worker module cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// The binary was built without it.
    #[error("this build of warpsmith has no worker; build it with the feature `embed-worker`")]
    Missing,
    /// The module cannot be written.
    #[error("cannot write the worker to {path}: {source}; set XDG_CACHE_HOME to a folder that can be written")]
    Unpack {
        /// The path of the unpacked module.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// Warpsmith's cache folder: `$XDG_CACHE_HOME/warpsmith`, else `~/.cache/warpsmith`.
#[must_use]
pub fn cache_folder() -> PathBuf {
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let base = env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from).or_else(home);
    base.unwrap_or_else(env::temp_dir).join("warpsmith")
}

/// Warpsmith's folder for persistent state: `$XDG_STATE_HOME/warpsmith`, else `~/.local/state/warpsmith`.
#[must_use]
pub fn state_folder() -> PathBuf {
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
    let base = env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from).or_else(home);
    base.unwrap_or_else(env::temp_dir).join("warpsmith")
}

/// Unpacks the module under the hash of its contents unless it is there, and returns its path.
///
/// # Errors
/// Returns [`ModuleError`] when this binary has no module or the module cannot be written.
pub(super) fn unpack() -> Result<PathBuf, ModuleError> {
    let bytes = MODULE.ok_or(ModuleError::Missing)?;
    let folder = cache_folder().join("worker");
    let path = folder.join(format!("{}.abi3.so", &blake3::hash(bytes).to_hex()[..16]));
    if !fs::metadata(&path).is_ok_and(|meta| meta.len() == bytes.len() as u64) {
        keep(&path, bytes).map_err(|source| ModuleError::Unpack { path: path.clone(), source })?;
    }
    Ok(path)
}

/// Writes a file and renames it into place, so that no other thread or process sees a part of it.
pub(super) fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut partial = tempfile::NamedTempFile::new_in(folder)?;
    partial.write_all(bytes)?;
    partial.persist(path)?;
    Ok(())
}

/// Python code that loads the module and runs `call` on it; the module is unpacked first if necessary.
///
/// # Errors
/// Returns [`ModuleError`] when this binary has no module or the module cannot be written.
pub fn module_call(call: &str) -> Result<String, ModuleError> {
    Ok(bootstrap(&unpack()?, call).to_string_lossy().into_owned())
}

/// Python code that loads the module and runs `call` on it.
///
/// Nothing is imported from the current folder, which `-c` puts first. The version is asked first: an interpreter older
/// than the stable interface it was built for would crash.
pub(super) fn bootstrap(module: &Path, call: &str) -> OsString {
    let path = module.display().to_string().replace('\\', "\\\\").replace('\'', "\\'");
    format!(
        "import sys\n\
         sys.path[:] = [place for place in sys.path if place]\n\
         if sys.version_info < (3, 10): sys.exit('warpsmith needs Python 3.10 or newer; this is ' + sys.version)\n\
         from importlib import machinery, util\n\
         loader = machinery.ExtensionFileLoader('_worker', '{path}')\n\
         worker = util.module_from_spec(util.spec_from_loader('_worker', loader))\n\
         loader.exec_module(worker)\n\
         worker.{call}\n"
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::keep;

    #[test]
    fn concurrent_starts_unpack_the_worker_once() {
        let folder = tempfile::tempdir().unwrap();
        let (path, bytes) = (folder.path().join("worker/module.so"), vec![7; 1 << 20]);
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..16).map(|_| scope.spawn(|| keep(&path, &bytes))).collect();
            all.into_iter().for_each(|one| one.join().unwrap().unwrap());
        });
        assert!(std::fs::read(&path).unwrap() == bytes);
        assert_eq!(std::fs::read_dir(folder.path().join("worker")).unwrap().count(), 1);
    }
}
