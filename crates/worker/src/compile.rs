//! Compiling a candidate's kernels before it gets the device, and recording its launches.

use std::collections::BTreeSet;
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use protocol::runner::Inputs;
use protocol::{ArgumentValue, LaunchRecord};

use super::errors::ExceedsResources;
use super::launch::launch_record;
use super::python_modules::shim;
use super::replay::Replay;
use super::{launch_compilation, torch_free};

/// The effect of a launch at present.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LaunchMode {
    /// Launch as usual.
    Plain,
    /// Launch and record the launch.
    Watch,
    /// Compile for the given arguments and launch nothing.
    CompileOnly,
    /// Do nothing.
    Ghost,
}

struct Watch {
    mode: LaunchMode,
    launches: Vec<LaunchRecord>,
    /// The symbols of the launched kernels on the device.
    symbols: BTreeSet<String>,
    simulated_ms: f64,
    /// The resource of which a kernel needs more than the device has, as text.
    excess: Option<String>,
}

/// The child process judges one candidate at a time on one thread, so its state is global.
static WATCH: Mutex<Watch> = Mutex::new(Watch {
    mode: LaunchMode::Plain,
    launches: Vec::new(),
    symbols: BTreeSet::new(),
    simulated_ms: 0.0,
    excess: None,
});

fn watch<T>(use_it: impl FnOnce(&mut Watch) -> T) -> T {
    use_it(&mut WATCH.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// The launches that were recorded since the last call.
pub(super) fn take_launches() -> Vec<LaunchRecord> {
    watch(|watch| std::mem::take(&mut watch.launches))
}

/// The symbols of the kernels that were launched since the last call.
pub(super) fn take_symbols() -> Vec<String> {
    watch(|watch| std::mem::take(&mut watch.symbols)).into_iter().collect()
}

/// The time in milliseconds that has passed on a simulated device.
pub(super) fn simulated_ms() -> f64 {
    watch(|watch| watch.simulated_ms)
}

fn is_interpreted(function: &Bound<'_, PyAny>) -> PyResult<bool> {
    // The interpreter needs numpy; without numpy nothing is interpreted.
    let Ok(interpreter) = function.py().import("triton.runtime.interpreter") else { return Ok(false) };
    function.is_instance(&interpreter.getattr("InterpretedFunction")?)
}

/// Hooks under the launches, until [`Self::remove`].
pub(super) struct Hooks<'py>(Vec<(Bound<'py, PyAny>, &'static str, Bound<'py, PyAny>)>);

