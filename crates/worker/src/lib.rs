//! The half that the user's own Python loads: recording, replaying, checking, timing.
//!
//! Everything here runs inside a foreign interpreter. It talks frames of [`protocol`] over a private pipe and
//! never writes to standard output.

mod again;
mod arrays;
mod book;
mod buffers;
mod bytecode;
mod checked;
mod classes;
mod comparer;
mod compile;
mod draft;
mod export;
mod forker;
mod guard;
mod keeper;
mod kept;
mod launch;
mod models;
mod nodes;
pub mod numbers;
mod objects;
mod parts;
mod probe;
mod raw;
mod ready;
mod record;
mod recorder;
mod replay;
mod runner;
mod sandbox;
mod serve;
mod sketch;
mod timed;
mod timing;
mod tuning;
mod types;
mod values;
mod watch;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// What goes wrong inside the worker, as the text of a Python exception.
fn failed(message: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(message.to_string())
}

/// The Python helpers, imported once.
fn shim(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_shim", include_str!("shim.py"))
}

/// A module of ours in Python, imported once.
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

/// Comparing results.
fn compare(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    bits(py)?;
    helper(py, "_warpsmith_floats", include_str!("floats.py"))?;
    helper(py, "_warpsmith_compare", include_str!("compare.py"))
}

/// Comparing bits.
fn bits(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    poison(py)?;
    helper(py, "_warpsmith_bits", include_str!("bits.py"))
}

/// Weights of models.
fn weights(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_weights", include_str!("weights.py"))
}

/// Random numbers that nobody names a generator for.
fn chance(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_chance", include_str!("chance.py"))
}

/// A new list of the kernels that run while it is entered.
fn kernels(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    helper(py, "_warpsmith_kernels", include_str!("kernels.py"))?.getattr("Listing")?.call0()
}

/// What does not tell the number that it was made from: code that is called may ask for the seed of a generator, and the numbers of
/// other calls follow from those of one.
fn mixed(seed: u64) -> u64 {
    let hash = blake3::hash(&seed.to_le_bytes());
    hash.as_bytes().iter().take(7).fold(0, |all, &byte| all << 8 | u64::from(byte))
}

/// Filling memory that torch leaves unwritten.
fn poison(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_poison", include_str!("poison.py"))
}

/// Whether an error says that the device's memory ran out: torch, its allocator and the driver say so in words of their own.
fn lacks_memory(error: &PyErr) -> bool {
    let text = error.to_string();
    ["OutOfMemoryError", "out of memory", "OUT_OF_MEMORY"].iter().any(|words| text.contains(words))
}

/// An error of Python with its last frames, for people.
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
    use super::again::compare;
    #[pymodule_export]
    use super::again::replay;
    #[pymodule_export]
    use super::checked::checked;
    #[pymodule_export]
    use super::forker::forker;
    #[pymodule_export]
    use super::record::run_recorded;
}
