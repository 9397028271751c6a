//! A single recorded call, or a comparison, without a judge: for tests, and for developers who examine a workload.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use protocol::Workload;
use protocol::runner::Weights;
use protocol::runner::{ComparerRequest, Inputs};

use super::errors::failed;
use super::launch::callable;
use super::models::load;
use super::replay::Replay;

/// Makes the call that the JSON file at `path` describes. Returns its results, its tensor arguments, and the arguments
/// beyond whose ends it wrote.
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
    let entry = callable(py, &module, &workload, device, is_candidate, Weights { seed: 0, are_moved: true })?.call;
    let arguments = Replay::new(py, &module, &workload, device)?.arguments(&inputs)?;
    super::python_modules::generators(py)?.getattr("seed")?.call1((super::seeds::mixed(inputs.seed),))?;
    let out = entry.call(arguments.args.clone(), Some(&arguments.kwargs))?;
    let overrun = arguments.overrun()?;
    (out, arguments.tensors, overrun).into_pyobject(py)
}

/// A comparer's replies to requests, both as JSON: from the comparer that uses torch, or from the one that does not.
#[pyfunction]
pub(super) fn compare(py: Python<'_>, requests: Vec<String>, with_torch: bool) -> PyResult<Vec<String>> {
    let mut with = with_torch.then(|| super::comparer::Comparer::new(py, "cpu")).transpose()?;
    let mut without = super::torch_free::TorchFreeComparer::default();
    let mut answer = |request: &String| -> PyResult<String> {
        let request: ComparerRequest = serde_json::from_str(request).map_err(failed)?;
        let reply = match &mut with {
            Some(comparer) => comparer.answer(request)?,
            None => without.reply(py, request),
        };
        serde_json::to_string(&reply).map_err(failed)
    };
    requests.iter().map(&mut answer).collect()
}
