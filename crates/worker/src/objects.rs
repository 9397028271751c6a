//! Objects that can be created again: by their class from a few values, or from their attributes.

use std::path::{Path, PathBuf};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PyString, PyTuple, PyType};

use protocol::Reference;

use super::types::Types;

/// The flag of types that are created at run time.
const HEAP_TYPE: u64 = 1 << 9;
/// NumPy scalars that equal one Python number, or two for complex numbers.
const NUMBERS: &[&str] = &[
    "bool",
    "bool_",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
];
const PATHS: &[&str] = &["PosixPath", "PurePath", "PurePosixPath", "PureWindowsPath", "WindowsPath"];
/// Methods that define how an object is copied, if not by its attributes.
const OWN_WAYS: &[&str] = &["__reduce_ex__", "__reduce__", "__getstate__", "__new__"];
const MORE_OWN_WAYS: &[&str] = &["__setstate__", "__getnewargs__", "__getnewargs_ex__", "__del__"];

/// Attributes by name.
type State<'py> = Vec<(String, Bound<'py, PyAny>)>;

/// A class by its module and name, if it can be found there.
pub(super) fn class_reference(class: &Bound<'_, PyType>) -> PyResult<Option<Reference>> {
    let (module, path): (String, String) =
        (class.getattr("__module__")?.extract()?, class.getattr("__qualname__")?.extract()?);
    let holder = class.py().import("sys")?.getattr("modules")?.get_item(&module);
    let found = holder.and_then(|holder| path.split('.').try_fold(holder, |object, name| object.getattr(name)));
    // A class that is defined inside a function is identified by its name.
    let is_there = path.contains("<locals>") || found.is_ok_and(|found| found.is(class));
    Ok(if is_there { Some(Reference { module, file: module_file(class)?, path }) } else { None })
}

/// The class that creates a value from other values, and these values.
pub(super) fn parts_of<'py>(
    value: &Bound<'py, PyAny>,
    types: &Types,
) -> PyResult<Option<(Reference, Vec<Bound<'py, PyAny>>)>> {
    let (py, class) = (value.py(), value.get_type());
    let (module, name): (String, String) =
        (class.getattr("__module__")?.extract().unwrap_or_default(), class.name()?.to_string());
    let is_in = |module: &str| -> PyResult<bool> {
        Ok(py.import(module)?.getattr(name.as_str()).is_ok_and(|found| found.is(&class)))
    };
    let of = |module: &str, parts| {
        Ok(Some((Reference { module: module.to_owned(), file: None, path: name.clone() }, parts)))
    };
    if module == "builtins" && name == "range" {
        let parts = ["start", "stop", "step"].into_iter().map(|name| value.getattr(name));
        return of("builtins", parts.collect::<PyResult<_>>()?);
    }
    if value.is_exact_instance_of::<PyFrozenSet>() {
        let items = value.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        return of("builtins", vec![PyList::new(py, items)?.into_any()]);
    }
    if module == "torch" && name == "Size" || module == "torch.return_types" {
        let items = value.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        return of(&module, vec![PyTuple::new(py, items)?.into_any()]);
    }
    if module == "numpy" && NUMBERS.contains(&name.as_str()) && is_in("numpy")? {
        return of("numpy", vec![value.call_method0("item")?]);
    }
    // Newer releases define the classes in another module.
    if module.starts_with("pathlib") && PATHS.contains(&name.as_str()) && is_in("pathlib")? {
        return of("pathlib", vec![value.str()?.into_any()]);
    }
    if module == "collections" && name == "OrderedDict" {
        let plain = PyDict::new(py);
        plain.update(value.cast::<PyDict>()?.as_mapping())?;
        return of("collections", vec![plain.into_any()]);
    }
    if value.is_instance(types.enumeration.bind(py))? {
        // A combination of several flags has no name of its own.
        let number = value.getattr("value")?;
        let is_made = class.call1((&number,)).is_ok_and(|made| made.is(value));
        let reference = class_reference(&class)?.filter(|_| is_made);
        return Ok(reference.map(|class| (class, vec![number])));
    }
    Ok(None)
}

/// Whether an object consists of its class and attributes alone.
pub(super) fn is_its_state(value: &Bound<'_, PyAny>, types: &Types, workspace: &Path) -> PyResult<bool> {
    let class = value.get_type();
    if !is_plain(&class)? {
        return Ok(false);
    }
    if class.hasattr("__dataclass_fields__")? || value.is_instance(types.module.bind(value.py()))? {
        return Ok(true);
    }
    let is_own = module_file(&class)?.is_some_and(|file| file.starts_with(workspace));
    let is_namespace = class.fully_qualified_name()? == "argparse.Namespace";
    Ok((is_own || is_namespace) && !has_own_ways(&class)?)
}

