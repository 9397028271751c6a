//! Detection of code that hides its work from the observers: its own threads, ways around the dispatch modes that
//! observe torch's operators, and what leads to the judge's own objects. Dispatch modes apply to one thread.
//!
//! Torch and Triton do both themselves, for their own purposes, so the caller decides whether it counts.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyString, PyTuple};

/// The observations of a call.
#[derive(Default)]
pub(super) struct CallObservation {
    /// The number of threads that it started, whether they still run or not.
    pub(super) started: usize,
    /// The ways in which it evaded the observers of operators, as text.
    pub(super) evaded: Vec<String>,
}

/// The observations of the running call; `None` between calls.
static SEEN: Mutex<Option<CallObservation>> = Mutex::new(None);

fn seen() -> std::sync::MutexGuard<'static, Option<CallObservation>> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts observing.
pub(super) fn begin() {
    *seen() = Some(CallObservation::default());
}

/// The observations since [`begin`].
pub(super) fn end() -> CallObservation {
    seen().take().unwrap_or_default()
}

/// The functions that start threads, under their different names.
const THREADS: &[&str] = &["start_new_thread", "start_new", "start_joinable_thread"];
const THREADS_AT: &[(&str, &str)] = &[("threading", "_start_new_thread"), ("threading", "_start_joinable_thread")];
/// The functions that remove dispatch modes, or hide operators from them.
const MODES: &[&str] = &[
    "_pop_torch_dispatch_stack",
    "_DisableTorchDispatch",
    "_ExcludeDispatchKeyGuard",
    "_SetExcludeDispatchKeyGuard",
    "_ForceDispatchKeyGuard",
    "_dispatch_tls_set_dispatch_key_excluded",
];
const MODES_AT: &[(&str, &str)] =
    &[("torch.utils._python_dispatch", "_pop_torch_dispatch_stack"), ("torch.utils._mode_utils", "no_dispatch")];

/// The audit events of functions that lead to the frames or objects of their callers. See the table of audit events of
/// Python's manual.
const LOOKS: &[&str] = &["sys._getframe", "sys._current_frames", "gc.get_objects", "gc.get_referrers"];
/// The attributes that lead to frames. Reading them is an audit event.
const FRAMES: &[&str] = &["tb_frame", "gi_frame", "cr_frame", "ag_frame"];
/// The attributes that make a function another one. Setting them is an audit event.
const CODE: &[&str] = &["__code__", "__defaults__", "__kwdefaults__"];

thread_local! {
    /// Whether this module itself looks at frames.
    static IS_LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// Wraps these functions. It must run before the file is loaded, and before the guard records the state.
pub(super) fn install(py: Python<'_>) -> PyResult<()> {
    let own = Own::find(py)?;
    audit(py, &own)?;
    cover(py, ("_thread", THREADS), THREADS_AT, &own, |_, _| true)?;
    if py.import("sys")?.getattr("modules")?.contains("torch")? {
        cover(py, ("torch._C", MODES), MODES_AT, &own, hides)?;
    }
    Ok(())
}

/// Adds an audit hook, which Python code cannot remove.
fn audit(py: Python<'_>, own: &Own) -> PyResult<()> {
    let own = own.clone();
    let hook = move |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<()> {
        if IS_LOOKING.get() || seen().is_none() {
            return Ok(());
        }
        let event = args.get_item(0)?.cast_into::<PyString>()?;
        let event = event.to_str()?;
        IS_LOOKING.set(true);
        let found = suspicion(event, &args.get_item(1)?, &own);
        IS_LOOKING.set(false);
        if let (Some(found), Some(seen)) = (found?, seen().as_mut())
            && !seen.evaded.contains(&found)
        {
            seen.evaded.push(found);
        }
        Ok(())
    };
    let hook = PyCFunction::new_closure(py, None, None, hook)?;
    py.import("sys")?.call_method1("addaudithook", (hook,)).map(drop)
}

/// What an audit event says about the file, as text; `None` where somebody else caused it.
fn suspicion(event: &str, details: &Bound<'_, PyAny>, own: &Own) -> PyResult<Option<String>> {
    let py = details.py();
    let attribute = || details.get_item(1)?.extract::<String>();
    if LOOKS.contains(&event) {
        let found = || format!("`{event}` was called: it leads to objects of the judge");
        return Ok(own.is_asked_by_file(py)?.then(found));
    }
    match event {
        "object.__getattr__" if FRAMES.contains(&attribute()?.as_str()) => {
            let name = attribute()?;
            Ok(own.is_asked_by_file(py)?.then(|| format!("`{name}` was read: it leads to objects of the judge")))
        }
        "object.__setattr__" if CODE.contains(&attribute()?.as_str()) => {
            let (function, name) = (details.get_item(0)?, attribute()?);
            let file: String = function.getattr("__code__")?.getattr("co_filename")?.extract()?;
            let text = || {
                format!(
                    "`{name}` of `{}` was set",
                    function.getattr("__qualname__").map_or_else(|_| "?".to_owned(), |name| name.to_string())
                )
            };
            Ok(own.is_watched(&file).then(text))
        }
        _ => Ok(None),
    }
}

fn cover(
    py: Python<'_>,
    (module, names): (&str, &'static [&'static str]),
    aliases: &[(&str, &str)],
    own: &Own,
    counts: fn(&Bound<'_, PyTuple>, &Bound<'_, PyAny>) -> bool,
) -> PyResult<()> {
    let module = py.import(module)?;
    for &name in names {
        // Not every release has all of these functions.
        let Ok(original) = module.getattr(name) else { continue };
        let (kept, own) = (original.clone().unbind(), own.clone());
        let call = move |args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>| -> PyResult<Py<PyAny>> {
            let py = args.py();
            let out = kept.bind(py).call(args, kwargs)?;
            // The lock is not held while frames are examined, since other threads may get here meanwhile.
            let is_looked_at = seen().is_some();
            let is_evading = is_looked_at && counts(args, &out) && !own.asks(py)?;
            if let Some(seen) = seen().as_mut().filter(|_| is_evading) {
                if THREADS.contains(&name) {
                    seen.started += 1;
                } else {
                    seen.evaded.push(format!("`torch._C.{name}` was called: it keeps operators from being watched"));
                }
            }
            Ok(out.unbind())
        };
        let covered = PyCFunction::new_closure(py, None, None, call)?;
        module.setattr(name, &covered)?;
        for (module, alias) in aliases {
            let module = py.import(*module)?;
            if module.getattr(*alias).is_ok_and(|it| it.is(&original)) {
                module.setattr(*alias, &covered)?;
            }
        }
    }
    Ok(())
}

