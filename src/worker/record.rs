//! Recording: the user's own command runs, and each function that launches kernels is noted with what it was given.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCFunction, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::compare::identical;
use super::compile::{Mode, install, set_mode, take_launches};
use super::replay::flat_view;
use super::{failed, shim};
use crate::protocol::{Data, EntryPoint, Environment, RECORD_ENV, RecordConfig, TensorSpec, Value, Workload};

/// Integer tensors of at most this many elements are kept by value.
const MAX_INTEGERS: i64 = 1 << 16;
/// Tensors of more elements than this together are not copied to see whether the call changes them.
const MAX_COPIED: i64 = 1 << 31;

struct Recorder {
    config: RecordConfig,
    /// Seen calls by entry and shapes: which file holds them, and how often they came.
    seen: HashMap<(usize, String), (PathBuf, Workload)>,
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
    match argv.split_first() {
        Some((dash, rest)) if dash == "-m" => run_module(py, rest),
        Some((script, _)) => run_script(py, script, &argv, &entries),
        None => Err(failed("no script to run")),
    }
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
        // In place of the empty entry that `python -c` puts there.
        sys.getattr("path")?.set_item(0, folder)?;
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
    let known = recorder(|recorder| match recorder.seen.get_mut(&(entry, shapes.clone())) {
        Some((path, workload)) => {
            workload.count += 1;
            let _ = save(path, workload);
            true
        }
        None => recorder.seen.keys().filter(|(seen, _)| *seen == entry).count() >= recorder.config.distinct,
    })?;
    if known {
        return run();
    }
    let nested = recorder(|recorder| {
        recorder.depth += 1;
        recorder.depth > 1
    })?;
    if !nested {
        set_mode(Mode::Watch);
        take_launches();
    }
    let copies = call.copies().unwrap_or_default();
    let out = run();
    recorder(|recorder| recorder.depth -= 1)?;
    let launches = take_launches();
    if !nested {
        set_mode(Mode::Plain);
    }
    let out = out?;
    let mutated = call.changed(&copies).unwrap_or_default();
    recorder(|recorder| {
        let point = recorder.config.entries[entry].clone();
        let number = recorder.seen.len();
        let path = recorder.config.output.join(format!("{}-{number}.json", point.qualname.replace(['<', '>'], "")));
        let environment = recorder.environment.clone();
        let workload = Workload {
            file: point.file,
            entry: point.qualname,
            args: call.args,
            kwargs: call.kwargs,
            mutated,
            launches,
            count: 1,
            environment,
        };
        let _ = save(&path, &workload);
        recorder.seen.insert((entry, shapes), (path, workload));
    })?;
    Ok(out)
}

fn save(path: &PathBuf, workload: &Workload) -> std::io::Result<()> {
    let partial = path.with_extension("partial");
    fs::write(&partial, serde_json::to_vec(workload)?)?;
    fs::rename(partial, path)
}

/// The arguments of a call, described.
struct Described<'py> {
    args: Vec<Value>,
    kwargs: Vec<(String, Value)>,
    tensors: Vec<Bound<'py, PyAny>>,
    storages: Vec<usize>,
}

impl<'py> Described<'py> {
    fn of(args: &Bound<'py, PyTuple>, kwargs: &Bound<'py, PyDict>) -> PyResult<Self> {
        let mut this = Self { args: Vec::new(), kwargs: Vec::new(), tensors: Vec::new(), storages: Vec::new() };
        for value in args {
            let value = this.value(&value)?;
            this.args.push(value);
        }
        for (name, value) in kwargs {
            let value = this.value(&value)?;
            this.kwargs.push((name.extract()?, value));
        }
        Ok(this)
    }

    /// What makes two calls the same workload: everything but the contents of tensors.
    fn signature(&self) -> String {
        fn plain(value: &Value) -> Value {
            match value {
                Value::Tensor(spec) => {
                    Value::Tensor(TensorSpec { data: Data::Range { low: 0, high: 0 }, ..spec.clone() })
                }
                Value::List(items) => Value::List(items.iter().map(plain).collect()),
                Value::Tuple(items) => Value::Tuple(items.iter().map(plain).collect()),
                other => other.clone(),
            }
        }
        let all: Vec<Value> = self.args.iter().chain(self.kwargs.iter().map(|(_, value)| value)).map(plain).collect();
        format!("{all:?}")
    }

    fn value(&mut self, value: &Bound<'py, PyAny>) -> PyResult<Value> {
        if let Some(plain) = describe_plain(value)? {
            return Ok(plain);
        }
        if value.is_instance_of::<PyList>() || value.is_exact_instance_of::<PyTuple>() {
            let items = value.try_iter()?.map(|item| self.value(&item?)).collect::<PyResult<Vec<_>>>()?;
            return Ok(if value.is_instance_of::<PyList>() { Value::List(items) } else { Value::Tuple(items) });
        }
        let torch = value.py().import("torch")?;
        if value.get_type().is(torch.getattr("Tensor")?)
            || value.get_type().is(torch.getattr("nn")?.getattr("Parameter")?)
        {
            return Ok(Value::Tensor(self.tensor(value)?));
        }
        Ok(Value::Opaque(value.get_type().fully_qualified_name()?.to_string()))
    }

