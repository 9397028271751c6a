//! What a kernel's statements say about its values, without running anything.
//!
//! Each module answers one kind of question, purely and on the kernel model alone:
//!
//! - [`constants`]: which integer or truth value an expression certainly has,
//! - [`definitions`]: what a name stands for, where one assignment says it,
//! - [`dialect`]: whether the file is written for another compiler than Triton's own,
//! - [`elements`]: the element types of tensors that host functions make,
//! - [`extents`]: how many elements tensors have that host functions make,
//! - [`expressions`]: whether two expressions are written alike,
//! - [`flow`]: which statements Triton compiles at all,
//! - [`launches`]: what the launches and configurations of the file pass for a parameter,
//! - [`grid`]: how many programs a launch starts,
//! - [`host`]: what the names of host functions stand for,
//! - [`occupancy`]: how many warps of a kernel are on a multiprocessor at once,
//! - [`resources`]: what a compiled kernel takes, as Triton's back end said,
//! - [`staging`]: which loads are kept in shared memory several times,
//! - [`strides`]: which parameters have a part in which addresses,
//! - [`tensors`]: the shapes of tensors that host functions make,
//! - [`tuning`]: what `@triton.autotune` does to a kernel,
//! - [`updates`]: which tensors a kernel reads and writes back changed,
//! - [`witness`]: which program and lane an index is largest in,
//! - [`lanes`]: the domain of tiles: ranks, along which axes a value differs, which lanes are undefined,
//! - [`fills`]: what is in the lanes that a load filled, and what arithmetic makes of it,
//! - [`interpret`]: runs a kernel's body over that domain,
//! - [`verdict`]: what Triton itself said,
//! - [`ranges`]: between which numbers an index lies,
//! - [`types`]: runs a kernel's body as Triton's front end would: types, shapes, compile-time values.
//!
//! An answer is certain or it is "unknown"; nothing here guesses. [`interpret`] is where further domains (dtypes, integer
//! ranges, tile sizes) join in: one more field of [`lanes::Value`] and its transfer function, on the same walk.

pub mod constants;
pub mod definitions;
pub mod dialect;
pub mod elements;
pub mod expressions;
pub mod extents;
pub mod fills;
pub mod flow;
pub mod grid;
pub mod host;
pub mod interpret;
pub mod lanes;
pub mod launches;
pub mod occupancy;
pub mod ranges;
pub mod resources;
pub mod staging;
pub mod strides;
pub mod tensors;
pub mod tuning;
pub mod types;
pub mod updates;
pub mod verdict;
pub mod witness;

#[cfg(test)]
mod tests;
