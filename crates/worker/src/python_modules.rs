//! The worker's own Python modules, which it carries as texts.

use pyo3::prelude::*;

use protocol::runner::LaunchVariant;

use super::errors::failed;

/// The Python helpers in `shim.py`, imported once.
pub(crate) fn shim(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_shim", include_str!("shim.py"))
}

/// One of the worker's Python modules, imported once.
pub(crate) fn helper<'py>(py: Python<'py>, name: &str, text: &str) -> PyResult<Bound<'py, PyModule>> {
    let modules = py.import("sys")?.getattr("modules")?;
    if let Ok(module) = modules.get_item(name) {
        return Ok(module.cast_into()?);
    }
    let c = |text: &str| std::ffi::CString::new(text).map_err(failed);
    let module = PyModule::from_code(py, &c(text)?, &c(&format!("{name}.py"))?, &c(name)?)?;
    modules.set_item(name, &module)?;
    Ok(module)
}

/// A new context manager within which kernels are launched otherwise.
pub(crate) fn varied(py: Python<'_>, variant: LaunchVariant) -> PyResult<Bound<'_, PyAny>> {
    shim(py)?;
    let module = helper(py, "_warpsmith_launch_variant", include_str!("launch_variant.py"))?;
    module.getattr("LaunchVariant")?.call1((variant.warps, variant.tiles))
}

/// The Python module that compares results.
pub(crate) fn compare(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    bits(py)?;
    inputs(py)?;
    helper(py, "_warpsmith_floats", include_str!("floats.py"))?;
    helper(py, "_warpsmith_plain_values", include_str!("plain_values.py"))?;
    helper(py, "_warpsmith_compare", include_str!("compare.py"))
}

/// The Python module that fills inputs.
pub(crate) fn inputs(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_inputs", include_str!("inputs.py"))
}

/// The Python module that compares bits.
pub(crate) fn bits(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    poison(py)?;
    helper(py, "_warpsmith_bits", include_str!("bits.py"))
}

/// The Python module for the weights of models.
pub(crate) fn weights(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_weights", include_str!("weights.py"))
}

/// The Python module for random numbers from generators that no argument names.
pub(crate) fn generators(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_generators", include_str!("generators.py"))
}

/// A new context manager that lists the kernels that run inside it.
pub(crate) fn kernels(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    helper(py, "_warpsmith_kernels", include_str!("kernels.py"))?.getattr("Listing")?.call0()
}

/// The Python module that fills memory that torch leaves uninitialized.
pub(crate) fn poison(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_poison", include_str!("poison.py"))
}
