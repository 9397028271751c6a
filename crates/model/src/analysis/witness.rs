//! A program and lane in which an index is largest: a concrete example, not an estimate.

use rustc_hash::FxHashMap as HashMap;

use super::types::KernelAnalysis;
use super::types::index::{Atom, IndexComparison, Narrow, Poly};
use super::types::shape::Dim;

/// The largest number of steps in which an example is moved into a mask.
const ROUNDS: usize = 24;

/// The values that a launch determines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launched {
    /// Integers by parameter name.
    pub params: HashMap<String, i128>,
    /// The number of programs along each axis of the grid.
    pub grid: Vec<i128>,
}

/// An assignment of a number to each atom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AtomAssignment {
    /// Atoms with their numbers, in the order in which they were chosen.
    pub values: Vec<(Atom, i128)>,
}

impl AtomAssignment {
    fn get(&self, atom: &Atom) -> Option<i128> {
        self.values.iter().find(|(known, _)| known == atom).map(|(_, value)| *value)
    }

    fn set(&mut self, atom: &Atom, value: i128) {
        if let Some(known) = self.values.iter_mut().find(|(known, _)| known == atom) {
            known.1 = value;
        }
    }

    /// The value of `poly` in this example.
    #[must_use]
    pub fn value(&self, launched: &Launched, poly: &Poly) -> Option<i128> {
        poly.value(&|atom| match atom {
            Atom::Param(name) => launched.params.get(&**name).copied(),
            Atom::Programs(axis) => launched.grid.get(usize::from(*axis)).copied(),
            _ => self.get(atom),
        })
    }
}

/// An example in which `poly` is large while all conditions hold; `None` when a value is not known.
///
/// The conditions hold exactly, also where an operation in `narrow` wraps around in 32 bits, and each atom is within
/// its bounds. The example need not be the one with the largest value.
#[must_use]
pub fn largest(
    facts: &KernelAnalysis,
    launched: &Launched,
    poly: &Poly,
    conditions: &[IndexComparison],
    narrow: &[Narrow],
) -> Option<AtomAssignment> {
    let mut example = AtomAssignment::default();
    let polys =
        std::iter::once(poly).chain(conditions.iter().flat_map(|condition| [&condition.left, &condition.right]));
    let mut atoms: Vec<&Atom> = polys.flat_map(|poly| poly.terms.iter().flat_map(|(atoms, _)| atoms)).collect();
    // The bounds of loops may depend on programs, so loops come last.
    atoms.sort_by_key(|atom| (matches!(atom, Atom::Loop(_)), (*atom).clone()));
    atoms.dedup();
    for atom in atoms {
        if let Some((_, last)) = bounds(facts, launched, &example, atom) {
            example.values.push((atom.clone(), last));
        }
    }
    for _ in 0..ROUNDS {
        let Some(broken) =
            conditions.iter().find(|condition| holds(&example, launched, condition, narrow) != Some(true))
        else {
            return Some(example);
        };
        move_into(facts, launched, &mut example, broken)?;
    }
    None
}

/// The least and greatest value of an atom.
fn bounds(facts: &KernelAnalysis, launched: &Launched, example: &AtomAssignment, atom: &Atom) -> Option<(i128, i128)> {
    match atom {
        Atom::Program(axis) => {
            let programs = launched.grid.get(usize::from(*axis)).copied().unwrap_or(1);
            (programs > 0).then_some((0, programs - 1))
        }
        Atom::Lane(lane) => {
            let lane = facts.lanes.get(*lane as usize)?;
            let (start, size) = (lane.start?, Poly::of_dim(&lane.size).filter(|_| lane.size != Dim::Unknown)?);
            let size = example.value(launched, &size)?;
            (size > 0).then_some((start, start + size - 1))
        }
        Atom::Loop(id) => {
            let around = facts.loops.get(*id as usize)?;
            let value = |poly: &Option<Poly>| example.value(launched, poly.as_ref()?);
            let start = value(&around.start)?;
            // Of a loop whose end is not known, there is at least the first iteration.
            let Some((end, step)) = value(&around.end).zip(value(&around.step)) else { return Some((start, start)) };
            (step > 0 && end > start).then(|| (start, start + (end - 1 - start) / step * step))
        }
        _ => None,
    }
}

/// Whether a condition holds, both with and without wrapping around in 32 bits where `narrow` names an operation.
fn holds(
    example: &AtomAssignment,
    launched: &Launched,
    condition: &IndexComparison,
    narrow: &[Narrow],
) -> Option<bool> {
    let side = |poly: &Poly| {
        let value = example.value(launched, poly)?;
        let is_given = poly.as_param().is_some() || poly.as_number().is_some();
        match i32::try_from(value) {
            Err(_) if narrow.iter().any(|narrow| narrow.poly == *poly) => Some((value, wrapped(value))),
            Err(_) if !is_given => None,
            _ => Some((value, value)),
        }
    };
    let (left, right) = (side(&condition.left)?, side(&condition.right)?);
    let compared = |left: i128, right: i128| match condition.op.as_ref() {
        "<" => Some(left < right),
        "<=" => Some(left <= right),
        ">" => Some(left > right),
        ">=" => Some(left >= right),
        "==" => Some(left == right),
        "!=" => Some(left != right),
        _ => None,
    };
    Some(compared(left.0, right.0)? && compared(left.1, right.1)?)
}

/// The value of a number in 32 bits with wrap-around.
fn wrapped(value: i128) -> i128 {
    (value + (1 << 31)).rem_euclid(1 << 32) - (1 << 31)
}

/// Reduces the left side of an upper bound, first by changing lanes, then programs.
fn move_into(
    facts: &KernelAnalysis,
    launched: &Launched,
    example: &mut AtomAssignment,
    condition: &IndexComparison,
) -> Option<()> {
    let (low, high) = match condition.op.as_ref() {
        "<" | "<=" => (&condition.left, &condition.right),
        ">" | ">=" => (&condition.right, &condition.left),
        _ => return None,
    };
    let allowed = i128::from(condition.op.ends_with('='));
    let excess = example.value(launched, low)? - example.value(launched, high)? + 1 - allowed;
    let mut candidates: Vec<Atom> = example.values.iter().map(|(atom, _)| atom.clone()).collect();
    candidates.sort_by_key(|atom| !matches!(atom, Atom::Lane(_)));
    for atom in candidates.iter().filter(|atom| matches!(atom, Atom::Lane(_) | Atom::Program(_))) {
        let Some(factor) = low.factor_of(atom).and_then(|factor| example.value(launched, &factor)) else { continue };
        let (least, now) = (bounds(facts, launched, example, atom)?.0, example.get(atom)?);
        if factor <= 0 || now == least {
            continue;
        }
        let steps = (excess + factor - 1) / factor;
        example.set(atom, (now - steps).max(least));
        return Some(());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_around_like_32_bits() {
        assert_eq!(wrapped(5), 5);
        assert_eq!(wrapped(1 << 31), -(1 << 31));
        assert_eq!(wrapped((1 << 32) + 7), 7);
        assert_eq!(wrapped(-(1 << 31) - 1), (1 << 31) - 1);
    }
}
