//! Kernel launches: the record that is kept of one, and the hooks that observe all of them.

use std::cell::Cell;

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use protocol::runner::Weights;
use protocol::{ArgumentValue, GridExpr, LaunchRecord, Workload, WorkloadSource};

use super::errors::{MissingEntry, failed};
use super::models::{EntryCallable, model};
use super::python_modules::shim;
use super::values::{describe_plain, dtype_name};

thread_local! {
    /// The number of autotuners that are trying configurations on this thread. Their launches are not work of the
    /// program.
    static TUNING: Cell<usize> = const { Cell::new(0) };
}

/// Whether a launch on this thread is a trial of an autotuner.
pub(super) fn is_tuning() -> bool {
    TUNING.get() > 0
}

/// The arguments of the hooks of [`patch_launches`]: `hook(original, self, args, kwargs)`.
pub(super) struct LaunchCall<'py> {
    original: Bound<'py, PyAny>,
    /// The kernel, or the autotuner or heuristics around it.
    pub(super) function: Bound<'py, PyAny>,
    pub(super) args: Bound<'py, PyTuple>,
    pub(super) kwargs: Bound<'py, PyDict>,
}

impl<'py> LaunchCall<'py> {
    pub(super) fn of(call: &Bound<'py, PyTuple>) -> PyResult<Self> {
        Ok(Self {
            original: call.get_item(0)?,
            function: call.get_item(1)?,
            args: call.get_item(2)?.cast_into()?,
            kwargs: call.get_item(3)?.cast_into()?,
        })
    }

    /// Launches as without a hook.
    pub(super) fn run(&self) -> PyResult<Py<PyAny>> {
        let all: Vec<_> = std::iter::once(self.function.clone()).chain(self.args.iter()).collect();
        Ok(self.original.call(PyTuple::new(self.args.py(), all)?, Some(&self.kwargs))?.unbind())
    }

    /// Whether the call only compiles.
    pub(super) fn is_warmup(&self) -> bool {
        let warmup = self.kwargs.get_item("warmup").ok().flatten();
        warmup.is_some_and(|warmup| warmup.is_truthy().unwrap_or(false))
    }
}

/// Installs hooks under every launch of this process: `on_kernel` for kernels, `on_wrapper` for the autotuners and
/// heuristics around them. Both receive the arguments of [`LaunchCall`].
pub(super) fn patch_launches(
    py: Python<'_>,
    on_kernel: &Bound<'_, PyAny>,
    on_wrapper: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let patch = shim(py)?.getattr("patch")?;
    patch.call1((py.import("triton.runtime.jit")?.getattr("JITFunction")?, "run", on_kernel))?;
    patch.call1((py.import("triton.runtime.interpreter")?.getattr("InterpretedFunction")?, "run", on_kernel))?;
    let tuners = py.import("triton.runtime.autotuner")?;
    patch.call1((tuners.getattr("Autotuner")?, "run", on_wrapper))?;
    patch.call1((tuners.getattr("Heuristics")?, "run", on_wrapper))?;
    let trial = PyCFunction::new_closure(py, None, None, |call: &Bound<'_, PyTuple>, _| {
        let call = LaunchCall::of(call)?;
        TUNING.set(TUNING.get() + 1);
        let out = call.run();
        TUNING.set(TUNING.get() - 1);
        out
    })?;
    patch.call1((tuners.getattr("Autotuner")?, "_bench", trial))?;
    Ok(())
}

/// The callable of a workload's entry in `module`, the loaded file of the original or of a candidate.
pub(super) fn callable<'py>(
    py: Python<'py>,
    module: &Bound<'py, PyAny>,
    workload: &Workload,
    device: &str,
    is_candidate: bool,
    weights: Weights,
) -> PyResult<EntryCallable<'py>> {
    if workload.source == WorkloadSource::KernelBench {
        return model(py, module, workload, device, is_candidate, weights);
    }
    Ok(EntryCallable { call: function(module, workload)?, weights: None })
}

fn function<'py>(module: &Bound<'py, PyAny>, workload: &Workload) -> PyResult<Bound<'py, PyAny>> {
    match workload.source {
        WorkloadSource::Launch => launcher(entry(module, workload)?, workload),
        WorkloadSource::Recorded | WorkloadSource::Comment | WorkloadSource::KernelBench => {
            let entry = entry(module, workload)?;
            if let Ok(getter) = entry.getattr("fget") {
                return Ok(getter);
            }
            // A class method was recorded with its class among the arguments, an autograd function without it.
            let is_apply = workload.entry.ends_with(".apply") || workload.source == WorkloadSource::Comment;
            let class = entry.getattr("__self__").is_ok_and(|of| of.is_instance_of::<pyo3::types::PyType>());
            if class && !is_apply { entry.getattr("__func__") } else { Ok(entry) }
        }
    }
}

/// The workload's entry in a module.
fn entry<'py>(module: &Bound<'py, PyAny>, workload: &Workload) -> PyResult<Bound<'py, PyAny>> {
    let py = module.py();
    resolve(module, &workload.entry).map_err(|error| {
        let missing = MissingEntry::new_err(error.value(py).to_string());
        missing.set_cause(py, Some(error));
        missing
    })
}

