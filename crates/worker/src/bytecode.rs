//! Caching of Python bytecode, so that imports are compiled once instead of in each process.

use pyo3::prelude::*;

use protocol::BYTECODE_ENV;

use crate::python_modules::helper;

/// The modules of Triton that children import when they launch or compile, where the installed release has them.
const LATER: &[&str] = &[
    "triton.runtime.interpreter",
    "triton.compiler.code_generator",
    "triton.tools.tensor_descriptor",
    "triton.experimental.gluon.nvidia.hopper",
    "triton.experimental.gluon.nvidia.blackwell",
    "triton.experimental.gluon.amd.gfx1250",
];

/// Imports torch and Triton and calls `others`, and keeps the compiled bytecode where no other cache does
/// (`bytecode_cache.py`).
pub(super) fn kept<T>(py: Python<'_>, others: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let Some(folder) = std::env::var_os(BYTECODE_ENV) else { return uncollected(py, others) };
    let ours = helper(py, "_warpsmith_bytecode_cache", include_str!("../../runtime/src/python/bytecode_cache.py"))?;
    let kept = ours.getattr("kept")?.call1((("torch", "triton"), folder))?;
    kept.call_method0("__enter__")?;
    let imported = uncollected(py, others);
    kept.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
    imported
}

/// Imports without looking for garbage. Imports leave little of it, and the search takes a sixth of their time.
fn uncollected<T>(py: Python<'_>, imports: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let collector = py.import("gc")?;
    collector.call_method0("disable")?;
    let imported = imports();
    collector.call_method0("enable")?;
    imported
}

/// Imports the modules that children would otherwise import themselves.
pub(super) fn import_later(py: Python<'_>) {
    for module in LATER {
        let _ = py.import(*module);
    }
}
