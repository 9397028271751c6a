//! Skill memory: rules learned from kernels that fail to compile, and how they are promoted, demoted and tested.
//!
//! - [`synthesize`], [`mutate`]: synthetic kernels, and mutations that put mistakes into them,
//! - [`Oracle`]: Triton's front end as the oracle that decides whether a program compiles,
//! - [`learn`], [`merged`]: failures with the same signature are compared and generalized into patterns,
//! - [`Court`]: the proof that makes a pattern a rule,
//! - [`experiment`], [`refusal`]: measures what the rules are worth, and filters candidates of the search with them,
//! - [`keep_refused`]: compiles files that failed elsewhere, and stores the kernels that Triton rejects.

mod around;
mod asked;
mod cases;
mod difference;
mod experiment;
mod failure;
mod forms;
mod gather;
mod generalize;
mod learn;
mod memory;
pub mod mutate;
pub mod oracle;
pub mod program;
mod prove;
mod reduce;
mod shape;
mod sound;
mod sweep;
pub mod synthesize;
mod trial;
mod unify;
mod vary;
mod words;

pub use asked::{Said, Suspect, SuspectError, crashed, keep_refused, learn_from};
pub use cases::Parsed;
pub use experiment::{Outcome, Share, experiment, refusal};
pub use failure::{Failure, Signature, template};
pub use gather::{Gathered, gather};
pub use learn::{Learned, Lessons, learn};
pub use memory::{SkillMemory, disproves};
pub use oracle::{Asker, Failing, Oracle, OracleError, Verdict};
pub use program::Program;
pub use prove::{Court, Proof, merged, programs, published};
pub use sound::{Sound, Unasked};
pub use sweep::{spelled, sweep};
pub use trial::{Evidence, Judgement, judged};
