//! The recorder: it decides for each observed call whether to record it, and records new ones.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use protocol::{EntryPoint, FailedLaunch, LaunchRecord, RecordConfig, RuntimeVersions, Workload, WorkloadSource};

use super::call_registry::{CallRegistry, CallState};
use super::fingerprint::CallFingerprint;
use super::launch::{LaunchCall, is_tuning, launch_record, patch_launches};
use super::objects::module_file;
use super::python_modules::shim;
use super::recorded_calls::{CallKey, RecordPurpose};
use super::types::Types;
use super::values::DescribedArguments;

static BOOK: Mutex<Option<CallRegistry>> = Mutex::new(None);

/// Runs `use_it` with the locked registry. It must not call or drop Python objects: another thread may wait for this
/// lock while it holds the GIL.
fn book<T>(use_it: impl FnOnce(&mut CallRegistry) -> T) -> Option<T> {
    BOOK.lock().unwrap_or_else(std::sync::PoisonError::into_inner).as_mut().map(use_it)
}

thread_local! {
    static STACK: RefCell<Stack> = RefCell::default();
}

/// The calls that this thread is inside of.
#[derive(Default)]
struct Stack {
    calls: Vec<Active>,
    /// The number of nested launch hooks: an autotuner's encloses that of its kernel.
    depth: usize,
    /// Launches inside the outermost hook, while it is being recorded.
    inside: Option<Vec<LaunchRecord>>,
}

impl Stack {
    /// The innermost call of which it is not known yet whether it covers its launches.
    fn open(&mut self) -> Option<&mut Active> {
        self.calls.iter_mut().rfind(|call| call.cover == Cover::Open)
    }
}

/// A running call of an entry, or of a backward pass.
#[derive(Default)]
struct Active {
    /// The call whose gradients are still to be recorded, for the autograd nodes that are made inside.
    tag: Option<(CallKey, u64)>,
    /// The launches, if they are recorded.
    launches: Option<Vec<LaunchRecord>>,
    cover: Cover,
    /// Launches that become workloads of their own unless this call, or one around it, covers them, each with how often
    /// it is then still to be counted.
    inside: HashMap<CallKey, u64>,
    /// The index of the entry, if none of its calls has launched anything so far.
    fruitless: Option<usize>,
}

/// Whether a call can be made again, so that the launches inside need no workload of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cover {
    #[default]
    No,
    /// This is known only when the call has ended.
    Open,
    Yes,
}

fn stack<T>(use_it: impl FnOnce(&mut Stack) -> T) -> T {
    STACK.with_borrow_mut(use_it)
}

/// Runs `call` with `active` on the stack; returns both.
fn inside<T>(active: Active, call: impl FnOnce() -> T) -> (T, Active) {
    stack(|stack| stack.calls.push(active));
    let out = call();
    (out, stack(|stack| stack.calls.pop()).unwrap_or_default())
}

/// Records after a call has ended whether it covers the launches inside.
fn settle(launches: HashMap<CallKey, u64>, covered: bool) {
    let left = stack(|stack| match stack.open().filter(|_| !covered) {
        Some(around) => {
            launches.into_iter().for_each(|(key, more)| *around.inside.entry(key).or_default() += more);
            HashMap::new()
        }
        None => launches,
    });
    book(|book| book.settle(left, covered));
}

/// Begins to record. Returns the function that the entries' decorators call.
pub(super) fn install<'py>(
    py: Python<'py>,
    config: RecordConfig,
    environment: RuntimeVersions,
) -> PyResult<Bound<'py, PyCFunction>> {
    *BOOK.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(CallRegistry::new(config, environment));
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

/// Writes the last counts at the end.
pub(super) fn save_counts() {
    book(|book| book.save_counts());
}

