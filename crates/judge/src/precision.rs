//! The precision at which the original calculates, and the higher precision at which it can be run as a reference.

use std::sync::Arc;
use std::time::Duration;

use protocol::is_float;
use protocol::runner::{
    CallOutput, Coarse, ComparerReply, ComparerRequest, Difference, EntryCall, ExportedResults, Inputs, Leaf, LeafValue,
};

use super::baseline::Baseline;
use super::bench::Bench;
use super::double_precision::lifted;
use super::locks::lock;
use super::original::Original;
use super::precise_original::{Finer, PreciseOriginal};
use super::time_floor::width;
use super::trials::Trial;
use super::undecided::Undecided;

/// The types in which a run of the original may be more exact.
pub(super) const WIDE: [&str; 2] = ["float64", "float32"];
/// How many times the rounding error of single precision two runs on equal inputs may differ: atomic operations add in
/// another order each time. Narrower results are rounded with each of these additions.
const APART: f64 = 8.0;
const APART_NARROW: f64 = 64.0;
/// One in this many integers may differ between two runs, where the integers were rounded from such sums.
const FLIPPED: u64 = 128;
/// The most arguments that are tried with fewer bits.
const SINGLES: usize = 8;
/// The reason for trials on which the original itself is wrong.
pub(super) const INEXACT: &str = "the original's results are not credible there";
/// The time limit for runs in double precision, whose products can take long to compile.
const LONGEST: Duration = Duration::from_secs(20);

impl Baseline {
    /// Runs the original, or its lifted file, at a higher precision.
    pub(super) fn reference(&self, bench: &Bench, trial: &Trial, ran: &CallOutput) -> Result<Option<Finer>, Undecided> {
        match self.lifted() {
            Some(lifted) => self.widened(bench, (&lifted, LONGEST), (trial, ran), &WIDE[..1]),
            None => self.widened(bench, (&self.original, bench.limits.call), (trial, ran), &WIDE),
        }
    }

    /// The lifted original, if it is used for runs at a higher precision.
    pub(super) fn lifted(&self) -> Option<Arc<Original>> {
        if let PreciseOriginal::Some(lifted) = &*lock(&self.lifted) { Some(Arc::clone(lifted)) } else { None }
    }

