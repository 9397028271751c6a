//! Export of a call's results: their description, and their bytes for the comparer.
#![expect(unsafe_code, reason = "memory of tensors is copied by address")]

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use cudarc::driver::sys;
use pyo3::prelude::*;

use protocol::runner::{Buffer, ExportedResults, Leaf, LeafValue};

use super::arrays::Array;
use super::driver_result::check;
use super::errors::failed;
use super::replay::ReplayedArguments;
use super::result_parts::{PartValue, ResultPart, ResultReader};
use super::timing::allocate;
use super::torch_free;

/// The alignment of tensors in the buffer, in bytes.
const ALIGNED: u64 = 256;

/// The most bytes with which the buffer begins.
const MOST_EXPECTED: u64 = 256 << 20;

/// The place where results are put for the comparer.
pub(super) enum ResultSink {
    /// Device memory.
    Device {
        /// Its address; 0 while there is none.
        address: sys::CUdeviceptr,
        /// The size in bytes.
        size: u64,
    },
    /// A file in this folder.
    File(PathBuf),
}

/// Describes results. It reads tensors through their class, since a tensor object may override its attributes.
pub(super) struct Exporter<'py> {
    tensor: Bound<'py, PyAny>,
    reader: ResultReader<'py>,
    pub(super) outlet: ResultSink,
    /// The initial size of the buffer in bytes. Each time the buffer grows, the comparer has to open a new one, which
    /// delays all processes.
    expected: u64,
    /// A size, and how many steps from the end of such dimensions are exported.
    pub(super) tail: Option<(i64, i64)>,
}

/// The memory of a tensor.
struct Storage {
    address: usize,
    size: usize,
}

/// The storages of arguments, and those of results so far, which have the indices of their leaves.
struct Known {
    arguments: Vec<Storage>,
    results: Vec<(usize, usize)>,
}

impl Known {
    /// The index of the argument and otherwise of the first result with this storage. A new result's storage is known
    /// from now on.
    fn whose(&mut self, address: usize, result: Option<usize>) -> (Option<usize>, Option<usize>) {
        let argument = self.arguments.iter().position(|argument| address != 0 && argument.address == address);
        let (Some(leaf), None, true) = (result, argument, address != 0) else { return (argument, None) };
        let first = self.results.iter().find(|(of, _)| *of == address).map(|(_, first)| *first);
        if first.is_none() {
            self.results.push((address, leaf));
        }
        (None, first)
    }
}

/// The copies to make: the offset, a dense tensor, and its size in bytes.
type Copies<'py> = Vec<(u64, Bound<'py, PyAny>, u64)>;

impl<'py> Exporter<'py> {
    /// A new exporter; `expected` is the expected size of the results in bytes.
    pub(super) fn new(py: Python<'py>, outlet: ResultSink, expected: u64) -> PyResult<Self> {
        let is_torch_free = torch_free::is_active(py);
        let tensor =
            if is_torch_free { torch_free::tensor_class(py) } else { py.import("torch")?.getattr("Tensor")? };
        Ok(Self {
            reader: ResultReader::new(py, tensor.clone(), !is_torch_free)?,
            tensor,
            outlet,
            expected: expected.min(MOST_EXPECTED),
            tail: None,
        })
    }

