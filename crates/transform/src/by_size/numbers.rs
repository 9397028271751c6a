//! Merges versions that differ only in numbers of the launch: each number becomes a choice by the size.

use model::kernel::HostFunction;
use model::syntax::{Span, normal_form};
use protocol::Workload;
use rules::{Edit, apply_edits};

use super::Two;
use crate::candidate::Candidate;
use crate::launch_params::{Knob, write};
use crate::subject::Subject;

impl Two<'_> {
    /// Writes each differing number as `BLOCK = 64 if n <= 1024 else 512`; `None` where the versions differ in
    /// something else, or where the size is not known at a number.
    pub fn in_numbers(&self, original: &str, kernels: &[String], call: &Workload) -> Option<String> {
        let knobs = |of: &Candidate| -> Option<Vec<Knob>> {
            let subjects = kernels.iter().map(|kernel| Subject::new(of, original, kernel, call));
            Some(subjects.collect::<Option<Vec<_>>>()?.into_iter().flat_map(|subject| subject.knobs).collect())
        };
        let (small, large) = (knobs(self.small)?, knobs(self.large)?);
        let names = |knobs: &[Knob]| knobs.iter().map(|knob| knob.name.clone()).collect::<Vec<_>>();
        let blank = |of: &Candidate, knobs: &[Knob]| {
            normal_form(&apply_edits(&of.text, &write(knobs.iter().map(|knob| (knob, "0".to_owned())))))
        };
        if names(&small) != names(&large) || blank(self.small, &small) != blank(self.large, &large) {
            return None;
        }
        let (kept, own) = if self.keeps_small { (self.small, &small) } else { (self.large, &large) };
        let mut edits: Vec<Edit> = Vec::new();
        for ((small, large), own) in small.iter().zip(&large).zip(own) {
            let (small, large) = (small.written(&self.small.text)?, large.written(&self.large.text)?);
            if small == large {
                continue;
            }
            own.spans().into_iter().try_for_each(|span| self.is_fit(kept, span).then_some(()))?;
            let chosen = format!("{small} if {} else {large}", self.condition());
            edits.extend(write([(own, chosen)].into_iter()));
        }
        edits.sort_by_key(|edit| edit.span);
        // Several knobs may share a number.
        edits.dedup();
        let is_apart = edits.windows(2).all(|two| two[0].span.end <= two[1].span.start);
        edits.iter_mut().for_each(|edit| enclose(&kept.text, edit));
        (is_apart && !edits.is_empty()).then(|| apply_edits(&kept.text, &edits))
    }

    /// Whether the size is known at a place, in a statement of the function that launches.
    fn is_fit(&self, kept: &Candidate, span: Span) -> bool {
        let holds = |host: &&HostFunction| host.body.iter().any(|stmt| stmt.span.contains(span));
        let mut hosts = kept.module.hosts.iter().filter(holds);
        let host = hosts.next().filter(|_| hosts.next().is_none());
        host.is_some_and(|host| self.size.is_known(host, span.start))
    }
}

/// Puts parentheses around a choice that is no whole value of a name or a keyword.
fn enclose(text: &str, edit: &mut Edit) {
    let (before, after) = (text[..edit.span.start].trim_end(), text[edit.span.end..].trim_start_matches(' '));
    let is_named = before.ends_with('=') && !before.ends_with("==");
    // This also holds for a keyword that neither version had.
    let is_new = edit.span.start == edit.span.end;
    let is_keyword = is_named && !before.ends_with(" =");
    let is_line = after.is_empty() || after.starts_with(['\n', '#']);
    if !(is_new || is_keyword || is_named && is_line) {
        edit.text = format!("({})", edit.text);
    }
}
