//! Errors as Python exceptions, and exceptions as texts.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// An error of the worker as a Python exception with this text.
pub(crate) fn failed(message: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(message.to_string())
}

/// Whether an error means that the device ran out of memory; torch, its allocator and the driver have different
/// messages for that.
pub(crate) fn lacks_memory(error: &PyErr) -> bool {
    let text = error.to_string();
    ["OutOfMemoryError", "out of memory", "OUT_OF_MEMORY"].iter().any(|words| text.contains(words))
}

/// A Python exception with its last stack frames, as text for reports.
pub(crate) fn describe(py: Python<'_>, error: &PyErr) -> String {
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
