//! Type inference for kernels: abstract interpretation of a kernel's body as in Triton's front end, over types instead
//! of instructions.
//!
//! The front end is itself an interpreter: it computes compile-time values, prunes branches on them, inlines helpers
//! for the types of their arguments, and gives each run-time value an element type and a shape. This module does the
//! same, with [`Value::Unknown`] for everything that the file does not determine. So a problem is reported only if
//! every program that the file may mean has it.
//!
//! - [`dtype`], [`shape`], [`value`]: the abstract domain,
//! - [`signature`]: the types and values that a comment gives parameters,
//! - [`engine`]: the state of a run, and where problems are collected; [`statements`], [`expressions`], [`operators`],
//!   [`names`]: the language,
//! - [`calls`]: arguments, helpers and methods; [`functions`]: the table of `triton.language`.

pub mod access;
mod arguments;
mod attributes;
mod blocks;
mod builtins;
mod calls;
mod comparisons;
mod control;
mod coverage;
mod creation;
pub mod dtype;
mod engine;
mod expressions;
#[cfg(test)]
mod facts_tests;
mod files;
mod fold;
mod functions;
pub mod index;
mod kept;
mod libdevice;
mod linear;
mod loops;
mod memory;
mod names;
mod operators;
mod parameters;
pub mod poly;
mod reductions;
mod reshaping;
mod returning;
pub mod shape;
pub mod signature;
mod statements;
mod subscripts;
#[cfg(test)]
mod tests;
mod transfer;
mod value;

pub use coverage::{Coverage, dead};
pub use engine::{Facts, evaluate, infer, infer_as};
pub use kept::facts;
pub use names::is_of_python;
pub use value::{Callee, Const, Element, Kind, Problem, Tile, Value};
