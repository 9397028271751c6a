//! Tensor elements without torch: the meaning of their bits, their contents, and the comparison of results.
//!
//! Only the worker uses this module. It does not depend on Python, so its tests need no interpreter.

mod distribution;
mod element;
mod element_bytes;
mod fill;
mod floats;

/// The most threads that work on many elements at once.
const MOST_THREADS: usize = 8;

pub use distribution::Spread;
pub use element::{ElementKind, ElementType};
pub use element_bytes::ElementBytes;
pub use fill::Area;
pub use floats::{ARITHMETIC, Arithmetic, FACTOR, FloatMismatch, Floats, Scales};
