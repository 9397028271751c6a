//! Skill memory: rules learned from kernels that fail to compile, and how they are promoted, demoted and tested.
//!
//! - [`gather`]: synthetic kernels, and mutations that put mistakes into them,
//! - [`Oracle`]: Triton's front end as the oracle that decides whether a program compiles,
//! - [`learn`], [`merged`]: failures with the same signature are compared and generalized into patterns,
//! - [`ProofContext`]: the proof that makes a pattern a rule,
//! - [`learn_from_store`], [`learn_from_gathered`], [`prove_stored`]: all of this from the failures to the rules, for the
//!   commands and the server,
//! - [`experiment`], [`refusal`]: measures what the rules are worth, and filters candidates of the search with them,
//! - [`keep_refused`]: compiles files that failed elsewhere, and stores the kernels that Triton rejects.

mod api_sweep;
mod argument_variants;
mod built_in_findings;
mod compiling_programs;
mod counterexamples;
mod delta_debugging;
mod experiment;
mod failure;
mod gather;
mod generalize;
mod imported_rules;
mod leaf_variants;
mod learn;
mod learn_from_gathered;
mod learn_from_store;
mod learning_error;
mod learning_stage;
mod memory;
mod memory_files;
mod mutate;
mod oracle;
mod parsed_files;
mod program;
mod prove;
mod prove_stored;
mod reduce;
mod rule_assessment;
mod rule_text;
mod stored_evidence;
mod surrounding;
mod suspects;
mod synthesize;
mod tree_pattern;
mod unify;
mod value_variants;

pub use api_sweep::{spelled, sweep};
pub use built_in_findings::silent;
pub use compiling_programs::{CompilingPrograms, UncheckedProgram};
pub use experiment::{CompileRate, ExperimentError, ExperimentResult, SilentFailure, experiment, refusal};
pub use failure::{CompileFailure, ErrorSignature};
pub use gather::{GatheredFailures, gather};
pub use imported_rules::{ImportedRules, imported_rules};
pub use learn::{LearnedPattern, LearningResult, learn};
pub use learn_from_gathered::{GatheredLearning, LearnedFromGathered, RefutedPattern, learn_from_gathered};
pub use learn_from_store::{LearnedFromStore, StoreLearning, learn_from_store};
pub use learning_error::LearningError;
pub use learning_stage::LearningStage;
pub use memory::{SkillMemory, disproves};
pub use memory_files::{SaveError, save_rules};
pub use oracle::{Failing, Oracle, OracleClient, OracleError, OracleVerdict};
pub use parsed_files::Parsed;
pub use program::KernelProgram;
pub use prove::{ProofContext, merged};
pub use prove_stored::prove_stored;
pub use rule_assessment::{Evidence, RuleAssessment, judged};
pub use suspects::{FileVerdicts, Suspect, SuspectError, crashed, file_verdicts, keep_refused, learn_from};
