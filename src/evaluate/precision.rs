//! At which precision the original calculates, and at which it can be run.

use super::baseline::{Baseline, Undecided};
use super::bench::Bench;
use super::floor::width;
use super::trials::Trial;
use crate::protocol::is_float;
use crate::protocol::runner::{
    Call, Coarse, ComparerReply, ComparerRequest, Difference, Exported, Inputs, Leaf, LeafValue, Ran,
};

/// Types of which a run of the original may be more exact.
pub(super) const WIDE: [&str; 2] = ["float64", "float32"];
/// Two runs on equal inputs may be so many times as far apart as the rounding of single precision goes without knowing more: what
/// atomic operations add comes in another order each time. Narrower results are rounded with each of these additions.
const APART: f64 = 8.0;
const APART_NARROW: f64 = 64.0;
/// Of integers one in so many may be another, where they were rounded from such sums.
const FLIPPED: u64 = 128;
/// So many arguments are tried with fewer bits.
const SINGLES: usize = 8;

impl Baseline {
    /// A run at a higher precision, and at which.
    pub(super) fn reference(
        &self,
        bench: &Bench,
        trial: &Trial,
        ran: &Ran,
    ) -> Result<Option<(&'static str, u32)>, Undecided> {
        // What nothing is wider in would be the same run again.
        for wide in WIDE.iter().filter(|wide| is_widened(&ran.results, wide)) {
            let widened = Inputs { widen: Some((*wide).to_owned()), ..trial.inputs.clone() };
            if let Ok((wider, slot)) = self.original.run(bench, &Call { poison: false, ..self.call(widened, false) })? {
                if is_alike(&wider.results, &ran.results) {
                    return Ok(Some((wide, slot)));
                }
                bench.drop_slots(vec![slot])?;
            }
        }
        Ok(None)
    }

    /// Runs the recorded call once more on the same inputs and with the same random numbers. What differs then by more than the order
    /// of additions does is not rounding, and must not pass for it: candidates cannot be compared with it.
    pub(super) fn must_repeat(&self, bench: &Bench, trial: &Trial, ran: &Ran, original: u32) -> Result<(), Undecided> {
        let Ok((_, again)) = self.original.run(bench, &self.call(trial.inputs.clone(), false))? else { return Ok(()) };
        let ask = ComparerRequest::Compare {
            original,
            candidate: again,
            reference: None,
            jittered: Vec::new(),
            holds_nan: true,
            exact: false,
            level: None,
        };
        let found = bench.compare(|comparer| Ok(comparer.differences(&ask)?))?;
        bench.drop_slots(vec![again])?;
        let of = |path: &str| ran.results.leaves.iter().find(|leaf| leaf.path == path).map(|leaf| &leaf.value);
        match found.iter().find(|one| !is_near(one, of(&one.path))) {
            Some(Difference { path, what, .. }) => {
                bench.drop_slots(vec![original])?;
                Err(Undecided(format!(
                    "two calls of the original on equal inputs differ, so nothing can be compared with it: {path}: {what}. If it draws \
                 random numbers, draw them from a generator that is seeded before each call (the default ones of torch, random and \
                 numpy), or make the seed an argument"
                )))
            }
            None => Ok(()),
        }
    }

    /// Whether it calculates in the wider type of its inputs. One that does not equals its run on them without being exact.
    pub(super) fn follows(&self, bench: &Bench, trial: &Trial, wide: &str, original: u32) -> Result<bool, Undecided> {
        let finer = Inputs { widen: Some(wide.to_owned()), jitter: Some(1), ..trial.inputs.clone() };
        let Ok((_, slot)) = self.original.run(bench, &Call { poison: false, ..self.call(finer, false) })? else {
            return Ok(false);
        };
        let ask = ComparerRequest::Stand { original, reference: Some(slot), jittered: Vec::new(), dense: None };
        let standing = bench.compare(|comparer| Ok(comparer.ask(&ask)?))?;
        bench.drop_slots(vec![slot])?;
        Ok(matches!(standing, ComparerReply::Standing { is_finer: true, .. }))
    }

    /// The arguments of which it takes the upper bits alone: its results are the same, bit by bit, without the others. That is so
    /// of products in tf32. Candidates that take all bits would be more exact than the original, and nobody could say so.
    pub(super) fn find_coarse(
        &self,
        bench: &Bench,
        trial: &Trial,
        ran: &Ran,
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
                // It was another argument, and led to nothing else.
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

/// Whether an argument has floats narrower than these.
fn is_widened(results: &Exported, wide: &str) -> bool {
    results.leaves.iter().any(|leaf| match &leaf.value {
        LeafValue::Tensor { dtype, .. } if leaf.path.starts_with("argument") => {
            is_float(dtype) && width(dtype) < width(wide)
        }
        _ => false,
    })
}

/// Arguments in single precision that the call leaves alone, by number and path.
fn singles(results: &Exported, mutated: &[usize]) -> Vec<(usize, String)> {
    let single = |leaf: &Leaf| match &leaf.value {
        LeafValue::Tensor { dtype, .. } if dtype == "float32" => {
            let at: usize = leaf.path.strip_prefix("argument ")?.parse().ok()?;
            (!mutated.contains(&at)).then(|| (at, leaf.path.clone()))
        }
        _ => None,
    };
    results.leaves.iter().filter_map(single).take(SINGLES).collect()
}

/// Whether two runs of one function on equal inputs may differ so.
fn is_near(found: &Difference, value: Option<&LeafValue>) -> bool {
    let near = |most: f64| found.is_value && found.excess.is_some_and(|excess| excess <= most);
    match value {
        Some(LeafValue::Tensor { dtype, .. }) if is_float(dtype) && width(dtype) < 4.0 => near(APART_NARROW),
        Some(LeafValue::Tensor { dtype, .. }) if is_float(dtype) || dtype.starts_with("complex") => near(APART),
        Some(tensor @ LeafValue::Tensor { .. }) => found.is_value && found.count <= tensor.elements() / FLIPPED,
        _ => near(APART_NARROW),
    }
}

/// Whether results have the same leaves and shapes.
fn is_alike(one: &Exported, other: &Exported) -> bool {
    let shape = |value: &LeafValue| match value {
        LeafValue::Tensor { shape, .. } => Some(shape.clone()),
        LeafValue::Container { .. } | LeafValue::Plain { .. } => None,
    };
    let is_same = |(a, b): (&Leaf, &Leaf)| shape(&a.value) == shape(&b.value);
    one.leaves.len() == other.leaves.len() && one.leaves.iter().zip(&other.leaves).all(is_same)
}
