//! Memory for tensors without torch: device memory, or host memory where the device is simulated.
#![expect(unsafe_code, reason = "memory of the device is handled by address")]

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys;
use pyo3::prelude::*;

use crate::driver_result::check;
use crate::errors::{DeviceMemoryError, FakeTensorError};

/// Bytes of the guards on both sides of a storage, which must not be written.
pub(super) const GUARD: usize = 64 << 10;
/// The address of storages without memory, aligned like all others.
const HOLLOW_ADDRESS: u64 = 1 << 40;

/// Whether new storages have no memory.
static HOLLOW: AtomicBool = AtomicBool::new(false);
/// Bytes of device memory in use, at present and at most.
static TAKEN: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Runs `work` with storages that have an address and no memory, so that kernels are compiled for them and not
/// launched.
pub(crate) fn hollow<T>(work: impl FnOnce() -> T) -> T {
    HOLLOW.store(true, Ordering::Relaxed);
    let done = work();
    HOLLOW.store(false, Ordering::Relaxed);
    done
}

/// The most bytes of device memory that were in use.
pub(crate) fn most_taken() -> u64 {
    TAKEN[1].load(Ordering::Relaxed)
}

/// A block with the alignment of device memory, so that the first element after the guard is aligned.
#[derive(Clone, Copy)]
#[repr(align(256))]
struct Block([u8; 256]);

/// The place of the bytes.
enum Backing {
    /// On the host, permanently or until they are copied to the device.
    Host(Box<[Block]>),
    /// At this address of the device.
    Device(u64),
    /// Without memory.
    Hollow,
}

/// Bytes with a guard on both sides.
#[pyclass(frozen)]
pub(super) struct GuardedMemory {
    place: Mutex<Backing>,
    /// Bytes between the guards.
    pub(super) size: usize,
    /// Whether the memory stays on the host.
    pub(super) is_host: bool,
}

fn total(size: usize) -> usize {
    (2 * GUARD + size).next_multiple_of(size_of::<Block>())
}

impl GuardedMemory {
    /// New memory: the guards hold `canary`, the bytes between them are zero.
    pub(super) fn new(size: usize, is_host: bool, canary: [u8; 8]) -> Self {
        let place = if HOLLOW.load(Ordering::Relaxed) {
            Backing::Hollow
        } else {
            let mut block = Block([0; 256]);
            block.0.chunks_mut(8).for_each(|part| part.copy_from_slice(&canary));
            let mut blocks = vec![block; total(size) / size_of::<Block>()].into_boxed_slice();
            bytes_of(&mut blocks)[GUARD..GUARD + size].fill(0);
            Backing::Host(blocks)
        };
        Self { place: Mutex::new(place), size, is_host }
    }

    fn place(&self) -> MutexGuard<'_, Backing> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of the first byte between the guards.
    pub(super) fn address(&self) -> u64 {
        let begin = match &*self.place() {
            Backing::Host(blocks) => blocks.as_ptr().addr() as u64,
            Backing::Device(address) => *address,
            Backing::Hollow => HOLLOW_ADDRESS,
        };
        begin + GUARD as u64
    }

