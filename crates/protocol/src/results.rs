//! Results of calls, as runners give them and the comparer takes them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The results of a call: what was returned, then the tensor arguments as they are afterwards, then the gradients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exported {
    /// Each value.
    pub leaves: Vec<Leaf>,
    /// Where the bytes of the tensors are; absent when they were not asked for or there are none. They stay until the
    /// next request.
    pub buffer: Option<Buffer>,
}

/// A value inside results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leaf {
    /// The way to it: `result[0]`, `argument 2`, `gradient of argument 0`.
    pub path: String,
    /// What it is.
    pub value: LeafValue,
}

/// A value inside results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LeafValue {
    /// A tensor.
    Tensor {
        /// Its Python type, such as `torch.Tensor`.
        class: String,
        /// Element type, without the `torch.`.
        dtype: String,
        /// Device type.
        device: String,
        /// Sizes.
        shape: Vec<i64>,
        /// Strides, in elements.
        stride: Vec<i64>,
        /// Whether it requires a gradient.
        requires_grad: bool,
        /// Number of the tensor argument whose storage it shares, if it does.
        shares: Option<usize>,
        /// Number of the first leaf whose storage it shares, where both are results and that is no argument's.
        #[serde(default)]
        joins: Option<usize>,
        /// Byte in the buffer at which its elements begin; they lie one behind the other, in the order of the shape.
        at: u64,
    },
    /// What holds other values, which follow with their own ways: `result[0]`, `result['x']`, `result.mean`.
    Container {
        /// What it is: `tuple`, `named tuple Pair(first, second)`. Classes go by their names, whichever file they are
        /// from.
        class: String,
        /// The type of Python's own that it is another name for: nothing is read from it otherwise than from that one.
        stands_for: Option<String>,
    },
    /// A number, a text or the like: its type and how it prints, in full.
    Plain {
        /// The type.
        class: String,
        /// `repr` of it.
        text: String,
    },
    /// What cannot be read to its end. It is equal to nothing.
    Unread {
        /// The type.
        class: String,
        /// Why.
        why: String,
    },
}

impl LeafValue {
    /// Elements of a tensor; none of anything else.
    #[must_use]
    pub fn elements(&self) -> u64 {
        match self {
            Self::Tensor { shape, .. } => shape.iter().product::<i64>().unsigned_abs(),
            Self::Container { .. } | Self::Plain { .. } | Self::Unread { .. } => 0,
        }
    }
}

impl Exported {
    /// Bytes of all tensors, roughly: elements count as four each.
    #[must_use]
    pub fn rough_bytes(&self) -> u64 {
        self.leaves.iter().map(|leaf| 4 * leaf.value.elements()).sum()
    }

    /// Which of them cannot be read, and why.
    #[must_use]
    pub fn unread(&self) -> Option<String> {
        self.leaves.iter().find_map(|leaf| match &leaf.value {
            LeafValue::Unread { class, why } => Some(format!("{} is a `{class}`: {why}", leaf.path)),
            _ => None,
        })
    }
}

/// Where bytes are that one process gives another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Buffer {
    /// Memory of the device, by CUDA's handle for other processes.
    Device {
        /// `CUipcMemHandle`
        handle: Vec<u8>,
        /// Bytes.
        size: u64,
    },
    /// A file.
    File {
        /// Its path.
        path: PathBuf,
        /// Bytes.
        size: u64,
    },
}