/// `call(key, function, args, kwargs)`; see the shim.
fn on_call(call: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let entry: usize = call.get_item(0)?.extract()?;
    let function = call.get_item(1)?;
    let (args, kwargs) = (call.get_item(2)?.cast_into::<PyTuple>()?, call.get_item(3)?.cast_into::<PyDict>()?);
    let run = || function.call(&args, Some(&kwargs)).map(Bound::unbind);
    // A call that cannot be described must not disturb the user's program.
    let Ok(types) = Types::get(call.py()) else { return run() };
    // The static methods of an autograd function are not entries; its `apply` is.
    let is_inner =
        args.get_item(0).is_ok_and(|first| first.is_instance(types.context.bind(call.py())).unwrap_or(false));
    let (false, Ok(sketch)) = (is_inner, CallFingerprint::of(&args, &kwargs)) else { return run() };
    let key = CallKey { entry, shapes: sketch.exact };
    let wants_gradient = sketch.wants_gradient && is_grad_enabled(call.py());
    match book(|book| book.know(key, sketch.shapes, wants_gradient, RecordPurpose::All)) {
        Some(CallState::New) => record(call.py(), key, sketch, wants_gradient, (&args, &kwargs), run),
        Some(CallState::Seen { tag, covers }) => {
            let tagged = || {
                let out = run();
                if tag.is_some()
                    && let Ok(out) = &out
                {
                    tag_nodes(out.bind(call.py()));
                }
                out
            };
            let cover = if covers { Cover::Yes } else { Cover::No };
            inside(Active { tag, cover, ..Active::default() }, tagged).0
        }
        Some(CallState::Fruitless | CallState::Open(_)) => {
            inside(Active { fruitless: Some(entry), ..Active::default() }, run).0
        }
        None => run(),
    }
}

/// Whether a CUDA graph is being captured: the device must not be queried then.
fn is_captured(py: Python<'_>) -> bool {
    let ask = || py.import("torch")?.getattr("cuda")?.call_method0("is_current_stream_capturing")?.extract();
    ask().unwrap_or(false)
}

fn is_grad_enabled(py: Python<'_>) -> bool {
    py.import("torch").and_then(|torch| torch.call_method0("is_grad_enabled")?.extract()).unwrap_or(false)
}

fn record(
    py: Python<'_>,
    key: CallKey,
    sketch: CallFingerprint,
    wants_gradient: bool,
    (args, kwargs): (&Bound<'_, PyTuple>, &Bound<'_, PyDict>),
    run: impl FnOnce() -> PyResult<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let workspace = book(|book| book.workspace().to_owned()).unwrap_or_default();
    let described = if is_captured(py) { None } else { DescribedArguments::of(args, kwargs, &workspace).ok() };
    let Some(mut described) = described else { return run() };
    let copies = described.copies().ok().flatten();
    let (given, named) = (std::mem::take(&mut described.args), std::mem::take(&mut described.kwargs));
    let noted = book(|book| (book.draft(key, WorkloadSource::Recorded, given, named), book.next_call()));
    let Some((mut workload, number)) = noted else { return run() };
    let tag = wants_gradient.then_some((key, number));
    // An entry without arguments is a program rather than a function that can be replaced.
    let may_cover = workload.values().next().is_some() && workload.obstacle().is_none();
    let cover = if may_cover { Cover::Open } else { Cover::No };
    let active = Active { tag, launches: Some(Vec::new()), cover, ..Active::default() };
    let (out, active) = inside(active, || {
        let out = run();
        if let Ok(out) = &out {
            tag_nodes(out.bind(py));
        }
        out
    });
    let out = match out {
        Ok(out) => out,
        Err(error) => {
            book(|book| book.note_raised(key.entry));
            settle(active.inside, false);
            return Err(error);
        }
    };
    let mutated = copies.and_then(|copies| described.changed(&copies).ok());
    workload.launches = active.launches.unwrap_or_default();
    workload.traceless = out.is_none(py) && mutated.as_ref().is_some_and(Vec::is_empty);
    workload.mutated = mutated.unwrap_or_default();
    let has_tensors = sketch.has_tensors || CallFingerprint::finds_tensors(out.bind(py));
    let covers = may_cover && has_tensors && !workload.traceless;
    book(|book| {
        if has_tensors || workload.launches.is_empty() || book.is_wanted(key.entry) {
            book.keep(key, sketch.shapes, workload, if covers { RecordPurpose::All } else { RecordPurpose::Itself });
        } else {
            book.note_empty(key);
        }
    });
    settle(active.inside, covers);
    Ok(out)
}