/// The object in a module at a dotted path.
pub(super) fn resolve<'py>(module: &Bound<'py, PyAny>, path: &str) -> PyResult<Bound<'py, PyAny>> {
    path.split('.').try_fold(module.clone(), |object, name| object.getattr(name))
}

/// A callable that launches a kernel by itself, with the workload's grid. Like every launch it returns nothing.
pub(super) fn launcher<'py>(kernel: Bound<'py, PyAny>, workload: &Workload) -> PyResult<Bound<'py, PyAny>> {
    let py = kernel.py();
    let grid = workload.grid.iter().map(|one| GridExpr::parse(one)).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let fixed = workload.launches.first().filter(|_| grid.is_empty()).map(|launch| PyTuple::new(py, &launch.grid));
    let fixed = fixed.transpose()?.map(|numbers| kernel.get_item(numbers)).transpose()?.map(Bound::unbind);
    let kernel = kernel.unbind();
    let call = move |args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>| -> PyResult<()> {
        let py = args.py();
        let launch = match &fixed {
            Some(launch) => launch.bind(py).clone(),
            None => kernel.bind(py).get_item(grid_of(py, &grid, kwargs)?)?,
        };
        launch.call(args, kwargs).map(drop)
    };
    Ok(PyCFunction::new_closure(py, None, None, call)?.into_any())
}

/// A grid in Triton's form: numbers, or a function of the autotuner's configuration where the grid's names belong to
/// it.
fn grid_of<'py>(py: Python<'py>, grid: &[GridExpr], known: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
    let known = known.map_or_else(|| Ok(PyDict::new(py)), |known| known.copy())?;
    if let Some(numbers) = numbers(grid, &[known.as_any()]) {
        return Ok(PyTuple::new(py, numbers)?.into_any());
    }
    let (grid, known) = (grid.to_vec(), known.unbind());
    let call = move |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<Py<PyTuple>> {
        let numbers = numbers(&grid, &[known.bind(args.py()).as_any(), &args.get_item(0)?]);
        let numbers = numbers.ok_or_else(|| failed("the grid uses an argument that is not a number"))?;
        Ok(PyTuple::new(args.py(), numbers)?.unbind())
    };
    Ok(PyCFunction::new_closure(py, None, None, call)?.into_any())
}

/// The grid with its names looked up in these dictionaries, in this order.
fn numbers(grid: &[GridExpr], known: &[&Bound<'_, PyAny>]) -> Option<Vec<i64>> {
    let of = |name: &str| known.iter().find_map(|known| known.get_item(name).ok()?.extract().ok());
    grid.iter().map(|one| one.value(&of)).collect()
}

/// The record of a launch.
pub(super) fn launch_record(
    function: &Bound<'_, PyAny>,
    kwargs: &Bound<'_, PyDict>,
    args: &Bound<'_, PyTuple>,
) -> PyResult<LaunchRecord> {
    let name = function.getattr("__name__").and_then(|name| name.extract::<String>());
    let kernel = name.or_else(|_| function.getattr("fn")?.getattr("__name__")?.extract())?;
    let mut keywords = Vec::new();
    for (name, value) in kwargs {
        let name: String = name.extract()?;
        if name != "grid"
            && name != "warmup"
            && let Some(value) = describe_plain(&value)?
        {
            keywords.push((name, value));
        }
    }
    let arguments = launch_arguments(function, kwargs, args).unwrap_or_default();
    Ok(LaunchRecord { kernel, grid: launch_grid(function, kwargs, args), keywords, arguments })
}

/// The grid of a launch as numbers; empty when it cannot be computed.
fn launch_grid(function: &Bound<'_, PyAny>, kwargs: &Bound<'_, PyDict>, args: &Bound<'_, PyTuple>) -> Vec<i64> {
    let grid = || -> PyResult<Vec<i64>> {
        let Some(mut grid) = kwargs.get_item("grid")? else { return Ok(Vec::new()) };
        if grid.is_callable() {
            let meta = PyDict::new(function.py());
            for (name, value) in function.getattr("arg_names")?.try_iter()?.zip(args.iter()) {
                meta.set_item(name?, value)?;
            }
            meta.update(kwargs.as_mapping())?;
            grid = grid.call1((meta,))?;
        }
        if let Ok(single) = grid.extract::<i64>() { Ok(vec![single]) } else { grid.extract() }
    };
    grid().unwrap_or_default()
}

/// The arguments of a launch by the names of the kernel's parameters.
fn launch_arguments(
    function: &Bound<'_, PyAny>,
    kwargs: &Bound<'_, PyDict>,
    args: &Bound<'_, PyTuple>,
) -> PyResult<Vec<(String, ArgumentValue)>> {
    let names: Vec<String> = function.getattr("arg_names")?.extract()?;
    let mut all = Vec::with_capacity(names.len());
    for (at, name) in names.into_iter().enumerate() {
        let Some(value) = args.iter().nth(at).map_or_else(|| kwargs.get_item(&name), |value| Ok(Some(value)))? else {
            continue;
        };
        let described = match describe_plain(&value)? {
            Some(plain) => plain,
            None if value.hasattr("data_ptr")? && value.hasattr("dtype")? => {
                ArgumentValue::Pointer(dtype_name(&value.getattr("dtype")?)?)
            }
            None => ArgumentValue::Opaque(value.get_type().fully_qualified_name()?.to_string()),
        };
        all.push((name, described));
    }
    Ok(all)
}