/// Whether the call removed one of our modes, or excluded its dispatch key.
fn hides(args: &Bound<'_, PyTuple>, out: &Bound<'_, PyAny>) -> bool {
    let class = out.get_type();
    let text = |value: PyResult<Bound<'_, PyAny>>| value.map(|value| value.to_string()).unwrap_or_default();
    if text(class.getattr("__name__")) == "_DisableTorchDispatch" {
        return true;
    }
    if text(class.getattr("__module__")) == "_warpsmith_shim" {
        return true;
    }
    let names_python = |value: &Bound<'_, PyAny>| {
        let words = value.to_string();
        words.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == "Python")
    };
    let is_undone = args.iter().last().is_some_and(|last| last.extract::<bool>().is_ok_and(|is_on| !is_on));
    !is_undone && args.iter().any(|value| names_python(&value))
}

/// The folders of files that may call these functions.
#[derive(Clone)]
struct Own {
    /// The packages of torch and Triton.
    packages: Vec<String>,
    /// The standard library, which calls these functions on behalf of other code.
    standard: String,
}

impl Own {
    fn find(py: Python<'_>) -> PyResult<Self> {
        let folder = |module: Bound<'_, PyAny>| -> PyResult<String> {
            let file: String = module.getattr("__file__")?.extract()?;
            Ok(file.rsplit_once('/').map_or(file.clone(), |(folder, _)| format!("{folder}/")))
        };
        let modules = py.import("sys")?.getattr("modules")?;
        let packages = ["torch", "triton"].iter().filter_map(|name| modules.get_item(*name).ok());
        let packages = packages.filter_map(|module| folder(module).ok()).collect();
        Ok(Self { packages, standard: folder(py.import("threading")?.into_any())? })
    }

    /// Whether a function of this file is one that no other code may change: of the judge, torch, Triton, or Python.
    fn is_watched(&self, file: &str) -> bool {
        file.starts_with("_warpsmith_")
            || self.packages.iter().any(|package| file.starts_with(package))
            || (file.starts_with(&self.standard) && !file.contains("-packages/"))
    }

    /// Whether the file itself, or the standard library on behalf of it, does what is in progress: anything that is of
    /// no installed package.
    fn is_asked_by_file(&self, py: Python<'_>) -> PyResult<bool> {
        let mut frame = py.import("sys")?.call_method0("_getframe")?;
        while !frame.is_none() {
            let code = frame.getattr("f_code")?;
            let (file, name): (String, String) =
                (code.getattr("co_filename")?.extract()?, code.getattr("co_name")?.extract()?);
            // These hand on frames. A traceback that is printed reads them as well.
            let is_between = file.starts_with('<')
                || file.ends_with("/inspect.py")
                || (file.ends_with("/traceback.py") && matches!(name.as_str(), "walk_stack" | "walk_tb"));
            if !is_between {
                return Ok(!self.is_watched(&file) && !file.contains("-packages/"));
            }
            frame = frame.getattr("f_back")?;
        }
        Ok(false)
    }

    /// Whether torch or Triton is the caller, as opposed to the file.
    fn asks(&self, py: Python<'_>) -> PyResult<bool> {
        let was_looking = IS_LOOKING.replace(true);
        let asks = self.is_asking(py);
        IS_LOOKING.set(was_looking);
        asks
    }

    fn is_asking(&self, py: Python<'_>) -> PyResult<bool> {
        let mut frame = py.import("sys")?.call_method0("_getframe")?;
        while !frame.is_none() {
            let file: String = frame.getattr("f_code")?.getattr("co_filename")?.extract()?;
            let is_between = file.ends_with("/torch/utils/_python_dispatch.py")
                || file.starts_with('<')
                || (file.starts_with(&self.standard) && !file.contains("-packages/"));
            if !is_between {
                return Ok(self.packages.iter().any(|package| file.starts_with(package)));
            }
            frame = frame.getattr("f_back")?;
        }
        Ok(false)
    }
}
