//! The correctness checks, in the order in which they are made.

use std::sync::Arc;

use protocol::WorkloadSource;
use protocol::runner::{CallOutput, ComparerRequest, EntryCall, Reuse};

use super::baseline::{Habits, Ready, TrialBaseline};
use super::case::Case;
use super::grade::{Grade, GradeReached};
use super::operators;
use super::stop_reason::{Stop, as_a, in_trial};
use super::trials::Trial;
use super::undecided::Undecided;
use super::verdict::Reason;

/// How often the recorded call is repeated to find races.
const REPEATED: usize = 3;

/// The note on checks that are skipped without torch.
const WITHOUT_TORCH: &str = "there is no torch: memory that a candidate allocates is not filled beforehand, and operators are not \
watched; arguments that it must write hold random contents before the call; what must be read is not counted, and no call beyond 32 \
bits is tried";

/// The error for originals without any visible result.
const UNSEEN: &str = "what the original's kernels compute shows neither in what the function returns nor in its arguments, so \
nothing can be compared: name a function that returns it (`--entry`), or describe a call of one by a comment";

impl Case<'_> {
    /// Runs the recorded call, and the same call with other contents, and checks the results and the side effects. With
    /// `is_brief`, the other checks on these two calls are left to [`Self::honesty`].
    pub(super) fn first_calls(&mut self, is_brief: bool) -> Result<(), Stop> {
        let (known, other) = self.recorded()?;
        let habits = self.baseline.traits(self.bench)?;
        if habits.is_unseen {
            return Err(Undecided::original(UNSEEN).into());
        }
        self.took = known.took.max(other.took);
        let trial = self.baseline.trials[0].clone();
        let call = self.baseline.call(trial.inputs.clone(), false);
        let slot = self.first_call(&known, &trial, &call)?;
        self.configurations(&known, &trial, &call)?;
        if is_brief {
            self.bench.drop_slots(vec![slot])?;
            self.other_call(&other, 1)?;
            return self.forget(&other);
        }
        self.repeated(&known, &trial, &call)?;
        // This comes before the check for stale results: results that are wrong on these contents are not stale.
        self.other_call(&other, 1)?;
        self.ghost_and_kept((&known, &other), &habits, &call, slot)
    }

    /// The checks that [`Self::first_calls`] leaves out: that the kernels compute the results, that they do so anew in
    /// each call, and that repeated calls agree.
    pub(super) fn honesty(&mut self) -> Result<(), Stop> {
        let (known, other) = self.recorded()?;
        let habits = self.baseline.traits(self.bench)?;
        let trial = self.baseline.trials[0].clone();
        let call = self.baseline.call(trial.inputs.clone(), false);
        self.repeated(&known, &trial, &call)?;
        let (_, slot) = {
            let _shared = self.shared();
            self.run(&call)?
        };
        self.ghost_and_kept((&known, &other), &habits, &call, slot)
    }

    /// The original's results for the recorded call, and for the same call with other contents.
    fn recorded(&self) -> Result<(Arc<Ready>, Arc<Ready>), Stop> {
        match (self.baseline.known(self.bench, 0)?, self.baseline.known(self.bench, 1)?) {
            (TrialBaseline::Ready(known), TrialBaseline::Ready(other)) => Ok((known, other)),
            _ => Err(Undecided::original("the original refuses the recorded call").into()),
        }
    }

    fn repeated(&mut self, known: &Ready, trial: &Trial, call: &EntryCall) -> Result<(), Stop> {
        for _ in 0..REPEATED {
            let _shared = self.shared();
            let (again, other) = self.run(call)?;
            self.compare(known, (other, &again.results), trial, "a repeated call").map_err(as_a(Reason::Race))?;
            self.bench.drop_slots(vec![other])?;
        }
        self.passed("repeated calls", format!("{REPEATED} more runs on equal inputs agree with the original"));
        Ok(())
    }

    /// Whether anything is kept from call to call; `slot` holds results of the recorded call.
    fn ghost_and_kept(
        &mut self,
        (known, other): (&Ready, &Ready),
        habits: &Habits,
        call: &EntryCall,
        slot: u32,
    ) -> Result<(), Stop> {
        self.kept_results(habits)?;
        self.ghost(habits, call, slot)?;
        self.reused(other)?;
        self.forget(other)?;
        self.partly_reused(known, habits)
    }

    // Each step acquires the device anew, so that a thread that wants it exclusively waits for one step only.

    fn first_call(&mut self, known: &Ready, trial: &Trial, call: &EntryCall) -> Result<u32, Stop> {
        let _turn = self.use_device()?;
        let (ran, slot) = self.run(&EntryCall { watch: true, ..call.clone() })?;
        if let Err(stop) = self.compare(known, (slot, &ran.results), trial, &trial.name) {
            // Elements that were never written are a more precise reason than a wrong result.
            return Err(match stop {
                Stop::Refused(Reason::Output | Reason::Gradient | Reason::Mutation, ..) => {
                    self.unwritten(known, slot)?.unwrap_or(stop)
                }
                other => other,
            });
        }
        self.passed(&trial.name, "agrees with the original on fresh inputs, within rounding");
        self.written(known, slot)?;
        self.behaviour(&known.ran, &ran)?;
        Ok(slot)
    }

    fn written(&mut self, known: &Ready, slot: u32) -> Result<(), Stop> {
        if self.bench.environment().torch.is_empty() {
            self.notes.push(WITHOUT_TORCH.to_owned());
            return Ok(());
        }
        if let Some(stop) = self.unwritten(known, slot)? {
            return Err(stop);
        }
        self.passed(
            "everything is written",
            "what torch leaves unwritten was filled beforehand; nothing of that is left",
        );
        Ok(())
    }

    /// A refusal for elements that still hold the fill pattern, where the original leaves none of them.
    fn unwritten(&self, known: &Ready, slot: u32) -> Result<Option<Stop>, Stop> {
        let found = self.differences(&ComparerRequest::Unwritten { slot })?;
        let first = found.iter().find(|one| !known.unwritten.contains(&one.path));
        Ok(first.map(|one| Stop::Refused(Reason::Unwritten, format!("{}: {}", one.path, one.what), None)))
    }

    /// Checks the side effects of the candidate's process.
    fn behaviour(&mut self, original: &CallOutput, candidate: &CallOutput) -> Result<(), Stop> {
        let refused = |reason, evidence: String| Err(Stop::Refused(reason, evidence, None));
        self.tampering(&candidate.tampered, &original.tampered)?;
        if let Some(what) = candidate.overrun.as_ref().filter(|_| original.overrun.is_none()) {
            return refused(Reason::Overrun, what.clone());
        }
        if candidate.threads > original.threads {
            return refused(Reason::Threads, format!("{} threads are left running", candidate.threads));
        }
        if candidate.started > 0 && original.started == 0 {
            let what =
                format!("threads are started during the call, {} of them; the original starts none", candidate.started);
            return refused(Reason::Threads, what);
        }
        if candidate.children > original.children {
            return refused(Reason::Processes, format!("{} processes are left running", candidate.children));
        }
        if candidate.launches.is_empty() && !original.launches.is_empty() {
            return refused(
                Reason::NoKernel,
                "no kernel of Triton's is launched; the original launches some".to_owned(),
            );
        }
        if candidate.launches.is_empty() && self.effort.kernel {
            return refused(Reason::NoKernel, "no kernel of Triton's is launched".to_owned());
        }
        if self.bench.environment().torch.is_empty() {
            self.passed(
                "kernels",
                "kernels of Triton's are launched, as by the original; other libraries are not watched",
            );
            return Ok(());
        }
        if let Some((name, _)) = original
            .drawn
            .iter()
            .chain(&candidate.drawn)
            .find(|one| !original.drawn.contains(one) || !candidate.drawn.contains(one))
        {
            let what =
                format!("the random numbers that `{name}` gives after the call are others than after the original's");
            self.notes.push(what);
        }
        self.fallback(original, candidate)?;
        self.passed(
            "no fallback",
            match original.launches.is_empty() {
                false => "the device's work is done by kernels of Triton's, and by torch only as in the original",
                true => "the original launches no kernel, so operators of torch that it does not use are only noted",
            },
        );
        Ok(())
    }

    /// Checks for operators of torch that run on the device in addition to those of the original.
    pub(super) fn fallback(&mut self, original: &CallOutput, candidate: &CallOutput) -> Result<(), Stop> {
        let most = operators::elements(&original.results);
        let notes = match operators::added(&original.operators, &candidate.operators, most) {
            // What replaces a kernel must be one. An original that is torch's own operators may become others.
            Err(what) if !original.launches.is_empty() => return Err(Stop::Refused(Reason::Fallback, what, None)),
            Err(what) => vec![what],
            Ok(notes) => notes,
        };
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        Ok(())
    }

    /// Checks that the results of a call are intact after the next call.
    fn kept_results(&mut self, habits: &Habits) -> Result<(), Stop> {
        // A launch by itself returns nothing that a later call could overwrite.
        if habits.overwrites || self.baseline.original.workload.source == WorkloadSource::Launch {
            return Ok(());
        }
        let _shared = self.shared();
        let [first, second] = self.baseline.sequence();
        let (_, one) = self.run(&first)?;
        let (_, other) = self.run(&second)?;
        let found = self.differences(&ComparerRequest::Changed { one, other })?;
        self.bench.drop_slots(vec![one, other])?;
        if let Some(changed) = found.iter().find(|one| one.path.starts_with("result")) {
            let what = format!("{}: the next call overwrites it ({})", changed.path, changed.what);
            return Err(Stop::Refused(Reason::Stale, what, None));
        }
        self.passed("results stay", "the next call leaves the results of the last alone");
        Ok(())
    }

    /// Replaces the kernels by nothing: the results must then differ from those in `slot`, which are forgotten.
    fn ghost(&mut self, habits: &Habits, call: &EntryCall, slot: u32) -> Result<(), Stop> {
        let _shared = self.shared();
        if !habits.needs_kernels && !self.effort.kernel {
            return Ok(self.bench.drop_slots(vec![slot])?);
        }
        let other = match self.run(&EntryCall { ghost: true, ..call.clone() }) {
            Ok((_, other)) => other,
            // A function that reads back what its kernels compute may fail without them.
            Err(Stop::Refused(Reason::Run, ..)) => return Ok(self.bench.drop_slots(vec![slot])?),
            Err(stop) => return Err(stop),
        };
        let found = self.differences(&ComparerRequest::Changed { one: slot, other })?;
        self.bench.drop_slots(vec![slot, other])?;
        if found.is_empty() {
            let what = "with its kernels replaced by nothing the results are the same: they do not compute them";
            return Err(Stop::Refused(Reason::NoKernel, what.to_owned(), None));
        }
        self.passed("the kernels do the work", "with the kernels replaced by nothing the results are others");
        Ok(())
    }

    /// Calls the candidate with the same tensors and new contents everywhere.
    fn reused(&mut self, known: &Ready) -> Result<(), Stop> {
        let _shared = self.shared();
        let trial = self.baseline.trials[1].clone();
        let all = EntryCall { reuse: Reuse::All, ..self.baseline.call(trial.inputs.clone(), false) };
        let (ran, slot) = self.run(&all)?;
        self.compare(known, (slot, &ran.results), &trial, "the same tensors with new contents")
            .map_err(as_a(Reason::Stale))?;
        Ok(self.bench.drop_slots(vec![slot])?)
    }

    /// Calls the candidate with the same tensors and some new contents: in the middle alone, which a fingerprint of the
    /// corners misses, and in a few places, which a sample misses.
    fn partly_reused(&mut self, level: &Ready, habits: &Habits) -> Result<(), Stop> {
        for &(reuse, expected) in &habits.partly {
            let _shared = self.shared();
            let [first, second] = self.baseline.sequence_with(reuse);
            let (_, before) = self.run(&first)?;
            let (ran, slot) = self.run(&second)?;
            let name = match reuse {
                Reuse::Few => "tensors a few of whose elements have new contents",
                _ => "tensors whose middle alone has new contents",
            };
            self.compare_by_level((expected, slot), &ran.results, level, (Reason::Stale, name))?;
            self.bench.drop_slots(vec![before, slot])?;
        }
        self.passed(
            "reused tensors",
            "equal addresses with new contents, everywhere, in the middle or in a few places, give new results",
        );
        Ok(())
    }

    /// Runs the trials with other values, layouts and sizes, as far as the original accepts them.
    pub(super) fn other_calls(&mut self) -> Result<(), Stop> {
        let (mut tried, mut skipped, mut sizes) = (1, Vec::new(), 0);
        let mut broken: Option<(Grade, Stop)> = None;
        for at in 2..self.baseline.trials.len() {
            let grade = self.baseline.trials[at].grade();
            // A candidate that is wrong on a trial has no grade for which that trial counts.
            if broken.as_ref().is_some_and(|(at, _)| *at <= grade) {
                continue;
            }
            match self.baseline.known(self.bench, at)? {
                TrialBaseline::Ready(known) => {
                    let judged = self.other_call(&known, at);
                    if !matches!(judged, Err(Stop::Undecided(_))) {
                        self.forget(&known)?;
                    }
                    match judged {
                        Err(stop) if self.may_go_on(grade, &stop) => {
                            broken = Some((grade, stop));
                            continue;
                        }
                        other => other?,
                    }
                    tried += 1;
                    sizes += usize::from(self.baseline.trials[at].reason == Reason::Sizes);
                }
                TrialBaseline::Needless => {}
                TrialBaseline::Skipped(why) => skipped.push(format!("{}: {why}", self.baseline.trials[at].name)),
            }
        }
        self.reached(broken)?;
        if sizes == 0 && self.baseline.original.workload.is_resizable() {
            self.notes.push("no other sizes were tried: the original takes none of those that were made up".to_owned());
        }
        self.passed(
            "other calls",
            format!("{tried} calls with other values, sizes and layouts agree with the original"),
        );
        if !skipped.is_empty() {
            self.passed("skipped", skipped.join("; "));
        }
        Ok(())
    }

    /// Whether the trials go on after one of this grade on which the candidate is wrong: where it need not be right
    /// there, and where it is wanted how far it is.
    fn may_go_on(&self, grade: Grade, stop: &Stop) -> bool {
        let is_wanted = grade > self.effort.grade || self.effort.finds_grade;
        is_wanted && grade > Grade::Recorded && matches!(stop, Stop::Refused(Reason::Values, ..))
    }

    /// Sets how far the candidate is right, where `broken` is the trial of the lowest grade on which it is wrong.
    fn reached(&mut self, broken: Option<(Grade, Stop)>) -> Result<(), Stop> {
        let Some((grade, stop)) = broken else {
            self.grade = Some(GradeReached::STRICT);
            return Ok(());
        };
        if let Stop::Refused(_, evidence, _) = &stop {
            self.grade = Some(GradeReached::broken(grade, evidence.clone()));
        }
        if grade <= self.effort.grade { Err(stop) } else { Ok(()) }
    }

    /// Forgets results that are not kept for the next candidate.
    fn forget(&self, known: &Ready) -> Result<(), Stop> {
        if !known.is_kept {
            self.bench.drop_slots(known.slots())?;
        }
        Ok(())
    }

    fn other_call(&mut self, known: &Ready, at: usize) -> Result<(), Stop> {
        let trial = self.baseline.trials[at].clone();
        let recorded = self.baseline.known(self.bench, 0)?;
        self.took = self.took.max(known.took);
        // A candidate that detects whether memory is filled beforehand must not learn from it when it is timed.
        let poison = !known.unwritten.is_empty() || self.chance() < 0.5;
        let _shared = self.shared();
        let call = EntryCall { watch: true, poison, ..self.baseline.call(trial.inputs.clone(), false) };
        let (ran, slot) = self.run(&call).map_err(|stop| in_trial(stop, &trial.name))?;
        if let Err(stop) = self.compare(known, (slot, &ran.results), &trial, &trial.name) {
            let both = (known, &recorded);
            self.spills(both, slot, &trial, stop)
                .or_else(|stop| self.sums_otherwise(known, slot, &trial, stop))
                .or_else(|stop| self.depends_on_launch(both, slot, &trial, stop))?;
        }
        if let Some(what) = ran.overrun.as_ref().filter(|_| known.ran.overrun.is_none()) {
            return Err(Stop::Refused(Reason::Overrun, format!("{}: {what}", trial.name), None));
        }
        self.fallback(&known.ran, &ran).map_err(|stop| in_trial(stop, &trial.name))?;
        Ok(self.bench.drop_slots(vec![slot])?)
    }
}
