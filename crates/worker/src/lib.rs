//! The extension module that the user's own Python loads: it records calls, makes them again, and checks and times
//! candidates.
//!
//! All code here runs inside a foreign interpreter. It exchanges frames of [`protocol`] over a private pipe and never
//! writes to standard output.

mod arrays;
mod buffers;
mod bytecode;
mod call_registry;
mod classes;
mod comparer;
mod compile;
mod device_files;
mod evasion;
mod fingerprint;
mod forker;
mod launch;
mod launch_compilation;
mod models;
pub mod numbers;
mod objects;
mod probe;
mod record;
mod recorded_calls;
mod recorder;
mod replay;
mod rerun;
mod result_export;
mod result_parts;
mod runner;
mod runner_requests;
mod sandbox;
mod sanitized_call;
mod supervisor;
mod tamper_check;
mod timed_calls;
mod timing;
mod torch_free;
mod torch_memory;
mod tuning;
mod types;
mod values;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// An error of the worker as a Python exception with this text.
fn failed(message: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(message.to_string())
}

/// The Python helpers in `shim.py`, imported once.
fn shim(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_shim", include_str!("shim.py"))
}

/// One of the worker's Python modules, imported once.
fn helper<'py>(py: Python<'py>, name: &str, text: &str) -> PyResult<Bound<'py, PyModule>> {
    let modules = py.import("sys")?.getattr("modules")?;
    if let Ok(module) = modules.get_item(name) {
        return Ok(module.cast_into()?);
    }
    let c = |text: &str| std::ffi::CString::new(text).map_err(failed);
    let module = PyModule::from_code(py, &c(text)?, &c(&format!("{name}.py"))?, &c(name)?)?;
    modules.set_item(name, &module)?;
    Ok(module)
}

/// The Python module that compares results.
fn compare(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    bits(py)?;
    helper(py, "_warpsmith_floats", include_str!("floats.py"))?;
    helper(py, "_warpsmith_compare", include_str!("compare.py"))
}

/// The Python module that compares bits.
fn bits(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    poison(py)?;
    helper(py, "_warpsmith_bits", include_str!("bits.py"))
}

/// The Python module for the weights of models.
fn weights(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_weights", include_str!("weights.py"))
}

/// The Python module for random numbers from generators that no argument names.
fn generators(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_generators", include_str!("generators.py"))
}

/// A new context manager that lists the kernels that run inside it.
fn kernels(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    helper(py, "_warpsmith_kernels", include_str!("kernels.py"))?.getattr("Listing")?.call0()
}

/// A hash of a seed from which the seed cannot be derived: candidates may read the seed of a random number generator,
/// and the numbers of other calls follow from the seed of one.
fn mixed(seed: u64) -> u64 {
    let hash = blake3::hash(&seed.to_le_bytes());
    hash.as_bytes().iter().take(7).fold(0, |all, &byte| all << 8 | u64::from(byte))
}

/// The Python module that fills memory that torch leaves uninitialized.
fn poison(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_poison", include_str!("poison.py"))
}

/// Whether an error means that the device ran out of memory; torch, its allocator and the driver have different
/// messages for that.
fn lacks_memory(error: &PyErr) -> bool {
    let text = error.to_string();
    ["OutOfMemoryError", "out of memory", "OUT_OF_MEMORY"].iter().any(|words| text.contains(words))
}

/// A Python exception with its last stack frames, as text for reports.
fn describe(py: Python<'_>, error: &PyErr) -> String {
    const FRAMES: usize = 4;
    let lines = || -> PyResult<Vec<String>> {
        let traceback = py.import("traceback")?;
        let kwargs = pyo3::types::PyDict::new(py);
        kwargs.set_item("limit", -(FRAMES as i64))?;
        traceback
            .call_method("format_exception", (error.get_type(py), error.value(py), error.traceback(py)), Some(&kwargs))?
            .extract()
    };
    lines().map_or_else(|_| error.to_string(), |lines| lines.concat().trim_end().to_owned())
}

#[pymodule]
mod _worker {
    #[pymodule_export]
    use super::forker::forker;
    #[pymodule_export]
    use super::record::run_recorded;
    #[pymodule_export]
    use super::rerun::compare;
    #[pymodule_export]
    use super::rerun::replay;
    #[pymodule_export]
    use super::sanitized_call::checked;
}
