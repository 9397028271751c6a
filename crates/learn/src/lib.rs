//! Skill memory: failures become rules, rules earn or lose their place.
//!
//! - [`synthesize`], [`mutate`]: kernels that are made up, and mistakes in them,
//! - [`Oracle`]: Triton's front end, which says what compiles,
//! - [`learn`], [`merged`]: failures of one kind are compared, and generalised into patterns,
//! - [`Court`]: what is proven becomes a rule,
//! - [`experiment`], [`refusal`]: what rules are good for beside the editor,
//! - [`keep_refused`]: files that failed elsewhere are looked at.

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
