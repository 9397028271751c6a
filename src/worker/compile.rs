//! Compiling a candidate before it gets the device, and watching its launches.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use super::launch::launch_record;
use super::replay::Replay;
use super::shim;
use crate::protocol::runner::Inputs;
use crate::protocol::{LaunchRecord, Value};

/// What launches do at present.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Launch as usual.
    Plain,
    /// Launch and take a note of it.
    Watch,
    /// Compile for the arguments given and launch nothing.
    CompileOnly,
}

struct Watch {
    mode: Mode,
    simulated_ms: f64,
}

/// The child process judges one candidate on one thread: its state is global.
static WATCH: Mutex<Watch> = Mutex::new(Watch { mode: Mode::Plain, simulated_ms: 0.0 });

fn watch<T>(use_it: impl FnOnce(&mut Watch) -> T) -> T {
    use_it(&mut WATCH.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Sets what launches do from now on.
pub(super) fn set_mode(mode: Mode) {
    watch(|watch| watch.mode = mode);
}

/// The time that a simulated device says has passed, in milliseconds.
pub(super) fn simulated_ms() -> f64 {
    watch(|watch| watch.simulated_ms)
}

/// Puts the hook under every launch of this process.
pub(super) fn install(py: Python<'_>) -> PyResult<()> {
    let hook = PyCFunction::new_closure(py, None, None, on_launch)?;
    let patch = shim(py)?.getattr("patch")?;
    patch.call1((py.import("triton.runtime.jit")?.getattr("JITFunction")?, "run", &hook))?;
    patch.call1((py.import("triton.runtime.interpreter")?.getattr("InterpretedFunction")?, "run", &hook))?;
    Ok(())
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
        Mode::Plain => run(&args, &kwargs),
        Mode::CompileOnly => {
            let args = PyTuple::new(py, args.iter().map(|arg| stand_in(&arg)).collect::<PyResult<Vec<_>>>()?)?;
            let quiet = PyDict::new(py);
            for (name, value) in &kwargs {
                quiet.set_item(name, stand_in(&value)?)?;
            }
            quiet.set_item("warmup", true)?;
            run(&args, &quiet)
        }
        Mode::Watch => {
            let out = run(&args, &kwargs)?;
            let record = launch_record(&function, &kwargs, &args)?;
            watch(|watch| watch.simulated_ms += simulated_cost(&record));
            Ok(out)
        }
    }
}

/// A tensor becomes something with its dtype and an aligned address; everything else stays.
fn stand_in<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    if !value.is_instance(&py.import("torch")?.getattr("Tensor")?)? {
        return Ok(value.clone());
    }
    // Fake tensors have no address: what torch allocates is aligned, an offset into it may not be.
    let offset: i64 = value.call_method0("storage_offset")?.extract()?;
    let size: i64 = value.call_method0("element_size")?.extract()?;
    shim(py)?.getattr("FakePointer")?.call1((value.getattr("dtype")?, offset * size))
}

/// Runs the entry on tensors without contents, so that its kernels are compiled and nothing is launched.
///
/// Kernels that cannot be reached so (values read back, autotuners) are simply compiled later, under the device's lock.
pub(super) fn compile_ahead(
    py: Python<'_>,
    replay: &Replay<'_, '_>,
    inputs: &Inputs,
    entry: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let mode = py.import("torch._subclasses.fake_tensor")?.getattr("FakeTensorMode")?;
    let options = PyDict::new(py);
    options.set_item("allow_non_fake_inputs", true)?;
    let mode = mode.call((), Some(&options))?;
    mode.call_method0("__enter__")?;
    set_mode(Mode::CompileOnly);
    let ran = replay.arguments(inputs).and_then(|made| entry.call(made.args, Some(&made.kwargs)));
    set_mode(Mode::Plain);
    mode.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
    ran.map(drop)
}

/// The simulated device's time for a launch, in milliseconds: a fixed cost for the launch and for each program, and a
/// price for a number of warps other than 8. It has a known optimum, and no likeness to a real device.
fn simulated_cost(launch: &LaunchRecord) -> f64 {
    let programs = launch.grid.iter().product::<i64>().max(1) as f64;
    let warps = launch.keywords.iter().find_map(|(name, value)| match value {
        Value::Int(warps) if name == "num_warps" => Some(*warps as f64),
        _ => None,
    });
    let off = (warps.unwrap_or(4.0) / 8.0).log2().abs();
    0.01 + programs * 0.001 * (1.0 + 0.25 * off)
}
