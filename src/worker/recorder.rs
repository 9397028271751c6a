//! Which calls have been seen, and what is kept of a new one.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use super::kept::{Book, Call, Key, Known};
use super::launch::{LaunchCall, is_tuning, launch_record, patch_launches};
use super::shim;
use super::sketch::Sketch;
use super::types::Types;
use super::values::{Described, module_file};
use crate::protocol::{EntryPoint, Environment, LaunchRecord, RecordConfig, Source};

static BOOK: Mutex<Option<Book>> = Mutex::new(None);

/// Nothing of Python's may be called or dropped in `use_it`: another thread may wait for the lock and hold Python's.
fn book<T>(use_it: impl FnOnce(&mut Book) -> T) -> Option<T> {
    BOOK.lock().unwrap_or_else(std::sync::PoisonError::into_inner).as_mut().map(use_it)
}

thread_local! {
    static STACK: RefCell<Stack> = RefCell::default();
}

/// What this thread is inside of.
#[derive(Default)]
struct Stack {
    calls: Vec<Active>,
    /// Launch hooks: an autotuner's is around its kernel's.
    depth: usize,
    /// Launches of kernels inside the outermost hook, when it is being recorded.
    inside: Option<Vec<LaunchRecord>>,
}

/// A call of an entry, or of a backward, at present.
struct Active {
    /// Calls whose gradients are still to be seen, for the autograd nodes made inside.
    tag: Option<(Key, u64)>,
    /// Whether launches are noted.
    launches: Option<Vec<LaunchRecord>>,
    /// Whether the call can be run again, so that launches inside need no workload of their own.
    covers: bool,
    /// The entry, if none of its calls launched anything so far.
    fruitless: Option<usize>,
}

fn stack<T>(use_it: impl FnOnce(&mut Stack) -> T) -> T {
    STACK.with_borrow_mut(use_it)
}

/// Runs `call` with `active` on the stack, and gives the launches noted.
fn inside<T>(active: Active, call: impl FnOnce() -> T) -> (T, Vec<LaunchRecord>) {
    stack(|stack| stack.calls.push(active));
    let out = call();
    let active = stack(|stack| stack.calls.pop());
    (out, active.and_then(|active| active.launches).unwrap_or_default())
}

/// Begins to record. Returns what the decorators of entries are to call.
pub(super) fn install<'py>(
    py: Python<'py>,
    config: RecordConfig,
    environment: Environment,
) -> PyResult<Bound<'py, PyCFunction>> {
    *BOOK.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Book::new(config, environment));
    let closure = |function: fn(&Bound<'_, PyTuple>) -> PyResult<Py<PyAny>>| {
        PyCFunction::new_closure(py, None, None, move |call: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
            function(call)
        })
    };
    patch_launches(py, closure(on_kernel)?.as_any(), closure(on_wrapper)?.as_any())?;
    let calls = closure(on_call)?;
    shim(py)?.getattr("watch_autograd")?.call1((closure(key_of)?, &calls, closure(on_backward)?))?;
    Ok(calls)
}

/// The last counts are written at the end.
pub(super) fn save_counts() {
    book(|book| book.save_counts());
}

/// `call(key, function, args, kwargs)`; see the shim.
fn on_call(call: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let entry: usize = call.get_item(0)?.extract()?;
    let function = call.get_item(1)?;
    let (args, kwargs) = (call.get_item(2)?.cast_into::<PyTuple>()?, call.get_item(3)?.cast_into::<PyDict>()?);
    let run = || function.call(&args, Some(&kwargs)).map(Bound::unbind);
    // What cannot be described must not disturb the user's program.
    let Ok(types) = Types::get(call.py()) else { return run() };
    // The static methods of an autograd function: its `apply` is the entry.
    let is_inner =
        args.get_item(0).is_ok_and(|first| first.is_instance(types.context.bind(call.py())).unwrap_or(false));
    let (false, Ok(sketch)) = (is_inner, Sketch::of(&args, &kwargs)) else { return run() };
    let key = Key { entry, shapes: sketch.exact };
    let wants_gradient = sketch.wants_gradient && is_grad_enabled(call.py());
    match book(|book| book.know(key, sketch.shapes, wants_gradient)) {
        Some(Known::New) => record(call.py(), key, sketch.shapes, wants_gradient, (&args, &kwargs), run),
        Some(Known::Seen { tag, covers }) => {
            let tagged = || {
                let out = run();
                if tag.is_some()
                    && let Ok(out) = &out
                {
                    tag_nodes(out.bind(call.py()));
                }
                out
            };
            inside(Active { tag, launches: None, covers, fruitless: None }, tagged).0
        }
        Some(Known::Fruitless) => {
            inside(Active { tag: None, launches: None, covers: false, fruitless: Some(entry) }, run).0
        }
        None => run(),
    }
}

