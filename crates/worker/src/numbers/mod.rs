//! Tensor elements without torch: the meaning of their bits, their contents, and the comparison of results.
//!
//! Only the worker uses this module. It does not depend on Python, so its tests need no interpreter.

mod element;
mod fill;
mod floats;
mod run;
mod spread;

/// The most threads that work on many elements at once.
const MOST_THREADS: usize = 8;

pub use element::{Element, Kind};
pub use fill::Area;
pub use floats::{ARITHMETIC, FACTOR, Floats, Scales, Wrong};
pub use run::Run;
pub use spread::Spread;
