//! Type inference for kernels: abstract interpretation of a kernel's body as in Triton's front end, over types instead
//! of instructions.
//!
//! The front end is itself an interpreter: it computes compile-time values, prunes branches on them, inlines helpers
//! for the types of their arguments, and gives each run-time value an element type and a shape. This module does the
//! same, with [`AbstractValue::Unknown`] for everything that the file does not determine. So a problem is reported only if
//! every program that the file may mean has it.
//!
//! - [`dtype`], [`shape`], [`value`]: the abstract domain,
//! - [`signature`]: the types and values that a comment gives parameters,
//! - [`engine`]: the state of a run, and where problems are collected; [`statements`], [`expressions`], [`operators`],
//!   [`names`]: the language,
//! - [`calls`]: arguments, helpers and methods; [`functions`]: the table of `triton.language`.

pub mod access;
#[cfg(test)]
mod access_tests;
mod application;
mod arguments;
mod attributes;
mod block_pointers;
mod branches;
mod builtins;
mod cached_analysis;
mod calls;
mod comparisons;
mod constant_folding;
mod coverage;
mod creation;
mod dot;
pub mod dtype;
mod elementwise;
mod engine;
mod expressions;
mod functions;
mod imported_files;
pub mod index;
mod kernel_analysis;
mod libdevice;
mod loops;
mod memory;
mod names;
mod operators;
mod parameters;
pub mod poly;
mod recording;
mod reductions;
mod reshaping;
mod return_statement;
mod roles;
pub mod shape;
pub mod signature;
mod statements;
mod subscripts;
#[cfg(test)]
mod tests;
mod value;

pub use cached_analysis::facts;
pub use coverage::{Coverage, dead_code};
pub use engine::{evaluate, infer, infer_as};
pub use kernel_analysis::KernelAnalysis;
pub use names::is_of_python;
pub use value::{AbstractValue, Const, JitFunction, LaneType, Problem, ProblemKind, RuntimeValue};
