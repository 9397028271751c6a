//! Descriptions of the inputs of a call, derived from a recorded call.

use serde::{Deserialize, Serialize};

use super::ArgumentValue;

/// The inputs of a call, as changes of a recorded call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inputs {
    /// The seed of the random number generator; equal seeds give equal contents.
    pub seed: u64,
    /// The sizes to replace in shapes and integer arguments, as pairs of old and new.
    pub resize: Vec<(i64, i64)>,
    /// Arguments that replace recorded ones, by their index in [`super::Workload::values`].
    pub others: Vec<(usize, ArgumentValue)>,
    /// Keyword arguments in addition to the recorded ones.
    pub added: Vec<(String, ArgumentValue)>,
    /// The kind of contents of float tensors.
    pub values: FloatContents,
    /// Finite numbers that take the places of the infinities and NaN of [`Self::values`], if any.
    pub finite: Option<Finite>,
    /// The id of the only tensor in which [`Self::finite`] applies; `None` means all tensors.
    pub finite_in: Option<usize>,
    /// Tensors whose contents were recorded get varied contents instead of exactly those.
    pub varied: bool,
    /// The memory layout of tensors.
    pub layout: Layout,
    /// The type to which float tensors are widened, `float64` or `float32`; their values are those of the narrow
    /// tensors.
    pub widen: Option<String>,
    /// The function gets dense copies of the tensors, with the contents that they have in their own layout.
    pub dense: bool,
    /// The memory around tensors holds zeros instead of marks, so that reads out of bounds do not show in results.
    pub unmarked: bool,
    /// The seed by which float elements move by up to one unit in the last place; with [`Self::widen`], in that of the
    /// wider type.
    pub jitter: Option<u64>,
    /// The tensors whose elements are reduced to the precision of tf32.
    pub coarse: Coarse,
    /// How float elements are replaced to find out what a kernel sums.
    pub terms: Option<Terms>,
}

impl Inputs {
    /// Whether sizes, types and strides are the recorded ones, so that the same kernels are launched in the same way.
    #[must_use]
    pub fn is_as_recorded(&self) -> bool {
        let (sizes, values) = (self.resize.is_empty(), self.others.is_empty() && self.added.is_empty());
        sizes && values && self.layout == Layout::Recorded && self.widen.is_none()
    }
}

/// Tensors of 32-bit floats whose elements are reduced to 10 bits of mantissa, the precision of tf32 products.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coarse {
    /// The indices of the tensors.
    pub tensors: Vec<usize>,
    /// Whether elements are rounded to nearest instead of towards zero.
    pub rounds: bool,
}

/// The kind of contents of float tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FloatContents {
    /// The distribution of the recorded contents.
    #[default]
    Recorded,
    /// Magnitudes far above the recorded ones, within the range of the type.
    Large,
    /// Values far from zero with one sign, so that their differences are lost in their squares.
    Far,
    /// Values far below zero, for tensors that may be negative.
    Below,
    /// No positive values, for tensors that may be negative.
    Negative,
    /// Magnitudes far below the recorded ones, some of them denormal.
    Tiny,
    /// Denormal numbers alone.
    Subnormal,
    /// One value everywhere.
    Constant,
    /// One value in each row, another one in the next.
    ConstantRows,
    /// Values that ascend along the last dimension.
    Sorted,
    /// A few elements are a thousand times the rest.
    Skewed,
    /// One element of each row is a thousand times the rest.
    Outlier,
    /// Some elements, and the whole of some rows, are minus infinity.
    Infinite,
    /// A few elements are NaN.
    Nan,
    /// Small integers, whose sums and products are exact.
    Integers,
    /// Zeros.
    Zeros,
}

/// Finite numbers in the places of infinities and NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finite {
    /// A number that could have been recorded.
    Usual,
    /// A number some thousand times as far from zero.
    Great,
}

/// Replacements of float elements that show the magnitudes of the terms of sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Terms {
    /// Each element by twice its value. A sum of products then becomes a power of two as great, exactly.
    Doubled,
    /// Each element by a fixed part of its magnitude, so that their sums do not overflow. A sum of products then becomes
    /// the same part of the sum of their magnitudes.
    Absolute,
}

/// The memory layout of tensors; most layouts change only tensors of at least two dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// The recorded layout.
    #[default]
    Recorded,
    /// The last two dimensions are swapped in memory.
    Transposed,
    /// Rows are padded at their end.
    Sliced,
    /// The first dimension has stride 0.
    Expanded,
    /// Each tensor begins one element after an aligned address.
    Shifted,
    /// Only the last tensor is transposed.
    Mixed,
    /// Vectors have stride 2.
    Gapped,
}
