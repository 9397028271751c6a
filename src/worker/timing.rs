//! Device time, measured from outside the candidate's reach: driver events, not torch's.
#![expect(unsafe_code, reason = "the CUDA driver interface is C")]

use cudarc::driver::sys;
use pyo3::prelude::*;

use super::compile::simulated_ms;
use super::failed;

/// The cold figure flushes at least this much, and at least twice the L2 cache.
const LEAST_FLUSH: usize = 256 << 20;

/// The stream on which torch launches unless a program says otherwise.
const DEFAULT: sys::CUstream = std::ptr::null_mut();

/// Measures the device's time between two points of the default stream.
pub(super) enum Timer {
    /// A CUDA device.
    Cuda(CudaTimer),
    /// A simulated device, whose launches say what they cost.
    Simulated,
}

/// A measurement that may still be running on the device.
pub(super) enum Span {
    /// Start and end events.
    Events(sys::CUevent, sys::CUevent),
    /// Already known, in milliseconds.
    Known(f64),
}

/// Waits for everything on the device.
pub(super) fn synchronize() -> PyResult<()> {
    // SAFETY: no pointers.
    unsafe { check(sys::cuCtxSynchronize()) }
}

/// CUDA events and a buffer to flush the L2 cache with.
pub(super) struct CudaTimer {
    buffer: sys::CUdeviceptr,
    size: usize,
}

pub(super) fn check(result: sys::CUresult) -> PyResult<()> {
    if result == sys::CUresult::CUDA_SUCCESS { Ok(()) } else { Err(failed(format!("CUDA error: {result:?}"))) }
}

impl Timer {
    /// For the device whose context is current.
    pub(super) fn new(simulated: bool) -> PyResult<Self> {
        if simulated {
            return Ok(Self::Simulated);
        }
        let (mut device, mut l2, mut buffer) = (0, 0, 0);
        // SAFETY: a context is current on this thread; every pointer is to a live local.
        unsafe {
            check(sys::cuCtxGetDevice(&raw mut device))?;
            let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE;
            check(sys::cuDeviceGetAttribute(&raw mut l2, attribute, device))?;
            let size = LEAST_FLUSH.max(2 * usize::try_from(l2).unwrap_or(0));
            check(sys::cuMemAlloc_v2(&raw mut buffer, size))?;
            Ok(Self::Cuda(CudaTimer { buffer, size }))
        }
    }

    /// Evicts the L2 cache, on the default stream.
    pub(super) fn flush(&self) -> PyResult<()> {
        let Self::Cuda(timer) = self else { return Ok(()) };
        // SAFETY: the buffer is ours and of this size.
        unsafe { check(sys::cuMemsetD8Async(timer.buffer, 0, timer.size, DEFAULT)) }
    }

    /// Runs `work` between two marks on the default stream.
    pub(super) fn measure(&self, work: impl FnOnce() -> PyResult<()>) -> PyResult<Span> {
        if matches!(self, Self::Simulated) {
            let before = simulated_ms();
            work()?;
            return Ok(Span::Known(simulated_ms() - before));
        }
        let (start, end) = (event()?, event()?);
        // SAFETY: events of this context, recorded on a stream of it.
        unsafe {
            check(sys::cuEventRecord(start, DEFAULT))?;
            work()?;
            check(sys::cuEventRecord(end, DEFAULT))?;
        }
        Ok(Span::Events(start, end))
    }

    /// Waits for everything on the device.
    pub(super) fn synchronize(&self) -> PyResult<()> {
        match self {
            Self::Cuda(_) => synchronize(),
            Self::Simulated => Ok(()),
        }
    }
}

impl Span {
    /// The time in milliseconds; the device must have been waited for.
    pub(super) fn milliseconds(self) -> PyResult<f64> {
        match self {
            Self::Known(time) => Ok(time),
            Self::Events(start, end) => {
                let mut time = 0.0_f32;
                // SAFETY: both events were recorded and are destroyed once.
                unsafe {
                    check(sys::cuEventElapsedTime(&raw mut time, start, end))?;
                    check(sys::cuEventDestroy_v2(start))?;
                    check(sys::cuEventDestroy_v2(end))?;
                }
                Ok(f64::from(time))
            }
        }
    }
}

fn event() -> PyResult<sys::CUevent> {
    let mut event = std::ptr::null_mut();
    // SAFETY: the pointer is to a live local.
    unsafe { check(sys::cuEventCreate(&raw mut event, 0))? };
    Ok(event)
}
