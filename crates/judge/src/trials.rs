//! The trials of a workload: the calls on which a candidate is compared with the original.

use std::collections::BTreeSet;

use protocol::runner::{FloatContents, Inputs, Layout};
use protocol::sizes::CallSizes;
use protocol::{ArgumentValue, TensorContents, Workload, WorkloadSource};

use super::argument_variants::{Choice, choices};
use super::size_variants::numbers;
use super::verdict::Reason;

/// Tile sizes that an original without masks may have. A size that is smaller by the smallest tile that the original
/// accepts shows whether a candidate works with larger tiles.
const TILES: [i64; 4] = [16, 32, 64, 128];

/// The most sizes that are varied alone.
const VARIED: usize = 4;

/// Pairs of an old size and its new value.
type Resized = Vec<(i64, i64)>;

/// A call on which a candidate is compared with the original.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    /// The name for reports: `rows 4096 → 4093`.
    pub(super) name: String,
    /// The reason for which a candidate that fails the trial is refused.
    pub(super) reason: Reason,
    /// The inputs.
    pub(super) inputs: Inputs,
    /// Whether the kernels have to be compiled anew for this trial.
    pub(super) specializes: bool,
    /// The trial is skipped when the original accepts one of the trials with these indices, which show more.
    pub(super) unless: Vec<usize>,
}

impl Trial {
    fn new(name: impl Into<String>, reason: Reason, inputs: Inputs) -> Self {
        Self { name: name.into(), reason, inputs, specializes: false, unless: Vec::new() }
    }

    /// Whether the original may never have been called like this. Its results there count only if they are credible.
    pub(super) fn is_unheard_of(&self) -> bool {
        matches!(self.reason, Reason::Sizes | Reason::Layout)
            || !self.inputs.others.is_empty()
            || !self.inputs.added.is_empty()
    }

    /// Whether the original may be so inexact on these inputs, where large numbers cancel, that only a run at a higher
    /// precision shows what is right.
    pub(super) fn needs_reference(&self) -> bool {
        matches!(self.inputs.values, FloatContents::Far | FloatContents::Below | FloatContents::ConstantRows)
    }
}