    fn tensor(&mut self, tensor: &Bound<'py, PyAny>) -> PyResult<TensorSpec> {
        let id = self.tensors.iter().position(|seen| seen.is(tensor)).unwrap_or_else(|| {
            self.tensors.push(tensor.clone());
            self.tensors.len() - 1
        });
        let address: usize = tensor.call_method0("untyped_storage")?.call_method0("data_ptr")?.extract()?;
        // Empty storages share address 0 without being one.
        let key = if address == 0 { usize::MAX - id } else { address };
        let storage = self.storages.iter().position(|&seen| seen == key).unwrap_or_else(|| {
            self.storages.push(key);
            self.storages.len() - 1
        });
        let text = |name: &str| -> PyResult<String> { Ok(tensor.getattr(name)?.str()?.to_string()) };
        Ok(TensorSpec {
            id,
            storage,
            shape: tensor.getattr("shape")?.extract()?,
            stride: tensor.call_method0("stride")?.extract()?,
            offset: tensor.call_method0("storage_offset")?.extract()?,
            dtype: text("dtype")?.trim_start_matches("torch.").to_owned(),
            device: tensor.getattr("device")?.getattr("type")?.extract()?,
            requires_grad: tensor.getattr("requires_grad")?.extract()?,
            data: contents(&tensor.call_method0("detach")?)?,
        })
    }

    /// Copies to compare with after the call.
    fn copies(&self) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let flats = self.tensors.iter().map(flat_view).collect::<PyResult<Vec<_>>>()?;
        let mut elements = 0;
        for flat in &flats {
            elements += flat.call_method0("numel")?.extract::<i64>()?;
        }
        if elements > MAX_COPIED {
            return Ok(Vec::new());
        }
        flats.iter().map(|flat| flat.call_method0("clone")).collect()
    }

    fn changed(&self, copies: &[Bound<'py, PyAny>]) -> PyResult<Vec<usize>> {
        let mut changed = Vec::new();
        for (id, (tensor, copy)) in self.tensors.iter().zip(copies).enumerate() {
            if !identical(&flat_view(tensor)?, copy)? {
                changed.push(id);
            }
        }
        Ok(changed)
    }
}

fn contents(tensor: &Bound<'_, PyAny>) -> PyResult<Data> {
    let count: i64 = tensor.call_method0("numel")?.extract()?;
    let float: bool = tensor.call_method0("is_floating_point")?.extract()?;
    if count == 0 {
        return Ok(if float {
            Data::Normal { mean: 0.0, std: 1.0, low: -4.0, high: 4.0 }
        } else {
            Data::Range { low: 0, high: 0 }
        });
    }
    if !float {
        let wide = tensor.call_method0("long")?;
        let overlapping = tensor.call_method0("stride")?.extract::<Vec<i64>>()?.contains(&0);
        if count <= MAX_INTEGERS && !overlapping {
            return Ok(Data::Integers(wide.call_method0("flatten")?.call_method0("tolist")?.extract()?));
        }
        let edge = |method: &str| -> PyResult<i64> { wide.call_method0(method)?.call_method0("item")?.extract() };
        return Ok(Data::Range { low: edge("min")?, high: edge("max")? });
    }
    let wide = tensor.call_method0("float")?.call_method1("nan_to_num", (0.0, 3e38, -3e38))?;
    let of = |method: &str| -> PyResult<f64> { wide.call_method0(method)?.call_method0("item")?.extract() };
    let std = if count > 1 { of("std")? } else { 0.0 };
    Ok(Data::Normal { mean: of("mean")?, std, low: of("min")?, high: of("max")? })
}

/// Scalars, strings, dtypes, devices; `None` for what holds other values or cannot be kept.
pub(super) fn describe_plain(value: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    let torch = value.py().import("torch")?;
    Ok(if value.is_none() {
        Some(Value::None)
    } else if let Ok(value) = value.cast_exact::<PyBool>() {
        Some(Value::Bool(value.is_true()))
    } else if value.is_exact_instance_of::<PyInt>() {
        value.extract().ok().map(Value::Int)
    } else if value.is_exact_instance_of::<PyFloat>() {
        Some(Value::Float(value.extract()?))
    } else if value.is_exact_instance_of::<PyString>() {
        Some(Value::Str(value.extract()?))
    } else if value.get_type().is(torch.getattr("dtype")?) {
        Some(Value::Dtype(value.str()?.to_string().trim_start_matches("torch.").to_owned()))
    } else if value.get_type().is(torch.getattr("device")?) {
        Some(Value::Device(value.str()?.to_string()))
    } else {
        None
    })
}

/// The grid of a launch as numbers; empty when it cannot be had.
pub(super) fn launch_grid(
    function: &Bound<'_, PyAny>,
    kwargs: &Bound<'_, PyDict>,
    args: &Bound<'_, PyTuple>,
) -> Vec<i64> {
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
