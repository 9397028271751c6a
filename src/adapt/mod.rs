//! Skill memory: failures become rules, rules earn or lose their place.
//!
//! - [`synthesize`], [`mutate`]: kernels that are made up, and mistakes in them,
//! - [`Oracle`]: Triton's front end, which says what compiles,
//! - [`program`]: what is asked of it.

mod failure;
mod gather;
pub mod mutate;
pub mod oracle;
pub mod program;
pub mod synthesize;

pub use failure::{Failure, Signature, template};
pub use gather::{Gathered, gather};
pub use oracle::{Failing, Oracle, OracleError, Verdict};
pub use program::Program;
