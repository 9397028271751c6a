//! Values of host code.

use std::sync::Arc;

use super::number::HostNumber;
use super::tensor::TensorId;
use crate::analysis::types::dtype::Dtype;

/// A value of host code.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum HostValue {
    /// Nothing is known about it.
    #[default]
    Unknown,
    /// A value that is not followed, by the name that holds it and a number: `n@3`. It is the same wherever this is met.
    Opaque(Arc<str>),
    /// A parameter of the function, by its name: its uses tell whether it is a number or a tensor.
    Given(Arc<str>),
    /// `None`
    None,
    /// A truth value, if it is known.
    Bool(Option<bool>),
    /// An integer.
    Number(HostNumber),
    /// A float.
    Float,
    /// A string.
    Text(Arc<str>),
    /// A dtype of torch or of `triton.language`, if it is known.
    Dtype(Option<Dtype>),
    /// A tensor, by its number in the run.
    Tensor(TensorId),
    /// `x.shape` of a tensor whose number of axes is not known.
    Sizes(TensorId),
    /// `x.stride()` of such a tensor.
    Strides(TensorId),
    /// A tuple or list.
    Tuple(Vec<Self>),
    /// A lambda, by its number in the run.
    Lambda(usize),
    /// The method of a tensor, not called.
    Method(TensorId),
    /// A tensor descriptor, by its number in [`HostRun::descriptors`](super::HostRun::descriptors).
    Descriptor(usize),
}

impl HostValue {
    /// A known integer.
    #[must_use]
    pub fn known(number: i128) -> Self {
        Self::Number(HostNumber::Known(number))
    }

    /// The tensor, if it is one.
    #[must_use]
    pub fn tensor(&self) -> Option<TensorId> {
        match self {
            Self::Tensor(id) => Some(*id),
            _ => None,
        }
    }

    /// The value as an integer: a parameter counts as one that the caller decides.
    #[must_use]
    pub fn number(&self) -> HostNumber {
        match self {
            Self::Number(number) => number.clone(),
            Self::Given(name) => HostNumber::given(name.clone()),
            Self::Opaque(name) => HostNumber::Opaque(name.clone()),
            Self::Bool(Some(value)) => HostNumber::Known(i128::from(*value)),
            _ => HostNumber::Unknown,
        }
    }

    /// The truth value, if it is known.
    #[must_use]
    pub fn truth(&self) -> Option<bool> {
        match self {
            Self::None => Some(false),
            Self::Bool(value) => *value,
            Self::Number(number) => number.known().map(|number| number != 0),
            Self::Text(text) => Some(!text.is_empty()),
            Self::Method(..) | Self::Lambda(..) | Self::Dtype(_) | Self::Descriptor(_) => Some(true),
            Self::Tuple(items) => Some(!items.is_empty()),
            _ => None,
        }
    }
}
