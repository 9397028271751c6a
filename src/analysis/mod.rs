//! What a kernel's statements say about its values, without running anything.
//!
//! Each module answers one kind of question, purely and on the kernel model alone:
//!
//! - [`constants`]: which integer or truth value an expression certainly has,
//! - [`dialect`]: whether the file is written for another compiler than Triton's own,
//! - [`expressions`]: whether two expressions are written alike,
//! - [`flow`]: which statements Triton compiles at all,
//! - [`launches`]: what the launches and configurations of the file pass for a parameter,
//! - [`host`]: what the names of host functions stand for,
//! - [`strides`]: which parameters have a part in which addresses,
//! - [`tuning`]: what `@triton.autotune` does to a kernel,
//! - [`updates`]: which tensors a kernel reads and writes back changed,
//! - [`lanes`]: the domain of tiles: ranks, along which axes a value differs, which lanes are undefined,
//! - [`interpret`]: runs a kernel's body over that domain,
//! - [`types`]: runs a kernel's body as Triton's front end would: types, shapes, compile-time values.
//!
//! An answer is certain or it is "unknown"; nothing here guesses. [`interpret`] is where further domains (dtypes, integer
//! ranges, tile sizes) join in: one more field of [`lanes::Value`] and its transfer function, on the same walk.

pub mod constants;
pub mod dialect;
pub mod expressions;
pub mod flow;
pub mod host;
pub mod interpret;
pub mod lanes;
pub mod launches;
pub mod strides;
pub mod tuning;
pub mod types;
pub mod updates;

#[cfg(test)]
mod tests;
