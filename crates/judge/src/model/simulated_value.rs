//! Values of a traced program: integers, addresses and masks with their elements, other tiles by their shapes only.

use std::rc::Rc;

/// A scalar or a tile.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SimulatedValue {
    pub(super) shape: Vec<usize>,
    /// The elements in row-major order, where they are known integers, addresses or booleans.
    pub(super) elements: Option<Rc<Vec<i64>>>,
}

impl SimulatedValue {
    /// A known scalar.
    pub(super) fn scalar(value: i64) -> Self {
        Self::of(Vec::new(), vec![value])
    }

    pub(super) fn of(shape: Vec<usize>, elements: Vec<i64>) -> Self {
        Self { shape, elements: Some(Rc::new(elements)) }
    }

    /// A tile of which only the shape is known.
    pub(super) fn unknown(shape: &[usize]) -> Self {
        Self { shape: shape.to_vec(), elements: None }
    }

    /// The value of a scalar, or of a tile whose elements are all equal.
    pub(super) fn value(&self) -> Option<i64> {
        self.elements.as_ref()?.first().copied()
    }

    /// The number of elements.
    pub(super) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Combines two tiles of the same shape element by element.
    pub(super) fn with(&self, other: &Self, make: impl Fn(i64, i64) -> i64) -> Self {
        match (&self.elements, &other.elements) {
            (Some(one), Some(two)) if one.len() == two.len() => {
                let made = one.iter().zip(two.iter()).map(|(&one, &two)| make(one, two)).collect();
                Self::of(self.shape.clone(), made)
            }
            _ => Self::unknown(&self.shape),
        }
    }

    /// A tile of this shape with one element everywhere.
    pub(super) fn splat(&self, shape: &[usize]) -> Self {
        match self.value() {
            Some(value) => Self::of(shape.to_vec(), vec![value; shape.iter().product()]),
            None => Self::unknown(shape),
        }
    }

    /// The same elements with another shape.
    pub(super) fn reshape(&self, shape: &[usize]) -> Self {
        Self { shape: shape.to_vec(), elements: self.elements.clone() }
    }

    /// Repeats the elements along dimensions of size 1.
    pub(super) fn broadcast(&self, shape: &[usize]) -> Self {
        let fits = self.shape.len() == shape.len();
        let Some(all) = self.elements.as_ref().filter(|_| fits) else { return Self::unknown(shape) };
        let steps = steps(&self.shape);
        let steps: Vec<usize> =
            steps.iter().zip(&self.shape).map(|(&step, &size)| if size == 1 { 0 } else { step }).collect();
        Self::of(shape.to_vec(), gathered(all, shape, &steps))
    }

    /// Permutes the dimensions.
    pub(super) fn transpose(&self, order: &[usize]) -> Self {
        let shape: Vec<usize> = order.iter().filter_map(|&at| self.shape.get(at).copied()).collect();
        if shape.len() != self.shape.len() {
            return Self::unknown(&self.shape);
        }
        let Some(all) = &self.elements else { return Self::unknown(&shape) };
        let own = steps(&self.shape);
        let steps: Vec<usize> = order.iter().map(|&at| own[at]).collect();
        Self::of(shape.clone(), gathered(all, &shape, &steps))
    }

    /// Extrapolates the value by `rounds` rounds, in which it changes as it has since `before`.
    pub(super) fn later(&self, before: &Self, rounds: i64) -> Self {
        match (&before.elements, &self.elements) {
            (Some(_), Some(_)) => self.with(before, |now, before| now + (now - before) * rounds),
            // An unknown value stays unknown.
            _ => self.clone(),
        }
    }

    /// Whether the step from `before` to this value equals the step from `first` to `before`.
    pub(super) fn is_even(&self, before: &Self, first: &Self) -> bool {
        match (&first.elements, &before.elements, &self.elements) {
            (Some(a), Some(b), Some(c)) => {
                a.len() == c.len() && a.iter().zip(b.iter()).zip(c.iter()).all(|((a, b), c)| c - b == b - a)
            }
            _ => true,
        }
    }
}

/// The row-major stride of each dimension.
fn steps(shape: &[usize]) -> Vec<usize> {
    let mut steps = vec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        steps[at - 1] = steps[at] * shape[at];
    }
    steps
}

fn gathered(all: &[i64], shape: &[usize], steps: &[usize]) -> Vec<i64> {
    let mut out = Vec::with_capacity(shape.iter().product());
    let mut place = vec![0; shape.len()];
    let mut from = 0;
    for _ in 0..shape.iter().product::<usize>() {
        out.push(all.get(from).copied().unwrap_or(0));
        for at in (0..shape.len()).rev() {
            place[at] += 1;
            from += steps[at];
            if place[at] < shape[at] {
                break;
            }
            from -= steps[at] * shape[at];
            place[at] = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_broadcast_and_transposed() {
        let row = SimulatedValue::of(vec![1, 3], vec![1, 2, 3]);
        let column = SimulatedValue::of(vec![2, 1], vec![10, 20]);
        let sum = row.broadcast(&[2, 3]).with(&column.broadcast(&[2, 3]), |a, b| a + b);
        assert_eq!(sum, SimulatedValue::of(vec![2, 3], vec![11, 12, 13, 21, 22, 23]));
        assert_eq!(sum.transpose(&[1, 0]), SimulatedValue::of(vec![3, 2], vec![11, 21, 12, 22, 13, 23]));
        assert_eq!(sum.transpose(&[1]), SimulatedValue::unknown(&[2, 3]));
        assert_eq!(SimulatedValue::scalar(4).splat(&[2]), SimulatedValue::of(vec![2], vec![4, 4]));
    }

    #[test]
    fn linearly_growing_values_are_extrapolated() {
        let [a, b, c] = [0, 5, 10].map(|from| SimulatedValue::of(vec![2], vec![from, from + 1]));
        assert!(c.is_even(&b, &a) && !c.is_even(&a, &b));
        assert_eq!(c.later(&b, 3), SimulatedValue::of(vec![2], vec![25, 26]));
    }
}
