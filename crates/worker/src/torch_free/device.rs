//! The device without torch: its context, and the driver class with which Triton finds it.
#![expect(unsafe_code, reason = "the CUDA driver interface is C")]

use cudarc::driver::sys;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::driver_result::check;
use crate::python_modules::helper;
use crate::timing::{PendingTiming, Timer};

/// Makes the first device's context the current one of this thread, and makes Triton use it.
pub(crate) fn start(py: Python<'_>, launches: bool) -> PyResult<()> {
    let (mut device, mut context, mut capability) = (0, std::ptr::null_mut(), (0, 0));
    // SAFETY: every pointer is to a live local.
    unsafe {
        check(sys::cuInit(0))?;
        check(sys::cuDeviceGet(&raw mut device, 0))?;
        check(sys::cuDevicePrimaryCtxRetain(&raw mut context, device))?;
        check(sys::cuCtxSetCurrent(context))?;
        let major = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
        let minor = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
        check(sys::cuDeviceGetAttribute(&raw mut capability.0, major, device))?;
        check(sys::cuDeviceGetAttribute(&raw mut capability.1, minor, device))?;
        // The driver opens some files at its first use, which has to happen before the fence is put up.
        let mut first = 0;
        check(sys::cuMemAlloc_v2(&raw mut first, 1))?;
        check(sys::cuMemsetD8Async(first, 0, 1, std::ptr::null_mut()))?;
        check(sys::cuCtxSynchronize())?;
        check(sys::cuMemFree_v2(first))?;
    }
    if launches {
        let driver = helper(py, "_warpsmith_driver", include_str!("driver.py"))?;
        driver.getattr("install")?.call1((capability, wrap_pyfunction!(milliseconds, &driver)?))?;
    }
    Ok(())
}

/// Milliseconds that a call takes on the device after the L2 cache was evicted, for autotuners.
#[pyfunction]
fn milliseconds(call: &Bound<'_, PyAny>, times: usize) -> PyResult<Vec<f64>> {
    // The timer is never dropped, so that all measurements share its buffer.
    static TIMER: PyOnceLock<Timer> = PyOnceLock::new();
    let timer = TIMER.get_or_try_init(call.py(), || Timer::new(call.py(), false))?;
    let mut spans = Vec::with_capacity(times);
    for _ in 0..times {
        timer.flush()?;
        spans.push(timer.measure(|| call.call0().map(drop))?);
    }
    timer.synchronize()?;
    spans.into_iter().map(PendingTiming::milliseconds).collect()
}
