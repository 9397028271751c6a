//! Times of a candidate during a search.

/// The results of a candidate on each call that is measured in the search: milliseconds of the original, and the
/// speedup.
pub(super) type CallMeasurements = Vec<(f64, f64)>;
