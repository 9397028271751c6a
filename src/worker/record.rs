//! Recording: the user's own command runs, and each function that launches kernels is noted with what it was given.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use super::compile::{Mode, forget_launches, install, launch_count, launches_after, set_mode};
use super::values::Described;
use super::{failed, shim};
use crate::protocol::{EntryPoint, Environment, LaunchRecord, RECORD_ENV, RecordConfig, Workload};

struct Recorder {
    config: RecordConfig,
    /// Seen calls by entry and shapes: which file holds them, and how often they came. Calls that launch nothing have
    /// none.
    seen: HashMap<(usize, String), Option<(PathBuf, Workload)>>,
    /// Entries whose calls are being recorded at present: an entry inside an entry is recorded as a call of its own.
    depth: usize,
    environment: Environment,
}

static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);

fn recorder<T>(use_it: impl FnOnce(&mut Recorder) -> T) -> PyResult<T> {
    let mut guard = RECORDER.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    guard.as_mut().map(use_it).ok_or_else(|| failed("the recorder is not installed"))
}

/// Runs `SCRIPT ARGS…` or `-m MODULE ARGS…` as `python` would, with its launching functions recorded.
///
/// Nothing of the user's is changed on disk: the functions get a decorator in the syntax tree, which keeps every line
/// number.
#[pyfunction]
pub(super) fn run_recorded(py: Python<'_>, argv: Vec<String>) -> PyResult<()> {
    let path = std::env::var_os(RECORD_ENV).ok_or_else(|| failed("not started by `warpsmith record`"))?;
    let config: RecordConfig = serde_json::from_slice(&fs::read(path)?).map_err(failed)?;
    let entries = config.entries.clone();
    fs::create_dir_all(&config.output)?;
    install(py)?;
    let environment = Environment { device: config.device.clone(), ..environment(py)? };
    *RECORDER.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
        Some(Recorder { config, seen: HashMap::new(), depth: 0, environment });
    let on_call = PyCFunction::new_closure(py, None, None, on_call)?;
    let builtins = py.import("builtins")?;
    for index in 0..entries.len() {
        let decorator = shim(py)?.getattr("recorded")?.call1((&on_call, index))?;
        builtins.setattr(decorator_name(index).as_str(), decorator)?;
    }
    install_import_hook(py, &entries)?;
    let ran = match argv.split_first() {
        Some((dash, rest)) if dash == "-m" => run_module(py, rest),
        Some((script, _)) => run_script(py, script, &argv, &entries),
        None => Err(failed("no script to run")),
    };
    recorder(|recorder| recorder.save_counts())?;
    ran
}

fn run_module(py: Python<'_>, argv: &[String]) -> PyResult<()> {
    let Some(module) = argv.first() else { return Err(failed("no module to run")) };
    py.import("sys")?.setattr("argv", argv)?;
    let options = PyDict::new(py);
    options.set_item("run_name", "__main__")?;
    options.set_item("alter_sys", true)?;
    py.import("runpy")?.call_method("run_module", (module,), Some(&options))?;
    Ok(())
}

fn run_script(py: Python<'_>, script: &str, argv: &[String], entries: &[EntryPoint]) -> PyResult<()> {
    let path = fs::canonicalize(script)?;
    let (sys, builtins) = (py.import("sys")?, py.import("builtins")?);
    sys.setattr("argv", argv)?;
    if let Some(folder) = path.parent() {
        // A string, as imports want it; in place of the empty entry that `python -c` puts there.
        sys.getattr("path")?.set_item(0, folder.to_string_lossy().as_ref())?;
    }
    let main = py.import("types")?.getattr("ModuleType")?.call1(("__main__",))?;
    main.setattr("__file__", script)?;
    main.setattr("__builtins__", &builtins)?;
    sys.getattr("modules")?.set_item("__main__", &main)?;
    let code = decorated_code(py, &fs::read(&path)?, &path, entries)?;
    builtins.getattr("exec")?.call1((code, main.getattr("__dict__")?))?;
    Ok(())
}

fn decorator_name(index: usize) -> String {
    format!("__warpsmith_recorded_{index}__")
}

/// Compiles a file with a decorator on each of its entries, closest to the function.
fn decorated_code<'py>(
    py: Python<'py>,
    text: &[u8],
    path: &std::path::Path,
    entries: &[EntryPoint],
) -> PyResult<Bound<'py, PyAny>> {
    let ast = py.import("ast")?;
    let name = path.to_string_lossy();
    let tree = ast.call_method1("parse", (text, name.as_ref()))?;
    let wanted: HashMap<usize, usize> = entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.file == path)
        .map(|(index, entry)| (entry.line, index))
        .collect();
    let definition = (ast.getattr("FunctionDef")?, ast.getattr("AsyncFunctionDef")?).into_pyobject(py)?;
    for node in ast.call_method1("walk", (&tree,))?.try_iter()? {
        let node = node?;
        if node.is_instance(&definition)?
            && let Some(&index) = wanted.get(&node.getattr("lineno")?.extract::<usize>()?)
        {
            let name = ast.getattr("Name")?.call1((decorator_name(index), ast.getattr("Load")?.call0()?))?;
            ast.call_method1("copy_location", (&name, &node))?;
            node.getattr("decorator_list")?.call_method1("append", (name,))?;
        }
    }
    py.import("builtins")?.getattr("compile")?.call1((tree, name.as_ref(), "exec"))
}

