//! Results of calls, which runners export and the comparer imports.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The results of a call: the return value, then the tensor arguments after the call, then the gradients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExportedResults {
    /// The values, in this order.
    pub leaves: Vec<Leaf>,
    /// The memory with the elements of the tensors; absent if they were not requested or there are none. It stays valid
    /// until the next request.
    pub buffer: Option<Buffer>,
}

/// A value inside results, with its path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leaf {
    /// The path of the value: `result[0]`, `argument 2`, `gradient of argument 0`.
    pub path: String,
    /// The value at this path.
    pub value: LeafValue,
}

/// A value inside results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LeafValue {
    /// A tensor.
    Tensor {
        /// The Python type, such as `torch.Tensor`.
        class: String,
        /// Element type, without the `torch.`.
        dtype: String,
        /// Device type: `cuda`, `cpu`.
        device: String,
        /// Sizes.
        shape: Vec<i64>,
        /// Strides, in elements.
        stride: Vec<i64>,
        /// Whether it requires a gradient.
        requires_grad: bool,
        /// Index of the tensor argument whose storage it shares, if any.
        shares: Option<usize>,
        /// Index of the first leaf whose storage it shares, if both are results and the storage is not an argument's.
        #[serde(default)]
        joins: Option<usize>,
        /// Offset of its elements in the buffer, in bytes; they are dense and in the order of the shape.
        at: u64,
    },
    /// A container. Its items follow as leaves with their own paths: `result[0]`, `result['x']`, `result.mean`.
    Container {
        /// Its type: `tuple`, `named tuple Pair(first, second)`. Classes are compared by name, not by file.
        class: String,
        /// The built-in type that it is equivalent to, if its items are read in the same way as those of that type.
        stands_for: Option<String>,
    },
    /// A number, a string or another simple value.
    Plain {
        /// The type.
        class: String,
        /// The whole `repr` of the value.
        text: String,
    },
    /// A value that cannot be read completely. It is equal to no other value.
    Unread {
        /// The type.
        class: String,
        /// Why it cannot be read.
        why: String,
    },
}

impl LeafValue {
    /// The number of elements of a tensor; 0 for other values.
    #[must_use]
    pub fn elements(&self) -> u64 {
        match self {
            Self::Tensor { shape, .. } => shape.iter().product::<i64>().unsigned_abs(),
            Self::Container { .. } | Self::Plain { .. } | Self::Unread { .. } => 0,
        }
    }
}

impl ExportedResults {
    /// An estimate of the size of all tensors in bytes, at four bytes per element.
    #[must_use]
    pub fn rough_bytes(&self) -> u64 {
        self.leaves.iter().map(|leaf| 4 * leaf.value.elements()).sum()
    }

    /// The first value that cannot be read and why, as text.
    #[must_use]
    pub fn unread(&self) -> Option<String> {
        self.leaves.iter().find_map(|leaf| match &leaf.value {
            LeafValue::Unread { class, why } => Some(format!("{} is a `{class}`: {why}", leaf.path)),
            _ => None,
        })
    }
}

/// Memory that one process shares with another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Buffer {
    /// Device memory, by CUDA's handle for other processes.
    Device {
        /// `CUipcMemHandle`
        handle: Vec<u8>,
        /// Size in bytes.
        size: u64,
    },
    /// A file that holds the bytes.
    File {
        /// The path of the file.
        path: PathBuf,
        /// Size in bytes.
        size: u64,
    },
}
