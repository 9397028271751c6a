//! Tests on published kernels: each error that a rule reports in them is known and audited.
//!
//! The module `packages` downloads the kernels.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

mod common;
#[path = "common/packages.rs"]
mod packages;

use std::path::{Path, PathBuf};

use model::api::TritonTarget;
use model::syntax::Source;
use packages::package;
use rules::Severity;

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
        for finding in common::findings(&source, TritonTarget::newest()) {
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
    // The first two are for dtypes of Triton-Ascend 3.2.0, which cannot be called either.
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
