//! The half that the user's own Python loads: recording, replaying, checking, timing.
//!
//! Everything here runs inside a foreign interpreter. It talks frames of [`crate::protocol`] over a private pipe and
//! never writes to standard output.

mod child;
mod compare;
mod compile;
mod record;
mod replay;
mod serve;
mod timing;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// What goes wrong inside the worker, as the text of a Python exception.
fn failed(message: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(message.to_string())
}

/// The Python helpers, imported once.
fn shim(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    const NAME: &std::ffi::CStr = c"_warpsmith_shim";
    let modules = py.import("sys")?.getattr("modules")?;
    if let Ok(module) = modules.get_item("_warpsmith_shim") {
        return Ok(module.cast_into()?);
    }
    let code = std::ffi::CString::new(include_str!("shim.py")).map_err(failed)?;
    let module = PyModule::from_code(py, &code, c"_warpsmith_shim.py", NAME)?;
    modules.set_item("_warpsmith_shim", &module)?;
    Ok(module)
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
    use super::record::run_recorded;
    #[pymodule_export]
    use super::serve::serve;
}
