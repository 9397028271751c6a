//! Demotes learned rules that flag kernels which Triton has just compiled, as the editor does.

use learn::SkillMemory as _;
use model::analysis::verdict::{FrontEndOutcome, FrontEndVerdict};
use model::api::{TritonTarget, Version};
use model::kernel::Module;
use model::syntax::Source;
use rules::RuleContext;
use rules::learned::LearnedRules;
use runtime::python::state_folder;
use store::Store;

/// Demotes the rules that flag a kernel of the file that this release of Triton has compiled.
pub(super) fn demote(source: &Source, module: &Module, memory: &LearnedRules, triton: Version) {
    let context = RuleContext::new(source, module, TritonTarget::of(triton));
    for (index, kernel) in module.kernels.iter().enumerate() {
        let is_taken =
            FrontEndVerdict::of(kernel).is_some_and(|said| matches!(said.outcome, FrontEndOutcome::Accepted { .. }));
        let found = if is_taken { memory.proven_in(&context, index) } else { Vec::new() };
        if found.is_empty() || context.is_for_other_compiler() {
            continue;
        }
        let text = source.slice(kernel.span);
        let mut rules: Vec<_> = found.into_iter().map(|(rule, _)| rule).collect();
        rules.dedup_by(|one, other| one.code == other.code);
        let demoted = Store::of_user(&state_folder())
            .and_then(|mut store| rules.iter().try_for_each(|rule| store.disprove(rule, text, &triton.to_string())));
        match demoted {
            Ok(()) => {
                let codes: Vec<&str> = rules.iter().map(|rule| rule.code.as_str()).collect();
                eprintln!("warning: Triton compiles `{}`, which {} forbids: demoted", kernel.name, codes.join(", "));
            }
            Err(error) => eprintln!("warning: a learned rule is wrong, and that is not kept: {error}"),
        }
    }
}
