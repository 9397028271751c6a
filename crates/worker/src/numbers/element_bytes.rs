//! The elements of a result in one run.

use std::ops::Range;

use super::ElementType;

/// The elements of a result.
#[derive(Clone, Copy, Debug)]
pub struct ElementBytes<'a> {
    /// The element type.
    pub element: ElementType,
    /// The bytes of all elements, in order.
    pub bytes: &'a [u8],
}

impl ElementBytes<'_> {
    /// The number of elements.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bytes.len() / self.element.size
    }

    /// The bits of one element.
    #[must_use]
    pub fn bits(&self, at: usize) -> u64 {
        self.element.read(self.bytes, at * self.element.size)
    }

    /// The value of one element.
    #[must_use]
    pub fn value(&self, at: usize) -> f64 {
        self.element.decode(self.bits(at))
    }

    /// Whether all elements are whole numbers that are not large: sums of such numbers have fewer bits than any wide
    /// type.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        const LARGE: f64 = (1 << 22) as f64;
        (0..self.count()).map(|at| self.value(at)).all(|value| value == value.round() && value.abs() < LARGE)
    }

    /// Whether another run holds finite numbers that this type cannot represent.
    #[must_use]
    pub fn is_coarser_than(&self, other: ElementBytes<'_>) -> bool {
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
