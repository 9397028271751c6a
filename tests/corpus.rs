//! Published kernels: each error that a rule reports in them is a known, audited one.
//!
//! The packages come from PyPI with pip and stay under `target/corpora`; nothing of them is committed.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use warpsmith::api::Target;
use warpsmith::rules::Severity;
use warpsmith::syntax::Source;

/// The folder with the unpacked wheel of `package`, downloaded if it is not there yet.
fn package(name: &str, version: &str) -> PathBuf {
    let corpora = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("corpora");
    let folder = corpora.join(format!("{name}-{version}"));
    if folder.is_dir() {
        return folder;
    }
    // Downloaded and unpacked beside its place and moved there when complete, so that a broken run leaves nothing.
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
    // Another test may have been faster.
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

fn python_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            python_files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "py") {
            into.push(path);
        }
    }
}

/// `path:line code` of each finding of this severity.
fn found(package: &Path, severity: Severity) -> Vec<String> {
    let mut files = Vec::new();
    python_files(package, &mut files);
    files.sort();
    assert!(!files.is_empty());
    let mut found = Vec::new();
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let source = Source::parse(text);
        let path = file.strip_prefix(package).unwrap().to_string_lossy().replace('\\', "/");
        for finding in common::findings(&source, Target::newest()) {
            if finding.severity == severity {
                found.push(format!("{path}:{} {}", source.lines().line_of(finding.span.start) + 1, finding.code));
            }
        }
    }
    found
}

#[test]
fn liger_kernel_has_its_known_errors_and_no_other() {
    let liger = package("liger-kernel", "0.8.5");
    // The dtypes of Triton-Ascend 3.2.0, for which the first two are written, cannot be called either.
    let known = [
        "liger_kernel/ops/backends/_ascend/ops/softmax.py:96 L002",
        "liger_kernel/ops/backends/_ascend/ops/softmax.py:97 L002",
        "liger_kernel/ops/softmax.py:44 L002",
        "liger_kernel/ops/softmax.py:45 L002",
        "liger_kernel/ops/softmax.py:98 L002",
    ];
    assert_eq!(found(&liger, Severity::Error), known);
    assert_eq!(found(&liger, Severity::Warning), [""; 0]);
}
