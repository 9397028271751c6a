//! Errors as Python exceptions, and exceptions as texts and causes.

use std::iter::successors;

use pyo3::create_exception;
use pyo3::exceptions::{PyAssertionError, PyException, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use protocol::runner::ExceptionCause;

create_exception!(warpsmith, MissingEntry, PyException, "The loaded file has no entry of the workload's name.");
create_exception!(warpsmith, ExceedsResources, PyException, "A kernel needs more than a multiprocessor has.");
create_exception!(warpsmith, DeviceMemoryError, PyException, "The device ran out of memory.");
create_exception!(warpsmith, DeviceError, PyException, "The device or its driver reported an error.");
create_exception!(warpsmith, FakeTensorError, PyException, "A tensor without memory was kept and is read.");
create_exception!(warpsmith, MissingSlot, PyException, "The comparer holds no results in a slot.");

/// Exceptions of these classes have a cause; `module.name`, where a name that ends with `.` stands for all classes of a
/// module.
const CLASSES: &[(&str, ExceptionCause)] = &[
    ("warpsmith.MissingEntry", ExceptionCause::MissingEntry),
    ("warpsmith.ExceedsResources", ExceptionCause::Resources),
    ("warpsmith.DeviceMemoryError", ExceptionCause::DeviceMemory),
    ("warpsmith.DeviceError", ExceptionCause::Device),
    ("warpsmith.FakeTensorError", ExceptionCause::FakeTensor),
    ("triton.runtime.errors.OutOfResources", ExceptionCause::Resources),
    ("triton.runtime.errors.PTXASError", ExceptionCause::Compile),
    ("triton.compiler.errors.", ExceptionCause::Compile),
    ("torch.OutOfMemoryError", ExceptionCause::DeviceMemory),
    ("torch.cuda.OutOfMemoryError", ExceptionCause::DeviceMemory),
    ("torch.AcceleratorError", ExceptionCause::Device),
];
/// Parts of the messages of `RuntimeError`s of torch, of Triton and of the driver, which have no class of their own.
/// The first that fits counts.
const MESSAGES: &[(&str, ExceptionCause)] = &[
    ("out of memory", ExceptionCause::DeviceMemory),
    ("OUT_OF_MEMORY", ExceptionCause::DeviceMemory),
    ("CUDA error", ExceptionCause::Device),
    ("Triton Error [CUDA]", ExceptionCause::Device),
    ("PassManager::run failed", ExceptionCause::Compile),
];
/// The most exceptions of a chain (`raise … from …`) that are looked at.
const CHAINED: usize = 8;

/// An error of the worker as a Python exception with this text.
pub(crate) fn failed(message: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(message.to_string())
}

/// The cause of an exception, by its class or by that of an exception that it was raised from.
pub(crate) fn cause(py: Python<'_>, error: &PyErr) -> ExceptionCause {
    let chain = successors(Some(error.value(py).clone().into_any()), above).take(CHAINED);
    chain.filter_map(|value| cause_of_one(&value)).next().unwrap_or_default()
}

/// The exception from which another one was raised.
fn above<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let of = |name: &str| value.getattr(name).ok().filter(|found| !found.is_none());
    of("__cause__").or_else(|| of("__context__"))
}

fn cause_of_one(value: &Bound<'_, PyAny>) -> Option<ExceptionCause> {
    if is_static_assertion(value).unwrap_or(false) {
        return Some(ExceptionCause::Compile);
    }
    let by_class = cause_of_class(value).ok().flatten();
    // Torch reports missing memory of the driver as an error of the device.
    if by_class.is_some_and(|cause| cause != ExceptionCause::Device) || !value.is_instance_of::<PyRuntimeError>() {
        return by_class;
    }
    let text = value.str().ok()?.to_string();
    MESSAGES.iter().find(|(words, _)| text.contains(words)).map(|(_, cause)| *cause).or(by_class)
}

/// Whether a `tl.static_assert` failed in Triton's interpreter, where it is a plain `assert` and not the exception that
/// the compiler raises.
fn is_static_assertion(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if !value.is_instance_of::<PyAssertionError>() {
        return Ok(false);
    }
    let mut innermost = value.getattr("__traceback__")?;
    while let Some(next) = innermost.getattr("tb_next").ok().filter(|next| !next.is_none()) {
        innermost = next;
    }
    let module = innermost.getattr("tb_frame")?.getattr("f_globals")?.get_item("__name__")?;
    Ok(module.extract::<&str>()? == "triton.runtime.interpreter")
}

fn cause_of_class(value: &Bound<'_, PyAny>) -> PyResult<Option<ExceptionCause>> {
    for class in value.get_type().getattr("__mro__")?.try_iter()? {
        let name = class?.cast_into::<PyType>()?.fully_qualified_name()?.to_string();
        let fits = |known: &str| if known.ends_with('.') { name.starts_with(known) } else { name == known };
        if let Some((_, cause)) = CLASSES.iter().find(|(known, _)| fits(known)) {
            return Ok(Some(*cause));
        }
    }
    Ok(None)
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
