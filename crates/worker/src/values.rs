//! Recording of Python values: conversion to the form that a workload stores.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PySet, PyString, PyTuple, PyType};

use protocol::runner::Inputs;
use protocol::{ArgumentValue, Reference, TensorContents, TensorSpec};

use super::errors::failed;
use super::objects::{self, class_reference, is_its_state, module_file, parts_of};
use super::torch_free;
use super::types::Types;

/// The Python module that describes the contents of tensors, or its replacement without torch.
pub(super) fn contents(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    if torch_free::is_active(py) {
        return torch_free::module(py);
    }
    super::python_modules::helper(py, "_warpsmith_contents", include_str!("contents.py"))
}

/// A device's bytes between guards, for the tensor with this id.
pub(super) fn guarded<'py>(
    py: Python<'py>,
    (size, device): (i64, &str),
    name: &str,
    index: usize,
    inputs: &Inputs,
) -> PyResult<Bound<'py, PyAny>> {
    contents(py)?.getattr("guarded")?.call1((size, device, dtype(py, name)?, index, inputs.unmarked))
}

/// The dtype with which tensors are created.
pub(super) fn dtype<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    if torch_free::is_active(py) { Ok(PyString::new(py, name).into_any()) } else { py.import("torch")?.getattr(name) }
}

/// The least and the greatest element.
pub(super) fn bounds(data: &TensorContents) -> (f64, f64) {
    match data {
        TensorContents::Normal { low, high, .. } => (*low, *high),
        TensorContents::Range { low, high, .. } => (*low as f64, *high as f64),
        TensorContents::Integers(_) => (0.0, 1.0),
        TensorContents::Floats(values) => {
            let finite = || values.iter().copied().filter(|value| value.is_finite());
            let low = finite().fold(f64::INFINITY, f64::min);
            if low.is_finite() { (low, finite().fold(low, f64::max)) } else { (0.0, 1.0) }
        }
    }
}

/// The arguments of a call, described.
pub(super) struct DescribedArguments<'py> {
    pub(super) args: Vec<ArgumentValue>,
    pub(super) kwargs: Vec<(String, ArgumentValue)>,
    /// The distinct tensors, by [`TensorSpec::id`].
    pub(super) tensors: Vec<Bound<'py, PyAny>>,
    storages: Vec<usize>,
    /// Addresses of the objects that are being described, to detect cycles.
    open: Vec<usize>,
    /// Objects of classes below this folder are created again from their attributes.
    workspace: PathBuf,
}

