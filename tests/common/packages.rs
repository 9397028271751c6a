//! Published packages, downloaded with pip and kept under `target/corpora`. They are not committed.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the unpacked wheel of `package`, downloaded if it is not there yet.
pub(crate) fn package(name: &str, version: &str) -> PathBuf {
    let corpora = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("corpora");
    let folder = corpora.join(format!("{name}-{version}"));
    if folder.is_dir() {
        return folder;
    }
    // The package is unpacked in a temporary folder and moved when it is complete, so that a broken run leaves nothing.
    std::fs::create_dir_all(&corpora).unwrap();
    let work = tempfile::tempdir_in(&corpora).unwrap();
    let requirement = format!("{name}=={version}");
    let wheels = work.path().join("wheels");
    python(
        &["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest"],
        &wheels,
        &requirement,
    );
    let wheel = std::fs::read_dir(&wheels).unwrap().next().expect("pip downloads a wheel").unwrap().path();
    let unpacked = work.path().join("unpacked");
    python(&["-m", "zipfile", "--extract"], &wheel, unpacked.to_str().unwrap());
    // Another test may have finished first.
    if std::fs::rename(&unpacked, &folder).is_err() {
        assert!(folder.is_dir());
    }
    folder
}

fn python(args: &[&str], path: &Path, last: &str) {
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let status = Command::new(python).args(args).arg(path).arg(last).status().expect("python3 is installed");
    assert!(status.success(), "python3 {args:?} {} {last}: {status}", path.display());
}
