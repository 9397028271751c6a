//! Python environments for the demo and the tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;

use crate::process::{output, run};

/// The releases that all tests use.
pub(crate) const TRITON: &str = "triton==3.6.0";
pub(crate) const TORCH: &str = "torch==2.11.0";
/// Triton 3.6.0's interpreter does not support newer versions of NumPy.
pub(crate) const NUMPY: &str = "numpy<2.4";

/// The first interpreter on `PATH` that Triton 3.6.0 runs on.
pub(crate) fn interpreter() -> anyhow::Result<PathBuf> {
    const NEW_ENOUGH: &str = "import sys; assert (3, 10) <= sys.version_info < (3, 15); print(sys.executable)";
    for name in ["python3", "python3.12", "python3.11", "python3.13", "python3.10", "python"] {
        if let Ok(path) = output(Command::new(name).args(["-c", NEW_ENOUGH])) {
            return Ok(path.trim().into());
        }
    }
    bail!("no Python 3.10 to 3.14 on PATH: install Python 3.11")
}

/// Whether `python` can import all of `modules`.
pub(crate) fn has(python: &Path, modules: &[&str]) -> bool {
    let code = format!("import importlib.util as u; assert all(map(u.find_spec, {modules:?}))");
    output(Command::new(python).args(["-c", &code])).is_ok()
}

/// The interpreter of the environment in `folder`, which is created if needed, with `packages` installed.
pub(crate) fn environment(folder: &Path, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let stamp = folder.join("installed-by-xtask");
    let wanted = packages.join("\n");
    if python.exists() && std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    if !python.exists() {
        run(Command::new(interpreter()?).args(["-m", "venv"]).arg(folder))?;
    }
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages))?;
    std::fs::write(stamp, wanted)?;
    Ok(python)
}

/// Installs packages for `python` into `folder`, without their dependencies, unless they are there already.
pub(crate) fn unpack(python: &Path, packages: &[&str], folder: &Path) -> anyhow::Result<()> {
    let is_there = |package: &&str| folder.join(package.split(['=', '<']).next().unwrap_or_default()).is_dir();
    if packages.iter().all(is_there) {
        return Ok(());
    }
    if folder.is_dir() {
        std::fs::remove_dir_all(folder)?;
    }
    // The folder is renamed when it is complete, so that a broken run leaves nothing that looks like it.
    let partial = folder.with_added_extension("partial");
    let pip = ["-m", "pip", "--python"];
    let options = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"];
    run(Command::new(interpreter()?).args(pip).arg(python).args(options).arg("--target").arg(&partial).args(packages))?;
    std::fs::rename(&partial, folder)?;
    Ok(())
}
