//! The elements of tensors whose contents were recorded, adapted to other sizes and varied by a seed.

use super::sizes::{CallSizes, StorageLayout};
use super::workload::{FloatDistribution, TensorContents, TensorSpec};

impl CallSizes<'_> {
    /// Whether a tensor holds integers whose order does not matter. If several tensors hold integers, or if the
    /// integers ascend, they may depend on each other.
    #[must_use]
    pub fn has_indices(&self) -> bool {
        self.specs.iter().any(|spec| self.are_indices(spec))
    }

    fn are_indices(&self, spec: &TensorSpec) -> bool {
        let holds = |spec: &&&TensorSpec| {
            spec.dtype != "bool" && matches!(spec.data, TensorContents::Integers(_) | TensorContents::Range { .. })
        };
        let is_alone = self.specs.iter().filter(holds).count() == 1;
        is_alone
            && matches!(&spec.data, TensorContents::Integers(values) if spec.dtype != "bool" && !values.is_sorted())
    }

    /// The elements of a tensor at its new place. Recorded values are kept if their number is the same, and indices
    /// stay in range of the dimension that they index.
    #[must_use]
    pub fn data(&self, spec: &TensorSpec, placed: &StorageLayout) -> TensorContents {
        let recorded = StorageLayout { shape: spec.shape.clone(), stride: spec.stride.clone(), offset: spec.offset };
        let is_same = placed.shape == spec.shape && placed.distinct() == recorded.distinct();
        match &spec.data {
            TensorContents::Integers(values) => {
                let is_sorted = values.is_sorted();
                let (low, high) = (values.iter().min().copied(), values.iter().max().copied());
                let (low, high) = (low.unwrap_or(0), high.unwrap_or(0));
                if is_same {
                    return TensorContents::Integers(
                        self.varied_integers(spec, self.kept_inside(values, is_sorted, high)),
                    );
                }
                let high = self.bound(high, is_sorted);
                TensorContents::Range { low: low.min(high), high, sorted: is_sorted && values.len() > 2, zeros: 0.0 }
            }
            TensorContents::Range { low, high, sorted, zeros } => {
                let high = self.bound(*high, *sorted);
                TensorContents::Range { low: (*low).min(high), high, sorted: *sorted, zeros: *zeros }
            }
            TensorContents::Floats(values) if !is_same => statistics(values),
            TensorContents::Floats(values) => TensorContents::Floats(self.varied_floats(spec, values.clone())),
            other => other.clone(),
        }
    }

    /// The recorded integers with their rows rotated; for skewed contents most of them become the same one.
    fn varied_integers(&self, spec: &TensorSpec, mut values: Vec<i64>) -> Vec<i64> {
        let Some(seed) = self.varied.filter(|_| spec.dtype == "bool" || self.are_indices(spec)) else { return values };
        turn(&mut values, spec.shape.first().and_then(|&size| usize::try_from(size).ok()).unwrap_or(1), seed);
        if self.is_skewed && self.are_indices(spec) && !values.is_empty() {
            let one = values[(seed % values.len() as u64) as usize];
            let kept = |at: usize| (at as u64).wrapping_mul(0x9e37_79b9).wrapping_add(seed) >> 7 & 3 == 0;
            values.iter_mut().enumerate().filter(|(at, _)| !kept(*at)).for_each(|(_, value)| *value = one);
        }
        values
    }

    /// The recorded floats, rotated along the last dimension, which keeps the sums of rows. A single float is scaled.
    /// Ascending floats are not changed.
    fn varied_floats(&self, spec: &TensorSpec, mut values: Vec<f64>) -> Vec<f64> {
        let Some(seed) = self.varied else { return values };
        let last = spec.shape.last().zip(spec.stride.last()).filter(|&(_, &stride)| stride != 0);
        let row = last.and_then(|(&size, _)| usize::try_from(size).ok()).filter(|&row| row > 1).unwrap_or(values.len());
        if let [one] = &mut values[..] {
            *one *= 0.75;
        } else if !values.is_sorted() && values.len().is_multiple_of(row) {
            values.chunks_mut(row).for_each(|row| turn(row, row.len(), seed));
        }
        values
    }

    /// The replaced size, old and new, of the dimension that indices up to `high` may index. The last of sorted values
    /// may also equal the size.
    fn indexed(&self, high: i64, is_sorted: bool) -> Option<(i64, i64)> {
        let ends = self.resize.iter().find(|(old, new)| is_sorted && *old == high && old != new);
        let inside = self.resize.iter().filter(|(old, new)| high < *old && high >= *new && *new > 0);
        ends.or_else(|| inside.min_by_key(|(old, _)| *old)).copied()
    }

    fn bound(&self, high: i64, is_sorted: bool) -> i64 {
        match self.indexed(high, is_sorted) {
            Some((old, new)) if old == high => new,
            Some((_, new)) => new - 1,
            None => high,
        }
    }

    /// Indices that fit the new size. Ends of sequences are scaled, so that the last one is the new length; other
    /// sorted indices are clamped, and unsorted ones wrap around.
    fn kept_inside(&self, values: &[i64], is_sorted: bool, high: i64) -> Vec<i64> {
        match self.indexed(high, is_sorted) {
            Some((old, new)) if old == high => {
                let scaled = |value: i64| i64::try_from(i128::from(value) * i128::from(new) / i128::from(old));
                values.iter().map(|&value| scaled(value).unwrap_or(value)).collect()
            }
            Some((_, new)) if is_sorted => values.iter().map(|&value| value.min(new - 1)).collect(),
            Some((_, new)) => values.iter().map(|&value| if value >= new { value % new } else { value }).collect(),
            None => values.to_vec(),
        }
    }
}

