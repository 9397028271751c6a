//! The build script that builds the worker module, so that the binary can embed it.
//!
//! It does so only with the feature `embed-worker`. The worker is the package `worker`, built as a Python extension
//! module; its path is passed in `WARPSMITH_WORKER_SO`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let feature = |name: &str| env::var_os(format!("CARGO_FEATURE_{name}")).is_some();
    if !feature("EMBED_WORKER") {
        return;
    }
    let watched = ["base", "fence", "protocol", "worker", "runtime/src/python/bytecode_cache.py"]
        .map(|name| format!("../{name}"));
    for watched in watched.iter().map(String::as_str).chain(["../../Cargo.toml", "../../Cargo.lock"]) {
        println!("cargo::rerun-if-changed={watched}");
    }
    let module = build_worker();
    println!("cargo::rustc-env=WARPSMITH_WORKER_SO={}", module.display());
}

/// Builds the extension module in a separate target folder, because the outer build holds the lock of the usual one.
/// The folder is beside that of build scripts, so that builds with other features and clippy's reuse the built worker.
fn build_worker() -> PathBuf {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let target = out.ancestors().nth(3).unwrap_or(&out).join("worker");
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets CARGO"));
    let triple = env::var("TARGET").expect("cargo sets TARGET");
    let linker = format!("CARGO_TARGET_{}_LINKER", triple.to_uppercase().replace(['-', '.'], "_"));
    // The inner build must not inherit this build's features: with `embed-worker` it would recurse forever.
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_")) {
        if name != "CARGO_HOME" && name != linker.as_str() {
            cargo.env_remove(name);
        }
    }
    // The worker is linked for the same target, so that it loads wherever the program runs.
    let mut built = target.clone();
    cargo.args(["rustc", "--locked", "--release", "--package", "worker", "--lib", "--crate-type", "cdylib"]);
    if env::var_os(&linker).is_some() || env::var_os("HOST") != env::var_os("TARGET") {
        cargo.args(["--target", &triple]);
        built.push(&triple);
    }
    let status = cargo
        .arg("--target-dir")
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
    ["libworker.so", "libworker.dylib", "worker.dll"]
        .iter()
        .map(|name| folder.join(name))
        .find(|path| path.exists())
        .expect("cargo made the shared library")
}
