//! The comparer: a process that holds the results of runners and compares them. It runs no code of the user.
#![expect(unsafe_code, reason = "the CUDA driver interface is C")]

use std::collections::HashMap;
use std::os::unix::net::UnixStream;

use cudarc::driver::sys;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use protocol::runner::{
    Compared, ComparerFailure, ComparerReply, ComparerRequest, Difference, ExceptionCause, ExportedResults, Leaf,
    LeafValue,
};
use protocol::{is_simulated, read_frame, write_frame};

use super::buffers::{BufferSource, Buffers};
use super::driver_result::check;
use super::errors::{MissingSlot, cause, describe, failed};
use super::python_modules::{bits, compare};
use super::torch_memory::{TorchMemory, is_scarce, release};
use super::{device_files, torch_free};

/// Asking the driver for the free memory takes milliseconds while other processes use the device, so only one in this
/// many checks asks.
const SELDOM: u32 = 32;

/// Serves the judge until it closes the stream.
pub(super) fn run(py: Python<'_>, stream: UnixStream) {
    // The error is in the process's output.
    if let Err(error) = serve(py, stream) {
        error.print(py);
    }
}

fn serve(py: Python<'_>, mut stream: UnixStream) -> PyResult<()> {
    if torch_free::is_active(py) {
        return torch_free::serve(py, stream);
    }
    let simulated = is_simulated();
    device_files::close_others();
    let device = if simulated { "cpu" } else { "cuda" };
    let mut comparer = Comparer::new(py, device)?;
    if !simulated {
        // This makes torch's context the current one of this thread.
        comparer.torch.call_method1("zeros", (1,))?.call_method1("to", (device,))?;
    }
    while let Some(request) = read_frame(&mut stream)? {
        let reply = comparer
            .answer(request)
            .unwrap_or_else(|error| ComparerReply::Failed { why: describe(py, &error), cause: failure(py, &error) });
        write_frame(&mut stream, &Compared { reply, held: comparer.taken })?;
    }
    Ok(())
}

/// The cause of the comparer's own error.
pub(crate) fn failure(py: Python<'_>, error: &PyErr) -> ComparerFailure {
    match cause(py, error) {
        ExceptionCause::DeviceMemory => ComparerFailure::DeviceMemory,
        _ if error.is_instance_of::<MissingSlot>(py) => ComparerFailure::MissingSlot,
        _ => ComparerFailure::Other,
    }
}

pub(super) struct Comparer<'py> {
    py: Python<'py>,
    torch: Bound<'py, PyModule>,
    device: &'static str,
    slots: HashMap<u32, Bound<'py, PyList>>,
    /// The object that keeps the contents of large tensors once.
    once: Bound<'py, PyAny>,
    buffers: Buffers,
    /// How many times in a row more memory was held unused than is fine without asking.
    held: u32,
    /// Bytes of device memory that torch had allocated when results were last forgotten.
    taken: u64,
}

impl<'py> Comparer<'py> {
    pub(super) fn new(py: Python<'py>, device: &'static str) -> PyResult<Self> {
        Ok(Self {
            py,
            torch: py.import("torch")?,
            device,
            slots: HashMap::new(),
            once: bits(py)?.getattr("Once")?.call0()?,
            buffers: Buffers::default(),
            held: 0,
            taken: 0,
        })
    }

    pub(super) fn answer(&mut self, request: ComparerRequest) -> PyResult<ComparerReply> {
        let module = compare(self.py)?;
        match request {
            ComparerRequest::Keep { owner, kept } => {
                for (slot, results) in &kept {
                    let leaves = self.leaves(owner, results)?;
                    self.slots.insert(*slot, leaves);
                }
                if self.device == "cuda" && kept.iter().any(|(_, results)| results.buffer.is_some()) {
                    // The runner may overwrite its buffer after this. One call for all results, since each waits for
                    // other processes. SAFETY: no pointers.
                    unsafe { check(sys::cuCtxSynchronize())? };
                }
                Ok(ComparerReply::Done)
            }
            ComparerRequest::Leave { owners } => {
                self.buffers.leave(&owners);
                Ok(ComparerReply::Done)
            }
            ComparerRequest::Drop { slots } => {
                slots.iter().for_each(|slot| drop(self.slots.remove(slot)));
                // A request that forgets nothing asks for the memory.
                self.trim(slots.is_empty())?;
                Ok(ComparerReply::Done)
            }
            ComparerRequest::Compare {
                original,
                candidate,
                reference,
                jittered,
                holds_nan,
                exact,
                level,
                variants,
                terms,
            } => {
                let (reference, jittered) = self.slots(reference, &jittered)?;
                let level = match level {
                    None => None,
                    Some((original, reference, jittered)) => {
                        let (reference, jittered) = self.slots(reference, &jittered)?;
                        Some(module.getattr("levels")?.call1((self.slot(original)?, reference, jittered))?)
                    }
                };
                let (_, variants) = self.slots(None, &variants)?;
                let both = (self.slot(original)?, self.slot(candidate)?);
                let terms = terms.map(|[doubled, absolute]| PyResult::Ok((self.slot(doubled)?, self.slot(absolute)?)));
                let terms = terms.transpose()?;
                let all = (both.0, both.1, reference, jittered, holds_nan, exact, level, variants, terms);
                self.differences(&module.getattr("compare")?.call1(all)?)
            }
            ComparerRequest::Spilled { original, finite, candidate, candidate_finite, reference, jittered } => {
                let (reference, jittered) = self.slots(reference, &jittered)?;
                let both = |[usual, great]: [u32; 2]| PyResult::Ok((self.slot(usual)?, self.slot(great)?));
                let pairs = |all: Vec<[u32; 2]>| all.into_iter().map(both).collect::<PyResult<Vec<_>>>();
                let (finite, others) = (pairs(finite)?, pairs(candidate_finite)?);
                let all = (self.slot(original)?, finite, self.slot(candidate)?, others, reference, jittered);
                self.differences(&module.getattr("spilled")?.call1(all)?)
            }
            ComparerRequest::Stand { original, reference, jittered, alike } => {
                let (reference, jittered) = self.slots(reference, &jittered)?;
                let alike = alike.map(|slot| self.slot(slot)).transpose()?;
                let found = module.getattr("standing")?.call1((self.slot(original)?, reference, jittered, alike))?;
                let (is_credible, is_exact, is_finer, is_whole) = found.extract()?;
                Ok(ComparerReply::Standing { is_credible, is_exact, is_finer, is_whole })
            }
            ComparerRequest::Changed { one, other } => {
                self.differences(&module.getattr("changed")?.call1((self.slot(one)?, self.slot(other)?))?)
            }
            ComparerRequest::Unwritten { slot } => {
                self.differences(&module.getattr("unwritten")?.call1((self.slot(slot)?,))?)
            }
        }
    }

