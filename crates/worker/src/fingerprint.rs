//! A sketch of a call: a hash of everything but the contents of tensors, by which calls of the same workload are
//! recognized. It is computed for every call, so it does not query the device.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple};

use super::objects;
use super::types::Types;

/// The depth to which nested objects are hashed.
const DEPTH: usize = 8;

/// The hashes and properties of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallFingerprint {
    /// The hash of everything.
    pub(super) exact: u64,
    /// The hash without the values of numbers and strings: a counter or a seed does not change the shapes.
    pub(super) shapes: u64,
    /// Whether a tensor requires a gradient.
    pub(super) wants_gradient: bool,
    /// Whether there is any tensor.
    pub(super) has_tensors: bool,
}

impl CallFingerprint {
    /// Whether the results of a call contain a tensor.
    pub(super) fn finds_tensors(value: &Bound<'_, PyAny>) -> bool {
        let found = PyTuple::new(value.py(), [value]).and_then(|value| Self::of(&value, &PyDict::new(value.py())));
        // A value that cannot be read may contain some.
        found.map_or(true, |found| found.has_tensors)
    }

    pub(super) fn of(args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut walk = Walk {
            types: Types::get(args.py())?,
            exact: DefaultHasher::new(),
            shapes: DefaultHasher::new(),
            storages: Vec::new(),
            wants_gradient: false,
        };
        for value in args {
            walk.value(&value, DEPTH)?;
        }
        for (name, value) in kwargs {
            walk.note(name.hash()?);
            walk.value(&value, DEPTH)?;
        }
        Ok(Self {
            exact: walk.exact.finish(),
            shapes: walk.shapes.finish(),
            wants_gradient: walk.wants_gradient,
            has_tensors: !walk.storages.is_empty(),
        })
    }
}

struct Walk<'a> {
    types: &'a Types,
    exact: DefaultHasher,
    shapes: DefaultHasher,
    storages: Vec<usize>,
    wants_gradient: bool,
}

impl Walk<'_> {
    fn note(&mut self, value: impl Hash + Copy) {
        value.hash(&mut self.exact);
        value.hash(&mut self.shapes);
    }

    fn value(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        let class = value.get_type();
        self.note(class.as_ptr() as usize);
        if self.types.is_tensor(value) {
            return self.tensor(value);
        }
        let is_scalar = class.is(value.py().get_type::<PyInt>())
            || class.is(value.py().get_type::<PyFloat>())
            || class.is(value.py().get_type::<PyString>());
        if is_scalar {
            value.hash()?.hash(&mut self.exact);
        } else if value.is_none() {
        } else if let Ok(value) = value.cast_exact::<PyBool>() {
            self.note(value.is_true());
        } else if depth == 0 {
        } else if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
            self.note(value.len()?);
            for item in value.try_iter()? {
                self.value(&item?, depth - 1)?;
            }
        } else if let Ok(dict) = value.cast::<PyDict>() {
            for (key, item) in dict {
                self.value(&key, depth - 1)?;
                self.value(&item, depth - 1)?;
            }
        } else if let Ok(set) = value.cast::<PySet>() {
            // A set has no order.
            PyFrozenSet::new(value.py(), set.iter())?.hash()?.hash(&mut self.exact);
        } else if class.is(&self.types.dtype) || value.is_instance(self.types.enumeration.bind(value.py()))? {
            // Each of these values is a single object.
            self.note(value.as_ptr() as usize);
        } else if class.is(&self.types.slice) {
            for name in ["start", "stop", "step"] {
                self.value(&value.getattr(name)?, depth - 1)?;
            }
        } else if self.types.hashed.iter().any(|class| value.is_instance(class.bind(value.py())).unwrap_or(false)) {
            value.hash()?.hash(&mut self.exact);
        } else {
            self.object(value, depth)?;
        }
        Ok(())
    }

    fn object(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        if let Ok(state) = value.getattr(intern!(value.py(), "__dict__")) {
            // The attributes of a function say little about it.
            if value.is_callable() && !value.is_instance(self.types.module.bind(value.py()))? {
                self.note(value.as_ptr() as usize);
                return Ok(());
            }
            if let Ok(state) = state.cast_into::<PyDict>() {
                self.value(&state, depth - 1)?;
            }
        }
        for (_, held) in objects::in_slots(value)?.unwrap_or_default() {
            self.value(&held, depth - 1)?;
        }
        Ok(())
    }

    fn tensor(&mut self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = tensor.py();
        self.note(tensor.getattr(intern!(py, "shape"))?.hash()?);
        self.note(tensor.call_method0(intern!(py, "stride"))?.hash()?);
        self.note(tensor.call_method0(intern!(py, "storage_offset"))?.hash()?);
        self.note(tensor.getattr(intern!(py, "dtype"))?.as_ptr() as usize);
        self.note(tensor.getattr(intern!(py, "device"))?.hash()?);
        let wants: bool = tensor.getattr(intern!(py, "requires_grad"))?.extract()?;
        self.wants_gradient |= wants;
        self.note(wants);
        let storage = tensor.call_method0(intern!(py, "untyped_storage"))?;
        let address: usize = storage.call_method0(intern!(py, "data_ptr"))?.extract()?;
        let at = self.storages.iter().position(|&seen| seen == address && address != 0);
        self.note(at.unwrap_or(self.storages.len()));
        if at.is_none() {
            self.storages.push(address);
        }
        Ok(())
    }
}
