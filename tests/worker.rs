//! Runs the tests of the worker's Python modules, which need the torch of `WARPSMITH_TEST_PYTHON`.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The worker as the binary carries it, unpacked into `cache`.
fn worker(cache: &Path) -> PathBuf {
    // The recorder unpacks the worker for any program that it records.
    let file = cache.join("file.py");
    let text = "import triton\n@triton.jit\ndef k(): pass\ndef f():\n    k[(1,)]()\n";
    std::fs::write(&file, text).unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_warpsmith"))
        .args(["record", "--", "python"])
        .arg(file)
        .current_dir(cache)
        .env("WARPSMITH_FAKE_DEVICE", "toy")
        .env("XDG_CACHE_HOME", cache)
        .output()
        .unwrap();
    let mut found = std::fs::read_dir(cache.join("warpsmith/worker")).into_iter().flatten();
    found.next().unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&ran.stderr))).unwrap().path()
}

fn run(module: &str) {
    run_with(module, None);
}

fn run_with(module: &str, worker: Option<&Path>) {
    let python = std::env::var_os("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worker");
    let ran = Command::new(python)
        .args(["-B", "-m", "unittest", "-v", module])
        .current_dir(tests)
        .env("OMP_NUM_THREADS", "1")
        .env("WARPSMITH_TEST_WORKER", worker.unwrap_or(Path::new("")))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{}{told}", String::from_utf8_lossy(&ran.stdout));
    // `unittest` may succeed without having found tests.
    assert!(told.contains("\nOK"), "{told}");
}

#[test]
fn results_are_compared_by_the_error_of_the_original() {
    run("test_compare");
    run("test_launch_variants");
    run("test_summed_terms");
}

#[test]
fn large_equal_tensors_are_stored_once() {
    run("test_bits");
}

#[test]
fn right_kernels_are_accepted_and_wrong_ones_refused() {
    run("test_kernels");
}

#[test]
fn judging_without_torch_gives_the_same_verdicts() {
    let cache = tempfile::tempdir().unwrap();
    run_with("test_torch_free", Some(&worker(cache.path())));
}

#[test]
fn generated_inputs_have_the_requested_contents() {
    run("test_inputs");
}

#[test]
fn needed_arguments_are_those_that_results_depend_on() {
    run("test_argument_needs");
}

#[test]
fn bytecode_is_cached_once() {
    run("test_bytecode_cache");
}

/// The Python files and libraries of a package, without what Python has compiled.
fn link(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        match path.is_dir() {
            _ if name == "__pycache__" => {}
            true => link(&path, &to.join(name)),
            false => std::os::unix::fs::symlink(path, to.join(name)).unwrap(),
        }
    }
}

/// The paths of the compiled modules below a folder, without `__pycache__/`.
fn compiled(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| match path.is_dir() {
        true => compiled(&path),
        false => vec![path.display().to_string().replace("__pycache__/", "")],
    };
    entries.flat_map(below).filter(|path| path.ends_with(".pyc")).collect()
}

#[test]
fn bytecode_is_cached_for_interpreters_that_write_none() {
    let python = std::env::var_os("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let folder = tempfile::tempdir().unwrap();
    let of = |path: &str| folder.path().join(path);
    let asked = Command::new(&python).args(["-c", "import triton; print(triton.__path__[0])"]).output().unwrap();
    let triton = PathBuf::from(String::from_utf8(asked.stdout).unwrap().trim());
    let made = Command::new(&python).args(["-m", "venv", "--without-pip"]).arg(of("venv")).status().unwrap();
    assert!(made.success());
    let site = std::fs::read_dir(of("venv/lib")).unwrap().next().unwrap().unwrap().path().join("site-packages");
    for entry in std::fs::read_dir(triton.parent().unwrap()).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if ["triton", "numpy"].iter().any(|package| name.starts_with(package)) && entry.path().is_dir() {
            link(&entry.path(), &site.join(name));
        }
    }
    let settings = format!("python = '{}'\n", of("venv/bin/python").display());
    std::fs::write(of("warpsmith.toml"), settings).unwrap();
    for (cache, option) in [("compiler", None), ("evaluator", Some("--evaluator"))] {
        let ran = Command::new(env!("CARGO_BIN_EXE_warpsmith"))
            .arg("doctor")
            .args(option)
            .current_dir(folder.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("WARPSMITH_FAKE_DEVICE", "toy")
            .env("XDG_CACHE_HOME", of(cache))
            .env("XDG_STATE_HOME", of("state"))
            .output()
            .unwrap();
        let (said, kept) = (String::from_utf8_lossy(&ran.stdout), compiled(&of(cache).join("warpsmith/bytecode")));
        for module in ["triton/__init__", "triton/compiler/code_generator"] {
            let count = kept.iter().filter(|path| path.contains(&format!("site-packages/{module}."))).count();
            assert_eq!(count, 1, "{module}: {kept:?}, {said}");
        }
    }
    assert!(compiled(&site).is_empty(), "it is not ours to write there");
}
