//! Files in the format of KernelBench: `Model`, `get_inputs` and `get_init_inputs`.

use std::collections::HashMap;
use std::path::Path;

use pyo3::exceptions::PyModuleNotFoundError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use protocol::Workload;
use protocol::runner::Weights;

/// The callable, and what sets its weights; `None` for weights that differ from the original's by name or shape.
pub(super) struct EntryCallable<'py> {
    pub(super) call: Bound<'py, PyAny>,
    pub(super) weights: Option<Bound<'py, PyAny>>,
}

/// The model to call, on the device. A candidate's model receives the original's weights if these are moved; otherwise
/// both keep their own.
pub(super) fn model<'py>(
    py: Python<'py>,
    module: &Bound<'py, PyAny>,
    workload: &Workload,
    device: &str,
    is_candidate: bool,
    Weights { seed, are_moved }: Weights,
) -> PyResult<EntryCallable<'py>> {
    let is_new = is_candidate && module.hasattr("ModelNew")?;
    let made = construct(py, module, workload, if is_new { "ModelNew" } else { "Model" }, seed)?;
    if !are_moved {
        return Ok(EntryCallable { call: made.call_method1("to", (device,))?, weights: None });
    }
    let names = if is_candidate {
        // The same seed gives the same weights, unless the candidate creates them in another order.
        match load(py, &workload.file).and_then(|original| construct(py, &original, workload, "Model", seed)) {
            Ok(original) => copy_weights(&original, &made)?,
            Err(_) => None,
        }
    } else {
        copy_weights(&made, &made)?
    };
    let call = made.call_method1("to", (device,))?;
    let weights =
        names.map(|names| super::python_modules::weights(py)?.getattr("Weights")?.call1((&call, names))).transpose()?;
    Ok(EntryCallable { call, weights })
}

fn construct<'py>(
    py: Python<'py>,
    module: &Bound<'py, PyAny>,
    workload: &Workload,
    name: &str,
    from: u64,
) -> PyResult<Bound<'py, PyAny>> {
    seed(py, from)?;
    let init = holder(py, module, workload, "get_init_inputs")?.call_method0("get_init_inputs")?;
    seed(py, from)?;
    let class = module.getattr(name)?;
    // Newer files give keyword arguments as well: `[[…], {…}]`.
    if init.len()? == 2
        && let (Ok(args), Ok(kwargs)) =
            (init.get_item(0)?.cast_into::<pyo3::types::PyList>(), init.get_item(1)?.cast_into::<PyDict>())
    {
        return class.call(args.to_tuple(), Some(&kwargs));
    }
    class.call1(tuple(&init)?)
}

/// The result of `get_inputs` for a seed.
pub(super) fn model_inputs<'py>(
    py: Python<'py>,
    module: &Bound<'py, PyAny>,
    workload: &Workload,
    from: u64,
) -> PyResult<Bound<'py, PyTuple>> {
    let holder = holder(py, module, workload, "get_inputs")?;
    seed(py, from)?;
    tuple(&holder.call_method0("get_inputs")?)
}

/// The original's file determines the arguments, whatever a candidate's file contains.
fn holder<'py>(
    py: Python<'py>,
    module: &Bound<'py, PyAny>,
    workload: &Workload,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let original = load(py, &workload.file);
    match original {
        Ok(original) if original.hasattr(name)? => Ok(original),
        _ => Ok(module.clone()),
    }
}

fn tuple<'py>(items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(items.py(), items.try_iter()?.collect::<PyResult<Vec<_>>>()?)
}

fn seed(py: Python<'_>, seed: u64) -> PyResult<()> {
    py.import("torch")?.call_method1("manual_seed", (super::seeds::mixed(seed),))?;
    Ok(())
}

/// A weight: its name, shape and tensor.
type Weight = (String, Vec<i64>, Py<PyAny>);

/// Copies weights by name where all names and shapes are equal, otherwise in order. Models with other weights keep
/// their own. Returns the source's name for each of the target's weights, with one name for a shared tensor.
fn copy_weights(from: &Bound<'_, PyAny>, to: &Bound<'_, PyAny>) -> PyResult<Option<HashMap<String, String>>> {
    let py = from.py();
    let weights = |model: &Bound<'_, PyAny>| -> PyResult<Vec<Weight>> {
        let state = model.call_method0("state_dict")?;
        let items = state.call_method0("items")?.try_iter()?.map(|item| {
            let (name, tensor): (String, Bound<'_, PyAny>) = item?.extract()?;
            Ok((name, tensor.getattr("shape")?.extract()?, tensor.unbind()))
        });
        items.collect()
    };
    let is_one = from.is(to);
    let (mut from, mut to) = (weights(from)?, weights(to)?);
    let first = first_names(py, &from)?;
    let by_name = |all: &[Weight]| {
        let mut names: Vec<_> = all.iter().map(|(name, shape, _)| (name.clone(), shape.clone())).collect();
        names.sort();
        names
    };
    if by_name(&from) == by_name(&to) {
        from.sort_by(|a, b| a.0.cmp(&b.0));
        to.sort_by(|a, b| a.0.cmp(&b.0));
    } else if from.len() != to.len() || from.iter().zip(&to).any(|(a, b)| a.1 != b.1) {
        return Ok(None);
    }
    let mut names = HashMap::new();
    for ((name, _, from), (own, _, to)) in from.iter().zip(&to) {
        // `state_dict` returns detached tensors over the same memory.
        if !is_one {
            to.bind(py).call_method1("copy_", (from,))?;
        }
        names.insert(own.clone(), first.get(name).unwrap_or(name).clone());
    }
    Ok(Some(names))
}

/// The first name of each tensor, by each of its names.
fn first_names(py: Python<'_>, all: &[Weight]) -> PyResult<HashMap<String, String>> {
    let mut seen = HashMap::new();
    let mut names = HashMap::new();
    for (name, shape, tensor) in all {
        let at: usize = tensor.bind(py).call_method0("data_ptr")?.extract()?;
        names.insert(name.clone(), seen.entry((at, shape.clone())).or_insert_with(|| name.clone()).clone());
    }
    Ok(names)
}

/// Loads a file as a module of its own, once.
pub(super) fn load<'py>(py: Python<'py>, file: &Path) -> PyResult<Bound<'py, PyAny>> {
    let mark = blake3::hash(file.as_os_str().as_encoded_bytes()).to_hex();
    let name = format!("warpsmith_file_{}", &mark[..12]);
    let modules = py.import("sys")?.getattr("modules")?;
    if let Ok(module) = modules.get_item(&name) {
        return Ok(module);
    }
    load_as(py, &name, file)
}

/// Loads a file as a module with this name.
pub(super) fn load_as<'py>(py: Python<'py>, name: &str, file: &Path) -> PyResult<Bound<'py, PyAny>> {
    let util = py.import("importlib.util")?;
    let spec = util.call_method1("spec_from_file_location", (name, file))?;
    if spec.is_none() {
        return Err(PyModuleNotFoundError::new_err(format!("{} is not a Python file", file.display())));
    }
    let module = util.call_method1("module_from_spec", (&spec,))?;
    let modules = py.import("sys")?.getattr("modules")?;
    modules.set_item(name, &module)?;
    spec.getattr("loader")?.call_method1("exec_module", (&module,)).inspect_err(|_| _ = modules.del_item(name))?;
    Ok(module)
}
