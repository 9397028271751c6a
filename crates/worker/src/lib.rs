//! The extension module that the user's own Python loads: it records calls, makes them again, and checks and times
//! candidates.
//!
//! All code here runs inside a foreign interpreter. It exchanges frames of [`protocol`] over a private pipe and never
//! writes to standard output.

mod arrays;
mod buffers;
mod bytecode;
mod call_registry;
mod classes;
mod comparer;
mod compile;
mod device_files;
mod driver_result;
mod errors;
mod evasion;
mod fingerprint;
mod forker;
mod launch;
mod launch_compilation;
mod models;
pub mod numbers;
mod objects;
mod probe;
mod python_modules;
mod record;
mod recorded_calls;
mod recorder;
mod replay;
mod rerun;
mod result_export;
mod result_parts;
mod runner;
mod runner_requests;
mod sandbox;
mod sanitized_call;
mod seeds;
mod supervisor;
mod tamper_check;
mod timed_calls;
mod timing;
mod torch_free;
mod torch_memory;
mod tuning;
mod types;
mod values;

use pyo3::prelude::*;

#[pymodule]
mod _worker {
    #[pymodule_export]
    use super::forker::forker;
    #[pymodule_export]
    use super::record::run_recorded;
    #[pymodule_export]
    use super::rerun::compare;
    #[pymodule_export]
    use super::rerun::replay;
    #[pymodule_export]
    use super::sanitized_call::checked;
}