    /// Releases device memory that torch holds unused for this process, where it is much and runners need it.
    fn trim(&mut self, is_wanted: bool) -> PyResult<()> {
        if self.device != "cuda" {
            return Ok(());
        }
        let held = TorchMemory::by(&self.torch)?;
        self.taken = held.taken;
        if !held.is_large(&self.torch)? {
            return Ok(());
        }
        self.held = self.held.wrapping_add(1);
        if is_wanted || self.held.is_multiple_of(SELDOM) && is_scarce(&self.torch)? {
            release(&self.torch)?;
        }
        Ok(())
    }

    fn slot(&self, slot: u32) -> PyResult<Bound<'py, PyList>> {
        self.slots.get(&slot).cloned().ok_or_else(|| MissingSlot::new_err(format!("nothing is kept under {slot}")))
    }

    #[expect(clippy::type_complexity, reason = "it is taken apart at once")]
    fn slots(
        &self,
        reference: Option<u32>,
        jittered: &[u32],
    ) -> PyResult<(Option<Bound<'py, PyList>>, Vec<Bound<'py, PyList>>)> {
        let reference = reference.map(|slot| self.slot(slot)).transpose()?;
        Ok((reference, jittered.iter().map(|&slot| self.slot(slot)).collect::<PyResult<Vec<_>>>()?))
    }

    fn differences(&self, found: &Bound<'py, PyAny>) -> PyResult<ComparerReply> {
        let mut all = Vec::new();
        for one in found.try_iter()? {
            let one = one?.cast_into::<PyDict>()?;
            let of = |name: &str| one.get_item(name)?.ok_or_else(|| failed(format!("a difference has no {name}")));
            all.push(Difference {
                path: of("path")?.extract()?,
                what: of("what")?.extract()?,
                is_value: of("is_value")?.extract()?,
                count: of("count")?.extract()?,
                excess: of("excess")?.extract::<Option<f64>>()?.filter(|excess| excess.is_finite()),
            });
        }
        Ok(ComparerReply::Differences(all))
    }

    /// Results in the form that the comparing functions take, with copies of their bytes.
    fn leaves(&mut self, owner: u64, results: &ExportedResults) -> PyResult<Bound<'py, PyList>> {
        let leaf = compare(self.py)?.getattr("Leaf")?;
        let mut source = results.buffer.as_ref().map(|buffer| self.buffers.open(owner, buffer)).transpose()?;
        let leaves = PyList::empty(self.py);
        for Leaf { path, value } in &results.leaves {
            let (meta, data) = match value {
                LeafValue::Plain { class, text } => (("plain", class, text).into_pyobject(self.py)?, None),
                LeafValue::Unread { class, why } => (("unread", class, why).into_pyobject(self.py)?, None),
                LeafValue::Container { class, stands_for } => {
                    (("container", class, stands_for).into_pyobject(self.py)?, None)
                }
                LeafValue::Tensor { class, dtype, device, shape, stride, requires_grad, shares, joins, at } => {
                    let data = source.as_mut().map(|source| self.tensor(source, dtype, shape, *at)).transpose()?;
                    let (shape, stride) = (PyTuple::new(self.py, shape)?, PyTuple::new(self.py, stride)?);
                    let meta = (class, dtype, device, shape, stride, *requires_grad, *shares, *joins);
                    let meta = meta.into_pyobject(self.py)?;
                    (meta, data)
                }
            };
            leaves.append(leaf.call1((path, meta, data))?)?;
        }
        Ok(leaves)
    }

    fn tensor(&self, source: &mut BufferSource, dtype: &str, shape: &[i64], at: u64) -> PyResult<Bound<'py, PyAny>> {
        let options = PyDict::new(self.py);
        options.set_item("dtype", self.torch.getattr(dtype)?)?;
        options.set_item("device", self.device)?;
        let tensor = self.torch.call_method("empty", (PyTuple::new(self.py, shape)?,), Some(&options))?;
        let count: usize = tensor.call_method0("numel")?.extract()?;
        let bytes = count * tensor.call_method0("element_size")?.extract::<usize>()?;
        source.copy(at, tensor.call_method0("data_ptr")?.extract()?, bytes)?;
        self.once.call_method1("keep", (tensor,))
    }
}
