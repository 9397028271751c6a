//! Skill memory: failures become rules, rules earn or lose their place.
//!
//! - [`synthesize`], [`mutate`]: kernels that are made up, and mistakes in them,
//! - [`Oracle`]: Triton's front end, which says what compiles,
//! - [`program`]: what is asked of it.

mod cases;
mod difference;
mod failure;
mod gather;
mod generalize;
mod learn;
pub mod mutate;
pub mod oracle;
pub mod program;
mod prove;
mod reduce;
mod shape;
pub mod synthesize;
mod unify;
mod vary;
mod words;

pub use cases::Parsed;
pub use failure::{Failure, Signature, template};
pub use gather::{Gathered, gather};
pub use learn::{Learned, Lessons, learn};
pub use oracle::{Failing, Oracle, OracleError, Verdict};
pub use program::Program;
pub use prove::{Court, Proof, merged, published};
