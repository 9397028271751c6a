//! Shapes, strides, offsets and integer arguments of a recorded call at other sizes and in other layouts.

use super::runner::{FloatContents, Inputs, Layout};
use super::workload::{ArgumentValue, TensorSpec, Workload, WorkloadSource};

/// The padding of rows in [`Layout::Sliced`], in elements; it keeps rows of every type aligned.
const PADDING: i64 = 16;

/// The place of a tensor in its storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageLayout {
    /// Sizes.
    pub shape: Vec<i64>,
    /// Strides, in elements.
    pub stride: Vec<i64>,
    /// Offset into the storage, in elements.
    pub offset: i64,
}

impl StorageLayout {
    /// The number of elements of the storage up to the last one that is used.
    #[must_use]
    pub fn extent(&self) -> i64 {
        if self.shape.contains(&0) {
            return 0;
        }
        1 + self.offset + self.shape.iter().zip(&self.stride).map(|(size, stride)| (size - 1) * stride).sum::<i64>()
    }

    /// The number of distinct elements: a dimension of stride 0 counts as one.
    #[must_use]
    pub fn distinct(&self) -> i64 {
        self.shape
            .iter()
            .zip(&self.stride)
            .map(|(&size, &stride)| if stride == 0 { size.min(1) } else { size })
            .product()
    }
}

/// The sizes of a recorded call and their replacements.
#[derive(Debug)]
pub struct CallSizes<'a> {
    pub(super) specs: Vec<&'a TensorSpec>,
    integers: Vec<i64>,
    mutated: &'a [usize],
    source: WorkloadSource,
    pub(super) resize: &'a [(i64, i64)],
    layout: Layout,
    /// The seed of varied contents; `None` keeps the recorded ones.
    pub(super) varied: Option<u64>,
    pub(super) is_skewed: bool,
}

impl<'a> CallSizes<'a> {
    /// The sizes of `workload` as `inputs` changes them.
    #[must_use]
    pub fn new(workload: &'a Workload, inputs: &'a Inputs) -> Self {
        let mut integers = Vec::new();
        workload.values().for_each(|value| collect(value, &mut integers));
        Self {
            specs: workload.specs(),
            integers,
            mutated: &workload.mutated,
            source: workload.source,
            resize: if workload.is_resizable() { &inputs.resize } else { &[] },
            layout: inputs.layout,
            varied: inputs.varied.then_some(inputs.seed),
            is_skewed: inputs.values == FloatContents::Skewed,
        }
    }

    fn size(&self, size: i64) -> i64 {
        self.resize.iter().find(|(old, _)| *old == size).map_or(size, |(_, new)| *new)
    }

    /// The place of a tensor at its new size and in its new layout.
    #[must_use]
    pub fn place(&self, spec: &TensorSpec) -> StorageLayout {
        let resized = self.resized(spec);
        self.laid_out(spec, &resized).unwrap_or(resized)
    }

    /// The place of a tensor at its new size: dense dimensions stay dense, and gaps are scaled with the dimension.
    fn resized(&self, spec: &TensorSpec) -> StorageLayout {
        let shape: Vec<i64> = spec.shape.iter().map(|&size| self.size(size)).collect();
        if self.resize.is_empty() {
            return StorageLayout { shape, stride: spec.stride.clone(), offset: spec.offset };
        }
        let mut order: Vec<usize> = (0..shape.len()).filter(|&dim| spec.stride[dim] != 0).collect();
        order.sort_by_key(|&dim| (spec.stride[dim], spec.shape[dim], std::cmp::Reverse(dim)));
        let mut stride = spec.stride.clone();
        // The extent of the dimensions so far, in elements, before and after.
        let (mut old, mut new) = (1, 1);
        for dim in order {
            let recorded = spec.stride[dim];
            stride[dim] = if old == new {
                recorded
            } else if recorded % old == 0 {
                recorded / old * new
            } else {
                (recorded * new + old - 1) / old
            };
            (old, new) = (recorded * spec.shape[dim].max(1), stride[dim] * shape[dim].max(1));
        }
        let offset = self.offset(spec, &shape, &stride);
        StorageLayout { shape, stride, offset }
    }

