//! One recorded call by itself, without a judge: for tests, and for people who look into a workload.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::failed;
use super::models::load;
use super::replay::{Replay, callable};
use crate::protocol::Workload;
use crate::protocol::runner::Inputs;

/// Makes a call again that is given as JSON, in the file at `path`. Returns what it returned, its tensor arguments, and
/// which of them it wrote beyond.
#[pyfunction]
#[pyo3(signature = (workload, path, inputs = "", device = "cpu", is_candidate = false))]
pub(super) fn replay<'py>(
    py: Python<'py>,
    workload: &str,
    path: std::path::PathBuf,
    inputs: &str,
    device: &str,
    is_candidate: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    let workload: Workload = serde_json::from_str(workload).map_err(failed)?;
    let inputs: Inputs =
        if inputs.is_empty() { Inputs::default() } else { serde_json::from_str(inputs).map_err(failed)? };
    let module = load(py, &path)?;
    let entry = callable(py, &module, &workload, device, is_candidate)?;
    let arguments = Replay::new(py, &module, &workload, device)?.arguments(&inputs)?;
    let out = entry.call(arguments.args.clone(), Some(&arguments.kwargs))?;
    let overrun = arguments.overrun()?;
    (out, arguments.tensors, overrun).into_pyobject(py)
}
