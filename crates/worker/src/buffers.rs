//! The buffers in which runners put results, as the comparer reads them.
#![expect(unsafe_code, reason = "memory of the device and of tensors is copied by address")]

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use cudarc::driver::sys;
use pyo3::prelude::*;

use protocol::runner::Buffer;

use super::driver_result::check;
use super::errors::failed;

/// The device buffers of runners. Each is opened once, since opening takes milliseconds.
#[derive(Default)]
pub(super) struct Buffers {
    /// The opened buffers, by the number of the runner.
    opened: HashMap<u64, Mapped>,
}

impl Buffers {
    /// Opens a runner's buffer, which stays open until the runner uses another one or leaves.
    pub(super) fn open(&mut self, owner: u64, buffer: &Buffer) -> PyResult<BufferSource> {
        match buffer {
            Buffer::Device { handle, size } => {
                let handle: [u8; 64] = handle.as_slice().try_into().map_err(failed)?;
                if self.opened.iter().any(|(other, mapped)| *other != owner && mapped.handle == handle) {
                    return Err(failed("a runner names memory of another process as its own"));
                }
                let known = self.opened.get(&owner).filter(|mapped| mapped.handle == handle && mapped.size == *size);
                let address = match known {
                    Some(mapped) => mapped.address,
                    None => {
                        if self.opened.contains_key(&owner) {
                            // Some of its bytes may not have been written yet. SAFETY: no pointers.
                            check(unsafe { sys::cuCtxSynchronize() })?;
                        }
                        self.opened.remove(&owner);
                        let mapped = Mapped::open(handle, *size)?;
                        self.opened.entry(owner).insert_entry(mapped).get().address
                    }
                };
                Ok(BufferSource::Device { address, size: *size })
            }
            Buffer::File { path, .. } => Ok(BufferSource::File(File::open(path)?)),
        }
    }

    /// Closes the buffers of runners that have ended.
    pub(super) fn leave(&mut self, owners: &[u64]) {
        owners.iter().for_each(|owner| drop(self.opened.remove(owner)));
    }
}

/// A runner's device buffer, mapped into this process.
struct Mapped {
    handle: [u8; 64],
    address: sys::CUdeviceptr,
    size: u64,
}

impl Mapped {
    fn open(handle: [u8; 64], size: u64) -> PyResult<Self> {
        let (mut address, mut start, mut whole) = (0, 0, 0);
        let lazily = sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let reserved = handle.map(u8::cast_signed);
        // SAFETY: the pointers are to live locals; a handle that is none is refused by the driver.
        let range = unsafe {
            check(sys::cuIpcOpenMemHandle_v2(&raw mut address, sys::CUipcMemHandle { reserved }, lazily))?;
            sys::cuMemGetAddressRange_v2(&raw mut start, &raw mut whole, address)
        };
        let mapped = Self { handle, address, size };
        // The size that the runner reports is checked against the size that the driver reports.
        let end = (address - start).checked_add(size);
        if range == sys::CUresult::CUDA_SUCCESS && end.is_none_or(|end| end > whole as u64) {
            return Err(failed("a runner gives less memory than it says"));
        }
        Ok(mapped)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once. That it cannot be closed would cost address space alone.
        unsafe { sys::cuIpcCloseMemHandle(self.address) };
    }
}

/// The place of a result's bytes.
pub(super) enum BufferSource {
    /// Device memory.
    Device {
        /// The address in this process.
        address: sys::CUdeviceptr,
        /// The size in bytes.
        size: u64,
    },
    /// A file.
    File(File),
}

impl BufferSource {
    /// Copies bytes to the host.
    pub(super) fn read(&mut self, at: u64, bytes: usize) -> PyResult<Vec<u8>> {
        let there = match self {
            Self::Device { size, .. } => *size,
            Self::File(file) => file.metadata()?.len(),
        };
        // The size is checked before memory is allocated for data that may not exist.
        if bytes > 0 && at.checked_add(bytes as u64).is_none_or(|end| end > there) {
            return Err(failed("results end before their last tensor"));
        }
        let mut read = vec![0; bytes];
        match self {
            Self::File(_) => self.copy(at, read.as_mut_ptr().addr(), bytes)?,
            // SAFETY: both were checked to have `bytes` bytes.
            Self::Device { address, .. } if bytes > 0 => unsafe {
                check(sys::cuMemcpyDtoH_v2(read.as_mut_ptr().cast(), *address + at, bytes))?;
            },
            Self::Device { .. } => {}
        }
        Ok(read)
    }

    /// Copies bytes into a tensor's memory.
    pub(super) fn copy(&mut self, at: u64, to: usize, bytes: usize) -> PyResult<()> {
        if bytes == 0 {
            return Ok(());
        }
        match self {
            Self::Device { address, size } => {
                if at.checked_add(bytes as u64).is_none_or(|end| end > *size) {
                    return Err(failed("results end before their last tensor"));
                }
                // SAFETY: the source was checked to have `bytes` bytes; the tensor has been made for them.
                unsafe { check(sys::cuMemcpyDtoDAsync_v2(to as u64, *address + at, bytes, std::ptr::null_mut())) }
            }
            Self::File(file) => {
                file.seek(SeekFrom::Start(at))?;
                // SAFETY: a tensor on the host that was made for `bytes` bytes.
                let memory = unsafe { std::slice::from_raw_parts_mut(to as *mut u8, bytes) };
                Ok(file.read_exact(memory)?)
            }
        }
    }
}