    /// The offset at the new size. It is split into steps along each dimension, and multiples of a size are scaled.
    fn offset(&self, spec: &TensorSpec, shape: &[i64], stride: &[i64]) -> i64 {
        let mut order: Vec<usize> = (0..shape.len()).filter(|&dim| spec.stride[dim] != 0).collect();
        order.sort_by_key(|&dim| std::cmp::Reverse(spec.stride[dim]));
        let (mut rest, mut offset) = (spec.offset, 0);
        for dim in order {
            let steps = rest / spec.stride[dim];
            rest %= spec.stride[dim];
            let size = spec.shape[dim].max(1);
            let steps = if steps % size == 0 { steps / size * shape[dim] } else { steps };
            offset += steps * stride[dim];
        }
        offset + rest
    }

    /// The place in the requested layout; `None` if the tensor must keep its own.
    fn laid_out(&self, spec: &TensorSpec, placed: &StorageLayout) -> Option<StorageLayout> {
        let rank = placed.shape.len();
        let is_alone = self.specs.iter().all(|other| other.storage != spec.storage || other.id == spec.id);
        if self.layout == Layout::Recorded || !is_alone || rank == 0 || placed.shape.contains(&0) {
            return None;
        }
        if self.layout == Layout::Shifted {
            return Some(StorageLayout { offset: placed.offset + 1, ..placed.clone() });
        }
        // A kernel that is launched by itself gets strides as plain integers, which would not change with the layout.
        if self.source == WorkloadSource::Launch {
            return None;
        }
        if self.layout == Layout::Gapped {
            return (rank == 1).then(|| StorageLayout { shape: placed.shape.clone(), stride: vec![2], offset: 0 });
        }
        if rank < 2 || self.is_stride_passed(spec) {
            return None;
        }
        let last = self.specs.iter().rev().find(|spec| spec.shape.len() > 1).map(|spec| spec.id);
        let stride = match self.layout {
            Layout::Mixed if last != Some(spec.id) => return None,
            Layout::Transposed | Layout::Mixed => {
                let mut swapped = placed.shape.clone();
                swapped.swap(rank - 1, rank - 2);
                let mut stride = contiguous(&swapped);
                stride.swap(rank - 1, rank - 2);
                stride
            }
            Layout::Sliced => {
                let mut padded = placed.shape.clone();
                padded[rank - 1] += PADDING;
                contiguous(&padded)
            }
            // Rows that share memory cannot be written separately, and a call from a comment may write any tensor.
            Layout::Expanded if self.mutated.contains(&spec.id) || self.source == WorkloadSource::Comment => {
                return None;
            }
            Layout::Expanded => {
                let mut stride = contiguous(&[&[1], &placed.shape[1..]].concat());
                stride[0] = 0;
                stride
            }
            Layout::Recorded | Layout::Shifted | Layout::Gapped => return None,
        };
        Some(StorageLayout { shape: placed.shape.clone(), stride, offset: 0 })
    }

    /// Whether an integer argument may be one of its strides, which would not change with the layout.
    fn is_stride_passed(&self, spec: &TensorSpec) -> bool {
        let is_size = |value: i64| self.specs.iter().any(|spec| spec.shape.contains(&value));
        let strides = spec.shape.iter().zip(&spec.stride).filter(|(size, _)| **size > 1).map(|(_, stride)| *stride);
        strides.filter(|&stride| stride > 1).any(|stride| self.integers.contains(&stride) && !is_size(stride))
    }

    /// The new value of an integer argument that is a size, a stride or a product of sizes; other integers are kept.
    #[must_use]
    pub fn integer(&self, value: i64) -> i64 {
        let replaced = self.size(value);
        if replaced != value || self.resize.is_empty() || value < 2 {
            return replaced;
        }
        // An ambiguous integer is kept.
        if let [one] = self.meanings(value)[..] { one } else { value }
    }

    /// Whether an integer argument equals a size, a stride or a product of sizes. The match may be a coincidence.
    #[must_use]
    pub fn is_size(&self, value: i64) -> bool {
        !self.meanings(value).is_empty()
    }

