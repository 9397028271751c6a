//! The decision whether the original's results on a trial can serve as a reference.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use protocol::runner::{CallOutput, ComparerReply, ComparerRequest, FloatContents};

use super::baseline::{Baseline, Ready, ReferenceSlots, TrialBaseline};
use super::bench::Bench;
use super::locks::lock;
use super::precise_original::NO_REFERENCE;
use super::precision::INEXACT;
use super::trials::Trial;
use super::undecided::Undecided;
use super::verdict::Reason;

impl Baseline {
    /// The results as a reference for candidates, or the reason why they are none.
    pub(super) fn assess_reference(
        &self,
        bench: &Bench,
        (trial, first): (&Trial, Option<&Ready>),
        (mut ran, took): (CallOutput, Duration),
        ReferenceSlots { original, reference, jittered, relocated: alike }: ReferenceSlots,
    ) -> Result<TrialBaseline, Undecided> {
        let follows = lock(&self.follows).is_some_and(|wide| reference.is_some_and(|finer| finer.wide == wide));
        let reference = reference.map(|finer| finer.slot);
        let ask = ComparerRequest::Stand { original, reference, jittered: jittered.clone(), alike };
        let (is_credible, is_exact) = match bench.compare(|comparer| Ok(comparer.ask(&ask)?))? {
            ComparerReply::Standing { is_credible, is_exact, is_whole, .. } => {
                // Sums of small integers are exact in any order.
                let is_whole = is_whole && trial.inputs.values == FloatContents::Integers;
                // On some contents, such as one constant, a kernel that rounds may happen not to.
                let rounds = first.is_some_and(|first| !first.is_exact);
                (is_credible, is_exact && (follows && !rounds || is_whole))
            }
            _ => (false, false),
        };
        bench.drop_slots(alike.into_iter().collect())?;
        let unwritten =
            bench.compare(|comparer| Ok(comparer.differences(&ComparerRequest::Unwritten { slot: original })?))?;
        let unwritten: Vec<String> = unwritten.into_iter().map(|one| one.path).collect();
        let skip = |bench: &Bench, why: &str| {
            let slots = [original].into_iter().chain(reference).chain(jittered.iter().copied()).collect();
            bench.drop_slots(slots)?;
            Ok(TrialBaseline::Skipped(why.to_owned()))
        };
        let may_fail = !matches!(trial.reason, Reason::Output);
        if trial.needs_reference() && !(is_credible && follows) {
            return skip(bench, NO_REFERENCE);
        }
        // A candidate that is more exact than the original would be refused.
        if trial.reason == Reason::Values && !is_credible && follows && self.lifted().is_some() {
            return skip(bench, INEXACT);
        }
        if may_fail && ran.overrun.is_some() {
            return skip(bench, "the original writes outside its arguments");
        }
        if trial.is_unheard_of() {
            if unwritten.iter().any(|path| first.is_none_or(|first| !first.unwritten.contains(path))) {
                return skip(bench, "the original leaves results unwritten");
            }
            if !is_credible {
                return skip(bench, INEXACT);
            }
        }
        ran.results.buffer = None;
        let is_kept = false;
        Ok(TrialBaseline::Ready(Arc::new(Ready {
            original,
            reference,
            jittered,
            is_exact,
            ran,
            unwritten,
            took,
            is_kept,
            variants: Mutex::default(),
        })))
    }
}