    /// Copies the bytes to the device, unless they stay on the host.
    pub(super) fn settle(&self) -> PyResult<()> {
        let mut place = self.place();
        let Backing::Host(blocks) = &mut *place else { return Ok(()) };
        if self.is_host {
            return Ok(());
        }
        let bytes = bytes_of(blocks);
        let mut address = 0;
        // SAFETY: the context is current; the pointers are to a live local and to enough bytes.
        unsafe {
            let allocated = sys::cuMemAlloc_v2(&raw mut address, bytes.len());
            if allocated == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
                let text = format!("the device is out of memory: {} bytes are not free", bytes.len());
                return Err(DeviceMemoryError::new_err(text));
            }
            check(allocated)?;
            check(sys::cuMemcpyHtoD_v2(address, bytes.as_ptr().cast(), bytes.len()))?;
        }
        let now = TAKEN[0].fetch_add(bytes.len() as u64, Ordering::Relaxed) + bytes.len() as u64;
        TAKEN[1].fetch_max(now, Ordering::Relaxed);
        *place = Backing::Device(address);
        Ok(())
    }

    /// Lets `use_them` change all bytes, including the guards. Returns `None` for storages without memory.
    pub(super) fn change<T>(&self, use_them: impl FnOnce(&mut [u8]) -> T) -> PyResult<Option<T>> {
        match &mut *self.place() {
            Backing::Host(blocks) => Ok(Some(use_them(bytes_of(blocks)))),
            Backing::Hollow => Ok(None),
            Backing::Device(address) => {
                let mut bytes = vec![0; total(self.size)];
                // SAFETY: both have the same number of bytes.
                unsafe { check(sys::cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), *address, bytes.len()))? };
                let done = use_them(&mut bytes);
                // SAFETY: as above.
                unsafe { check(sys::cuMemcpyHtoD_v2(*address, bytes.as_ptr().cast(), bytes.len()))? };
                Ok(Some(done))
            }
        }
    }

    /// A copy of some of the bytes; byte 0 is the first byte of the front guard.
    pub(super) fn read(&self, range: Range<usize>) -> PyResult<Vec<u8>> {
        match &mut *self.place() {
            Backing::Host(blocks) => Ok(bytes_of(blocks)[range].to_vec()),
            Backing::Hollow if HOLLOW.load(Ordering::Relaxed) => Ok(vec![0; range.len()]),
            Backing::Hollow => {
                Err(FakeTensorError::new_err("a tensor without memory is read: it was kept from a call"))
            }
            Backing::Device(address) => {
                let mut bytes = vec![0; range.len()];
                let from = *address + range.start as u64;
                // SAFETY: the range was asked for by offsets inside of the allocation.
                unsafe { check(sys::cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), from, bytes.len()))? };
                Ok(bytes)
            }
        }
    }

    /// Copies a range of bytes from another memory of the same size.
    pub(super) fn copy(&self, other: &Self, range: Range<usize>) -> PyResult<()> {
        if let (Backing::Device(to), Backing::Device(from)) = (&*self.place(), &*other.place()) {
            let start = range.start as u64;
            // SAFETY: the range lies in both.
            return unsafe { check(sys::cuMemcpyDtoD_v2(to + start, from + start, range.len())) };
        }
        let bytes = other.read(range.clone())?;
        self.change(|all| all[range].copy_from_slice(&bytes))?;
        Ok(())
    }

    /// By how many bytes a write went beyond the end, or before the beginning (negative); 0 for none. Whole elements
    /// count, since some of their bytes may equal the guard's.
    pub(super) fn overrun(&self, canary: [u8; 8], element: usize) -> PyResult<i64> {
        let end = GUARD + self.size;
        let differs = |start: usize| move |(at, byte): (usize, &u8)| (*byte != canary[(start + at) % 8]).then_some(at);
        let front = self.read(0..GUARD)?;
        if let Some(at) = front.iter().enumerate().find_map(differs(0)) {
            return Ok(-((GUARD - at).next_multiple_of(element) as i64));
        }
        let back = self.read(end..total(self.size))?;
        let last = back.iter().enumerate().rev().find_map(differs(end));
        Ok(last.map_or(0, |at| ((at / element + 1) * element) as i64))
    }
}

#[pymethods]
impl GuardedMemory {
    fn data_ptr(&self) -> u64 {
        self.address()
    }

    fn nbytes(&self) -> usize {
        self.size
    }

    /// For Triton's interpreter, which works on a copy on the host; this memory is already there.
    fn cpu(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn copy_(slf: Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        if slf.is(other) {
            return Ok(());
        }
        let (to, from) = (slf.get(), other.get());
        to.copy(from, GUARD..GUARD + to.size.min(from.size))
    }
}

impl Drop for GuardedMemory {
    fn drop(&mut self) {
        if let Backing::Device(address) = *self.place() {
            TAKEN[0].fetch_sub(total(self.size) as u64, Ordering::Relaxed);
            // SAFETY: allocated once, given back once. A device that has failed gives nothing back.
            unsafe { sys::cuMemFree_v2(address) };
        }
    }
}

fn bytes_of(blocks: &mut [Block]) -> &mut [u8] {
    // SAFETY: a block is its bytes, without padding.
    unsafe { std::slice::from_raw_parts_mut(blocks.as_mut_ptr().cast(), size_of_val(blocks)) }
}
