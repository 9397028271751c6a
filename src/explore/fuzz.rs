//! Other sizes than the recorded ones: a candidate must not be right only where it was timed.

use std::collections::BTreeSet;

use crate::protocol::Workload;

/// Sizes below this are more likely counts (heads, channels) than lengths.
const LEAST: i64 = 32;

/// Replacements of sizes, old and new, each to be tried alone. Equal sizes vary together, integer arguments that equal
/// a size with them. `tile` is the largest tile of the original, so the first takes multiples of it away, which the
/// original surely bears when it bears the recorded sizes; the others are odd, and small.
pub(super) fn resizes(workload: &Workload, tile: i64) -> Vec<Vec<(i64, i64)>> {
    let mut sizes = BTreeSet::new();
    workload.values().for_each(|value| value.tensors(&mut |spec| sizes.extend(&spec.shape)));
    sizes.retain(|&size| size >= LEAST);
    let change = |new: &dyn Fn(i64) -> i64| -> Vec<(i64, i64)> {
        sizes.iter().map(|&size| (size, new(size))).filter(|&(old, new)| new >= 1 && new != old).collect()
    };
    let mut all =
        vec![change(&|size| size - tile), change(&|size| size - 3), change(&|size| (size / 2 + 5).min(2 * tile + 1))];
    all.retain(|resize| !resize.is_empty());
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{TensorSpec, Value};

    #[test]
    fn equal_sizes_vary_together_and_small_ones_stay() {
        let tensor = |shape: &[i64]| {
            Value::Tensor(TensorSpec { shape: shape.to_vec(), stride: vec![1; shape.len()], ..TensorSpec::default() })
        };
        let args = vec![tensor(&[4096, 8]), tensor(&[4096, 1000]), Value::Int(4096)];
        let workload = Workload { args, ..Workload::default() };
        assert_eq!(
            resizes(&workload, 64),
            [vec![(1000, 936), (4096, 4032)], vec![(1000, 997), (4096, 4093)], vec![(1000, 129), (4096, 129)],]
        );
    }
}
