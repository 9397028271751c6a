//! Results of a call, described and given to the comparer.
#![expect(unsafe_code, reason = "memory of tensors is copied by address")]

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use cudarc::driver::sys;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::replay::Arguments;
use super::timing::check;
use super::{failed, raw};
use crate::protocol::runner::{Buffer, Exported, Leaf, LeafValue};

/// Tensors begin at multiples of so many bytes.
const ALIGNED: u64 = 256;

/// Where results are put for the comparer.
pub(super) enum Outlet {
    /// Memory of the device.
    Device {
        /// Its address; 0 while there is none.
        address: sys::CUdeviceptr,
        /// Bytes.
        size: u64,
    },
    /// A file in this folder.
    File(PathBuf),
}

/// A value inside results, with the tensor it is.
struct Found<'py> {
    path: String,
    value: Bound<'py, PyAny>,
}

/// The objects that describing takes, as they were before the file was loaded.
pub(super) struct Exporter<'py> {
    tensor: Bound<'py, PyAny>,
    pub(super) outlet: Outlet,
    /// A size, and how many steps along it are given.
    pub(super) tail: Option<(i64, i64)>,
}

impl<'py> Exporter<'py> {
    pub(super) fn new(py: Python<'py>, outlet: Outlet) -> PyResult<Self> {
        let tensor = if raw::is_raw(py) { raw::tensor_class(py) } else { py.import("torch")?.getattr("Tensor")? };
        Ok(Self { tensor, outlet, tail: None })
    }