    fn meanings(&self, value: i64) -> Vec<i64> {
        let mut meanings: Vec<i64> = Vec::new();
        for spec in &self.specs {
            let placed = self.resized(spec);
            let rank = spec.shape.len();
            let mut means = |old: i64, new: i64| {
                if old == value && !meanings.contains(&new) {
                    meanings.push(new);
                }
            };
            for dim in 0..rank {
                means(spec.shape[dim], placed.shape[dim]);
                if spec.shape[dim] > 1 {
                    means(spec.stride[dim], placed.stride[dim]);
                }
                for end in dim + 1..=rank {
                    means(spec.shape[dim..end].iter().product(), placed.shape[dim..end].iter().product());
                    if end < rank {
                        means(spec.shape[dim] * spec.shape[end], placed.shape[dim] * placed.shape[end]);
                    }
                }
            }
        }
        meanings
    }
}

fn collect(value: &ArgumentValue, integers: &mut Vec<i64>) {
    match value {
        ArgumentValue::Int(value) => integers.push(*value),
        other => other.inner().for_each(|item| collect(item, integers)),
    }
}

/// The strides of a dense, row-major tensor, in elements.
#[must_use]
pub fn contiguous(shape: &[i64]) -> Vec<i64> {
    let mut stride = vec![1; shape.len()];
    for dim in (1..shape.len()).rev() {
        stride[dim - 1] = stride[dim] * shape[dim].max(1);
    }
    stride
}

#[cfg(test)]
mod tests {
    use super::super::workload::TensorContents;
    use super::*;

    fn tensor(id: usize, storage: usize, shape: &[i64], stride: &[i64], offset: i64) -> TensorSpec {
        let (shape, stride) = (shape.to_vec(), stride.to_vec());
        TensorSpec { id, storage, shape, stride, offset, ..TensorSpec::default() }
    }

    fn call(specs: Vec<TensorSpec>, integers: &[i64]) -> Workload {
        let tensors = specs.into_iter().map(ArgumentValue::Tensor);
        let args = tensors.chain(integers.iter().map(|&value| ArgumentValue::Int(value))).collect();
        Workload { args, ..Workload::default() }
    }

    fn placed(workload: &Workload, inputs: &Inputs) -> Vec<(Vec<i64>, Vec<i64>, i64)> {
        let sizes = CallSizes::new(workload, inputs);
        let of = |spec: &TensorSpec| {
            let StorageLayout { shape, stride, offset } = sizes.place(spec);
            (shape, stride, offset)
        };
        workload.specs().into_iter().map(of).collect()
    }

    fn resize(pairs: &[(i64, i64)]) -> Inputs {
        Inputs { resize: pairs.to_vec(), ..Inputs::default() }
    }

    #[test]
    fn resized_tensors_keep_dense_strides_and_gaps() {
        for (shape, stride, to, expected) in [
            (vec![8, 100], vec![100, 1], (100, 97), (vec![8, 97], vec![97, 1])),
            (vec![100, 8], vec![1, 100], (100, 97), (vec![97, 8], vec![1, 97])),
            (vec![8, 100], vec![300, 1], (100, 97), (vec![8, 97], vec![291, 1])),
            (vec![8, 100], vec![128, 1], (8, 7), (vec![7, 100], vec![128, 1])),
            (vec![8, 100], vec![128, 1], (100, 50), (vec![8, 50], vec![64, 1])),
            (vec![8, 100], vec![0, 1], (8, 7), (vec![7, 100], vec![0, 1])),
            (vec![4, 8, 100], vec![800, 100, 1], (8, 7), (vec![4, 7, 100], vec![700, 100, 1])),
            (vec![1, 100], vec![100, 1], (100, 97), (vec![1, 97], vec![97, 1])),
        ] {
            let workload = call(vec![tensor(0, 0, &shape, &stride, 0)], &[]);
            assert_eq!(placed(&workload, &resize(&[to])), [(expected.0, expected.1, 0)], "{shape:?} {stride:?}");
        }
    }

    /// Three parts of one row stay side by side and do not overlap.
    #[test]
    fn parts_of_one_storage_stay_apart() {
        let part = |at: usize| tensor(at, 0, &[10, 64], &[192, 1], 64 * at as i64);
        let workload = call(vec![part(0), part(1), part(2)], &[]);
        let offsets = |to| placed(&workload, &resize(&[to])).into_iter().map(|(_, stride, offset)| (stride[0], offset));
        assert!(offsets((10, 9)).eq([(192, 0), (192, 64), (192, 128)]));
        assert!(offsets((64, 32)).eq([(96, 0), (96, 32), (96, 64)]));
    }

