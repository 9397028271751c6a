//! Python values → what is kept of them.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::compare::identical;
use super::replay::flat_view;
use crate::protocol::{Data, TensorSpec, Value};

/// Integer tensors of at most this many elements are kept by value.
const MAX_INTEGERS: i64 = 1 << 16;
/// Tensors of more elements than this together are not copied to see whether the call changes them.
const MAX_COPIED: i64 = 1 << 31;

/// The arguments of a call, described.
pub(super) struct Described<'py> {
    pub(super) args: Vec<Value>,
    pub(super) kwargs: Vec<(String, Value)>,
    tensors: Vec<Bound<'py, PyAny>>,
    storages: Vec<usize>,
}

impl<'py> Described<'py> {
    pub(super) fn of(args: &Bound<'py, PyTuple>, kwargs: &Bound<'py, PyDict>) -> PyResult<Self> {
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
    pub(super) fn signature(&self) -> String {
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
    pub(super) fn copies(&self) -> PyResult<Vec<Bound<'py, PyAny>>> {
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

    pub(super) fn changed(&self, copies: &[Bound<'py, PyAny>]) -> PyResult<Vec<usize>> {
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
    let of = |method: &str| -> PyResult<f64> {
        // JSON has no infinity; the moments of huge elements overflow.
        let value: f64 = wide.call_method0(method)?.call_method0("item")?.extract()?;
        Ok(if value.is_finite() { value } else { 1.0 })
    };
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

/// What a launch gives the parameters of its kernel, by name.
pub(super) fn launch_arguments(
    function: &Bound<'_, PyAny>,
    kwargs: &Bound<'_, PyDict>,
    args: &Bound<'_, PyTuple>,
) -> PyResult<Vec<(String, Value)>> {
    let names: Vec<String> = function.getattr("arg_names")?.extract()?;
    let mut all = Vec::with_capacity(names.len());
    for (at, name) in names.into_iter().enumerate() {
        let Some(value) = args.iter().nth(at).map_or_else(|| kwargs.get_item(&name), |value| Ok(Some(value)))? else {
            continue;
        };
        let described = match describe_plain(&value)? {
            Some(plain) => plain,
            None if value.hasattr("data_ptr")? && value.hasattr("dtype")? => {
                Value::Pointer(value.getattr("dtype")?.str()?.to_string().trim_start_matches("torch.").to_owned())
            }
            None => Value::Opaque(value.get_type().fully_qualified_name()?.to_string()),
        };
        all.push((name, described));
    }
    Ok(all)
}