/// Imported files are compiled with the decorators too.
fn install_import_hook(py: Python<'_>, entries: &[EntryPoint]) -> PyResult<()> {
    let files: HashSet<PathBuf> = entries.iter().map(|entry| entry.file.clone()).collect();
    let (entries, cached) = (entries.to_vec(), files.clone());
    let hook = PyCFunction::new_closure(py, None, None, move |call: &Bound<'_, PyTuple>, _| -> PyResult<Py<PyAny>> {
        let (original, this) = (call.get_item(0)?, call.get_item(1)?);
        let args = call.get_item(2)?.cast_into::<PyTuple>()?;
        if let Ok(name) = args.get_item(1)
            && is_entry_file(&name, &files)
        {
            let path = fs::canonicalize(name.extract::<String>()?)?;
            return Ok(decorated_code(call.py(), &fs::read(&path)?, &path, &entries)?.unbind());
        }
        let all: Vec<_> = std::iter::once(this).chain(args.iter()).collect();
        let kwargs = call.get_item(3)?.cast_into::<PyDict>()?;
        Ok(original.call(PyTuple::new(call.py(), all)?, Some(&kwargs))?.unbind())
    })?;
    let loader = py.import("importlib.machinery")?.getattr("SourceFileLoader")?;
    shim(py)?.getattr("patch")?.call1((&loader, "source_to_code", hook))?;
    // A cached compilation would pass the hook by.
    let miss = PyCFunction::new_closure(py, None, None, move |call: &Bound<'_, PyTuple>, _| -> PyResult<Py<PyAny>> {
        let (original, this) = (call.get_item(0)?, call.get_item(1)?);
        let args = call.get_item(2)?.cast_into::<PyTuple>()?;
        if is_entry_file(&args.get_item(0)?, &cached) {
            return Err(pyo3::exceptions::PyOSError::new_err("not used while recording"));
        }
        Ok(original.call1((this, args.get_item(0)?))?.unbind())
    })?;
    shim(py)?.getattr("patch")?.call1((loader, "path_stats", miss))?;
    Ok(())
}

fn is_entry_file(name: &Bound<'_, PyAny>, files: &HashSet<PathBuf>) -> bool {
    let path = name.extract::<String>().ok().and_then(|path| fs::canonicalize(path).ok());
    path.is_some_and(|path| files.contains(&path))
}

fn environment(py: Python<'_>) -> PyResult<Environment> {
    let version = |module: &str| -> String {
        py.import(module).and_then(|module| module.getattr("__version__")?.extract()).unwrap_or_default()
    };
    let python: String = py.import("platform")?.call_method0("python_version")?.extract()?;
    Ok(Environment { python, torch: version("torch"), triton: version("triton"), ..Environment::default() })
}

/// `call(key, function, args, kwargs)`; see the shim.
fn on_call(call: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
    let entry: usize = call.get_item(0)?.extract()?;
    let function = call.get_item(1)?;
    let (args, kwargs) = (call.get_item(2)?.cast_into::<PyTuple>()?, call.get_item(3)?.cast_into::<PyDict>()?);
    let run = || function.call(&args, Some(&kwargs)).map(Bound::unbind);
    // What cannot be described must not disturb the user's program.
    let Ok(call) = Described::of(&args, &kwargs) else { return run() };
    let shapes = call.signature();
    if recorder(|recorder| recorder.knows(entry, &shapes))? {
        return run();
    }
    let nested = recorder(|recorder| {
        recorder.depth += 1;
        recorder.depth > 1
    })?;
    set_mode(Mode::Watch);
    let before = launch_count();
    let copies = call.copies().unwrap_or_default();
    let out = run();
    let launches = launches_after(before);
    recorder(|recorder| recorder.depth -= 1)?;
    if !nested {
        set_mode(Mode::Plain);
        forget_launches();
    }
    let out = out?;
    let mutated = call.changed(&copies).unwrap_or_default();
    recorder(|recorder| recorder.keep(entry, shapes, call, mutated, launches))?;
    Ok(out)
}

impl Recorder {
    /// Whether a call of these shapes needs no recording; counts it.
    fn knows(&mut self, entry: usize, shapes: &str) -> bool {
        match self.seen.get_mut(&(entry, shapes.to_owned())) {
            Some(None) => true,
            Some(Some((path, workload))) => {
                workload.count += 1;
                // The last counts are written at the end; these are for a program that is killed.
                if workload.count.is_power_of_two() {
                    let _ = save(path, workload);
                }
                true
            }
            None => self.seen.keys().filter(|(seen, _)| *seen == entry).count() >= self.config.distinct,
        }
    }

    fn keep(
        &mut self,
        entry: usize,
        shapes: String,
        call: Described<'_>,
        mutated: Vec<usize>,
        launches: Vec<LaunchRecord>,
    ) {
        if launches.is_empty() {
            self.seen.insert((entry, shapes), None);
            return;
        }
        let point = self.config.entries[entry].clone();
        let name = format!("{}-{}.json", point.qualname.replace(['<', '>'], ""), self.seen.len());
        let workload = Workload {
            file: point.file,
            entry: point.qualname,
            args: call.args,
            kwargs: call.kwargs,
            mutated,
            launches,
            count: 1,
            environment: self.environment.clone(),
        };
        let path = self.config.output.join(name);
        let _ = save(&path, &workload);
        self.seen.insert((entry, shapes), Some((path, workload)));
    }

    fn save_counts(&self) {
        for (path, workload) in self.seen.values().flatten() {
            let _ = save(path, workload);
        }
    }
}

fn save(path: &PathBuf, workload: &Workload) -> std::io::Result<()> {
    let partial = path.with_extension("partial");
    fs::write(&partial, serde_json::to_vec(workload)?)?;
    fs::rename(partial, path)
}
