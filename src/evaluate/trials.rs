//! The calls on which a candidate is compared with the original.

use std::collections::BTreeSet;

use super::verdict::Reason;
use crate::protocol::runner::{Inputs, Layout, Values};
use crate::protocol::{Data, Source, Value, Workload};

/// Sizes that vary alone, at most.
const VARIED: usize = 4;

/// A call on which a candidate is compared with the original.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    /// What it is, for people: `rows 4096 → 4093`.
    pub(super) name: String,
    /// Why a candidate that fails it is refused.
    pub(super) reason: Reason,
    /// The inputs.
    pub(super) inputs: Inputs,
    /// Whether the kernels have to be compiled for it anew.
    pub(super) specializes: bool,
}

impl Trial {
    fn new(name: impl Into<String>, reason: Reason, inputs: Inputs) -> Self {
        Self { name: name.into(), reason, inputs, specializes: false }
    }
}

/// The trials of a workload, the first of which is its recorded call. `seed` is not known to whoever proposes.
pub(super) fn trials(workload: &Workload, seed: u64) -> Vec<Trial> {
    let at = |at: u64| seed.wrapping_add(at.wrapping_mul(0x9e37_79b9)) & 0x7fff_ffff;
    let plain = |seed| Inputs { seed, ..Inputs::default() };
    let mut all = vec![
        Trial { specializes: true, ..Trial::new("the recorded call", Reason::Output, plain(at(0))) },
        Trial::new("the recorded call, other contents", Reason::Output, plain(at(1))),
    ];
    if holds_floats(workload) {
        for (values, name) in VALUES {
            let inputs = Inputs { seed: at(2), values: *values, ..Inputs::default() };
            all.push(Trial::new(format!("inputs: {name}"), Reason::Values, inputs));
        }
    }
    let specs = workload.specs();
    let ranks = specs.iter().filter(|spec| spec.shape.len() > 1).count();
    let has_vector = specs.iter().any(|spec| spec.shape.len() == 1);
    let is_launch = workload.source == Source::Launch;
    let is_fit = |layout: Layout| match layout {
        Layout::Shifted => true,
        _ if is_launch => false,
        Layout::Mixed => ranks > 1,
        Layout::Gapped => has_vector,
        _ => true,
    };
    for (layout, name) in LAYOUTS.iter().filter(|(layout, _)| is_fit(*layout)) {
        let inputs = Inputs { seed: at(3), layout: *layout, ..Inputs::default() };
        // A stride of 1 is another kernel than one of many, an address at a multiple of 16 another than one that is not.
        all.push(Trial { specializes: true, ..Trial::new(format!("tensors {name}"), Reason::Layout, inputs) });
    }
    let sizes = if workload.is_resizable() { sizes(workload) } else { Vec::new() };
    for (name, resize) in sizes {
        let inputs = Inputs { seed: at(4), resize, ..Inputs::default() };
        all.push(Trial { specializes: true, ..Trial::new(name, Reason::Sizes, inputs) });
    }
    all
}

const VALUES: &[(Values, &str)] = &[
    (Values::Integers, "small integers"),
    (Values::Large, "large magnitudes"),
    (Values::Tiny, "tiny and denormal"),
    (Values::Constant, "one constant"),
    (Values::Zeros, "zeros"),
    (Values::Sorted, "sorted"),
    (Values::Skewed, "a few far greater than the rest"),
    (Values::Infinite, "minus infinity in some places and rows"),
    (Values::Nan, "a few NaN"),
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
    // The arguments of a model are made by its file.
    let mut holds = workload.source == Source::KernelBench;
    workload.values().for_each(|value| {
        value.tensors(&mut |spec| holds |= !matches!(spec.data, Data::Integers(_) | Data::Range { .. }));
    });
    holds
}

/// Other sizes: each of the greatest alone, and all together. Equal sizes vary together, with the integer arguments
/// that equal them.
fn sizes(workload: &Workload) -> Vec<(String, Vec<(i64, i64)>)> {
    let mut sizes = BTreeSet::new();
    workload.values().for_each(|value| value.tensors(&mut |spec| sizes.extend(&spec.shape)));
    sizes.retain(|&size| size > 1);
    let greatest: Vec<i64> = sizes.iter().rev().take(VARIED).copied().collect();
    let mut all: Vec<(String, Vec<(i64, i64)>)> = Vec::new();
    let mut add = |resize: Vec<(i64, i64)>| {
        let words: Vec<String> = resize.iter().map(|(old, new)| format!("{old} → {new}")).collect();
        if !resize.is_empty() {
            all.push((format!("sizes {}", words.join(", ")), resize));
        }
    };
    let change = |size: i64, new: i64| if new == size { Vec::new() } else { vec![(size, new)] };
    for &size in &greatest {
        add(change(size, prime_below(size)));
    }
    add(greatest.iter().map(|&size| (size, size / 2 + 5)).filter(|(old, new)| old != new).collect());
    add(greatest.iter().map(|&size| (size, size + 1)).collect());
    for &size in &greatest {
        // Tiles that hold a whole row of the recorded size do not hold this.
        add(change(size, 2 * size + 3));
    }
    for &size in &greatest {
        add(change(size, 1));
    }
    if let Some(&size) = greatest.first() {
        add(vec![(size, 0)]);
    }
    all
}

/// The greatest prime below `size`, at least 2.
fn prime_below(size: i64) -> i64 {
    let is_prime = |n: &i64| (2..).take_while(|d| d * d <= *n).all(|d| n % d != 0);
    (2..size).rev().find(is_prime).unwrap_or(2)
}

/// Whether NaN among the original's results belongs there. Large magnitudes overflow on the way, in one kernel earlier
/// than in another.
pub(super) fn means_nan(inputs: &Inputs) -> bool {
    inputs.values != Values::Large
}

/// `softmax(float32[4096,1000], 1000)`
#[must_use]
pub fn title(workload: &Workload) -> String {
    fn text(value: &Value) -> String {
        match value {
            Value::Tensor(spec) => {
                let shape: Vec<String> = spec.shape.iter().map(i64::to_string).collect();
                format!("{}[{}]", spec.dtype, shape.join(","))
            }
            Value::None => "None".to_owned(),
            Value::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
            Value::Int(value) => value.to_string(),
            Value::Float(value) => value.to_string(),
            Value::Str(value) => format!("{value:?}"),
            Value::Dtype(name) | Value::Device(name) => name.clone(),
            _ => "…".to_owned(),
        }
    }
    let mut all: Vec<String> = workload.args.iter().map(text).collect();
    all.extend(workload.kwargs.iter().map(|(name, value)| format!("{name}={}", text(value))));
    format!("{}({})", workload.entry, all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_found() {
        assert_eq!([4096, 128, 10, 3, 2].map(prime_below), [4093, 127, 7, 2, 2]);
    }
}
