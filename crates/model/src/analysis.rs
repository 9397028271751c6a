//! Static analyses of kernels and of the host code that launches them. Nothing is executed.
//!
//! Each module answers one kind of question and is a pure function of the kernel model (a few also read the file's
//! text):
//!
//! - [`constants`]: the integer or truth value that an expression certainly has,
//! - [`definitions`]: the expression behind a name that is assigned once,
//! - [`dialect`]: whether the file is written for another compiler than Triton's own,
//! - [`elements`]: the element types of tensors that host functions create,
//! - [`extents`]: the number of elements of tensors that host functions create, as polynomials over sizes,
//! - [`expressions`]: whether two expressions are written alike,
//! - [`flow`]: the statements that Triton may compile,
//! - [`launches`]: the values that launches and configurations of the file pass for a parameter,
//! - [`grid`]: the number of programs that a launch starts,
//! - [`host`]: the values of names in host functions,
//! - [`occupancy`]: the number of warps of a kernel that a multiprocessor holds at once,
//! - [`resources`]: registers, shared memory and other resources of a compiled kernel, as Triton's back end reports
//!   them,
//! - [`staging`]: the loads that Triton's pipeliner keeps in shared memory several times,
//! - [`strides`]: the parameters that take part in the addresses of each tensor,
//! - [`tensors`]: the shapes of tensors that host functions create,
//! - [`tuning`]: the effect of `@triton.autotune` on a kernel,
//! - [`in_place_updates`]: the tensors that a kernel modifies in place,
//! - [`witness`]: the program and lane in which an index is largest,
//! - [`lanes`]: the abstract domain of tiles: ranks, variation along axes, and undefined lanes,
//! - [`fills`]: the values in lanes that a load filled, through later arithmetic,
//! - [`interpret`]: abstract interpretation of a kernel's body over that domain,
//! - [`verdict`]: whether Triton's own compiler accepts a kernel,
//! - [`ranges`]: the least and greatest value of an index,
//! - [`types`]: abstract interpretation as in Triton's front end: types, shapes, compile-time values.
//!
//! An answer is certain or it is "unknown"; nothing here guesses. Further domains (dtypes, integer ranges, tile sizes)
//! can join [`interpret`]: each is one more field of [`lanes::LaneValue`] with its transfer function, on the same walk.

pub mod constants;
pub mod definitions;
pub mod dialect;
pub mod expressions;
pub mod fills;
pub mod flow;
pub mod host;
pub mod in_place_updates;
pub mod interpret;
pub mod lanes;
pub mod launches;
pub mod occupancy;
pub mod ranges;
pub mod resources;
pub mod staging;
pub mod strides;
pub mod tuning;
pub mod types;
pub mod verdict;
pub mod witness;

#[cfg(test)]
mod tests;
