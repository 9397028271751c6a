//! Autotuners under the judge: they measure in the recorded call alone, and keep the configuration that they chose
//! there. Measuring in each of the other calls would take most of the time, and would not reliably run another kernel.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use protocol::runner::Tuned;

use super::compile::allow_large_resources;
use super::launch::LaunchCall;
use super::launch_compilation::choosing;
use super::python_modules::{helper, shim};

fn tuning(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_tuning", include_str!("tuning.py"))
}

/// The behaviour of autotuners at present.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TunerMode {
    /// Launch as usual.
    Launch,
    /// Launch the given configuration, whether the tuner has measured for such arguments or not.
    Forced,
    /// The same, and keep the configuration in all following calls.
    Settled,
    /// Compile and launch nothing.
    Compile,
    /// Launch the given configuration; without one, run each configuration once before the first that fits.
    Each,
}

/// The autotuners that the file has used, and whether one of them needs all its configurations compiled.
struct Met {
    tuners: Vec<Py<PyAny>>,
    is_open: bool,
}

/// The autotuners of the loaded file: one file at a time is loaded, on one thread.
static MET: Mutex<Met> = Mutex::new(Met { tuners: Vec::new(), is_open: false });

fn met() -> MutexGuard<'static, Met> {
    MET.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets all autotuners.
pub(super) fn forget() {
    *met() = Met { tuners: Vec::new(), is_open: false };
}

/// A hook under every autotuner, until [`Self::remove`].
pub(super) struct Tuners<'py> {
    class: Bound<'py, PyAny>,
    original: Bound<'py, PyAny>,
}

impl<'py> Tuners<'py> {
    /// Makes autotuners use the configurations in `chosen`, by the kernel's name. Other autotuners measure, or compile
    /// all their configurations.
    pub(super) fn install(py: Python<'py>, way: TunerMode, chosen: &[Tuned]) -> PyResult<Self> {
        let told = PyDict::new(py);
        for Tuned { kernel, config, .. } in chosen {
            told.set_item(kernel, config)?;
        }
        let told = told.unbind();
        let hook = move |call: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<Py<PyAny>> {
            let (py, call, original) = (call.py(), LaunchCall::of(call)?, call.get_item(0)?);
            let LaunchCall { function, args, kwargs, .. } = &call;
            if way == TunerMode::Compile {
                // Configurations that do not fit the device are skipped.
                let all = allow_large_resources(|| {
                    choosing(|| tuning(py)?.getattr("compile")?.call1((function, args, kwargs, &told)))
                })?;
                let all: bool = all.extract()?;
                met().is_open |= all;
                return Ok(py.None());
            }
            let (is_forced, stays) = (matches!(way, TunerMode::Forced | TunerMode::Settled), way == TunerMode::Settled);
            let out = if way == TunerMode::Each {
                tuning(py)?.getattr("each")?.call1((original, function, args, kwargs, &told))?
            } else {
                let given = (original, function, args, kwargs, &told, is_forced, stays);
                tuning(py)?.getattr("run")?.call1(given)?
            };
            let mut met = met();
            if !met.tuners.iter().any(|one| one.is(function)) {
                met.tuners.push(function.clone().unbind());
            }
            Ok(out.unbind())
        };
        *met() = Met { tuners: Vec::new(), is_open: false };
        let class = py.import("triton.runtime.autotuner")?.getattr("Autotuner")?;
        let hook = PyCFunction::new_closure(py, None, None, hook)?;
        let original = shim(py)?.getattr("patch")?.call1((&class, "run", hook))?;
        Ok(Self { class, original })
    }

    /// Removes the hook.
    pub(super) fn remove(self) -> PyResult<()> {
        self.class.setattr("run", self.original)
    }
}

/// The configurations that the autotuners have chosen.
pub(super) fn tuned(py: Python<'_>) -> PyResult<Vec<Tuned>> {
    let tuners = std::mem::take(&mut met().tuners);
    let tell = tuning(py)?.getattr("tuned")?;
    let told = tuners.iter().map(|tuner| tell.call1((tuner,))?.extract::<Option<(_, _, _, _)>>());
    let told = told.collect::<PyResult<Vec<_>>>()?.into_iter().flatten();
    Ok(told.map(|(kernel, config, others, near)| Tuned { kernel, config, others, near }).collect())
}

/// Whether an autotuner without a given configuration was used, which has to measure.
pub(super) fn is_open() -> bool {
    std::mem::take(&mut met().is_open)
}
