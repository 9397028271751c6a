//! The model of a Python file with Triton kernels: a pure function of its text and of a release of Triton.
//!
//! [`syntax`] parses, [`kernel`] describes kernels and launches, [`api`] lists what `triton.language` offers in each
//! release, and [`analysis`] computes what can be known about values. Nothing here does input or output, starts a
//! thread, or reads a clock or the environment.

pub mod analysis;
pub mod api;
pub mod host;
pub mod kernel;
pub mod syntax;