    fn widened(
        &self,
        bench: &Bench,
        (original, limit): (&Original, Duration),
        (trial, ran): (&Trial, &CallOutput),
        types: &[&'static str],
    ) -> Result<Option<Finer>, Undecided> {
        // Where no argument would be wider, the run would only repeat the original.
        for wide in types.iter().filter(|wide| is_widened(&ran.results, wide)) {
            let widened = Inputs { widen: Some((*wide).to_owned()), ..trial.inputs.clone() };
            let call = EntryCall { poison: false, ..self.call(widened, false) };
            if let Ok((wider, slot)) = original.run_within(bench, &call, limit)? {
                if is_alike(&wider.results, &ran.results) {
                    return Ok(Some(Finer { wide, slot }));
                }
                bench.drop_slots(vec![slot])?;
            }
        }
        Ok(None)
    }

    /// The best reference for the recorded call, given the reference `own` of the original itself. Where the original
    /// casts to single precision whatever its inputs are, that reference is as inexact as the original, and a more
    /// exact candidate would be refused. The file is then lifted to double precision, provided that it still computes
    /// the same.
    pub(super) fn best_reference(
        &self,
        bench: &Bench,
        (trial, ran): (&Trial, &CallOutput),
        (original, jittered): (u32, &[u32]),
        own: Option<Finer>,
    ) -> Result<Option<Finer>, Undecided> {
        let follows = match own {
            Some(own) => self.follows(bench, &self.original, trial, (own, original))?,
            None => false,
        };
        *lock(&self.follows) = own.filter(|_| follows).map(|own| own.wide);
        if !matches!(*lock(&self.lifted), PreciseOriginal::Unknown) {
            return Ok(own);
        }
        *lock(&self.lifted) = PreciseOriginal::None;
        // Wider results may still be computed from values that were cast; without casts that is impossible.
        let Some(lifted) = self.lift(bench, follows)? else { return Ok(own) };
        // A lifted file that cannot be loaded is no fault of the user's file.
        if lifted.process(bench).is_err() {
            return Ok(own);
        }
        lock(&lifted.chosen).clone_from(&lock(&self.original.chosen));
        let Some(finer) = self.widened(bench, (&lifted, LONGEST), (trial, ran), &WIDE[..1])? else { return Ok(own) };
        if !self.is_credible(bench, (original, jittered), finer)?
            || !self.follows(bench, &lifted, trial, (finer, original))?
        {
            bench.drop_slots(vec![finer.slot])?;
            return Ok(own);
        }
        tracing::debug!("the original is lifted to double precision");
        bench.drop_slots(own.iter().map(|own| own.slot).collect())?;
        *lock(&self.lifted) = PreciseOriginal::Some(lifted);
        *lock(&self.follows) = Some(finer.wide);
        Ok(Some(finer))
    }

    /// Loads the lifted file while the original makes its first runs: every candidate waits for both, and processes
    /// start one after the other.
    pub(super) fn lift_ahead(&self, bench: &Bench) {
        let is_loaded = self.original.loaded(bench).is_ok();
        if is_loaded
            && matches!(*lock(&self.lifted), PreciseOriginal::Unknown)
            && let Ok(Some(lifted)) = self.lift(bench, true)
        {
            *lock(&self.lifted_ahead) = Some(Arc::clone(&lifted));
            bench.wait_for_quiet();
            // A failure shows again when the file is needed.
            drop(lifted.process(bench));
        }
    }

    /// The lifted original; its process need not be started. `None` where there is nothing to lift or, with `if_casts`,
    /// where the file casts nothing.
    fn lift(&self, bench: &Bench, if_casts: bool) -> Result<Option<Arc<Original>>, Undecided> {
        if let Some(lifted) = lock(&self.lifted_ahead).take() {
            return Ok(Some(lifted));
        }
        let (file, folder) = self.original.place();
        let made = std::fs::read_to_string(file).ok().and_then(|text| lifted(&text));
        let (Some(made), Some(name)) = (made.filter(|made| made.casts || !if_casts), file.file_name()) else {
            return Ok(None);
        };
        let place = bench.private("lifted")?.join(name);
        std::fs::write(&place, made.text)?;
        let (workload, weights) = (self.original.workload.clone(), self.original.weights);
        Ok(Some(Arc::new(Original::new(&place, folder, workload, weights))))
    }

    fn is_credible(&self, bench: &Bench, (original, jittered): (u32, &[u32]), finer: Finer) -> Result<bool, Undecided> {
        let ask =
            ComparerRequest::Stand { original, reference: Some(finer.slot), jittered: jittered.to_vec(), alike: None };
        let standing = bench.compare(|comparer| Ok(comparer.ask(&ask)?))?;
        Ok(matches!(standing, ComparerReply::Standing { is_credible: true, .. }))
    }

    /// Repeats the recorded call on the same inputs and with the same random numbers. A difference larger than the
    /// order of additions explains is not rounding error and must not be accepted as such: such an original cannot be
    /// compared with candidates.
    pub(super) fn must_repeat(
        &self,
        bench: &Bench,
        trial: &Trial,
        ran: &CallOutput,
        original: u32,
    ) -> Result<(), Undecided> {
        let Ok((_, again)) = self.original.run(bench, &self.call(trial.inputs.clone(), false))? else { return Ok(()) };
        let ask = ComparerRequest::Compare {
            original,
            candidate: again,
            reference: None,
            jittered: Vec::new(),
            holds_nan: true,
            exact: false,
            level: None,
            variants: Vec::new(),
            terms: None,
        };
        let found = bench.compare(|comparer| Ok(comparer.differences(&ask)?))?;
        bench.drop_slots(vec![again])?;
        let of = |path: &str| ran.results.leaves.iter().find(|leaf| leaf.path == path).map(|leaf| &leaf.value);
        match found.iter().find(|one| !is_near(one, of(&one.path))) {
            Some(Difference { path, what, .. }) => {
                bench.drop_slots(vec![original])?;
                Err(Undecided::original(format!(
                    "two calls of the original on equal inputs differ, so nothing can be compared with it: {path}: {what}. If it draws \
                 random numbers, draw them from a generator that is seeded before each call (the default ones of torch, random and \
                 numpy), or make the seed an argument"
                )))
            }
            None => Ok(()),
        }
    }

    /// Whether the original calculates in the wider type of its inputs. One that does not equals its own run on them
    /// without being exact.
    fn follows(
        &self,
        bench: &Bench,
        run: &Original,
        trial: &Trial,
        (finer, original): (Finer, u32),
    ) -> Result<bool, Undecided> {
        let moved = Inputs { widen: Some(finer.wide.to_owned()), jitter: Some(1), ..trial.inputs.clone() };
        let Ok((_, slot)) = run.run(bench, &EntryCall { poison: false, ..self.call(moved, false) })? else {
            return Ok(false);
        };
        let ask = ComparerRequest::Stand { original, reference: Some(slot), jittered: Vec::new(), alike: None };
        let standing = bench.compare(|comparer| Ok(comparer.ask(&ask)?))?;
        bench.drop_slots(vec![slot])?;
        Ok(matches!(standing, ComparerReply::Standing { is_finer: true, .. }))
    }

    /// The arguments of which the original reads the upper bits only: its results stay bitwise equal without the lower
    /// ones, as with products in tf32. Candidates that use all bits would be more exact than the original, and this
    /// could not be decided.
    pub(super) fn find_coarse(
        &self,
        bench: &Bench,
        trial: &Trial,
        ran: &CallOutput,
        original: u32,
    ) -> Result<Option<Coarse>, Undecided> {
        for rounds in [false, true] {
            let mut tensors = Vec::new();
            for (at, path) in singles(&ran.results, &self.original.workload.mutated) {
                let coarse = Coarse { tensors: vec![at], rounds };
                let call = self.call(Inputs { coarse, ..trial.inputs.clone() }, false);
                let Ok((_, other)) = self.original.run(bench, &call)? else { continue };
                let ask = ComparerRequest::Changed { one: original, other };
                let found = bench.compare(|comparer| Ok(comparer.differences(&ask)?))?;
                bench.drop_slots(vec![other])?;
                // Another argument was tried there, without a result.
                let is_other = found.iter().any(|one| one.path == path);
                if is_other && found.iter().all(|one| one.path == path) {
                    tensors.push(at);
                }
            }
            if !tensors.is_empty() {
                return Ok(Some(Coarse { tensors, rounds }));
            }
        }
        Ok(None)
    }
}

/// Whether any argument has floats that are narrower than the type `wide`.
fn is_widened(results: &ExportedResults, wide: &str) -> bool {
    results.leaves.iter().any(|leaf| match &leaf.value {
        LeafValue::Tensor { dtype, .. } if leaf.path.starts_with("argument") => {
            is_float(dtype) && width(dtype) < width(wide)
        }
        _ => false,
    })
}

/// Arguments in single precision that the call does not change, by index and path.
fn singles(results: &ExportedResults, mutated: &[usize]) -> Vec<(usize, String)> {
    let single = |leaf: &Leaf| match &leaf.value {
        LeafValue::Tensor { dtype, .. } if dtype == "float32" => {
            let at: usize = leaf.path.strip_prefix("argument ")?.parse().ok()?;
            (!mutated.contains(&at)).then(|| (at, leaf.path.clone()))
        }
        _ => None,
    };
    results.leaves.iter().filter_map(single).take(SINGLES).collect()
}

/// Whether two runs of one function on equal inputs may differ like this.
fn is_near(found: &Difference, value: Option<&LeafValue>) -> bool {
    let near = |most: f64| found.is_value && found.excess.is_some_and(|excess| excess <= most);
    match value {
        Some(LeafValue::Tensor { dtype, .. }) if is_float(dtype) && width(dtype) < 4.0 => near(APART_NARROW),
        Some(LeafValue::Tensor { dtype, .. }) if is_float(dtype) || dtype.starts_with("complex") => near(APART),
        Some(tensor @ LeafValue::Tensor { .. }) => found.is_value && found.count <= tensor.elements() / FLIPPED,
        _ => near(APART_NARROW),
    }
}

/// Whether two results have the same leaves and shapes.
fn is_alike(one: &ExportedResults, other: &ExportedResults) -> bool {
    let shape = |value: &LeafValue| match value {
        LeafValue::Tensor { shape, .. } => Some(shape.clone()),
        LeafValue::Container { .. } | LeafValue::Plain { .. } | LeafValue::Unread { .. } => None,
    };
    let is_same = |(a, b): (&Leaf, &Leaf)| shape(&a.value) == shape(&b.value);
    one.leaves.len() == other.leaves.len() && one.leaves.iter().zip(&other.leaves).all(is_same)
}
