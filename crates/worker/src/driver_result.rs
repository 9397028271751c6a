//! What calls of the CUDA driver return.

use cudarc::driver::sys;
use pyo3::prelude::*;

use super::errors::failed;

pub(crate) fn check(result: sys::CUresult) -> PyResult<()> {
    if result == sys::CUresult::CUDA_SUCCESS { Ok(()) } else { Err(failed(format!("CUDA error: {result:?}"))) }
}
