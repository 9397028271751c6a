//! Types of everything in a kernel: runs its body as Triton's front end would, over types instead of instructions.
//!
//! The front end is itself an interpreter: compile-time values are computed, branches on them pruned, helpers inlined for
//! the types that they are called with, and each run-time value has an element type and a shape. This module does the
//! same with [`Value::Unknown`] for whatever the file does not say, so a problem is found only where every program that
//! the file may mean has it.
//!
//! - [`dtype`], [`shape`], [`value`]: the domain,
//! - [`signature`]: what a comment says about parameters,
//! - [`engine`]: state, and where problems go; [`statements`], [`expressions`], [`operators`], [`names`]: the language,
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