impl<'py> DescribedArguments<'py> {
    pub(super) fn of(args: &Bound<'py, PyTuple>, kwargs: &Bound<'py, PyDict>, workspace: &Path) -> PyResult<Self> {
        let mut this = Self {
            args: Vec::new(),
            kwargs: Vec::new(),
            tensors: Vec::new(),
            storages: Vec::new(),
            open: Vec::new(),
            workspace: workspace.to_owned(),
        };
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

    /// The distinct tensors among values, in the order of [`Self::of`].
    pub(super) fn tensors_of(args: &Bound<'py, PyTuple>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut found: Vec<Bound<'py, PyAny>> = Vec::new();
        fn walk<'py>(value: &Bound<'py, PyAny>, found: &mut Vec<Bound<'py, PyAny>>) -> PyResult<()> {
            if Types::get(value.py())?.is_tensor(value) {
                if !found.iter().any(|seen| seen.is(value)) {
                    found.push(value.clone());
                }
            } else if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
                for item in value.try_iter()? {
                    walk(&item?, found)?;
                }
            }
            Ok(())
        }
        walk(args, &mut found)?;
        Ok(found)
    }

    fn value(&mut self, value: &Bound<'py, PyAny>) -> PyResult<ArgumentValue> {
        let py = value.py();
        let types = Types::get(py)?;
        if let Some(plain) = describe_plain(value)? {
            return Ok(plain);
        }
        if types.is_tensor(value) {
            return Ok(ArgumentValue::Tensor(self.tensor(value)?));
        }
        if self.open.contains(&(value.as_ptr() as usize)) {
            return opaque(value);
        }
        self.open.push(value.as_ptr() as usize);
        let described = self.compound(value, types);
        self.open.pop();
        described
    }

    fn items(&mut self, items: &Bound<'py, PyAny>) -> PyResult<Vec<ArgumentValue>> {
        items.try_iter()?.map(|item| self.value(&item?)).collect()
    }

    fn compound(&mut self, value: &Bound<'py, PyAny>, types: &Types) -> PyResult<ArgumentValue> {
        if value.is_exact_instance_of::<PyList>() {
            return Ok(ArgumentValue::List(self.items(value)?));
        }
        if value.is_exact_instance_of::<PyTuple>() {
            return Ok(ArgumentValue::Tuple(self.items(value)?));
        }
        if value.is_instance_of::<PyTuple>() && value.hasattr("_fields")? {
            let items = self.items(value)?;
            return class_reference(&value.get_type())?
                .map_or_else(|| opaque(value), |class| Ok(ArgumentValue::NamedTuple { class, items }));
        }
        if value.is_exact_instance_of::<PySet>() {
            return Ok(ArgumentValue::Set(self.items(value)?));
        }
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            let pairs = dict.iter().map(|(key, item)| Ok((self.value(&key)?, self.value(&item)?)));
            return Ok(ArgumentValue::Dict(pairs.collect::<PyResult<_>>()?));
        }
        if value.get_type().is(&types.slice) {
            let parts = ["start", "stop", "step"].into_iter().map(|name| self.value(&value.getattr(name)?));
            return Ok(ArgumentValue::Slice(parts.collect::<PyResult<_>>()?));
        }
        if let Some(global) = global(value, types)? {
            return Ok(ArgumentValue::Global(global));
        }
        if let Some((class, parts)) = parts_of(value, types)? {
            let parts = parts.iter().map(|part| self.value(part)).collect::<PyResult<_>>()?;
            return Ok(ArgumentValue::Made { class, parts });
        }
        if value.is_instance_of::<PyType>() || !is_its_state(value, types, &self.workspace)? {
            return opaque(value);
        }
        self.object(value)
    }

    fn object(&mut self, value: &Bound<'py, PyAny>) -> PyResult<ArgumentValue> {
        let (Some(class), Some(held)) = (class_reference(&value.get_type())?, objects::state(value)?) else {
            return opaque(value);
        };
        let state = held.into_iter().map(|(name, item)| Ok((name, self.value(&item)?)));
        Ok(ArgumentValue::Object { class, state: state.collect::<PyResult<_>>()? })
    }

    fn tensor(&mut self, tensor: &Bound<'py, PyAny>) -> PyResult<TensorSpec> {
        let py = tensor.py();
        let id = self.tensors.iter().position(|seen| seen.is(tensor)).unwrap_or_else(|| {
            self.tensors.push(tensor.clone());
            self.tensors.len() - 1
        });
        let address: usize = tensor.call_method0("untyped_storage")?.call_method0("data_ptr")?.extract()?;
        // Empty storages share the address 0 without being one storage.
        let key = if address == 0 { usize::MAX - id } else { address };
        let storage = self.storages.iter().position(|&seen| seen == key).unwrap_or_else(|| {
            self.storages.push(key);
            self.storages.len() - 1
        });
        let device = tensor.getattr("device")?;
        let data: String = contents(py)?.getattr("describe")?.call1((tensor,))?.extract()?;
        Ok(TensorSpec {
            id,
            storage,
            shape: tensor.getattr("shape")?.extract()?,
            stride: tensor.call_method0("stride")?.extract()?,
            offset: tensor.call_method0("storage_offset")?.extract()?,
            dtype: dtype_name(&tensor.getattr("dtype")?)?,
            device: device.getattr("type")?.extract()?,
            device_index: device.getattr("index")?.extract::<Option<u32>>()?.unwrap_or(0),
            requires_grad: tensor.getattr("requires_grad")?.extract()?,
            is_parameter: tensor.get_type().is(&Types::get(py)?.parameter),
            data: serde_json::from_str::<TensorContents>(&data).map_err(failed)?,
        })
    }

    /// Copies of the storages, for the comparison after the call; `None` when there is no memory for them.
    pub(super) fn copies(&self) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let Some(first) = self.tensors.first() else { return Ok(Some(Vec::new())) };
        let contents = contents(first.py())?;
        let mut known: Vec<(usize, Bound<'py, PyAny>)> = Vec::new();
        let mut copies = Vec::new();
        let mut size = 0;
        let mut storages = Vec::new();
        for tensor in &self.tensors {
            let whole = contents.getattr("storage_bytes")?.call1((tensor,))?;
            let address: usize = whole.call_method0("data_ptr")?.extract()?;
            if storages.iter().all(|(seen, _)| *seen != address) {
                size += whole.call_method0("numel")?.extract::<u64>()?;
            }
            storages.push((address, whole));
        }
        if !contents.getattr("is_room_for")?.call1((size, first.getattr("device")?))?.extract::<bool>()? {
            return Ok(None);
        }
        for (address, whole) in storages {
            let copy = match known.iter().find(|(seen, _)| *seen == address) {
                Some((_, copy)) => copy.clone(),
                None => whole.call_method0("clone")?,
            };
            known.push((address, copy.clone()));
            copies.push(copy);
        }
        Ok(Some(copies))
    }

    /// The indices of tensors that differ from the copies.
    pub(super) fn changed(&self, copies: &[Bound<'py, PyAny>]) -> PyResult<Vec<usize>> {
        let mut changed = Vec::new();
        for (id, (tensor, copy)) in self.tensors.iter().zip(copies).enumerate() {
            if contents(tensor.py())?.getattr("has_changed")?.call1((tensor, copy))?.extract()? {
                changed.push(id);
            }
        }
        Ok(changed)
    }
}

