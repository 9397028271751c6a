//! `warpsmith memory prove`: rules of the user's own are tried on the Triton at hand.

use learn::SkillMemory as _;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use learn::{Evidence, Oracle, Parsed, RuleAssessment, gather, judged};
use model::api::{TritonTarget, Version};
use rules::learned::{LearnedRule, Releases, RuleState};
use store::Store;

use crate::cli::FOUND;
use ::learn::stored_evidence;

/// Made-up tasks, and changes of each, that rules are tried on beside what the store holds.
const TASKS: usize = 48;
const CHANGES: usize = 40;
const SEED: u64 = 11;

/// Arguments of `memory prove`.
#[derive(Debug, clap::Args)]
pub(super) struct ProveArgs {
    /// Codes or names of rules; all of your own when left out
    #[arg(value_name = "RULE")]
    which: Vec<String>,
    /// The interpreter whose Triton is asked
    #[arg(long, default_value = "python3", value_name = "PYTHON")]
    python: PathBuf,
}

pub(super) fn run(store: &mut Store, args: &ProveArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let mut rules = store.own_rules()?;
    if !args.which.is_empty() {
        let memory = store.memory()?;
        let wanted: Vec<String> =
            super::found(&memory, &args.which)?.into_iter().map(|rule| rule.code.clone()).collect();
        rules = memory.rules().filter(|rule| wanted.contains(&rule.code)).cloned().collect();
    }
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let oracle = Oracle::start(args.python.clone(), jobs)?;
    let version: Version = oracle.release().parse()?;
    let (mut failures, mut sound) =
        (stored_evidence::failures(store, oracle.release())?, stored_evidence::sound(store, oracle.release())?);
    let made = gather(&oracle, TASKS, CHANGES, SEED);
    failures.extend(made.failures);
    sound.extend(made.passing.iter().map(|program| Parsed::new(&program.text)));
    let undisproved = stored_evidence::undisproved(store, oracle.release(), TritonTarget::of(version), rules.clone())?;
    let evidence = Evidence { failures: &failures, sound: &sound, target: TritonTarget::of(version) };
    let judgements = oracle.parallel(&rules, |asker, rule| judged(asker, rule, evidence));
    let mut is_sound = true;
    for (rule, mut judgement) in rules.iter().zip(judgements) {
        if judgement.state == RuleState::Promoted && undisproved.iter().all(|one| one.code != rule.code) {
            judgement.state = RuleState::Demoted;
            "it flags a kernel of yours that compiles".clone_into(&mut judgement.why);
        }
        let RuleAssessment { state, why, failures } = judgement;
        writeln!(
            out,
            "{}  {:9}  {}\n    {}",
            rule.code,
            state.name(),
            rule.plain_sentence(),
            why.replace('\n', "\n    ")
        )?;
        is_sound &= state == RuleState::Promoted;
        if rule.is_own() {
            store.change_rule(&rule.code, |rule| settle(rule, state, failures, version))?;
        }
    }
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}

/// Writes down what a trial on a release has said.
fn settle(rule: &mut LearnedRule, state: RuleState, failures: u32, version: Version) {
    rule.state = state;
    rule.failures = rule.failures.max(failures);
    if !rule.triton.tried.contains(&version) {
        rule.triton.tried.push(version);
        rule.triton.tried.sort_unstable();
    }
    if state == RuleState::Promoted {
        let Releases { since, until, .. } = &mut rule.triton;
        *since = Some(since.map_or(version, |since| since.min(version)));
        *until = until.filter(|until| *until >= version);
    }
}