/// Marks the autograd nodes of an entry's results, so that their backward pass is attributed to the call.
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
            // A node from a call further inside has a mark already, which includes the calls around it. Torch's own
            // nodes accept no attributes.
            if !node.hasattr("_warpsmith")? {
                let _ = node.setattr("_warpsmith", &tags);
            }
        }
        Ok(())
    };
    let _ = note();
}

/// `key_of(cls)`: the entry of an autograd function in the workspace.
fn key_of(call: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let class = call.get_item(0)?;
    let file = module_file(&class)?;
    let qualname: String = class.getattr("__qualname__")?.extract()?;
    let entry = file.and_then(|file| own_entry(&file, &format!("{qualname}.apply")));
    Ok(entry.into_pyobject(call.py())?.unbind())
}

/// The index of an entry that was found without searching files; `None` outside of the workspace.
fn own_entry(file: &Path, qualname: &str) -> Option<usize> {
    let point = EntryPoint { file: file.to_owned(), qualname: qualname.to_owned(), line: 0 };
    book(|book| book.is_own(file).then(|| book.entry(point)))?
}

/// `on_backward(function, args)`; see the shim.
fn on_backward(call: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (function, args) = (call.get_item(0)?, call.get_item(1)?.cast_into::<PyTuple>()?);
    let tags: Vec<(usize, u64, u64)> =
        args.get_item(0).and_then(|context| context.getattr("_warpsmith")?.extract()).unwrap_or_default();
    let wanted: Vec<(CallKey, u64)> = tags
        .into_iter()
        .map(|(entry, shapes, call)| (CallKey { entry, shapes }, call))
        .filter(|&(key, call)| book(|book| book.wants_gradient(key, call)).unwrap_or(false))
        .collect();
    let launches = (!wanted.is_empty()).then(Vec::new);
    let run = || function.call1(args).map(Bound::unbind);
    let (out, active) = inside(Active { launches, cover: Cover::Yes, ..Active::default() }, run);
    let (out, launches) = (out?, active.launches.unwrap_or_default());
    for (key, call) in wanted {
        book(|book| book.gradient(key, call, &launches));
    }
    Ok(out)
}

/// Called for a launch of an autotuner or of heuristics; see [`LaunchCall`].
fn on_wrapper(call: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let call = LaunchCall::of(call)?;
    if call.is_warmup() || is_tuning() { call.run() } else { launched(&call, || call.run()) }
}

