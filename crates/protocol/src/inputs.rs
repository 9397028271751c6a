//! The inputs that a call is made with.

use serde::{Deserialize, Serialize};

use super::Value;

/// Inputs of a call, made from a recorded one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inputs {
    /// Equal seeds give equal contents.
    pub seed: u64,
    /// Sizes to replace in shapes and integer arguments, old and new.
    pub resize: Vec<(i64, i64)>,
    /// Arguments that are others, by their number in [`super::Workload::values`].
    pub others: Vec<(usize, Value)>,
    /// Keyword arguments beside the recorded ones.
    pub added: Vec<(String, Value)>,
    /// What float tensors hold.
    pub values: Values,
    /// What stands where [`Self::values`] puts infinities and NaN, if not those.
    pub finite: Option<Finite>,
    /// The tensor that alone has those, by its number; without it all have.
    pub finite_in: Option<usize>,
    /// Tensors whose recorded contents are kept hold others, made of those.
    pub varied: bool,
    /// How tensors lie in memory.
    pub layout: Layout,
    /// Float tensors are widened to this type, `float64` or `float32`, with the values that the narrow ones have.
    pub widen: Option<String>,
    /// What the function gets are copies that lie densely in memory, with the contents of tensors that lie otherwise.
    pub dense: bool,
    /// The memory around tensors holds zeros: what is read from there is nothing that shows by itself.
    pub unmarked: bool,
    /// Float elements move by up to so many units in the last place, by this seed; with [`Self::widen`], in that of the
    /// wider type.
    pub jitter: Option<u64>,
    /// Which tensors hold numbers of tf32 alone.
    pub coarse: Coarse,
}

impl Inputs {
    /// Whether sizes, types and strides are the recorded ones: the same kernels are launched in the same way.
    #[must_use]
    pub fn is_as_recorded(&self) -> bool {
        let (sizes, values) = (self.resize.is_empty(), self.others.is_empty() && self.added.is_empty());
        sizes && values && self.layout == Layout::Recorded && self.widen.is_none()
    }
}

/// Tensors of 32 bits that hold numbers with 10 bits of mantissa alone, as products in tf32 take them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coarse {
    /// Numbers of the tensors.
    pub tensors: Vec<usize>,
    /// To the nearest, not towards zero.
    pub rounds: bool,
}

/// What float tensors hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Values {
    /// Like the recorded ones.
    #[default]
    Recorded,
    /// Magnitudes far above the recorded ones, in range of the type.
    Large,
    /// Far from zero, all on one side, so that their squares hide how they differ.
    Far,
    /// Far below, some of them denormal.
    Tiny,
    /// One value everywhere.
    Constant,
    /// Ascending along the last dimension.
    Sorted,
    /// A few elements a thousand times the rest.
    Skewed,
    /// Some elements, and the whole of some rows, are minus infinity.
    Infinite,
    /// A few elements are NaN.
    Nan,
    /// Small integers, with which sums and products are exact.
    Integers,
    /// Zeros.
    Zeros,
}

/// Numbers in the places of infinities and NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finite {
    /// One that could have been recorded.
    Usual,
    /// One some thousand times as far from zero.
    Great,
}

/// How tensors of two and more dimensions lie in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// As recorded.
    #[default]
    Recorded,
    /// The last two dimensions are swapped in memory.
    Transposed,
    /// Rows are longer than they need be.
    Sliced,
    /// The first dimension has stride 0.
    Expanded,
    /// Each begins one element behind an aligned address.
    Shifted,
    /// The last one alone is transposed.
    Mixed,
    /// Between the elements of vectors there is room for another.
    Gapped,
}
