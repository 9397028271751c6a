//! Device time, measured from outside the candidate's reach: driver events, not torch's.
#![expect(unsafe_code, reason = "the CUDA driver interface is C")]

use cudarc::driver::sys;
use pyo3::prelude::*;
use pyo3::types::PyDict;

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
    /// Milliseconds of one flush.
    flush: f64,
}

/// The device is kept busy for so long at most, in milliseconds: what is waiting for it has a limit.
const LONGEST: f64 = 60.0;
/// Flushes that are timed to know what one takes.
const TIMED: usize = 8;

pub(super) fn check(result: sys::CUresult) -> PyResult<()> {
    if result == sys::CUresult::CUDA_SUCCESS { Ok(()) } else { Err(failed(format!("CUDA error: {result:?}"))) }
}

/// Memory of the device, beside what torch has. What torch holds ready for later it gives back for that, as it does for itself.
pub(super) fn allocate(py: Python<'_>, size: usize) -> PyResult<sys::CUdeviceptr> {
    let mut address = 0;
    // SAFETY: the pointer is to a live local.
    let mut take = || unsafe { sys::cuMemAlloc_v2(&raw mut address, size) };
    let mut taken = take();
    if taken == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY
        && let Some(torch) = py.import("sys")?.getattr("modules")?.cast::<PyDict>()?.get_item("torch")?
    {
        super::ready::give_back(&torch)?;
        taken = take();
    }
    check(taken)?;
    Ok(address)
}

impl Timer {
    /// For the device whose context is current.
    pub(super) fn new(py: Python<'_>, simulated: bool) -> PyResult<Self> {
        if simulated {
            return Ok(Self::Simulated);
        }
        let (mut device, mut l2) = (0, 0);
        // SAFETY: a context is current on this thread; every pointer is to a live local.
        unsafe {
            check(sys::cuCtxGetDevice(&raw mut device))?;
            let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE;
            check(sys::cuDeviceGetAttribute(&raw mut l2, attribute, device))?;
            let size = LEAST_FLUSH.max(2 * usize::try_from(l2).unwrap_or(0));
            let mut timer = CudaTimer { buffer: allocate(py, size)?, size, flush: 0.0 };
            // The first ones wake the device.
            timer.flush(TIMED)?;
            check(sys::cuCtxSynchronize())?;
            let (start, end) = (event()?, event()?);
            check(sys::cuEventRecord(start, DEFAULT))?;
            timer.flush(TIMED)?;
            check(sys::cuEventRecord(end, DEFAULT))?;
            check(sys::cuCtxSynchronize())?;
            timer.flush = Span::Events(start, end).milliseconds()? / TIMED as f64;
            Ok(Self::Cuda(timer))
        }
    }

    /// Keeps the device busy for about so many milliseconds, so that what follows is queued before the device comes to it:
    /// between its events then lies the device's time alone, not what the host takes to launch.
    pub(super) fn hold_up(&self, milliseconds: f64) -> PyResult<()> {
        let Self::Cuda(timer) = self else { return Ok(()) };
        timer.flush((milliseconds.min(LONGEST) / timer.flush.max(0.01)).ceil() as usize)
    }

    /// Evicts the L2 cache, on the default stream.
    pub(super) fn flush(&self) -> PyResult<()> {
        let Self::Cuda(timer) = self else { return Ok(()) };
        timer.flush(1)
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

impl CudaTimer {
    fn flush(&self, times: usize) -> PyResult<()> {
        // SAFETY: the buffer is ours and of this size.
        (0..times).try_for_each(|_| unsafe { check(sys::cuMemsetD8Async(self.buffer, 0, self.size, DEFAULT)) })
    }
}

impl Span {
    /// Whether the device has come to it.
    pub(super) fn is_begun(&self) -> bool {
        match self {
            Self::Known(_) => false,
            // SAFETY: an event that was recorded and is not destroyed yet.
            Self::Events(start, _) => unsafe { sys::cuEventQuery(*start) == sys::CUresult::CUDA_SUCCESS },
        }
    }

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
