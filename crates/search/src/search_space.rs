//! The problem of a search: the original, the kernels and their calls.

use std::collections::BTreeMap;

use config::SearchSettings;
use model::api::TritonTarget;
use protocol::Workload;
use transform::candidate::{Candidate, Change};
use transform::{Proposal, Subject, has_word};
use workload::reaches;

/// The problem of a search: the original, the kernels and their calls.
#[derive(Clone, Copy)]
pub(super) struct SearchSpace<'a> {
    /// The text of the user's file.
    pub(super) original: &'a str,
    pub(super) kernels: &'a [String],
    /// The calls that are measured during the search, at least one; the first has the greatest weight.
    pub(super) calls: &'a [Workload],
    pub(super) settings: &'a SearchSettings,
    /// Whether kernels may be restructured.
    pub(super) rewrites: bool,
    /// Kernels that are used elsewhere, with their users: a change must keep what they do for any launch.
    pub(super) shared: &'a BTreeMap<String, String>,
    /// The release of Triton that compiles candidates.
    pub(super) target: TritonTarget,
}

impl SearchSpace<'_> {
    /// A name within one of several kernels is qualified by the kernel's name.
    pub(super) fn name(&self, kernel: &str, name: &str) -> String {
        if self.kernels.len() == 1 { name.to_owned() } else { format!("{kernel}: {name}") }
    }

    /// A proposal for one of the kernels, with qualified names.
    pub(super) fn of_kernel(&self, kernel: &str, mut turn: Proposal) -> Proposal {
        turn.kind = self.name(kernel, &turn.kind);
        for change in &mut turn.changes {
            if let Change::Number { name, .. } | Change::Chosen { name, .. } | Change::Structure(name) = change {
                *name = self.name(kernel, name);
            }
        }
        turn
    }
}

/// The kernels of a candidate as skills see them, if they exist and are launched by something that can be changed.
pub(super) fn subjects<'a>(field: SearchSpace<'a>, candidate: &'a Candidate) -> Vec<Subject<'a>> {
    let SearchSpace { original, calls, target, .. } = field;
    let subject = |kernel: &str| Some(Subject::new(candidate, original, kernel, calls.first()?)?.with_target(target));
    launched(field, candidate).into_iter().filter_map(subject).collect()
}

/// The kernels of a candidate that the call launches: those of the original, and their replacements.
pub(super) fn launched<'a>(field: SearchSpace<'a>, candidate: &'a Candidate) -> Vec<&'a str> {
    let mut kernels: Vec<&str> = field.kernels.iter().map(String::as_str).collect();
    let all = candidate.module.kernels.iter().map(|kernel| kernel.name.as_str());
    let new: Vec<&str> = all.filter(|name| !has_word(field.original, name)).collect();
    let Some(call) = field.calls.first().filter(|_| !new.is_empty()) else { return kernels };
    let is_reached = |kernel: &str| reaches(&candidate.text, &call.entry, kernel);
    kernels.retain(|kernel| is_reached(kernel));
    if kernels.len() < field.kernels.len() || field.kernels.is_empty() {
        kernels.extend(new.into_iter().filter(|kernel| is_reached(kernel)));
    }
    kernels
}
