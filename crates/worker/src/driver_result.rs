//! What calls of the CUDA driver return.

use cudarc::driver::sys;
use pyo3::prelude::*;

use super::errors::{DeviceError, DeviceMemoryError};

pub(crate) fn check(result: sys::CUresult) -> PyResult<()> {
    let text = || format!("CUDA error: {result:?}");
    match result {
        sys::CUresult::CUDA_SUCCESS => Ok(()),
        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Err(DeviceMemoryError::new_err(text())),
        _ => Err(DeviceError::new_err(text())),
    }
}