    /// Describes the results of several calls, and puts their bytes into the buffer.
    pub(super) fn export(&mut self, calls: &[CallResults<'py>], wanted: bool) -> PyResult<Vec<ExportedResults>> {
        let (mut size, mut copies) = (0, Copies::new());
        let mut all = Vec::new();
        for call in calls {
            let mut known = Known { arguments: self.storages(call)?, results: Vec::new() };
            let mut leaves = Vec::new();
            for ResultPart { path, value } in call.parts(&self.reader)? {
                let result = path.starts_with("result").then_some(leaves.len());
                let value = self.leaf(value, (&mut known, result), &mut size, &mut copies)?;
                leaves.push(Leaf { path, value });
            }
            all.push(leaves);
        }
        let buffer = if wanted && size > 0 { Some(self.put(size, &copies)?) } else { None };
        Ok(all.into_iter().map(|leaves| ExportedResults { leaves, buffer: buffer.clone() }).collect())
    }

    fn leaf(
        &self,
        value: PartValue<'py>,
        known: (&mut Known, Option<usize>),
        size: &mut u64,
        copies: &mut Copies<'py>,
    ) -> PyResult<LeafValue> {
        match value {
            PartValue::Tensor { class, tensor } => {
                self.described(class, &self.last_part(tensor)?, known, (size, copies))
            }
            PartValue::Array(value) => {
                let read = self.reader.arrays().map(|arrays| arrays.read(&value, self.tail)).transpose()?.flatten();
                let class = value.get_type().qualname()?.to_string();
                let why = "torch has no type for its elements".to_owned();
                read.map_or(Ok(LeafValue::Unread { class, why }), |array| {
                    self.array(array, &known.0.arguments, (size, copies))
                })
            }
            PartValue::Other(value) => Ok(value),
        }
    }

    /// Reads a tensor's attribute through its class.
    fn ask(&self, tensor: &Bound<'py, PyAny>, what: &str) -> PyResult<Bound<'py, PyAny>> {
        self.tensor.call_method1(what, (tensor,))
    }

    fn last_part(&self, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let Some((size, last)) = self.tail else { return Ok(value) };
        let shape: Vec<i64> = value.getattr("shape")?.extract()?;
        let large = shape.iter().enumerate().filter(|(_, is)| **is == size);
        let narrow = |value, dim| self.tensor.call_method1("narrow", (value, dim, size - last, last));
        large.map(|(dim, _)| dim).try_fold(value, narrow)
    }

    /// The storages of the arguments.
    fn storages(&self, call: &CallResults<'py>) -> PyResult<Vec<Storage>> {
        call.arguments.tensors.iter().map(|tensor| self.storage(tensor)).collect()
    }

    fn storage(&self, tensor: &Bound<'py, PyAny>) -> PyResult<Storage> {
        let storage = self.ask(tensor, "untyped_storage")?;
        let address = storage.call_method0("data_ptr")?.extract()?;
        Ok(Storage { address, size: storage.call_method0("nbytes")?.extract()? })
    }

    fn described(
        &self,
        class: String,
        value: &Bound<'py, PyAny>,
        (known, result): (&mut Known, Option<usize>),
        (size, copies): (&mut u64, &mut Copies<'py>),
    ) -> PyResult<LeafValue> {
        let hollow = || failed(format!("a result of class `{class}` has no memory of its own"));
        let storage = self.storage(value).map_err(|_| hollow())?.address;
        let count: u64 = self.ask(value, "numel")?.extract()?;
        let bytes = count * self.ask(value, "element_size")?.extract::<u64>()?;
        if bytes > 0 && storage == 0 {
            return Err(hollow());
        }
        let at = size.next_multiple_of(ALIGNED);
        let (shares, joins) = known.whose(storage, result);
        if bytes > 0 {
            let dense = self.ask(value, "detach")?.call_method0("contiguous")?;
            copies.push((at, dense.call_method0("resolve_conj")?.call_method0("resolve_neg")?, bytes));
            *size = at + bytes;
        }
        Ok(LeafValue::Tensor {
            class,
            dtype: value.getattr("dtype")?.str()?.to_string().trim_start_matches("torch.").to_owned(),
            device: value.getattr("device")?.getattr("type")?.extract()?,
            shape: value.getattr("shape")?.extract()?,
            stride: self.ask(value, "stride")?.extract()?,
            requires_grad: value.getattr("requires_grad")?.extract()?,
            shares,
            joins,
            at,
        })
    }

    fn array(
        &self,
        Array { class, shape, stride, address, tensor }: Array<'py>,
        arguments: &[Storage],
        (size, copies): (&mut u64, &mut Copies<'py>),
    ) -> PyResult<LeafValue> {
        let is_inside = |one: &Storage| (one.address..one.address + one.size).contains(&address);
        let dtype = tensor.getattr("dtype")?.str()?.to_string().trim_start_matches("torch.").to_owned();
        let count: u64 = self.ask(&tensor, "numel")?.extract()?;
        let bytes = count * self.ask(&tensor, "element_size")?.extract::<u64>()?;
        let (at, shares) = (size.next_multiple_of(ALIGNED), arguments.iter().position(is_inside));
        if bytes > 0 {
            copies.push((at, tensor, bytes));
            *size = at + bytes;
        }
        let (device, requires_grad) = ("cpu".to_owned(), false);
        Ok(LeafValue::Tensor { class, dtype, device, shape, stride, requires_grad, shares, joins: None, at })
    }

    fn put(&mut self, needed: u64, copies: &[(u64, Bound<'py, PyAny>, u64)]) -> PyResult<Buffer> {
        match &mut self.outlet {
            ResultSink::Device { address, size } => {
                if *size < needed {
                    // The old buffer stays allocated, since the comparer may have it open. All old ones together are no
                    // larger than the new one.
                    let larger = needed.max(2 * *size).max(self.expected);
                    (*address, *size) = (allocate(self.tensor.py(), usize::try_from(larger)?)?, larger);
                }
                for (at, tensor, bytes) in copies {
                    let from: u64 = tensor.call_method0("data_ptr")?.extract()?;
                    let count = usize::try_from(*bytes)?;
                    let is_host = tensor.getattr("device")?.getattr("type")?.extract::<String>()? == "cpu";
                    // SAFETY: the buffer has room; a wrong address can only do harm inside this process.
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
            ResultSink::File(folder) => {
                let path = folder.join("results.bin");
                let mut file = File::create(&path)?;
                let mut written = 0;
                for (at, tensor, bytes) in copies {
                    file.write_all(&vec![0; usize::try_from(at - written)?])?;
                    let from = tensor.call_method0("data_ptr")?.extract::<usize>()? as *const u8;
                    if from.is_null() {
                        return Err(failed("a tensor has no memory"));
                    }
                    // SAFETY: a dense tensor of this size on the host; a lying address kills this process alone.
                    file.write_all(unsafe { std::slice::from_raw_parts(from, usize::try_from(*bytes)?) })?;
                    written = at + bytes;
                }
                Ok(Buffer::File { path, size: needed })
            }
        }
    }
}

/// The results of one call.
pub(super) struct CallResults<'py> {
    /// The return value.
    pub(super) out: Bound<'py, PyAny>,
    /// The arguments, which the call may have changed.
    pub(super) arguments: ReplayedArguments<'py>,
    /// The gradients of tensor arguments, with the indices of the arguments.
    pub(super) gradients: Vec<(usize, Bound<'py, PyAny>)>,
}

impl<'py> CallResults<'py> {
    fn parts(&self, reader: &ResultReader<'py>) -> PyResult<Vec<ResultPart<'py>>> {
        let tensors = self.arguments.tensors.iter().enumerate();
        let arguments = tensors.map(|(id, tensor)| (format!("argument {id}"), tensor.clone()));
        let named =
            |(id, gradient): &(usize, Bound<'py, PyAny>)| (format!("gradient of argument {id}"), gradient.clone());
        let out = [("result".to_owned(), self.out.clone())];
        reader.read(out.into_iter().chain(arguments).chain(self.gradients.iter().map(named)))
    }
}
