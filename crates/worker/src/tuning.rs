//! Autotuners under the judge: they measure in the recorded call alone, and keep to what they chose there. To measure for each
//! of the other calls would take most of the time, and would try no other kernel for certain.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use protocol::runner::Tuned;

use super::compile::forgiving;
use super::draft::choosing;
use super::launch::LaunchCall;
use super::{helper, shim};

fn tuning(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_tuning", include_str!("tuning.py"))
}

/// What tuners do at present.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// They launch.
    Launch,
    /// They launch what they are told, whether they have measured for such arguments or not.
    Forced,
    /// The same, and they keep to it in all calls to come.
    Settled,
    /// They compile and launch nothing.
    Compile,
    /// They launch what they are told, and without that each of their configurations once before the first that fits.
    Each,
}

/// Tuners that were met, once each, and whether one of them has all its configurations to be compiled.
struct Met {
    tuners: Vec<Py<PyAny>>,
    is_open: bool,
}

/// Of the file that is loaded: there is one at a time, on one thread.
static MET: Mutex<Met> = Mutex::new(Met { tuners: Vec::new(), is_open: false });

fn met() -> MutexGuard<'static, Met> {
    MET.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets all that were met.
pub(super) fn forget() {
    *met() = Met { tuners: Vec::new(), is_open: false };
}

/// A hook under every autotuner, until it is taken away by [`Self::remove`].
pub(super) struct Tuners<'py> {
    class: Bound<'py, PyAny>,
    original: Bound<'py, PyAny>,
}

impl<'py> Tuners<'py> {
    /// Has tuners take what is chosen, by their names; those that are not named measure, or compile everything.
    pub(super) fn install(py: Python<'py>, way: Way, chosen: &[Tuned]) -> PyResult<Self> {
        let told = PyDict::new(py);
        for Tuned { kernel, config, .. } in chosen {
            told.set_item(kernel, config)?;
        }
        let told = told.unbind();
        let hook = move |call: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<Py<PyAny>> {
            let (py, call, original) = (call.py(), LaunchCall::of(call)?, call.get_item(0)?);
            let LaunchCall { function, args, kwargs, .. } = &call;
            if way == Way::Compile {
                // Variants that do not fit are passed over.
                let all =
                    forgiving(|| choosing(|| tuning(py)?.getattr("compile")?.call1((function, args, kwargs, &told))))?;
                let all: bool = all.extract()?;
                met().is_open |= all;
                return Ok(py.None());
            }
            let (is_forced, stays) = (matches!(way, Way::Forced | Way::Settled), way == Way::Settled);
            let out = if way == Way::Each {
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

    /// Takes it away.
    pub(super) fn remove(self) -> PyResult<()> {
        self.class.setattr("run", self.original)
    }
}

/// What the tuners that were met have chosen.
pub(super) fn tuned(py: Python<'_>) -> PyResult<Vec<Tuned>> {
    let tuners = std::mem::take(&mut met().tuners);
    let tell = tuning(py)?.getattr("tuned")?;
    let told = tuners.iter().map(|tuner| tell.call1((tuner,))?.extract::<Option<(_, _, _, _)>>());
    let told = told.collect::<PyResult<Vec<_>>>()?.into_iter().flatten();
    Ok(told.map(|(kernel, config, others, near)| Tuned { kernel, config, others, near }).collect())
}

/// Whether a tuner was met that has to measure: it was told nothing.
pub(super) fn is_open() -> bool {
    std::mem::take(&mut met().is_open)
}
