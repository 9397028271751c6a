//! A tensor without torch, with the methods that Triton and its interpreter use.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use protocol::sizes::{StorageLayout, contiguous};

use super::memory::{GUARD, GuardedMemory};
use crate::errors::failed;
use crate::numbers::{Area, ElementType};

/// A view of guarded memory.
#[pyclass(frozen)]
pub(super) struct Tensor {
    pub(super) memory: Py<GuardedMemory>,
    pub(super) element: ElementType,
    pub(super) placed: StorageLayout,
    is_host: bool,
    #[pyo3(get)]
    dtype: &'static str,
    #[pyo3(get)]
    requires_grad: bool,
}

impl Tensor {
    pub(super) fn new(
        memory: Py<GuardedMemory>,
        element: ElementType,
        placed: StorageLayout,
        is_host: bool,
    ) -> PyResult<Self> {
        if placed.extent() * element.size as i64 > memory.get().size as i64 {
            return Err(failed("a tensor is larger than its memory"));
        }
        Ok(Self { memory, element, placed, is_host, dtype: element.name, requires_grad: false })
    }

    /// Lets `use_it` change the elements.
    pub(super) fn change<T>(&self, use_it: impl FnOnce(&mut Area<'_>) -> T) -> PyResult<Option<T>> {
        let memory = self.memory.get();
        memory.change(|bytes| {
            let inner = &mut bytes[GUARD..GUARD + memory.size];
            use_it(&mut Area::new(inner, self.element, &self.placed))
        })
    }

    /// The bytes of the elements in row-major order; elements along dimensions with stride 0 are repeated.
    fn dense(&self) -> PyResult<Vec<u8>> {
        let size = self.element.size;
        let all = self.memory.get().read(GUARD..GUARD + self.memory.get().size)?;
        let count = usize::try_from(self.placed.shape.iter().product::<i64>())?;
        if self.is_dense() {
            let first = usize::try_from(self.placed.offset)? * size;
            return Ok(all[first..first + count * size].to_vec());
        }
        let mut bytes = vec![0; count * size];
        for number in 0..count {
            let (mut left, mut at) = (number as i64, self.placed.offset);
            for (length, stride) in self.placed.shape.iter().zip(&self.placed.stride).rev() {
                at += left % length * stride;
                left /= length;
            }
            let at = usize::try_from(at)? * size;
            bytes[number * size..(number + 1) * size].copy_from_slice(&all[at..at + size]);
        }
        Ok(bytes)
    }

    fn is_dense(&self) -> bool {
        let usual = contiguous(&self.placed.shape);
        let pairs = self.placed.shape.iter().zip(usual.iter().zip(&self.placed.stride));
        self.placed.shape.contains(&0) || pairs.filter(|(size, _)| **size > 1).all(|(_, (one, other))| one == other)
    }

    /// A copy of this tensor in memory of its own.
    fn copied(&self, py: Python<'_>) -> PyResult<Self> {
        let bytes = self.dense()?;
        let memory = GuardedMemory::new(bytes.len(), self.is_host, [0; 8]);
        memory.change(|all| all[GUARD..GUARD + bytes.len()].copy_from_slice(&bytes))?;
        memory.settle()?;
        let shape = self.placed.shape.clone();
        let placed = StorageLayout { stride: contiguous(&shape), shape, offset: 0 };
        Self::new(Py::new(py, memory)?, self.element, placed, self.is_host)
    }
}

#[pymethods]
impl Tensor {
    fn data_ptr(&self) -> u64 {
        self.memory.get().address() + self.placed.offset.cast_unsigned() * self.element.size as u64
    }

    fn element_size(&self) -> usize {
        self.element.size
    }

    fn numel(&self) -> i64 {
        self.placed.shape.iter().product()
    }

    fn dim(&self) -> usize {
        self.placed.shape.len()
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.placed.shape)
    }

    #[pyo3(signature = (dim = None))]
    fn size<'py>(&self, py: Python<'py>, dim: Option<isize>) -> PyResult<Bound<'py, PyAny>> {
        of_dimension(py, &self.placed.shape, dim)
    }

    #[pyo3(signature = (dim = None))]
    fn stride<'py>(&self, py: Python<'py>, dim: Option<isize>) -> PyResult<Bound<'py, PyAny>> {
        of_dimension(py, &self.placed.stride, dim)
    }

    fn storage_offset(&self) -> i64 {
        self.placed.offset
    }

    fn is_contiguous(&self) -> bool {
        self.is_dense()
    }

    fn untyped_storage(&self, py: Python<'_>) -> Py<GuardedMemory> {
        self.memory.clone_ref(py)
    }

    #[getter]
    pub(super) fn device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let name = PyDict::new(py);
        name.set_item("type", if self.is_host { "cpu" } else { "cuda" })?;
        py.import("types")?.getattr("SimpleNamespace")?.call((), Some(&name))
    }

    // Methods for the results of a call.

    fn detach(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn resolve_conj(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn resolve_neg(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn contiguous(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        if slf.get().is_dense() { Ok(slf) } else { Bound::new(slf.py(), slf.get().copied(slf.py())?) }
    }

    // Methods with which Triton's interpreter copies a tensor to the host.

    #[pyo3(signature = (*_sizes, **_options))]
    fn new_empty<'py>(
        slf: Bound<'py, Self>,
        _sizes: &Bound<'py, PyTuple>,
        _options: Option<&Bound<'py, PyDict>>,
    ) -> Bound<'py, Self> {
        slf
    }

    #[pyo3(signature = (*_to))]
    fn set_<'py>(slf: Bound<'py, Self>, _to: &Bound<'py, PyTuple>) -> Bound<'py, Self> {
        slf
    }

    // Methods that an autotuner calls between its trials.

    fn zero_(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().change(|area| area.integers(|| 0))?;
        Ok(slf)
    }

    #[pyo3(name = "clone")]
    fn twin(&self, py: Python<'_>) -> PyResult<Self> {
        self.copied(py)
    }

    fn copy_<'py>(slf: Bound<'py, Self>, other: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let (bytes, element) = (other.get().dense()?, other.get().element);
        let mut parts = bytes.chunks(element.size).map(|part| element.read(part, 0));
        slf.get().change(|area| {
            if area.element == element {
                area.bits(|| parts.next().unwrap_or_default());
            } else {
                area.values(parts.map(|bits| element.decode(bits)));
            }
        })?;
        Ok(slf)
    }
}

fn of_dimension<'py>(py: Python<'py>, all: &[i64], dim: Option<isize>) -> PyResult<Bound<'py, PyAny>> {
    let Some(dim) = dim else { return Ok(PyTuple::new(py, all)?.into_any()) };
    let at = if dim < 0 { dim + all.len() as isize } else { dim };
    let found = usize::try_from(at).ok().and_then(|at| all.get(at));
    let found = found.ok_or_else(|| pyo3::exceptions::PyIndexError::new_err("no such dimension"))?;
    Ok(found.into_pyobject(py)?.into_any())
}