/// The trials of a workload, the first of which is its recorded call. `text` is the text of the entry's file; `seed` is
/// unknown to the proposer of a candidate.
pub(super) fn trials(workload: &Workload, text: &str, seed: u64) -> Vec<Trial> {
    let at = |at: u64| seed.wrapping_add(at.wrapping_mul(0x9e37_79b9)) & 0x7fff_ffff;
    let plain = |seed| Inputs { seed, varied: true, ..Inputs::default() };
    let mut all = vec![
        Trial {
            specializes: true,
            ..Trial::new("the recorded call", Reason::Output, Inputs { varied: false, ..plain(at(0)) })
        },
        Trial::new("the recorded call, other contents", Reason::Output, plain(at(1))),
    ];
    let (floats, indices) = (holds_floats(workload), CallSizes::new(workload, &Inputs::default()).has_indices());
    for (values, name) in VALUES.iter().filter(|(values, _)| floats || indices && *values == FloatContents::Skewed) {
        all.push(Trial::new(format!("inputs: {name}"), Reason::Values, Inputs { values: *values, ..plain(at(2)) }));
    }
    for (name, others) in numbers(workload) {
        let inputs = Inputs { others, ..plain(at(5)) };
        all.push(Trial { specializes: true, ..Trial::new(name, Reason::Values, inputs) });
    }
    for Choice { name, others, added } in choices(workload, text) {
        let inputs = Inputs { others, added, ..plain(at(6)) };
        all.push(Trial { specializes: true, ..Trial::new(name, Reason::Values, inputs) });
    }
    let specs = workload.specs();
    let ranks = specs.iter().filter(|spec| spec.shape.len() > 1).count();
    let has_vector = specs.iter().any(|spec| spec.shape.len() == 1);
    let is_launch = workload.source == WorkloadSource::Launch;
    let is_fit = |layout: Layout| match layout {
        Layout::Shifted => true,
        _ if is_launch => false,
        Layout::Mixed => ranks > 1,
        Layout::Gapped => has_vector,
        _ => true,
    };
    for (layout, name) in LAYOUTS.iter().filter(|(layout, _)| is_fit(*layout)) {
        let inputs = Inputs { layout: *layout, ..plain(at(3)) };
        // Triton specializes kernels for a stride of 1 and for addresses that are multiples of 16.
        all.push(Trial { specializes: true, ..Trial::new(format!("tensors {name}"), Reason::Layout, inputs) });
    }
    let greatest = if workload.is_resizable() { greatest(workload) } else { Vec::new() };
    let (sizes, multiples) = sizes(&greatest);
    let first = all.len();
    let trial = |resize: Resized| {
        let words: Vec<String> = resize.iter().map(|(old, new)| format!("{old} → {new}")).collect();
        let name = format!("sizes {}", words.join(", "));
        Trial { specializes: true, ..Trial::new(name, Reason::Sizes, Inputs { resize, ..plain(at(4)) }) }
    };
    all.extend(sizes.into_iter().map(trial));
    let ordinary = first..all.len();
    let others_of = |all: &[Trial], old: i64| -> Vec<usize> {
        let is_of = |trial: &Trial| trial.inputs.resize.iter().any(|&(of, to)| of == old && to > 1);
        ordinary.clone().filter(|&at| is_of(&all[at])).collect()
    };
    for (old, new) in multiples {
        all.push(Trial { unless: others_of(&all, old), ..trial(vec![(old, new)]) });
    }
    for old in greatest {
        // The first of these sizes that the original accepts shows more than the following ones.
        let mut unless = others_of(&all, old);
        for tile in TILES.into_iter().filter(|tile| old % tile == 0 && old / tile > 2) {
            all.push(Trial { unless: unless.clone(), ..trial(vec![(old, old - tile)]) });
            unless.push(all.len() - 1);
        }
    }
    all
}

const VALUES: &[(FloatContents, &str)] = &[
    (FloatContents::Integers, "small integers"),
    (FloatContents::Large, "large magnitudes"),
    (FloatContents::Far, "all far from zero"),
    (FloatContents::Below, "all far below zero"),
    (FloatContents::Negative, "none above zero"),
    (FloatContents::Tiny, "tiny and denormal"),
    (FloatContents::Subnormal, "all denormal"),
    (FloatContents::Constant, "one constant"),
    (FloatContents::ConstantRows, "one constant in each row"),
    (FloatContents::Zeros, "zeros"),
    (FloatContents::Sorted, "sorted"),
    (FloatContents::Skewed, "a few far greater than the rest"),
    (FloatContents::Outlier, "one in each row far greater than the rest"),
    (FloatContents::Infinite, "minus infinity in some places and rows"),
    (FloatContents::Nan, "a few NaN"),
];

const LAYOUTS: &[(Layout, &str)] = &[
    (Layout::Transposed, "with their last dimensions swapped in memory"),
    (Layout::Mixed, "of which the last alone has its dimensions swapped in memory"),
    (Layout::Sliced, "with gaps between rows"),
    (Layout::Gapped, "whose vectors have gaps between their elements"),
    (Layout::Expanded, "with stride 0"),
    (Layout::Shifted, "one element behind an aligned address"),
];

fn holds_floats(workload: &Workload) -> bool {
    // The file of a model makes its own arguments.
    let mut holds = workload.source == WorkloadSource::KernelBench;
    workload.values().for_each(|value| {
        value.tensors(&mut |spec| {
            holds |= !matches!(spec.data, TensorContents::Integers(_) | TensorContents::Range { .. })
        });
    });
    holds
}

/// The greatest sizes above 1.
fn greatest(workload: &Workload) -> Vec<i64> {
    let mut sizes = BTreeSet::new();
    workload.values().for_each(|value| value.tensors(&mut |spec| sizes.extend(&spec.shape)));
    sizes.retain(|&size| size > 1);
    sizes.iter().rev().take(VARIED).copied().collect()
}