/// Rotates `count` parts of equal size by a number of parts that depends on the seed.
fn turn<T>(values: &mut [T], count: usize, seed: u64) {
    if count > 1 && values.len().is_multiple_of(count) {
        let steps = 1 + (seed % (count as u64 - 1)) as usize;
        values.rotate_left(steps * (values.len() / count));
    }
}

/// The statistics of these floats, from which another number of floats can be drawn.
fn statistics(values: &[f64]) -> TensorContents {
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    if finite.is_empty() {
        return TensorContents::default();
    }
    let count = finite.len() as f64;
    let mean = finite.iter().sum::<f64>() / count;
    let std = (finite.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    let low = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let high = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let share =
        |is: &dyn Fn(f64) -> bool| values.iter().filter(|value| is(**value)).count() as f64 / values.len() as f64;
    let infinite = share(&|value| value == f64::NEG_INFINITY);
    TensorContents::Normal {
        mean,
        std,
        low,
        high,
        zeros: share(&|value| value == 0.0),
        infinite,
        kind: FloatDistribution::General,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::{FloatContents, Inputs};
    use crate::{ArgumentValue, Workload};

    fn tensor(shape: &[i64], dtype: &str, data: TensorContents) -> TensorSpec {
        let stride = super::super::sizes::contiguous(shape);
        TensorSpec { shape: shape.to_vec(), stride, dtype: dtype.to_owned(), data, ..TensorSpec::default() }
    }

    fn varied(specs: &[TensorSpec], values: FloatContents) -> Vec<TensorContents> {
        let args = specs.iter().cloned().map(ArgumentValue::Tensor).collect();
        let workload = Workload { args, ..Workload::default() };
        let inputs = Inputs { seed: 5, values, varied: true, ..Inputs::default() };
        let sizes = CallSizes::new(&workload, &inputs);
        specs.iter().map(|spec| sizes.data(spec, &sizes.place(spec))).collect()
    }

    #[test]
    fn varied_contents_stay_within_recorded_values() {
        let floats = |values: &[f64]| TensorContents::Floats(values.to_vec());
        let specs = [
            tensor(&[2, 3], "float32", floats(&[0.5, 0.2, 0.3, 0.1, 0.8, 0.1])),
            tensor(&[4], "float32", floats(&[1.0, 2.0, 3.0, 4.0])),
            tensor(&[1], "float32", floats(&[2.0])),
            tensor(&[4], "bool", TensorContents::Integers(vec![1, 0, 0, 0])),
        ];
        let expected = [
            floats(&[0.3, 0.5, 0.2, 0.1, 0.1, 0.8]),
            floats(&[1.0, 2.0, 3.0, 4.0]),
            floats(&[1.5]),
            TensorContents::Integers(vec![0, 1, 0, 0]),
        ];
        assert_eq!(varied(&specs, FloatContents::Recorded), expected);
    }

    #[test]
    fn independent_indices_are_permuted() {
        let indices = tensor(&[4], "int64", TensorContents::Integers(vec![7, 2, 9, 4]));
        let ascending = tensor(&[3], "int32", TensorContents::Integers(vec![0, 2, 4]));
        let one = varied(std::slice::from_ref(&indices), FloatContents::Recorded);
        assert_eq!(one, [TensorContents::Integers(vec![4, 7, 2, 9])]);
        let [TensorContents::Integers(skewed)] = &varied(std::slice::from_ref(&indices), FloatContents::Skewed)[..]
        else {
            panic!()
        };
        assert!(skewed.iter().all(|value| [7, 2, 9, 4].contains(value)) && skewed[1..] != [7, 2, 9]);
        for together in [&[indices, ascending.clone()][..], &[ascending]] {
            let kept: Vec<TensorContents> = together.iter().map(|spec| spec.data.clone()).collect();
            assert_eq!(varied(together, FloatContents::Skewed), kept);
        }
    }
}
