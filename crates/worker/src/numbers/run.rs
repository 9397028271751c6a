//! The elements of a result as they come.

use std::ops::Range;

use super::Element;

/// The elements of a result.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Their type.
    pub element: Element,
    /// All their bytes, in order.
    pub bytes: &'a [u8],
}

impl Run<'_> {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bytes.len() / self.element.size
    }

    /// The bits of one.
    #[must_use]
    pub fn bits(&self, at: usize) -> u64 {
        self.element.read(self.bytes, at * self.element.size)
    }

    /// The number that one is.
    #[must_use]
    pub fn value(&self, at: usize) -> f64 {
        self.element.decode(self.bits(at))
    }

    /// Whether all are whole numbers that are not large: sums of such have fewer bits than any wide type.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        const LARGE: f64 = (1 << 22) as f64;
        (0..self.count()).map(|at| self.value(at)).all(|value| value == value.round() && value.abs() < LARGE)
    }

    /// Whether another holds finite numbers that this type does not.
    #[must_use]
    pub fn is_coarser_than(&self, other: Run<'_>) -> bool {
        let mut values = (0..other.count()).map(|at| other.value(at));
        values.any(|value| value.is_finite() && self.element.decode(self.element.encode(value)) != value)
    }

    pub(super) fn part(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range.start * self.element.size..range.end * self.element.size]
    }

    pub(super) fn values(&self, from: usize, count: usize) -> Vec<f64> {
        (from..from + count).map(|at| self.value(at)).collect()
    }
}