/// Other sizes: each of the greatest alone, and all of them together. Equal sizes vary together, with the integer
/// arguments that equal them. The second part holds multiples, for originals that accept none of the others.
fn sizes(greatest: &[i64]) -> (Vec<Resized>, Resized) {
    let mut all: Vec<Resized> = Vec::new();
    let mut add = |resize: Resized| {
        if !resize.is_empty() {
            all.push(resize);
        }
    };
    let change = |size: i64, new: i64| if new == size { Vec::new() } else { vec![(size, new)] };
    for &size in greatest {
        add(change(size, prime_below(size)));
    }
    add(greatest.iter().map(|&size| (size, size / 2 + 5)).filter(|(old, new)| old != new).collect());
    add(greatest.iter().map(|&size| (size, size + 1)).collect());
    for &size in greatest {
        // A tile that holds a whole row of the recorded size is too small for this one.
        add(change(size, 2 * size + 3));
    }
    for &size in greatest {
        add(change(size, 1));
    }
    if let Some(&size) = greatest.first() {
        add(vec![(size, 0)]);
    }
    // A number of groups or heads up to 8 that divides the size mostly divides these as well.
    let quarters = greatest.iter().filter(|&size| size % 4 == 0);
    (all, quarters.flat_map(|&size| [(size, size / 4 * 3), (size, size / 2 * 3)]).collect())
}

/// The greatest prime below `size`, at least 2.
fn prime_below(size: i64) -> i64 {
    let is_prime = |n: &i64| (2..).take_while(|d| d * d <= *n).all(|d| n % d != 0);
    (2..size).rev().find(is_prime).unwrap_or(2)
}

/// Whether a NaN in the original's results is meaningful. Large magnitudes overflow in intermediate results, in some
/// kernels earlier than in others.
pub(super) fn means_nan(inputs: &Inputs) -> bool {
    !matches!(inputs.values, FloatContents::Large | FloatContents::Far | FloatContents::Below)
}

/// The call as text, for example `softmax(float32[4096,1000], 1000)`.
#[must_use]
pub fn title(workload: &Workload) -> String {
    let mut all: Vec<String> = workload.args.iter().map(text).collect();
    all.extend(workload.kwargs.iter().map(|(name, value)| format!("{name}={}", text(value))));
    format!("{}({})", workload.entry, all.join(", "))
}

/// A value as text for reports.
pub(super) fn text(value: &ArgumentValue) -> String {
    match value {
        ArgumentValue::Tensor(spec) => {
            let shape: Vec<String> = spec.shape.iter().map(i64::to_string).collect();
            format!("{}[{}]", spec.dtype, shape.join(","))
        }
        ArgumentValue::None => "None".to_owned(),
        ArgumentValue::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        ArgumentValue::Int(value) => value.to_string(),
        ArgumentValue::Float(value) => value.to_string(),
        ArgumentValue::Str(value) => format!("{value:?}"),
        ArgumentValue::Dtype(name) | ArgumentValue::Device(name) => name.clone(),
        ArgumentValue::List(items) | ArgumentValue::Tuple(items)
            if items.iter().all(|item| matches!(item, ArgumentValue::Int(_))) =>
        {
            format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", "))
        }
        _ => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size_variants::tests::called;

    #[test]
    fn multiples_are_tried_only_if_other_sizes_fail() {
        let all = trials(&called(Vec::new(), Vec::new()), "", 7);
        let at = |name: &str| all.iter().position(|trial| trial.name == name).unwrap();
        let (multiple, better) = (at("sizes 64 → 48"), at("sizes 64 → 61"));
        assert!(all[multiple].unless.contains(&better) && !all[multiple].unless.contains(&at("sizes 64 → 1")));
        assert!(all.iter().take(multiple).all(|trial| trial.unless.is_empty()));
    }

    #[test]
    fn primes_are_found() {
        assert_eq!([4096, 128, 10, 3, 2].map(prime_below), [4093, 127, 7, 2, 2]);
    }
}
