//! Timing of the device with CUDA events of the driver, which a candidate cannot replace as it could replace torch's.
#![expect(unsafe_code, reason = "the CUDA driver interface is C")]

use cudarc::driver::sys;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::compile::simulated_ms;
use super::driver_result::check;

/// The least number of bytes that are written to evict the L2 cache; at least twice the cache's size is written.
const LEAST_FLUSH: usize = 256 << 20;

/// The stream on which torch launches by default.
const DEFAULT: sys::CUstream = std::ptr::null_mut();

/// A timer for the device's time between two points of the default stream.
pub(super) enum Timer {
    /// A CUDA device.
    Cuda(CudaTimer),
    /// A simulated device, whose launches report their cost.
    Simulated,
}

/// A measurement that may still be running on the device.
pub(super) enum PendingTiming {
    /// The start event and the end event.
    Events(sys::CUevent, sys::CUevent),
    /// A known time in milliseconds.
    Known(f64),
}

/// Waits until the device has finished all work.
pub(super) fn synchronize() -> PyResult<()> {
    // SAFETY: no pointers.
    unsafe { check(sys::cuCtxSynchronize()) }
}

/// CUDA events, and a buffer for evicting the L2 cache.
pub(super) struct CudaTimer {
    buffer: sys::CUdeviceptr,
    size: usize,
    /// Milliseconds that one flush takes.
    flush: f64,
}

/// The longest time for which the device is kept busy, in milliseconds: the queue of waiting work is limited.
const LONGEST: f64 = 60.0;
/// The number of flushes that are timed to find out how long one takes.
const TIMED: usize = 8;

/// Allocates device memory outside of torch. When memory runs out, torch releases its unused memory first, as it does
/// for its own allocations.
pub(super) fn allocate(py: Python<'_>, size: usize) -> PyResult<sys::CUdeviceptr> {
    let mut address = 0;
    // SAFETY: the pointer is to a live local.
    let mut take = || unsafe { sys::cuMemAlloc_v2(&raw mut address, size) };
    let mut taken = take();
    if taken == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY
        && let Some(torch) = py.import("sys")?.getattr("modules")?.cast::<PyDict>()?.get_item("torch")?
    {
        super::torch_memory::release(&torch)?;
        taken = take();
    }
    check(taken)?;
    Ok(address)
}

impl Timer {
    /// A timer for the device whose context is current.
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
            // The first flushes wake the device.
            timer.flush(TIMED)?;
            check(sys::cuCtxSynchronize())?;
            let (start, end) = (event()?, event()?);
            check(sys::cuEventRecord(start, DEFAULT))?;
            timer.flush(TIMED)?;
            check(sys::cuEventRecord(end, DEFAULT))?;
            check(sys::cuCtxSynchronize())?;
            timer.flush = PendingTiming::Events(start, end).milliseconds()? / TIMED as f64;
            Ok(Self::Cuda(timer))
        }
    }

    /// Keeps the device busy for about `milliseconds`, so that the following work is queued before the device reaches
    /// it. The events then enclose the device's time alone, without the host's time for launching.
    pub(super) fn hold_up(&self, milliseconds: f64) -> PyResult<()> {
        let Self::Cuda(timer) = self else { return Ok(()) };
        timer.flush((milliseconds.min(LONGEST) / timer.flush.max(0.01)).ceil() as usize)
    }

    /// Evicts the L2 cache, on the default stream.
    pub(super) fn flush(&self) -> PyResult<()> {
        let Self::Cuda(timer) = self else { return Ok(()) };
        timer.flush(1)
    }

    /// Runs `work` between two events on the default stream.
    pub(super) fn measure(&self, work: impl FnOnce() -> PyResult<()>) -> PyResult<PendingTiming> {
        if matches!(self, Self::Simulated) {
            let before = simulated_ms();
            work()?;
            return Ok(PendingTiming::Known(simulated_ms() - before));
        }
        let (start, end) = (event()?, event()?);
        // SAFETY: events of this context, recorded on a stream of it.
        unsafe {
            check(sys::cuEventRecord(start, DEFAULT))?;
            work()?;
            check(sys::cuEventRecord(end, DEFAULT))?;
        }
        Ok(PendingTiming::Events(start, end))
    }

    /// Waits until the device has finished all work.
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

impl PendingTiming {
    /// Whether the device has reached the start of the measurement.
    pub(super) fn is_begun(&self) -> bool {
        match self {
            Self::Known(_) => false,
            // SAFETY: an event that was recorded and is not destroyed yet.
            Self::Events(start, _) => unsafe { sys::cuEventQuery(*start) == sys::CUresult::CUDA_SUCCESS },
        }
    }

    /// The time in milliseconds; the caller must have waited for the device.
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