impl<'py> Hooks<'py> {
    /// Installs hooks under every launch and sets their effect.
    pub(super) fn install(py: Python<'py>, mode: LaunchMode) -> PyResult<Self> {
        let patch = shim(py)?.getattr("patch")?;
        let hook = PyCFunction::new_closure(py, None, None, on_launch)?;
        let mut hooks = Self(Vec::new());
        for (module, class) in
            [("triton.runtime.jit", "JITFunction"), ("triton.runtime.interpreter", "InterpretedFunction")]
        {
            let class = match py.import(module) {
                Ok(module) => module.getattr(class)?,
                Err(_) if module.ends_with("interpreter") => continue,
                Err(error) => return Err(error),
            };
            let original = patch.call1((&class, "run", &hook))?;
            hooks.0.push((class, "run", original));
        }
        if mode == LaunchMode::Ghost {
            let nothing = PyCFunction::new_closure(py, None, None, |call: &Bound<'_, PyTuple>, _| call.py().None())?;
            for class in shim(py)?.getattr("launchers")?.call0()?.try_iter()? {
                let class = class?;
                let original = patch.call1((&class, "__call__", &nothing))?;
                hooks.0.push((class, "__call__", original));
            }
        }
        take_launches();
        watch(|watch| watch.mode = mode);
        Ok(hooks)
    }

    /// Removes the hooks.
    pub(super) fn remove(self) -> PyResult<()> {
        watch(|watch| watch.mode = LaunchMode::Plain);
        self.0.into_iter().rev().try_for_each(|(class, name, original)| class.setattr(name, original))
    }
}

/// `hook(original, self, args, kwargs)`; see the shim.
fn on_launch(call: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
    let py = call.py();
    let (original, function) = (call.get_item(0)?, call.get_item(1)?);
    let (args, kwargs) = (call.get_item(2)?.cast_into::<PyTuple>()?, call.get_item(3)?.cast_into::<PyDict>()?);
    let run = |args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>| -> PyResult<Py<PyAny>> {
        let all: Vec<Bound<'_, PyAny>> = std::iter::once(function.clone()).chain(args.iter()).collect();
        Ok(original.call(PyTuple::new(py, all)?, Some(kwargs))?.unbind())
    };
    match watch(|watch| watch.mode) {
        LaunchMode::Plain => run(&args, &kwargs),
        LaunchMode::Ghost if is_interpreted(&function)? => Ok(py.None()),
        // Compiling launches nothing either: see `Hooks`.
        LaunchMode::Ghost => run(&args, &kwargs),
        LaunchMode::CompileOnly => {
            let hollow = PyTuple::new(py, args.iter().map(|arg| stand_in(&arg)).collect::<PyResult<Vec<_>>>()?)?;
            let quiet = PyDict::new(py);
            for (name, value) in &kwargs {
                quiet.set_item(name, stand_in(&value)?)?;
            }
            quiet.set_item("warmup", true)?;
            let compiled = run(&hollow, &quiet)?;
            launch_compilation::keep(&function, (&args, &kwargs), compiled.bind(py))?;
            let excess = excess(compiled.bind(py)).ok().flatten();
            watch(|watch| watch.excess = watch.excess.take().or(excess));
            Ok(compiled)
        }
        LaunchMode::Watch => {
            let out = run(&args, &kwargs)?;
            let record = launch_record(&function, &kwargs, &args)?;
            // A kernel may have another name on the device.
            let symbol = out.bind(py).getattr("name").and_then(|name| name.extract::<String>()).ok();
            watch(|watch| {
                watch.symbols.extend(symbol);
                watch.simulated_ms += simulated_cost(&record);
                watch.launches.push(record);
            });
            Ok(out)
        }
    }
}

/// Calls `compile`, during which kernels may need more than the device has.
pub(super) fn allow_large_resources<T>(compile: impl FnOnce() -> T) -> T {
    let before = watch(|watch| watch.excess.take());
    let out = compile();
    watch(|watch| watch.excess = before);
    out
}

/// By how much a compiled kernel exceeds the shared memory of a program, as text. Triton reports that only when the
/// kernel is launched.
fn excess(compiled: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let needs: i64 = compiled.getattr("metadata")?.getattr("shared")?.extract()?;
    let driver = compiled.py().import("triton.runtime")?.getattr("driver")?.getattr("active")?;
    let device = driver.call_method0("get_current_device")?;
    let properties = driver.getattr("utils")?.call_method1("get_device_properties", (device,))?;
    let most: i64 = properties.get_item("max_shared_mem")?.extract()?;
    Ok((needs > most).then(|| format!("out of resource: {needs} bytes of shared memory, the device has {most}")))
}

/// Replaces a tensor by an object with its dtype and an aligned address; other values stay.
fn stand_in<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    // Tensors of `torch_free` have an address without having memory.
    if torch_free::is_active(py) || !value.is_instance(&py.import("torch")?.getattr("Tensor")?)? {
        return Ok(value.clone());
    }
    // Fake tensors have no address. Torch's allocations are aligned, an offset into one may not be.
    let offset: i64 = value.call_method0("storage_offset")?.extract()?;
    let size: i64 = value.call_method0("element_size")?.extract()?;
    shim(py)?.getattr("FakePointer")?.call1((value.getattr("dtype")?, offset * size))
}

/// Runs the entry on tensors without contents, so that its kernels are compiled and nothing is launched.
///
/// Kernels that cannot be reached this way, since the code reads values back, are compiled later, while the device is
/// locked.
pub(super) fn compile_ahead(
    py: Python<'_>,
    replay: &Replay<'_, '_>,
    inputs: &Inputs,
    entry: &Bound<'_, PyAny>,
) -> PyResult<()> {
    if torch_free::is_active(py) {
        let run = || replay.arguments(inputs).and_then(|made| entry.call(made.args, Some(&made.kwargs)));
        return torch_free::hollow(run).map(drop);
    }
    let mode = py.import("torch._subclasses.fake_tensor")?.getattr("FakeTensorMode")?;
    let options = PyDict::new(py);
    options.set_item("allow_non_fake_inputs", true)?;
    let mode = mode.call((), Some(&options))?;
    mode.call_method0("__enter__")?;
    let ran = replay.arguments(inputs).and_then(|made| {
        let out = entry.call(made.args, Some(&made.kwargs))?;
        launch_compilation::ends(&made.tensors, &out)?;
        if replay.workload.gradients {
            let wants = |tensor: &Bound<'_, PyAny>| {
                tensor.getattr("requires_grad").is_ok_and(|it| it.is_truthy().unwrap_or(false))
            };
            let inputs: Vec<_> = made.tensors.iter().filter(|tensor| wants(tensor)).collect();
            shim(py)?.getattr("gradients_ahead")?.call1((out, inputs))?;
        }
        Ok(())
    });
    mode.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
    match (ran, watch(|watch| watch.excess.take())) {
        (Ok(()), Some(excess)) => Err(ExceedsResources::new_err(excess)),
        (ran, _) => ran,
    }
}

/// The simulated device's time for a launch, in milliseconds: a fixed cost per launch and per program, and a penalty
/// for a number of warps other than 8. It has a known optimum and does not resemble a real device.
fn simulated_cost(launch: &LaunchRecord) -> f64 {
    let programs = launch.grid.iter().product::<i64>().max(1) as f64;
    let warps = launch.keywords.iter().find_map(|(name, value)| match value {
        ArgumentValue::Int(warps) if name == "num_warps" => Some(*warps as f64),
        _ => None,
    });
    let off = (warps.unwrap_or(4.0) / 8.0).log2().abs();
    0.01 + programs * 0.001 * (1.0 + 0.25 * off)
}