fn opaque(value: &Bound<'_, PyAny>) -> PyResult<ArgumentValue> {
    Ok(ArgumentValue::Opaque(value.get_type().fully_qualified_name()?.to_string()))
}

pub(super) fn dtype_name(dtype: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(dtype.str()?.to_string().trim_start_matches("torch.").to_owned())
}

/// A reference to a value that a module holds under a name: a function, a class, a member of an enumeration, or a
/// constant of torch or Triton.
fn global(value: &Bound<'_, PyAny>, types: &Types) -> PyResult<Option<Reference>> {
    let py = value.py();
    let class = value.get_type();
    if value.is_instance(types.enumeration.bind(py))? {
        let name = value.getattr("name")?.extract::<String>();
        let name = name.ok().filter(|name| class.getattr(name.as_str()).is_ok_and(|found| found.is(value)));
        let (Some(mut reference), Some(name)) = (class_reference(&class)?, name) else { return Ok(None) };
        reference.path = format!("{}.{name}", reference.path);
        return Ok(Some(reference));
    }
    let of_class: String = class.getattr("__module__")?.extract().unwrap_or_default();
    if of_class == "torch" {
        // For example `torch.channels_last`, `torch.strided`.
        let text = value.str()?.to_string();
        let found =
            text.strip_prefix("torch.").and_then(|name| Some((name, py.import("torch").ok()?.getattr(name).ok()?)));
        return Ok(found.filter(|(_, found)| found.is(value)).map(|(name, _)| Reference {
            module: "torch".to_owned(),
            file: None,
            path: name.to_owned(),
        }));
    }
    if of_class.starts_with("triton.language") {
        let language = py.import("triton.language")?;
        for (name, held) in language.dict() {
            if held.is(value) {
                let module = "triton.language".to_owned();
                return Ok(Some(Reference { module, file: None, path: name.extract()? }));
            }
        }
        return Ok(None);
    }
    let named = value.getattr("__module__").and_then(|name| name.extract::<String>());
    let path = value.getattr("__qualname__").or_else(|_| value.getattr("__name__")).and_then(|path| path.extract());
    let (Ok(module), Ok(path)) = (named, path) else { return Ok(None) };
    let path: String = path;
    let holder = py.import("sys")?.getattr("modules")?.get_item(&module);
    let found = holder.and_then(|holder| path.split('.').try_fold(holder, |object, name| object.getattr(name)));
    Ok(match found {
        Ok(found) if found.is(value) => Some(Reference { module, file: module_file(value)?, path }),
        _ => None,
    })
}

/// Scalars, strings, dtypes and devices; `None` for containers and for values that cannot be recorded.
pub(super) fn describe_plain(value: &Bound<'_, PyAny>) -> PyResult<Option<ArgumentValue>> {
    // Without torch its types do not exist.
    let is_of = |of: fn(&Types) -> &Py<PyType>| -> PyResult<bool> {
        Ok(!torch_free::is_active(value.py()) && value.get_type().is(of(Types::get(value.py())?)))
    };
    Ok(if value.is_none() {
        Some(ArgumentValue::None)
    } else if let Ok(value) = value.cast_exact::<PyBool>() {
        Some(ArgumentValue::Bool(value.is_true()))
    } else if value.is_exact_instance_of::<PyInt>() {
        value.extract().ok().map(ArgumentValue::Int)
    } else if value.is_exact_instance_of::<PyFloat>() {
        Some(ArgumentValue::Float(value.extract()?))
    } else if let Ok(value) = value.cast_exact::<PyComplex>() {
        Some(ArgumentValue::Complex(vec![value.getattr("real")?.extract()?, value.getattr("imag")?.extract()?]))
    } else if value.is_exact_instance_of::<PyString>() {
        Some(ArgumentValue::Str(value.extract()?))
    } else if is_of(|types| &types.dtype)? {
        Some(ArgumentValue::Dtype(dtype_name(value)?))
    } else if is_of(|types| &types.device)? {
        Some(ArgumentValue::Device(value.str()?.to_string()))
    } else {
        None
    })
}

/// Overwrites a tensor with contents of a kind.
pub(super) fn fill(view: &Bound<'_, PyAny>, data: &TensorContents, generators: &Bound<'_, PyDict>) -> PyResult<()> {
    let contents = contents(view.py())?;
    match data {
        TensorContents::Normal { mean, std, low, high, zeros, infinite, kind } => {
            let kind = serde_json::to_value(kind).map_err(failed)?;
            let kind = kind.as_str().unwrap_or("general");
            contents.getattr("fill_normal")?.call1((view, mean, std, low, high, zeros, infinite, kind, generators))?
        }
        TensorContents::Range { low, high, sorted, zeros } => {
            contents.getattr("fill_range")?.call1((view, low, high, sorted, zeros, generators))?
        }
        TensorContents::Integers(values) => contents.getattr("fill_values")?.call1((view, values))?,
        TensorContents::Floats(values) => contents.getattr("fill_values")?.call1((view, values))?,
    };
    Ok(())
}
