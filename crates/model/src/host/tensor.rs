//! Tensors of host code: where they come from, and their types, sizes and strides.

use std::sync::Arc;

use super::number::{HostNumber, HostOperator};
use crate::analysis::types::dtype::Dtype;
use crate::syntax::Span;

/// The number of a tensor in a [`HostRun`](super::HostRun).
pub type TensorId = usize;

/// A tensor of host code.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor {
    /// How the file calls it, if a name refers to it. A name that is bound anew is followed by `@` and a number.
    pub name: Option<Arc<str>>,
    /// The name of the tensor whose sizes it has, where they are not known: `x` for `torch.empty_like(x)`.
    pub like: Option<Arc<str>>,
    /// Where it comes from.
    pub origin: TensorOrigin,
    /// Span of the expression that makes it.
    pub made: Option<Span>,
    /// Tensors with the same number share memory.
    pub storage: usize,
    /// For `x.flatten()` and `x.reshape(…)` of a tensor that may have gaps: `x`, of which this may be a copy.
    pub copied_from: Option<TensorId>,
    /// The type of its elements, if it is known.
    pub dtype: Option<Dtype>,
    /// Its sizes; `None` when not even their number is known.
    pub shape: Option<Vec<HostNumber>>,
    /// How its elements lie in memory.
    pub layout: Layout,
}

/// Where a tensor comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorOrigin {
    /// From the caller, or from anything else that is not followed.
    Given,
    /// From autograd: the gradient of an output, which may have any strides.
    Gradient,
    /// A new tensor that nothing has set: `torch.empty`.
    Unset,
    /// A new tensor with values: `torch.zeros`, a copy, the result of an operation.
    Set,
}

/// How the elements of a tensor lie in memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Layout {
    /// Not known.
    Unknown,
    /// Row by row without gaps.
    Contiguous,
    /// With these strides, in elements.
    Strided(Vec<HostNumber>),
    /// A part of another tensor along this axis, cut to a size of its own: rows are as far apart as in the whole.
    Sliced {
        /// The axis that is cut.
        axis: usize,
        /// The strides, in elements.
        strides: Vec<HostNumber>,
    },
}

/// `at`, which counts from the end when it is negative, as an index below `len`.
#[must_use]
pub(super) fn axis(at: i128, len: usize) -> Option<usize> {
    let len_signed = i128::try_from(len).ok()?;
    let at = if at < 0 { at + len_signed } else { at };
    usize::try_from(at).ok().filter(|at| *at < len)
}

impl HostTensor {
    /// The name of this tensor in messages and for sizes that are not known.
    #[must_use]
    pub fn label(&self) -> &str {
        let name = self.name.as_deref().unwrap_or("the tensor");
        name.split('@').next().unwrap_or(name)
    }

    /// The name by which its sizes are called where they are not known.
    pub(super) fn sizes_of(&self) -> Option<&Arc<str>> {
        self.like.as_ref().or(self.name.as_ref())
    }

    /// The size along an axis, which counts from the end when it is negative.
    #[must_use]
    pub fn size(&self, at: i128) -> HostNumber {
        match (&self.shape, self.sizes_of()) {
            (Some(shape), _) => axis(at, shape.len()).map_or(HostNumber::Unknown, |at| shape[at].clone()),
            (None, Some(name)) => HostNumber::given(format!("{name}.shape[{at}]")),
            (None, None) => HostNumber::Unknown,
        }
    }

    /// The number of elements.
    #[must_use]
    pub fn count(&self) -> HostNumber {
        match (&self.shape, self.sizes_of()) {
            (Some(shape), _) => product(shape),
            (None, Some(name)) => HostNumber::given(format!("{name}.numel()")),
            (None, None) => HostNumber::Unknown,
        }
    }

    /// The stride along an axis in elements, which counts from the end when it is negative.
    #[must_use]
    pub fn stride(&self, at: i128) -> HostNumber {
        match (&self.layout, &self.shape) {
            (Layout::Contiguous, Some(shape)) => {
                axis(at, shape.len()).map_or(HostNumber::Unknown, |at| product(&shape[at + 1..]))
            }
            (Layout::Contiguous, None) if at == -1 => HostNumber::Known(1),
            (Layout::Strided(strides) | Layout::Sliced { strides, .. }, _) => {
                axis(at, strides.len()).map_or(HostNumber::Unknown, |at| strides[at].clone())
            }
            _ => self.given_stride(at),
        }
    }

    fn given_stride(&self, at: i128) -> HostNumber {
        let at = self.shape.as_ref().and_then(|shape| axis(at, shape.len())).map_or(at, |at| at as i128);
        match &self.name {
            Some(name) => HostNumber::given(format!("{name}.stride({at})")),
            None => HostNumber::Unknown,
        }
    }

    /// All strides in elements; `None` when the number of axes is not known.
    #[must_use]
    pub fn strides(&self) -> Option<Vec<HostNumber>> {
        let rank = self.shape.as_ref()?.len();
        Some((0..rank).map(|at| self.stride(at as i128)).collect())
    }

    /// Whether the elements certainly lie row by row without gaps.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.layout == Layout::Contiguous
    }
}

/// The product of sizes.
#[must_use]
pub(super) fn product(sizes: &[HostNumber]) -> HostNumber {
    sizes
        .iter()
        .fold(HostNumber::Known(1), |product, size| HostNumber::operation(HostOperator::Python("*"), &product, size))
}
