//! Replaces an autotuner's configurations by one of them.

use base::rng::Rng;
use model::kernel::{Config, Kernel, Module};
use model::syntax::Span;
use rules::{Edit, apply_edits};

use super::candidate::{Candidate, Change};
use super::launch_params::{knobs_of_config, only_config};
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;

/// The maximum number of configurations that are tried.
const MOST: usize = 8;

/// Removes all configurations but one, whose numbers can then change, and which is judged without timing the others
/// each time. An offer gets the other configurations back, for calls of other sizes ([`with_the_others`]).
pub(super) struct OneConfiguration;

impl Skill for OneConfiguration {
    fn name(&self) -> &'static str {
        "one_configuration"
    }

    fn about(&self) -> &'static str {
        "One configuration of an autotuner, whose numbers are then changed. The offered candidate has the other configurations after it, for calls of other sizes."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn turns_numbers(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let Some(all) = several(subject.kernel) else { return Vec::new() };
        let turn = |kept: &Config| {
            let text = subject.candidate.text.get(kept.span.start..kept.span.end)?.to_owned();
            let edits = vec![Edit { span: whole(all), text }];
            Some(Proposal { kind: "one_configuration".to_owned(), edits, changes: vec![instead_of(all)] })
        };
        all.iter().take(MOST).filter_map(turn).collect()
    }
}

fn several(kernel: &Kernel) -> Option<&[Config]> {
    let configs = kernel.autotune.as_ref().and_then(|autotune| autotune.configs.as_deref());
    configs.filter(|all| all.len() > 1)
}

fn instead_of(all: &[Config]) -> Change {
    Change::Structure(format!("one configuration instead of {}", all.len()))
}

/// Proposals for the numbers of the largest of several configurations, each of which also removes the others; empty
/// where there are not several.
pub(super) fn of_one(subject: &Subject<'_>, turns: impl Fn(&Subject<'_>) -> Vec<Proposal>) -> Vec<Proposal> {
    let Some(all) = several(subject.kernel) else { return Vec::new() };
    let &Subject { candidate, kernel, workload, target, .. } = subject;
    let Some(largest) = largest(all) else { return Vec::new() };
    let kept = largest.span;
    let one = Subject { knobs: knobs_of_config(kernel, largest), candidate, kernel, workload, target };
    let alone = |Proposal { kind, edits, mut changes }: Proposal| {
        let inside = |edit: Edit| {
            let (start, end) = (edit.span.start.checked_sub(kept.start)?, edit.span.end.checked_sub(kept.start)?);
            (edit.span.end <= kept.end).then(|| Edit { span: Span::new(start, end), text: edit.text })
        };
        let edits: Vec<Edit> = edits.into_iter().map(inside).collect::<Option<_>>()?;
        let text = apply_edits(candidate.text.get(kept.start..kept.end)?, &edits);
        changes.insert(0, instead_of(all));
        Some(Proposal { kind, edits: vec![Edit { span: whole(all), text }], changes })
    };
    turns(&one).into_iter().filter_map(alone).collect()
}

/// The configuration with the largest tiles.
pub(super) fn largest(all: &[Config]) -> Option<&Config> {
    let size =
        |config: &&Config| config.meta.iter().filter_map(|(_, value)| value.as_int()).fold(1, i128::saturating_mul);
    all.iter().max_by_key(size)
}

fn whole(all: &[Config]) -> Span {
    let start = all.iter().map(|config| config.span.start).min().unwrap_or_default();
    Span::new(start, all.iter().map(|config| config.span.end).max().unwrap_or_default())
}

/// A candidate with the original's configurations added after its own, where it has one in place of several; otherwise
/// `None`.
pub fn with_the_others(original: &Candidate, candidate: &Candidate) -> Option<Candidate> {
    let mut edits = Vec::new();
    for kernel in &original.module.kernels {
        let of = |module: &Module| module.kernel(&kernel.name).and_then(|kernel| kernel.autotune.clone());
        let Some(all) = several(kernel) else { continue };
        let Some(now) = of(&candidate.module) else { continue };
        let Some(own) = only_config(&now) else { continue };
        let text = candidate.text.get(own.span.start..own.span.end)?;
        let others = original.text.get(whole(all).start..whole(all).end)?;
        let is_there = all.iter().any(|config| original.text.get(config.span.start..config.span.end) == Some(text));
        let text = if is_there { others.to_owned() } else { format!("{text},{}{others}", gap(original, all)?) };
        edits.push(Edit { span: own.span, text });
    }
    let change = Change::Structure("the other configurations behind it".to_owned());
    (!edits.is_empty()).then(|| candidate.with(&edits, &[change]))
}

/// The text between two configurations, without the comma.
pub(super) fn gap<'a>(original: &'a Candidate, all: &[Config]) -> Option<&'a str> {
    let between = original.text.get(all[0].span.end..all[1].span.start)?;
    Some(between.strip_prefix(',').filter(|gap| gap.trim().is_empty()).unwrap_or(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::Rng;
    use protocol::Workload;

    const TEXT: &str = "import triton
import triton.language as tl

@triton.autotune(
    configs=[
        triton.Config({\"B\": 64}, num_warps=4),
        triton.Config({\"B\": 128}, num_warps=8),
    ],
    key=[\"n\"],
)
@triton.jit
def k(x, n, B: tl.constexpr):
    for i in range(n):
        pass

def run(x):
    k[lambda meta: (triton.cdiv(x.numel(), meta[\"B\"]),)](x, x.numel())
";

    #[test]
    fn one_configuration_is_kept_and_the_others_return_for_the_offer() {
        let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
        let original = Candidate::original(TEXT);
        let subject = Subject::new(&original, TEXT, "k", &workload).unwrap();
        assert!(subject.knobs.is_empty());
        let turns = OneConfiguration.turns(&subject, &mut Rng::new(1));
        assert_eq!(turns.len(), 2);
        let second = original.with(&turns[1].edits, &turns[1].changes);
        assert!(!second.text.contains("\"B\": 64") && second.text.contains("\"B\": 128}, num_warps=8),\n    ]"));
        assert_eq!(with_the_others(&original, &second).unwrap().text, TEXT, "it is there already");

        let subject = Subject::new(&second, TEXT, "k", &workload).unwrap();
        let known: Vec<String> = subject.knobs.iter().map(|knob| format!("{}={}", knob.name, knob.current)).collect();
        assert_eq!(known, ["B=128", "num_warps=8", "num_stages=3"]);
        let turn = subject.turn("any", &vec![256, 8, 4]);
        let third = second.with(&turn.edits, &turn.changes);
        assert!(third.text.contains("triton.Config({\"B\": 256}, num_warps=8, num_stages=4),"), "{}", third.text);
        let with = with_the_others(&original, &third).unwrap();
        let added =
            "        triton.Config({\"B\": 256}, num_warps=8, num_stages=4),\n        triton.Config({\"B\": 64}";
        assert_eq!(with.text, TEXT.replace("        triton.Config({\"B\": 64}", added));
        assert_eq!(with_the_others(&original, &original).map(|it| it.text), None);
    }
}
