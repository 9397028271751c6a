//! Elements of tensors without torch: what their bits mean, what they are filled with, and when results agree.
//!
//! Used by the worker alone. It is no part of it, so that its tests need no Python.

mod element;
mod fill;
mod floats;
mod run;
mod spread;

/// Threads at once, where there are many elements.
const MOST_THREADS: usize = 8;

pub use element::{Element, Kind};
pub use fill::Area;
pub use floats::{ARITHMETIC, FACTOR, Floats, Scales, Wrong};
pub use run::Run;
pub use spread::Spread;