fn is_grad_enabled(py: Python<'_>) -> bool {
    py.import("torch").and_then(|torch| torch.call_method0("is_grad_enabled")?.extract()).unwrap_or(false)
}

fn record(
    py: Python<'_>,
    key: Key,
    shapes: u64,
    wants_gradient: bool,
    (args, kwargs): (&Bound<'_, PyTuple>, &Bound<'_, PyDict>),
    run: impl FnOnce() -> PyResult<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let workspace = book(|book| book.workspace().to_owned()).unwrap_or_default();
    let Ok(described) = Described::of(args, kwargs, &workspace) else { return run() };
    let copies = described.copies().ok().flatten();
    let number = book(|book| book.next_call()).unwrap_or(0);
    let tag = wants_gradient.then_some((key, number));
    let active = Active { tag, launches: Some(Vec::new()), covers: described.is_complete(), fruitless: None };
    let (out, launches) = inside(active, || {
        let out = run();
        if let Ok(out) = &out {
            tag_nodes(out.bind(py));
        }
        out
    });
    let out = out?;
    let mutated = copies.and_then(|copies| described.changed(&copies).ok()).unwrap_or_default();
    let call = Call { args: described.args, kwargs: described.kwargs, mutated, launches, blocked: None };
    book(|book| book.keep(key, shapes, Source::Recorded, call));
    Ok(out)
}

/// Leaves a note on the autograd nodes of what an entry returns: whose gradients flow when they run.
fn tag_nodes(out: &Bound<'_, PyAny>) {
    let tags: Vec<(usize, u64, u64)> = stack(|stack| {
        stack.calls.iter().filter_map(|call| call.tag).map(|(key, call)| (key.entry, key.shapes, call)).collect()
    });
    if tags.is_empty() {
        return;
    }
    let note = || -> PyResult<()> {
        for node in shim(out.py())?.getattr("nodes")?.call1((out,))?.try_iter()? {
            let node = node?;
            // One that was made further inside has the calls around it already. Torch's own nodes take no attributes.
            if !node.hasattr("_warpsmith")? {
                let _ = node.setattr("_warpsmith", &tags);
            }
        }
        Ok(())
    };
    let _ = note();
}

/// `key_of(cls)`: the entry of an autograd function of the workspace.
fn key_of(call: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let class = call.get_item(0)?;
    let file = module_file(&class)?;
    let qualname: String = class.getattr("__qualname__")?.extract()?;
    let entry = file.and_then(|file| own_entry(&file, &format!("{qualname}.apply")));
    Ok(entry.into_pyobject(call.py())?.unbind())
}

/// The number of an entry that no file was searched for; `None` outside of the workspace.
fn own_entry(file: &Path, qualname: &str) -> Option<usize> {
    let point = EntryPoint { file: file.to_owned(), qualname: qualname.to_owned(), line: 0 };
    book(|book| book.is_own(file).then(|| book.entry(point)))?
}

/// `on_backward(function, args)`
fn on_backward(call: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (function, args) = (call.get_item(0)?, call.get_item(1)?.cast_into::<PyTuple>()?);
    let tags: Vec<(usize, u64, u64)> =
        args.get_item(0).and_then(|context| context.getattr("_warpsmith")?.extract()).unwrap_or_default();
    let wanted: Vec<(Key, u64)> = tags
        .into_iter()
        .map(|(entry, shapes, call)| (Key { entry, shapes }, call))
        .filter(|&(key, call)| book(|book| book.wants_gradient(key, call)).unwrap_or(false))
        .collect();
    let launches = (!wanted.is_empty()).then(Vec::new);
    let run = || function.call1(args).map(Bound::unbind);
    let (out, launches) = inside(Active { tag: None, launches, covers: true, fruitless: None }, run);
    let out = out?;
    for (key, call) in wanted {
        book(|book| book.gradient(key, call, &launches));
    }
    Ok(out)
}

/// A launch of an autotuner or of heuristics; see [`LaunchCall`].
fn on_wrapper(call: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let call = LaunchCall::of(call)?;
    if call.is_warmup() || is_tuning() { call.run() } else { launched(&call, || call.run()) }
}