/// Called for a launch of a kernel.
fn on_kernel(call: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let call = LaunchCall::of(call)?;
    if call.is_warmup() || is_tuning() {
        return call.run();
    }
    launched(&call, || {
        let out = call.run().inspect_err(|error| note_failed(&call, error))?;
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

/// Records a launch of a workspace kernel that has raised.
fn note_failed(call: &LaunchCall<'_>, error: &PyErr) {
    let py = call.args.py();
    if !error.is_instance_of::<PyException>(py) {
        return;
    }
    let note = || -> PyResult<()> {
        let (_, file) = written(&call.function)?;
        let launch = launch_record(&call.function, &call.kwargs, &call.args)?;
        book(|book| book.note_failed(FailedLaunch { file, launch }));
        Ok(())
    };
    // A launch that cannot be described is not recorded.
    let _ = note();
}

/// Runs a launch; one that no call covers becomes a workload of its own.
fn launched(call: &LaunchCall<'_>, run: impl FnOnce() -> PyResult<Py<PyAny>>) -> PyResult<Py<PyAny>> {
    let (alone, fruitless) = stack(|stack| {
        stack.depth += 1;
        let is = |cover: Cover| stack.calls.iter().any(|call| call.cover == cover);
        // An open call may raise, or never end.
        let alone = if is(Cover::Open) { RecordPurpose::Case } else { RecordPurpose::Itself };
        let alone = (stack.depth == 1 && !is(Cover::Yes)).then_some(alone);
        let fruitless: Vec<usize> = stack.calls.iter_mut().filter_map(|call| call.fruitless.take()).collect();
        (alone, fruitless)
    });
    for entry in fruitless {
        book(|book| book.look_again(entry));
    }
    let out = match alone {
        Some(what) => launch_alone(call, what, run),
        None => run(),
    };
    stack(|stack| stack.depth -= 1);
    out
}

fn launch_alone(
    call: &LaunchCall<'_>,
    what: RecordPurpose,
    run: impl FnOnce() -> PyResult<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let kwargs = call.kwargs.copy()?;
    for name in ["grid", "warmup"] {
        let _ = kwargs.del_item(name);
    }
    let (Ok(Some(entry)), Ok(sketch)) = (kernel_entry(&call.function), CallFingerprint::of(&call.args, &kwargs)) else {
        return run();
    };
    let key = CallKey { entry: entry.0, shapes: sketch.exact };
    match book(|book| book.know(key, sketch.shapes, false, what)) {
        Some(CallState::New) if !is_captured(call.args.py()) => {}
        Some(CallState::Open(key)) => {
            stack(|stack| stack.open().map(|around| *around.inside.entry(key).or_default() += 1));
            return run();
        }
        _ => return run(),
    }
    let workspace = book(|book| book.workspace().to_owned()).unwrap_or_default();
    let Ok(mut described) = DescribedArguments::of(&call.args, &kwargs, &workspace) else { return run() };
    let copies = described.copies().ok().flatten();
    stack(|stack| stack.inside = Some(Vec::new()));
    let out = run();
    let launches = stack(|stack| stack.inside.take()).unwrap_or_default();
    let out = out?;
    let mutated = copies.and_then(|copies| described.changed(&copies).ok()).unwrap_or_default();
    let blocked = if entry.1 { launch_obstacle(call)? } else { Some("no name of its file leads to it".to_owned()) };
    let (args, kwargs) = (std::mem::take(&mut described.args), std::mem::take(&mut described.kwargs));
    let open = stack(|stack| {
        let around = stack.open().filter(|_| what == RecordPurpose::Case)?;
        around.inside.entry(key).or_default();
        Some(())
    });
    book(|book| {
        let draft = book.draft(key, WorkloadSource::Launch, args, kwargs);
        let what = if open.is_some() { RecordPurpose::Case } else { RecordPurpose::Itself };
        book.keep(key, sketch.shapes, Workload { mutated, launches, blocked, ..draft }, what);
    });
    Ok(out)
}

/// The function as the user wrote it, without the kernel object and its wrappers, and its file.
fn written<'py>(function: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, PathBuf)> {
    let mut inner = function.clone();
    while let Ok(next) = inner.getattr("fn") {
        inner = next;
    }
    let file: PathBuf = inner.getattr("__code__")?.getattr("co_filename")?.extract::<String>()?.into();
    let file = std::fs::canonicalize(&file).unwrap_or(file);
    Ok((inner, file))
}

/// The entry of a workspace kernel, and whether the launched object has a name in its file.
fn kernel_entry(function: &Bound<'_, PyAny>) -> PyResult<Option<(usize, bool)>> {
    let (inner, file) = written(function)?;
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

/// The reason why a launch cannot be a workload: a grid that depends on the configuration differs between candidates.
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