/// Whether instances of a class hold nothing but attributes, since all its bases are written in Python.
fn is_plain(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let (py, word) = (class.py(), size_of::<usize>());
    let base = py.import("builtins")?.getattr("object")?;
    let number = |of: &Bound<'_, PyAny>, name: &str| of.getattr(name)?.extract::<i64>();
    for one in class.mro() {
        if !one.is(&base) && one.getattr("__flags__")?.extract::<u64>()? & HEAP_TYPE == 0 {
            return Ok(false);
        }
    }
    let Some(slots) = slots(class)? else { return Ok(false) };
    let optional = ["__dictoffset__", "__weakrefoffset__"].into_iter().map(|name| number(class, name));
    // A negative offset means that the interpreter stores this elsewhere.
    let optional = optional.collect::<PyResult<Vec<_>>>()?.into_iter().filter(|offset| *offset > 0).count();
    let expected = number(&base, "__basicsize__")? + i64::try_from((slots.len() + optional) * word).unwrap_or(i64::MAX);
    Ok(number(class, "__basicsize__")? == expected && number(class, "__itemsize__")? == 0)
}

/// Whether a class defines itself how its objects are created or copied.
fn has_own_ways(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let base = class.py().import("builtins")?.getattr("object")?;
    for name in OWN_WAYS {
        let (own, usual) = (class.getattr(*name).ok(), base.getattr(*name).ok());
        let is_usual = match (own, usual) {
            (Some(own), Some(usual)) => own.is(&usual) || own.eq(usual)?,
            (own, usual) => own.is_none() && usual.is_none(),
        };
        if !is_usual {
            return Ok(true);
        }
    }
    for name in MORE_OWN_WAYS {
        if class.hasattr(*name)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The slot names of a class and its bases; `None` when two slots have the same name. Cached, since every call needs
/// it.
fn slots(class: &Bound<'_, PyType>) -> PyResult<Option<Vec<String>>> {
    static KNOWN: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let py = class.py();
    let known = KNOWN.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    if let Some(found) = known.get_item(class)? {
        return found.extract();
    }
    let found = find_slots(class)?;
    known.set_item(class, &found)?;
    Ok(found)
}

fn find_slots(class: &Bound<'_, PyType>) -> PyResult<Option<Vec<String>>> {
    let member = class.py().import("types")?.getattr("MemberDescriptorType")?;
    let mut found: Vec<String> = Vec::new();
    for one in class.mro() {
        // Types written in C have such members as well, whose contents are not attributes.
        if one.getattr("__flags__")?.extract::<u64>()? & HEAP_TYPE == 0 {
            continue;
        }
        for pair in one.getattr("__dict__")?.call_method0("items")?.try_iter()? {
            let (name, held): (String, Bound<'_, PyAny>) = pair?.extract()?;
            if held.get_type().is(&member) {
                if found.contains(&name) {
                    return Ok(None);
                }
                found.push(name);
            }
        }
    }
    Ok(Some(found))
}

/// The attributes of an object by name; `None` when they cannot be determined.
pub(super) fn state<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<State<'py>>> {
    let mut state = Vec::new();
    if let Ok(attributes) = value.getattr(intern!(value.py(), "__dict__")) {
        for (name, item) in attributes.cast_into::<PyDict>()? {
            let Ok(name) = name.cast_into::<PyString>() else { return Ok(None) };
            state.push((name.extract()?, item));
        }
    }
    let Some(slots) = in_slots(value)? else { return Ok(None) };
    state.extend(slots);
    Ok(Some(state))
}

/// The attributes that an object stores in slots.
pub(super) fn in_slots<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<State<'py>>> {
    let Some(slots) = slots(&value.get_type())? else { return Ok(None) };
    let mut found = Vec::new();
    if !slots.is_empty() {
        let read = value.py().import("builtins")?.getattr("object")?.getattr("__getattribute__")?;
        for name in slots {
            // A slot that was never set stays empty.
            if let Ok(item) = read.call1((value, name.as_str())) {
                found.push((name, item));
            }
        }
    }
    Ok(Some(found))
}

/// Sets the attributes of a new object to those of a recorded one.
pub(super) fn restore<'py>(object: &Bound<'py, PyAny>, state: Vec<(&str, Bound<'py, PyAny>)>) -> PyResult<()> {
    let slots = slots(&object.get_type())?.unwrap_or_default();
    let attributes = object.getattr("__dict__").ok();
    let set = object.py().import("builtins")?.getattr("object")?.getattr("__setattr__")?;
    for (name, value) in state {
        match attributes.as_ref().filter(|_| !slots.iter().any(|slot| slot == name)) {
            Some(attributes) => attributes.set_item(name, value)?,
            // The class may define what setting the attribute does.
            None => _ = set.call1((object, name, value))?,
        }
    }
    Ok(())
}

/// The file of the module that a function or class belongs to.
pub(super) fn module_file(value: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    let modules = value.py().import("sys")?.getattr("modules")?;
    let module = value.getattr("__module__").and_then(|name| modules.get_item(name));
    let file = module.and_then(|module| module.getattr("__file__")).and_then(|file| file.extract::<String>());
    Ok(file.ok().map(|file| std::fs::canonicalize(&file).unwrap_or_else(|_| file.into())))
}