    /// Describes results of several calls and puts their bytes where the comparer finds them.
    pub(super) fn export(&mut self, calls: &[Results<'py>], wanted: bool) -> PyResult<Vec<Exported>> {
        let mut size = 0;
        let mut copies: Vec<(u64, Bound<'py, PyAny>, u64)> = Vec::new();
        let mut all = Vec::new();
        for call in calls {
            let mut leaves = Vec::new();
            for found in call.found(self)? {
                let value = self.describe(&self.last_part(found.value)?, &call.storages()?, &mut size, &mut copies)?;
                leaves.push(Leaf { path: found.path, value });
            }
            all.push(Exported { leaves, buffer: None });
        }
        if wanted && size > 0 {
            let buffer = self.put(size, &copies)?;
            all.iter_mut().for_each(|one| one.buffer = Some(buffer.clone()));
        }
        Ok(all)
    }

    fn last_part(&self, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let Some((size, last)) = self.tail else { return Ok(value) };
        if !value.is_instance(&self.tensor)? {
            return Ok(value);
        }
        let shape: Vec<i64> = value.getattr("shape")?.extract()?;
        let large = shape.iter().enumerate().filter(|(_, is)| **is == size);
        large.map(|(dim, _)| dim).try_fold(value, |value, dim| value.call_method1("narrow", (dim, size - last, last)))
    }

    fn describe(
        &self,
        value: &Bound<'py, PyAny>,
        arguments: &[usize],
        size: &mut u64,
        copies: &mut Vec<(u64, Bound<'py, PyAny>, u64)>,
    ) -> PyResult<LeafValue> {
        let class = value.get_type().fully_qualified_name()?.to_string();
        if !value.is_instance(&self.tensor)? {
            return Ok(LeafValue::Plain { class, text: value.repr()?.to_string() });
        }
        let text = |name: &str| -> PyResult<String> { Ok(value.getattr(name)?.str()?.to_string()) };
        let hollow = || failed(format!("a result of class `{class}` has no memory of its own"));
        let storage: usize =
            value.call_method0("untyped_storage")?.call_method0("data_ptr").map_err(|_| hollow())?.extract()?;
        let count: u64 = value.call_method0("numel")?.extract()?;
        let bytes = count * value.call_method0("element_size")?.extract::<u64>()?;
        if bytes > 0 && storage == 0 {
            return Err(hollow());
        }
        let at = size.next_multiple_of(ALIGNED);
        if bytes > 0 {
            let dense = value.call_method0("detach")?.call_method0("contiguous")?;
            copies.push((at, dense.call_method0("resolve_conj")?.call_method0("resolve_neg")?, bytes));
            *size = at + bytes;
        }
        Ok(LeafValue::Tensor {
            class,
            dtype: text("dtype")?.trim_start_matches("torch.").to_owned(),
            device: value.getattr("device")?.getattr("type")?.extract()?,
            shape: value.getattr("shape")?.extract()?,
            stride: value.call_method0("stride")?.extract()?,
            requires_grad: value.getattr("requires_grad")?.extract()?,
            shares: arguments.iter().position(|&argument| storage != 0 && argument == storage),
            at,
        })
    }

    fn put(&mut self, needed: u64, copies: &[(u64, Bound<'py, PyAny>, u64)]) -> PyResult<Buffer> {
        match &mut self.outlet {
            Outlet::Device { address, size } => {
                if *size < needed {
                    let mut fresh = 0;
                    // The old buffer stays: the comparer may have it open. All old ones together are no larger than this.
                    let larger = needed.max(2 * *size);
                    // SAFETY: the pointer is to a live local.
                    unsafe { check(sys::cuMemAlloc_v2(&raw mut fresh, usize::try_from(larger)?))? };
                    (*address, *size) = (fresh, larger);
                }
                for (at, tensor, bytes) in copies {
                    let from: u64 = tensor.call_method0("data_ptr")?.extract()?;
                    let count = usize::try_from(*bytes)?;
                    let is_host = tensor.getattr("device")?.getattr("type")?.extract::<String>()? == "cpu";
                    // SAFETY: the buffer has room; what a lying address does stays inside this process.
                    unsafe {
                        if is_host {
                            check(sys::cuMemcpyHtoD_v2(*address + at, from as *const std::ffi::c_void, count))?;
                        } else {
                            check(sys::cuMemcpyDtoDAsync_v2(*address + at, from, count, std::ptr::null_mut()))?;
                        }
                    }
                }
                let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
                // SAFETY: the pointer is to a live local, the address is the start of an allocation.
                unsafe {
                    check(sys::cuCtxSynchronize())?;
                    check(sys::cuIpcGetMemHandle(&raw mut handle, *address))?;
                }
                let handle = handle.reserved.iter().map(|&byte| byte.cast_unsigned()).collect();
                Ok(Buffer::Device { handle, size: *size })
            }
            Outlet::File(folder) => {
                let path = folder.join("results.bin");
                let mut file = File::create(&path)?;
                let mut written = 0;
                for (at, tensor, bytes) in copies {
                    file.write_all(&vec![0; usize::try_from(at - written)?])?;
                    let from = tensor.call_method0("data_ptr")?.extract::<usize>()? as *const u8;
                    if from.is_null() {
                        return Err(failed("a tensor has no memory"));
                    }
                    // SAFETY: a dense tensor of so many bytes on the host; a lying address kills this process alone.
                    file.write_all(unsafe { std::slice::from_raw_parts(from, usize::try_from(*bytes)?) })?;
                    written = at + bytes;
                }
                Ok(Buffer::File { path, size: needed })
            }
        }
    }
}

/// What one call left.
pub(super) struct Results<'py> {
    /// What was returned.
    pub(super) out: Bound<'py, PyAny>,
    /// The arguments.
    pub(super) arguments: Arguments<'py>,
    /// The gradients of tensor arguments, by their numbers.
    pub(super) gradients: Vec<(usize, Bound<'py, PyAny>)>,
}

impl<'py> Results<'py> {
    fn found(&self, exporter: &Exporter<'py>) -> PyResult<Vec<Found<'py>>> {
        let mut all = Vec::new();
        collect(&self.out, "result".to_owned(), exporter, &mut all, 0)?;
        for (id, tensor) in self.arguments.tensors.iter().enumerate() {
            all.push(Found { path: format!("argument {id}"), value: tensor.clone() });
        }
        for (id, gradient) in &self.gradients {
            all.push(Found { path: format!("gradient of argument {id}"), value: gradient.clone() });
        }
        Ok(all)
    }

    /// Addresses of the arguments' storages.
    fn storages(&self) -> PyResult<Vec<usize>> {
        let of =
            |tensor: &Bound<'py, PyAny>| tensor.call_method0("untyped_storage")?.call_method0("data_ptr")?.extract();
        self.arguments.tensors.iter().map(of).collect()
    }
}

/// The tensors and scalars of a result, depth first.
fn collect<'py>(
    value: &Bound<'py, PyAny>,
    path: String,
    exporter: &Exporter<'py>,
    all: &mut Vec<Found<'py>>,
    depth: usize,
) -> PyResult<()> {
    const DEEPEST: usize = 16;
    let is_list = value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>();
    if is_list && depth < DEEPEST {
        for (at, item) in value.try_iter()?.enumerate() {
            collect(&item?, format!("{path}[{at}]"), exporter, all, depth + 1)?;
        }
    } else if let Ok(dict) = value.cast::<PyDict>()
        && depth < DEEPEST
    {
        for (key, item) in dict {
            collect(&item, format!("{path}[{}]", key.repr()?), exporter, all, depth + 1)?;
        }
    } else if let Ok(fields) = value.getattr("__dataclass_fields__")
        && !value.is_instance(&exporter.tensor)?
        && depth < DEEPEST
    {
        for name in fields.try_iter()? {
            let name: String = name?.extract()?;
            collect(&value.getattr(name.as_str())?, format!("{path}.{name}"), exporter, all, depth + 1)?;
        }
    } else {
        all.push(Found { path, value: value.clone() });
    }
    Ok(())
}
