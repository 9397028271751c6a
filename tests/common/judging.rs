//! A project with an original and candidates, which are judged on a simulated device.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A kernel that doubles its argument, for all strides.
pub(crate) const SCALE: &str = r#"
import os
import subprocess
import sys
import threading
import time

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=scale x=f32[5,12]

@triton.jit
def scale_kernel(x_ptr, out_ptr, stride, step, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * stride + at * step, mask=mask)
    y = x * 2.0
    tl.store(out_ptr + row * columns + at, y, mask=mask)

def scale(x):
    BLOCK = 4
    rows, columns = x.shape
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    grid = (rows, triton.cdiv(columns, BLOCK))
    scale_kernel[grid](x, out, x.stride(0), x.stride(1), columns, BLOCK=BLOCK)
    return out
"#;

/// A candidate: the text of the original that is replaced, and its replacement.
pub(crate) type Edit<'a> = (&'a str, &'a str);

/// Fewer programs, with which the simulated device is faster.
pub(crate) const FASTER: Edit<'_> = ("BLOCK = 4\n", "BLOCK = 16\n");
/// A candidate with wrong results.
pub(crate) const WRONG: Edit<'_> = ("y = x * 2.0", "y = x * 2.5");

pub(crate) struct Project(tempfile::TempDir);

impl Project {
    /// Writes `original.py`, and each candidate by its name into the folder `candidates`.
    pub(crate) fn new(original: &str, candidates: &[(&str, Edit<'_>)]) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        // A `.git` folder makes this folder the workspace, wherever temporary folders are.
        for folder in [".git", "candidates"] {
            std::fs::create_dir(project.path(folder)).unwrap();
        }
        project.write("original.py", original);
        for (name, (old, new)) in candidates {
            assert_eq!(original.matches(old).count(), 1, "{name} replaces one place");
            project.write(&format!("candidates/{name}.py"), &original.replace(old, new));
        }
        project
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Runs `verify`. Modules in the folder `first` take precedence over installed ones.
    pub(crate) fn verify(&self, args: &[&str]) -> Output {
        self.verify_with(&[], args)
    }

    pub(crate) fn verify_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Output {
        let args = [&["verify", "original.py"], args].concat();
        self.command(&args).envs(variables.iter().copied()).output().unwrap()
    }

    /// A command that runs the program in the project's folder, with the test's Python and the simulated device.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let python = test_python();
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpsmith"));
        command
            .args(args)
            .current_dir(self.0.path())
            .env("WARPSMITH_FAKE_DEVICE", "toy")
            .env("XDG_STATE_HOME", self.path(".state"))
            .env("PYTHONPATH", self.path("first"))
            .env("VIRTUAL_ENV", python.parent().and_then(Path::parent).unwrap());
        command
    }

    /// Judges all candidates in one process. Returns the reports and the exit status.
    pub(crate) fn batch(&self, args: &[&str]) -> (Vec<Report>, Option<i32>) {
        self.batch_with(&[], args)
    }

    pub(crate) fn batch_with(&self, variables: &[(&str, &str)], args: &[&str]) -> (Vec<Report>, Option<i32>) {
        let ran = self.verify_with(variables, &[&["candidates", "--batch", "--json"], args].concat());
        let (out, err) = (text(&ran.stdout), text(&ran.stderr));
        let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}\n{err}"));
        let mut reports: Vec<Report> = out.lines().map(|line| Report(read(line))).collect();
        assert!(!reports.is_empty(), "{err}");
        reports.sort_by_key(Report::name);
        (reports, ran.status.code())
    }
}

/// The output of `verify --json` for a candidate.
pub(crate) struct Report(pub(crate) Value);

impl Report {
    /// The name of the candidate's file, without `.py`.
    pub(crate) fn name(&self) -> String {
        let path = Path::new(self.0["candidate"].as_str().unwrap());
        path.file_stem().unwrap().to_string_lossy().into_owned()
    }

    /// `accepted`, `undecided`, or the reason why the candidate is refused.
    pub(crate) fn said(&self) -> &str {
        let verdict = self.0["verdict"].as_str().unwrap();
        if verdict == "refused" { self.0["reason"].as_str().unwrap() } else { verdict }
    }

    /// The names of the checks, and whether each passed.
    pub(crate) fn checks(&self) -> Vec<(String, bool)> {
        let all = self.0["checks"].as_array().unwrap().iter();
        all.map(|check| (check["name"].as_str().unwrap().to_owned(), check["passed"].as_bool().unwrap())).collect()
    }
}

pub(crate) fn test_python() -> PathBuf {
    std::env::var_os("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`").into()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
