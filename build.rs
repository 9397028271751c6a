//! Builds the worker and hands its path to the server, so that the one binary carries both halves; lists the learned patterns.
//!
//! The worker only with the feature `embed-worker`; it is this package again, as a Python extension module.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let feature = |name: &str| env::var_os(format!("CARGO_FEATURE_{name}")).is_some();
    if feature("SERVER") {
        list_patterns();
    }
    if !feature("EMBED_WORKER") || !feature("SERVER") {
        return;
    }
    for watched in
        ["src/worker", "src/python/bytecode.py", "src/protocol", "src/fence", "src/lib.rs", "Cargo.toml", "Cargo.lock"]
    {
        println!("cargo::rerun-if-changed={watched}");
    }
    let module = build_worker();
    println!("cargo::rustc-env=WARPSMITH_WORKER_SO={}", module.display());
}

/// Lists the patterns of learned rules that are shipped, with their texts: a new one needs its file only.
fn list_patterns() {
    let folder = Path::new("queries/learned");
    println!("cargo::rerun-if-changed={}", folder.display());
    let files = fs::read_dir(folder).expect("the patterns are there").flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "scm")).collect();
    files.sort();
    let mut list = "const SHIPPED_PATTERNS: &[(&str, &str)] = &[\n".to_owned();
    for file in files {
        let name = file.file_stem().and_then(|name| name.to_str()).expect("patterns have plain names");
        let text = fs::read_to_string(&file).expect("patterns are texts");
        list.push_str(&format!("    ({name:?}, {text:?}),\n"));
    }
    list.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("learned_patterns.rs"), list).expect("the list can be written");
}

/// Builds the extension module in a target folder of its own: the outer build holds the lock of the usual one. It lies beside the
/// folder of build scripts, where builds with other features, and clippy's, find the worker built.
fn build_worker() -> PathBuf {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let target = out.ancestors().nth(3).unwrap_or(&out).join("worker");
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets CARGO"));
    let triple = env::var("TARGET").expect("cargo sets TARGET");
    let linker = format!("CARGO_TARGET_{}_LINKER", triple.to_uppercase().replace(['-', '.'], "_"));
    // The inner build has features of its own: with this one's it would build itself for ever.
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_")) {
        if name != "CARGO_HOME" && name != linker.as_str() {
            cargo.env_remove(name);
        }
    }
    // Linked as the rest is, so that the worker starts wherever the program does.
    let mut built = target.clone();
    cargo.args(["rustc", "--locked", "--release", "--lib", "--crate-type", "cdylib"]);
    if env::var_os(&linker).is_some() || env::var_os("HOST") != env::var_os("TARGET") {
        cargo.args(["--target", &triple]);
        built.push(&triple);
    }
    let status = cargo
        .args(["--no-default-features", "--features", "worker", "--target-dir"])
        .arg(&target)
        .env("PYO3_BUILD_EXTENSION_MODULE", "1")
        .env("PYO3_NO_PYTHON", "1")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the worker did not build; its errors are above");
    let module = out.join("_worker.abi3.so");
    fs::copy(find_library(&built.join("release")), &module).expect("the worker can be copied");
    module
}

fn find_library(folder: &Path) -> PathBuf {
    ["libwarpsmith.so", "libwarpsmith.dylib", "warpsmith.dll"]
        .iter()
        .map(|name| folder.join(name))
        .find(|path| path.exists())
        .expect("cargo made the shared library")
}
