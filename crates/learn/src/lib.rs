//! Skill memory: rules learned from kernels that fail to compile, and how they are promoted, demoted and tested.
//!
//! - [`synthesize`], [`mutate`]: synthetic kernels, and mutations that put mistakes into them,
//! - [`Oracle`]: Triton's front end as the oracle that decides whether a program compiles,
//! - [`learn`], [`merged`]: failures with the same signature are compared and generalized into patterns,
//! - [`ProofContext`]: the proof that makes a pattern a rule,
//! - [`experiment`], [`refusal`]: measures what the rules are worth, and filters candidates of the search with them,
//! - [`keep_refused`]: compiles files that failed elsewhere, and stores the kernels that Triton rejects.

mod api_sweep;
mod compiling_programs;
mod counterexamples;
mod delta_debugging;
mod experiment;
mod failure;
mod gather;
mod generalize;
mod learn;
mod memory;
pub mod mutate;
pub mod oracle;
mod parsed_files;
pub mod program;
mod prove;
mod reduce;
mod rule_assessment;
mod rule_text;
pub mod stored_evidence;
mod surrounding;
mod suspects;
pub mod synthesize;
mod tree_pattern;
mod unify;
mod value_variants;

pub use api_sweep::{spelled, sweep};
pub use compiling_programs::{CompilingPrograms, UncheckedProgram};
pub use experiment::{CompileRate, ExperimentResult, experiment, refusal};
pub use failure::{CompileFailure, ErrorSignature, template};
pub use gather::{GatheredFailures, gather};
pub use learn::{LearnedPattern, LearningResult, learn};
pub use memory::{SkillMemory, disproves};
pub use oracle::{Failing, Oracle, OracleClient, OracleError, OracleVerdict};
pub use parsed_files::Parsed;
pub use program::KernelProgram;
pub use prove::{ProofContext, ProofResult, merged, programs, published};
pub use rule_assessment::{Evidence, RuleAssessment, judged};
pub use suspects::{CompileVerdict, Suspect, SuspectError, crashed, keep_refused, learn_from};