/// A launch of a kernel.
fn on_kernel(call: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let call = LaunchCall::of(call)?;
    if call.is_warmup() || is_tuning() {
        return call.run();
    }
    launched(&call, || {
        let out = call.run()?;
        let wanted = stack(|stack| stack.inside.is_some() || stack.calls.iter().any(|call| call.launches.is_some()));
        if wanted && let Ok(record) = launch_record(&call.function, &call.kwargs, &call.args) {
            stack(|stack| {
                stack
                    .calls
                    .iter_mut()
                    .filter_map(|call| call.launches.as_mut())
                    .for_each(|all| all.push(record.clone()));
                if let Some(all) = &mut stack.inside {
                    all.push(record);
                }
            });
        }
        Ok(out)
    })
}

/// Runs a launch; one that no call covers is a workload of its own.
fn launched(call: &LaunchCall<'_>, run: impl FnOnce() -> PyResult<Py<PyAny>>) -> PyResult<Py<PyAny>> {
    let (is_bare, fruitless) = stack(|stack| {
        stack.depth += 1;
        let is_bare = stack.depth == 1 && !stack.calls.iter().any(|call| call.covers);
        let fruitless: Vec<usize> = stack.calls.iter_mut().filter_map(|call| call.fruitless.take()).collect();
        (is_bare, fruitless)
    });
    for entry in fruitless {
        book(|book| book.look_again(entry));
    }
    let out = if is_bare { launch_alone(call, run) } else { run() };
    stack(|stack| stack.depth -= 1);
    out
}

fn launch_alone(call: &LaunchCall<'_>, run: impl FnOnce() -> PyResult<Py<PyAny>>) -> PyResult<Py<PyAny>> {
    let kwargs = call.kwargs.copy()?;
    for name in ["grid", "warmup"] {
        let _ = kwargs.del_item(name);
    }
    let (Ok(Some(entry)), Ok(sketch)) = (kernel_entry(&call.function), Sketch::of(&call.args, &kwargs)) else {
        return run();
    };
    let key = Key { entry: entry.0, shapes: sketch.exact };
    if !matches!(book(|book| book.know(key, sketch.shapes, false)), Some(Known::New)) {
        return run();
    }
    let workspace = book(|book| book.workspace().to_owned()).unwrap_or_default();
    let Ok(described) = Described::of(&call.args, &kwargs, &workspace) else { return run() };
    let copies = described.copies().ok().flatten();
    stack(|stack| stack.inside = Some(Vec::new()));
    let out = run();
    let launches = stack(|stack| stack.inside.take()).unwrap_or_default();
    let out = out?;
    let mutated = copies.and_then(|copies| described.changed(&copies).ok()).unwrap_or_default();
    let blocked = if entry.1 { launch_obstacle(call)? } else { Some("no name of its file leads to it".to_owned()) };
    let call = Call { args: described.args, kwargs: described.kwargs, mutated, launches, blocked };
    book(|book| book.keep(key, sketch.shapes, Source::Launch, call));
    Ok(out)
}

/// The entry of a kernel of the workspace, and whether its file has a name for what is launched.
fn kernel_entry(function: &Bound<'_, PyAny>) -> PyResult<Option<(usize, bool)>> {
    let mut inner = function.clone();
    while let Ok(next) = inner.getattr("fn") {
        inner = next;
    }
    let file: PathBuf = inner.getattr("__code__")?.getattr("co_filename")?.extract::<String>()?.into();
    let file = std::fs::canonicalize(&file).unwrap_or(file);
    let mut qualname: String = inner.getattr("__qualname__")?.extract()?;
    let modules = function.py().import("sys")?.getattr("modules")?;
    let mut is_named = false;
    if let Ok(module) = modules.get_item(inner.getattr("__module__")?) {
        for (name, held) in module.getattr("__dict__")?.cast_into::<PyDict>()? {
            if held.is(function) {
                qualname = name.extract()?;
                is_named = true;
            }
        }
    }
    Ok(own_entry(&file, &qualname).map(|entry| (entry, is_named)))
}

/// A grid that follows the configuration is not the same for every candidate.
fn launch_obstacle(call: &LaunchCall<'_>) -> PyResult<Option<String>> {
    let is_computed = call.kwargs.get_item("grid")?.is_some_and(|grid| grid.is_callable());
    let mut function = call.function.clone();
    let mut configurations = 0;
    while let Ok(inner) = function.getattr("fn") {
        configurations += function.getattr("configs").and_then(|configs| configs.len()).unwrap_or(0);
        function = inner;
    }
    let text = "its grid follows the configuration, and no function launches it";
    Ok((is_computed && configurations > 1).then(|| text.to_owned()))
}
