//! The known bounds of a kernel's integers and pointers.

use std::collections::BTreeSet;

/// The maximum length of a bound's text.
const LONGEST: usize = 160;

/// An integer that is non-negative if these parameters are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Number<'a> {
    /// Whether it is computed from a number whose cast to 64 bits is omitted.
    pub(super) is_narrow: bool,
    /// An upper bound, as a heuristic computes it from `args`.
    pub(super) most: Option<String>,
    pub(super) params: BTreeSet<&'a str>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pointer<'a> {
    /// The parameter that the pointer starts from.
    pub(super) root: &'a str,
    /// Whether narrow numbers were added that may wrap around outside of the memory.
    pub(super) is_narrow: bool,
    /// Whether something was added that may be negative.
    pub(super) is_open: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Number(Number<'a>),
    Pointer(Pointer<'a>),
    /// Any value that is the same in 32 and in 64 bits.
    Other,
}

impl<'a> Number<'a> {
    pub(super) fn literal(number: i128) -> Self {
        Self { most: Some(number.to_string()), ..Self::default() }
    }

    pub(super) fn param(name: &'a str) -> Self {
        Self { most: Some(format!("args[\"{name}\"]")), params: BTreeSet::from([name]), is_narrow: false }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        let most = |left: &str, right: &str| format!("{left} + {right}");
        self.with(other, most)
    }

    pub(super) fn times(self, other: Self) -> Self {
        self.with(other, product)
    }

    /// A number that is computed from both and is at most this one.
    pub(super) fn at_most(self, other: Self) -> Self {
        self.with(other, |left, _| left.to_owned())
    }

    /// A number that is one of two.
    pub(super) fn either(self, other: Self) -> Self {
        let is_same = self.most == other.most;
        let either = self.at_most(other);
        Self { most: either.most.filter(|_| is_same), ..either }
    }

    fn with(self, other: Self, most: impl Fn(&str, &str) -> String) -> Self {
        let is_narrow = self.is_narrow || other.is_narrow;
        let most = self.most.zip(other.most).map(|(left, right)| most(&left, &right));
        Self { is_narrow, most: most.filter(|most| most.len() <= LONGEST), params: &self.params | &other.params }
    }
}

impl Pointer<'_> {
    /// The pointer; `None` where a term of an offset may exceed the whole.
    pub(super) fn checked(self) -> Option<Self> {
        (!self.is_narrow || !self.is_open).then_some(self)
    }
}

/// The product of two bounds.
pub(super) fn product(left: &str, right: &str) -> String {
    let part = |of: &str| if of.contains(" + ") { format!("({of})") } else { of.to_owned() };
    format!("{} * {}", part(left), part(right))
}
