//! Arrays and scalars of `numpy` in results, which are read as tensors on the host.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyTuple};

use super::classes::{ClassHierarchy, is_fixed};

/// Functions of numpy and torch, looked up before the file was loaded. The class of arrays is written in C, so it
/// cannot be changed.
pub(super) struct Arrays<'py> {
    array: Bound<'py, PyAny>,
    number: Bound<'py, PyAny>,
    as_array: Bound<'py, PyAny>,
    as_tensor: Bound<'py, PyAny>,
    copy: Bound<'py, PyAny>,
    part: Bound<'py, PyAny>,
    interface: Bound<'py, PyAny>,
}

/// An array of the results.
pub(super) struct Array<'py> {
    pub(super) class: String,
    pub(super) shape: Vec<i64>,
    /// The stride of each dimension, in elements.
    pub(super) stride: Vec<i64>,
    pub(super) address: usize,
    /// A dense copy of the array.
    pub(super) tensor: Bound<'py, PyAny>,
}

impl<'py> Arrays<'py> {
    pub(super) fn new(py: Python<'py>) -> PyResult<Self> {
        let numpy = py.import("numpy")?;
        let array = numpy.getattr("ndarray")?;
        let members = array.getattr("__dict__")?;
        Ok(Self {
            number: numpy.getattr("generic")?,
            as_array: numpy.getattr("asarray")?,
            as_tensor: py.import("torch")?.getattr("from_numpy")?,
            copy: members.get_item("copy")?,
            part: members.get_item("__getitem__")?,
            interface: members.get_item("__array_interface__")?,
            array,
        })
    }

    /// Whether a value is an array or a scalar of one of numpy's own classes.
    pub(super) fn is_own(&self, value: &Bound<'py, PyAny>, class: &ClassHierarchy<'py, '_>) -> bool {
        let of = value.get_type();
        of.is(&self.array) || (class.is_below(&self.number) && is_fixed(&of))
    }

    /// Reads an array, or with `tail` the last part along each dimension of that size; `None` if torch does not know
    /// the element type.
    pub(super) fn read(&self, value: &Bound<'py, PyAny>, tail: Option<(i64, i64)>) -> PyResult<Option<Array<'py>>> {
        let class = value.get_type().fully_qualified_name()?.to_string();
        let mut array = if value.get_type().is(&self.array) { value.clone() } else { self.as_array.call1((value,))? };
        if !array.get_type().is(&self.array) {
            return Ok(None);
        }
        if let Some((size, last)) = tail {
            let shape: Vec<i64> = array.getattr("shape")?.extract()?;
            let part =
                |is: i64| PySlice::new(value.py(), if is == size { (is - last) as isize } else { 0 }, is as isize, 1);
            let parts = PyTuple::new(value.py(), shape.into_iter().map(part))?;
            // Indexing an array without dimensions would return a scalar.
            array = if parts.is_empty() { array } else { self.part.call1((&array, parts))? };
        }
        let Ok(tensor) = self.copy.call1((&array, "C")).and_then(|dense| self.as_tensor.call1((dense,))) else {
            return Ok(None);
        };
        let size = array.getattr("itemsize")?.extract::<i64>()?.max(1);
        let stride: Vec<i64> = array.getattr("strides")?.extract()?;
        let interface = self.interface.call_method1("__get__", (&array,))?.cast_into::<PyDict>()?;
        let address = interface.as_any().get_item("data")?.get_item(0)?.extract()?;
        let stride = stride.into_iter().map(|bytes| bytes / size).collect();
        Ok(Some(Array { class, shape: array.getattr("shape")?.extract()?, stride, address, tensor }))
    }
}