    #[test]
    fn integers_follow_sizes_strides_and_products() {
        let workload = call(vec![tensor(0, 0, &[8, 100, 64], &[12800, 128, 1], 0)], &[]);
        let inputs = resize(&[(100, 97), (64, 32)]);
        let sizes = CallSizes::new(&workload, &inputs);
        for (value, expected) in [
            (100, 97),
            (8, 8),
            (128, 64),        // a stride with a gap
            (12800, 6208),    // the stride around it
            (800, 776),       // rows
            (51_200, 24_832), // elements
            (6400, 3104),     // a matrix
            (512, 256),       // the first and the last
            (7, 7),
            (1, 1),
        ] {
            assert_eq!(sizes.integer(value), expected, "{value}");
        }
        // 64 is a size that stays and a stride that changes, so its meaning is ambiguous.
        let workload = call(vec![tensor(0, 0, &[64], &[1], 0), tensor(1, 1, &[5, 32], &[64, 1], 0)], &[64]);
        assert_eq!(CallSizes::new(&workload, &resize(&[(32, 16)])).integer(64), 64);
    }

    #[test]
    fn layout_variants_change_strides_as_named() {
        let x = tensor(0, 0, &[4, 6], &[6, 1], 0);
        let with = |layout| Inputs { layout, ..Inputs::default() };
        let one = |workload: &Workload, layout| placed(workload, &with(layout)).remove(0);
        let workload = call(vec![x.clone(), tensor(1, 1, &[6], &[1], 0)], &[6]);
        assert_eq!(one(&workload, Layout::Transposed), (vec![4, 6], vec![1, 4], 0));
        assert_eq!(one(&workload, Layout::Sliced), (vec![4, 6], vec![22, 1], 0));
        assert_eq!(one(&workload, Layout::Expanded), (vec![4, 6], vec![0, 1], 0));
        assert_eq!(one(&workload, Layout::Shifted), (vec![4, 6], vec![6, 1], 1));
        assert_eq!(placed(&workload, &with(Layout::Transposed))[1], (vec![6], vec![1], 0));
        // A kernel that is launched by itself does not get the strides of its tensors.
        let launch = Workload { source: WorkloadSource::Launch, ..workload.clone() };
        assert_eq!(one(&launch, Layout::Transposed), (vec![4, 6], vec![6, 1], 0));
        let changed = Workload { mutated: vec![0], ..workload };
        assert_eq!(one(&changed, Layout::Expanded), (vec![4, 6], vec![6, 1], 0));
        let shared = call(vec![x, tensor(1, 0, &[6], &[1], 0)], &[]);
        assert_eq!(one(&shared, Layout::Shifted), (vec![4, 6], vec![6, 1], 0));
    }

    #[test]
    fn indices_stay_inside_of_what_they_point_into() {
        let integers = |values: &[i64]| TensorSpec {
            data: TensorContents::Integers(values.to_vec()),
            ..tensor(0, 0, &[values.len() as i64], &[1], 0)
        };
        let of = |spec: TensorSpec, inputs: &Inputs| {
            let workload = call(vec![spec.clone()], &[]);
            let sizes = CallSizes::new(&workload, inputs);
            sizes.data(&spec, &sizes.place(&spec))
        };
        let inputs = resize(&[(300, 290), (4, 6)]);
        assert_eq!(of(integers(&[0, 100, 300]), &inputs), TensorContents::Integers(vec![0, 96, 290]));
        assert_eq!(of(integers(&[299, 5, 290]), &inputs), TensorContents::Integers(vec![9, 5, 0]));
        assert_eq!(of(integers(&[7, 5, 9]), &inputs), TensorContents::Integers(vec![7, 5, 9]));
        // The number of indices is itself a replaced size, so new ones are drawn from their range.
        let sorted = TensorContents::Range { low: 0, high: 290, sorted: true, zeros: 0.0 };
        assert_eq!(of(integers(&[0, 100, 200, 300]), &inputs), sorted);
        let floats = TensorSpec { data: TensorContents::Floats(vec![1.0; 4]), ..tensor(0, 0, &[4], &[1], 0) };
        assert_eq!(of(floats, &inputs), TensorContents::normal(1.0, 0.0, 1.0, 1.0));
    }
}
