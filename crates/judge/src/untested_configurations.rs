//! A check of the configurations that a candidate's autotuner measured and did not choose: on another device or another
//! day it may choose them.

use protocol::runner::{EntryCall, Tuned};

use super::baseline::Ready;
use super::case::Case;
use super::locks::lock;
use super::stop_reason::{Stop, in_trial};
use super::trials::Trial;

/// The most configurations that are tried for each kernel.
const MOST: usize = 64;

impl Case<'_> {
    /// Runs the recorded call with each configuration that was measured and not chosen.
    pub(super) fn configurations(&mut self, known: &Ready, trial: &Trial, call: &EntryCall) -> Result<(), Stop> {
        let count = self.chosen.iter().map(|tuned| tuned.others.len()).max().unwrap_or(0).min(MOST);
        for at in 0..count {
            let chosen: Vec<Tuned> = self.chosen.iter().map(|tuned| other(tuned, at)).collect();
            let forced = EntryCall { chosen: chosen.clone(), forced: true, ..call.clone() };
            let told: Vec<String> =
                chosen.iter().map(|Tuned { kernel, config, .. }| format!("{kernel} with {config}")).collect();
            let name = format!("another configuration of an autotuner ({})", told.join("; "));
            let found = self.one_configuration(known, trial, (&forced, &name));
            match found {
                Err(Stop::Refused(reason, ..)) if self.is_as_wrong(known, &forced)? => {
                    let what = format!("{name} fails ({}), and so does the original's", reason.name());
                    self.notes.push(what);
                }
                other => other?,
            }
        }
        if count > 0 {
            let what =
                format!("the {count} configurations that autotuners did not choose agree with the original, too");
            self.passed("other configurations", what);
        }
        Ok(())
    }

    fn one_configuration(
        &mut self,
        known: &Ready,
        trial: &Trial,
        (forced, name): (&EntryCall, &str),
    ) -> Result<(), Stop> {
        let _shared = self.shared();
        let (ran, slot) = self.run(forced).map_err(|stop| in_trial(stop, name))?;
        self.compare(known, (slot, &ran.results), trial, name)?;
        Ok(self.bench.drop_slots(vec![slot])?)
    }

    /// Whether the original has the same configurations and is wrong with them as well. Its autotuner then never
    /// chooses them.
    fn is_as_wrong(&self, known: &Ready, forced: &EntryCall) -> Result<bool, Stop> {
        let own = lock(&self.baseline.original.chosen).clone();
        let has = |tuned: &Tuned| {
            let mut named = own.iter().filter(|one| one.kernel == tuned.kernel);
            named.any(|one| one.config == tuned.config || one.others.contains(&tuned.config))
        };
        if !forced.chosen.iter().all(has) {
            return Ok(false);
        }
        let _shared = self.shared();
        let Ok((_, slot)) = self.baseline.original.run(self.bench, forced)? else { return Ok(true) };
        let found = self.differences(&known.compared(slot, true, Default::default()))?;
        self.bench.drop_slots(vec![slot])?;
        Ok(!found.is_empty())
    }
}

/// The autotuner with the configuration that it uses in round `at`.
fn other(tuned: &Tuned, at: usize) -> Tuned {
    let config = tuned.others.get(at % tuned.others.len().max(1)).unwrap_or(&tuned.config).clone();
    Tuned { config, ..tuned.clone() }
}
