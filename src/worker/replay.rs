//! Recorded values → Python objects with fresh contents.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::failed;
use crate::protocol::{Data, TensorSpec, Value, Workload};

/// Arguments of one call, and the distinct tensors in them by [`TensorSpec::id`].
pub(super) struct Arguments<'py> {
    pub(super) args: Bound<'py, PyTuple>,
    pub(super) kwargs: Bound<'py, PyDict>,
    pub(super) tensors: Vec<Bound<'py, PyAny>>,
}

/// Makes arguments on a device.
pub(super) struct Replay<'py, 'a> {
    pub(super) py: Python<'py>,
    pub(super) torch: Bound<'py, PyModule>,
    pub(super) workload: &'a Workload,
    /// `cuda` tensors are made here: `cuda`, or `cpu` when the device is simulated.
    pub(super) device: &'a str,
    /// Sizes to replace, old and new.
    pub(super) resize: &'a [(i64, i64)],
}

/// A storage as a tensor, and the distinct tensors over the storages.
#[derive(Default)]
struct Made<'py> {
    storages: HashMap<usize, Bound<'py, PyAny>>,
    tensors: Vec<Option<Bound<'py, PyAny>>>,
}

impl<'py> Replay<'py, '_> {
    /// Arguments filled from `seed`. Equal seeds give equal contents.
    pub(super) fn arguments(&self, seed: u64) -> PyResult<Arguments<'py>> {
        let generator = self.torch.getattr("Generator")?.call1((self.device,))?;
        generator.call_method1("manual_seed", (seed & 0x7fff_ffff_ffff,))?;
        let mut made = Made::default();
        self.fill(&mut made, &generator)?;
        self.bind(&mut made)
    }

    /// The same call on copies of `from`'s storages, for which `change` makes the copy.
    pub(super) fn copy(
        &self,
        from: &Arguments<'py>,
        change: &dyn Fn(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Arguments<'py>> {
        let mut made = Made::default();
        for spec in self.specs() {
            if let Entry::Vacant(free) = made.storages.entry(spec.storage) {
                free.insert(change(&flat_view(&from.tensors[spec.id])?)?);
            }
        }
        self.bind(&mut made)
    }

    fn specs(&self) -> Vec<&TensorSpec> {
        let mut specs = Vec::new();
        self.workload.values().for_each(|value| value.tensors(&mut |spec| specs.push(spec)));
        specs
    }

    fn size(&self, size: i64) -> i64 {
        self.resize.iter().find(|(old, _)| *old == size).map_or(size, |(_, new)| *new)
    }

    /// Sizes and strides after resizing: the strides keep their order and their gaps only when nothing changes.
    fn layout(&self, spec: &TensorSpec) -> (Vec<i64>, Vec<i64>) {
        let shape: Vec<i64> = spec.shape.iter().map(|&size| self.size(size)).collect();
        if shape == spec.shape {
            return (shape, spec.stride.clone());
        }
        let mut order: Vec<usize> = (0..shape.len()).collect();
        order.sort_by_key(|&dim| (spec.stride[dim], std::cmp::Reverse(dim)));
        let mut stride = vec![0; shape.len()];
        let mut next = 1;
        for dim in order {
            if spec.stride[dim] != 0 {
                stride[dim] = next;
                next *= shape[dim].max(1);
            }
        }
        (shape, stride)
    }

    fn fill(&self, made: &mut Made<'py>, generator: &Bound<'py, PyAny>) -> PyResult<()> {
        let mut extents: HashMap<usize, i64> = HashMap::new();
        for spec in self.specs() {
            let extent = extents.entry(spec.storage).or_default();
            *extent = (*extent).max(spec.offset + self.extent(spec));
        }
        for spec in self.specs() {
            if let Entry::Vacant(free) = made.storages.entry(spec.storage) {
                free.insert(self.storage(spec, extents[&spec.storage], generator)?);
            }
        }
        Ok(())
    }

    /// Elements from the first to the last, inclusive.
    fn extent(&self, spec: &TensorSpec) -> i64 {
        let (shape, stride) = self.layout(spec);
        if shape.contains(&0) {
            return 0;
        }
        1 + shape.iter().zip(&stride).map(|(size, stride)| (size - 1) * stride).sum::<i64>()
    }

    fn device_of(&self, spec: &TensorSpec) -> &str {
        if spec.device == "cpu" { "cpu" } else { self.device }
    }

    /// A flat tensor of `extent` elements with contents like the recorded ones.
    fn storage(&self, spec: &TensorSpec, extent: i64, generator: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let dtype = self.torch.getattr(spec.dtype.as_str())?;
        let options = PyDict::new(self.py);
        options.set_item("device", self.device_of(spec))?;
        let random =
            |name: &str, args: &Bound<'py, PyTuple>, dtype: &Bound<'py, PyAny>| -> PyResult<Bound<'py, PyAny>> {
                let options = options.copy()?;
                options.set_item("dtype", dtype)?;
                if self.device_of(spec) == self.device {
                    options.set_item("generator", generator)?;
                }
                self.torch.call_method(name, args, Some(&options))
            };
        match &spec.data {
            Data::Normal { mean, std, low, high } => {
                let float = self.torch.getattr("float32")?;
                let flat = random("randn", &PyTuple::new(self.py, [extent])?, &float)?;
                flat.call_method1("mul_", (*std,))?
                    .call_method1("add_", (*mean,))?
                    .call_method1("clamp_", (*low, *high))?;
                flat.call_method1("to", (dtype,))
            }
            Data::Range { low, high } => {
                let long = self.torch.getattr("int64")?;
                let args = (*low, high.saturating_add(1), [extent]).into_pyobject(self.py)?;
                random("randint", &args, &long)?.call_method1("to", (dtype,))
            }
            Data::Integers(values) => {
                let (shape, stride) = self.layout(spec);
                if shape != spec.shape {
                    let (low, high) = (values.iter().min().copied(), values.iter().max().copied());
                    let range = Data::Range { low: low.unwrap_or(0), high: high.unwrap_or(0) };
                    return self.storage(&TensorSpec { data: range, ..spec.clone() }, extent, generator);
                }
                let flat =
                    self.torch.call_method("zeros", ((extent,),), Some(&options))?.call_method1("to", (&dtype,))?;
                let values =
                    self.torch.call_method1("tensor", (values.clone(),))?.call_method1("reshape", (shape.clone(),))?;
                flat.call_method1("as_strided", (shape, stride, spec.offset))?.call_method1("copy_", (values,))?;
                Ok(flat)
            }
        }
    }

    fn bind(&self, made: &mut Made<'py>) -> PyResult<Arguments<'py>> {
        let args = self.workload.args.iter().map(|value| self.value(value, made)).collect::<PyResult<Vec<_>>>()?;
        let kwargs = PyDict::new(self.py);
        for (name, value) in &self.workload.kwargs {
            kwargs.set_item(name, self.value(value, made)?)?;
        }
        let tensors =
            made.tensors.drain(..).collect::<Option<Vec<_>>>().ok_or_else(|| failed("a tensor is missing"))?;
        Ok(Arguments { args: PyTuple::new(self.py, args)?, kwargs, tensors })
    }

    fn value(&self, value: &Value, made: &mut Made<'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let list = |items: &[Value], made: &mut Made<'py>| {
            items.iter().map(|item| self.value(item, made)).collect::<PyResult<Vec<_>>>()
        };
        Ok(match value {
            Value::None => py.None().into_bound(py),
            Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
            Value::Int(value) => self.size(*value).into_pyobject(py)?.into_any(),
            Value::Float(value) => value.into_pyobject(py)?.into_any(),
            Value::Str(value) => value.into_pyobject(py)?.into_any(),
            Value::Dtype(name) => self.torch.getattr(name.as_str())?,
            Value::Device(name) => {
                let name = if name.starts_with("cuda") { self.device } else { name };
                self.torch.call_method1("device", (name,))?
            }
            Value::List(items) => PyList::new(py, list(items, made)?)?.into_any(),
            Value::Tuple(items) => PyTuple::new(py, list(items, made)?)?.into_any(),
            Value::Tensor(spec) => self.tensor(spec, made)?,
            Value::Pointer(_) => return Err(failed("the tensor of a launch cannot be made again")),
            Value::Opaque(name) => return Err(failed(format!("an argument of type `{name}` cannot be made again"))),
        })
    }

    fn tensor(&self, spec: &TensorSpec, made: &mut Made<'py>) -> PyResult<Bound<'py, PyAny>> {
        if made.tensors.len() <= spec.id {
            made.tensors.resize(spec.id + 1, None);
        }
        if let Some(tensor) = &made.tensors[spec.id] {
            return Ok(tensor.clone());
        }
        let (shape, stride) = self.layout(spec);
        let tensor = made.storages[&spec.storage].call_method1("as_strided", (shape, stride, spec.offset))?;
        if spec.requires_grad {
            tensor.call_method1("requires_grad_", (true,))?;
        }
        made.tensors[spec.id] = Some(tensor.clone());
        Ok(tensor)
    }
}

/// The storage below a tensor, as a flat tensor of the same dtype.
pub(super) fn flat_view<'py>(tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let detached = tensor.call_method0("detach")?;
    let bytes: i64 = detached.call_method0("untyped_storage")?.call_method0("nbytes")?.extract()?;
    let size: i64 = detached.call_method0("element_size")?.extract()?;
    detached.call_method1("as_strided", ((bytes / size,), (1,), 0))
}
