//! Recording: it runs the user's command and records the arguments of each function that launches kernels.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use protocol::{EntryPoint, RECORD_ENV, RecordConfig, RuntimeVersions};

use super::errors::failed;
use super::python_modules::shim;
use super::recorder::{install, save_counts};
use super::torch_free;

/// Runs `SCRIPT ARGS…` or `-m MODULE ARGS…` as `python` would, and records its launching functions.
///
/// No file of the user is changed: the functions get a decorator in the syntax tree, which keeps all line numbers.
#[pyfunction]
pub(super) fn run_recorded(py: Python<'_>, argv: Vec<String>) -> PyResult<()> {
    if let Some(why) = torch_free::missing_torch(py)? {
        let instead = "`# warpsmith: workload entry=kernel[cdiv(n,BLOCK)] x=f16[4096] n=4096 BLOCK=1024`";
        let told = format!("recording takes torch ({why}); a kernel can be described in a comment: {instead}");
        return Err(PySystemExit::new_err(told));
    }
    let path = std::env::var_os(RECORD_ENV).ok_or_else(|| failed("not started by `warpsmith record`"))?;
    let config: RecordConfig = serde_json::from_slice(&fs::read(path)?).map_err(failed)?;
    let entries = config.entries.clone();
    fs::create_dir_all(&config.output)?;
    let environment = RuntimeVersions { device: config.device.clone(), ..environment(py)? };
    let on_call = install(py, config, environment)?;
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
    save_counts();
    ran
}

fn run_module(py: Python<'_>, argv: &[String]) -> PyResult<()> {
    let Some(module) = argv.first() else { return Err(failed("no module to run")) };
    py.import("sys")?.setattr("argv", argv)?;
    // As `python -m` does.
    let folder = std::env::current_dir()?;
    py.import("sys")?.getattr("path")?.call_method1("insert", (0, folder.to_string_lossy().as_ref()))?;
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
        // Imports require a string, and `python` puts it first.
        sys.getattr("path")?.call_method1("insert", (0, folder.to_string_lossy().as_ref()))?;
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

/// Compiles a file with a decorator on each of its entries, as the innermost one.
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
    // An asynchronous function returns before it has launched anything.
    let definition = ast.getattr("FunctionDef")?;
    for node in ast.call_method1("walk", (&tree,))?.try_iter()? {
        let node = node?;
        if node.is_instance(&definition)?
            && let Some(&index) = wanted.get(&node.getattr("lineno")?.extract::<usize>()?)
            && !is_scripted(&ast, &node)?
        {
            let name = ast.getattr("Name")?.call1((decorator_name(index), ast.getattr("Load")?.call0()?))?;
            ast.call_method1("copy_location", (&name, &node))?;
            node.getattr("decorator_list")?.call_method1("append", (name,))?;
        }
    }
    py.import("builtins")?.getattr("compile")?.call1((tree, name.as_ref(), "exec"))
}

/// Whether torch reads the source of a function to compile it: it would read the decorator's source instead.
fn is_scripted(ast: &Bound<'_, PyModule>, function: &Bound<'_, PyAny>) -> PyResult<bool> {
    for decorator in function.getattr("decorator_list")?.try_iter()? {
        if ast.call_method1("unparse", (decorator?,))?.extract::<String>()?.contains("script") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Installs an import hook, so that imported files are compiled with the decorators, too.
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
    // A cached compilation would bypass the hook.
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

fn environment(py: Python<'_>) -> PyResult<RuntimeVersions> {
    let version = |module: &str| -> String {
        py.import(module).and_then(|module| module.getattr("__version__")?.extract()).unwrap_or_default()
    };
    let python: String = py.import("platform")?.call_method0("python_version")?.extract()?;
    Ok(RuntimeVersions { python, torch: version("torch"), triton: version("triton"), ..RuntimeVersions::default() })
}
