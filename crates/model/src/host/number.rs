//! Integers of host code, as expressions over sizes that callers decide.

use std::fmt;
use std::sync::Arc;

use crate::analysis::constants::binary;
use crate::analysis::types::index::{Atom, Poly};

/// Expressions with more parts than this are not kept.
const MAX_PARTS: usize = 48;

/// An integer of host code.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum HostNumber {
    /// Nothing is known about it.
    #[default]
    Unknown,
    /// A known number.
    Known(i128),
    /// A number that comes from outside: `n` for a parameter, `x.shape[0]` and `x.stride(0)` for a tensor that is one.
    Given(Arc<str>),
    /// A number that is not followed, by the name that holds it and a number: `n@3`. It is the same wherever this is met.
    Opaque(Arc<str>),
    /// An operation on other numbers.
    Operation(Arc<HostOperation>),
    /// One of several numbers, by the path that the function takes.
    Either(Arc<[HostNumber]>),
}

/// An operation on integers.
#[derive(Clone, Debug, PartialEq)]
pub struct HostOperation {
    /// The operator.
    pub op: HostOperator,
    /// The left operand.
    pub left: HostNumber,
    /// The right operand; the left one again for operators with one operand.
    pub right: HostNumber,
    /// The number of parts of the whole expression.
    parts: usize,
}

/// The operators of [`HostOperation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOperator {
    /// An operator of Python: `+`, `-`, `*`, `//`, `%`, `<<`, `>>`, `&`, `|`, `^`, `**`.
    Python(&'static str),
    /// `triton.cdiv(a, b)`
    CeilDiv,
    /// `min(a, b)`
    Min,
    /// `max(a, b)`
    Max,
    /// `triton.next_power_of_2(a)`
    NextPowerOfTwo,
}

/// Python's operators on integers.
const OPERATORS: [&str; 11] = ["+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "**"];

impl HostOperator {
    /// The operator that Python writes like this.
    #[must_use]
    pub fn of_python(text: &str) -> Option<Self> {
        OPERATORS.iter().find(|known| **known == text).map(|known| Self::Python(known))
    }

    fn apply(self, left: i128, right: i128) -> Option<i128> {
        match self {
            Self::Python(op) => binary(op, left, right),
            Self::CeilDiv => (right > 0).then(|| -(-left).div_euclid(right)),
            Self::Min => Some(left.min(right)),
            Self::Max => Some(left.max(right)),
            Self::NextPowerOfTwo => {
                let size = u64::try_from(left).ok()?;
                size.checked_next_power_of_two().map(i128::from)
            }
        }
    }
}

impl HostNumber {
    /// A number that callers decide.
    #[must_use]
    pub fn given(name: impl Into<Arc<str>>) -> Self {
        Self::Given(name.into())
    }

    /// The result of an operation, as simple as possible.
    #[must_use]
    pub fn operation(op: HostOperator, left: &Self, right: &Self) -> Self {
        use HostOperator::Python;
        match (op, left, right) {
            (_, Self::Unknown, _) | (_, _, Self::Unknown) => Self::Unknown,
            (op, Self::Known(left), Self::Known(right)) => op.apply(*left, *right).map_or(Self::Unknown, Self::Known),
            (Python("*"), one, Self::Known(1)) | (Python("*"), Self::Known(1), one) => one.clone(),
            (Python("*"), _, Self::Known(0)) | (Python("*"), Self::Known(0), _) => Self::Known(0),
            (Python("+" | "-"), one, Self::Known(0)) | (Python("+"), Self::Known(0), one) => one.clone(),
            (Python("//") | HostOperator::CeilDiv, one, Self::Known(1)) => one.clone(),
            (HostOperator::Min | HostOperator::Max, a, b) if a == b => a.clone(),
            _ => {
                let parts = left.parts() + right.parts() + 1;
                if parts > MAX_PARTS {
                    return Self::Unknown;
                }
                Self::Operation(Arc::new(HostOperation { op, left: left.clone(), right: right.clone(), parts }))
            }
        }
    }

    /// `self * other`
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        Self::operation(HostOperator::Python("*"), self, other)
    }

    /// One of the two numbers.
    #[must_use]
    pub fn either(&self, other: &Self) -> Self {
        if self == other {
            return self.clone();
        }
        let mut all: Vec<Self> = Vec::new();
        for one in self.choices().iter().chain(other.choices()) {
            if !all.contains(one) {
                all.push(one.clone());
            }
        }
        let parts: usize = all.iter().map(Self::parts).sum();
        if all.contains(&Self::Unknown) || parts > MAX_PARTS { Self::Unknown } else { Self::Either(all.into()) }
    }

    /// `size` and `block` of the number of blocks that cover a size: `cdiv(size, block)`,
    /// `(size + block - 1) // block`.
    #[must_use]
    pub fn tiles(&self) -> Option<(&Self, &Self)> {
        let Self::Operation(operation) = self else { return None };
        let (left, block) = (&operation.left, &operation.right);
        match operation.op {
            HostOperator::CeilDiv => Some((left, block)),
            HostOperator::Python("//") => Some((left.rounded_up(block)?, block)),
            _ => None,
        }
    }

    /// `size` of `size + block - 1`, however it is grouped.
    fn rounded_up(&self, block: &Self) -> Option<&Self> {
        use HostOperator::Python;
        let Self::Operation(operation) = self else { return None };
        let (left, right) = (&operation.left, &operation.right);
        let is_rest = |number: &Self| Self::operation(Python("+"), number, &Self::Known(1)).is(block);
        match (operation.op, left) {
            (Python("-"), Self::Operation(sum)) if sum.op == Python("+") && right.known() == Some(1) => {
                if sum.right.is(block) { Some(&sum.left) } else { sum.left.is(block).then_some(&sum.right) }
            }
            (Python("+"), _) if is_rest(right) => Some(left),
            (Python("+"), _) if is_rest(left) => Some(right),
            _ => None,
        }
    }

    /// The numbers of which this is one.
    #[must_use]
    pub fn choices(&self) -> &[Self] {
        match self {
            Self::Either(all) => all,
            other => std::slice::from_ref(other),
        }
    }

    fn parts(&self) -> usize {
        match self {
            Self::Operation(operation) => operation.parts,
            Self::Either(all) => all.iter().map(Self::parts).sum(),
            _ => 1,
        }
    }

    /// The number, if it is known.
    #[must_use]
    pub fn known(&self) -> Option<i128> {
        match self {
            Self::Known(number) => Some(*number),
            _ => None,
        }
    }

    /// The numbers that it can be, where all are known.
    #[must_use]
    pub fn values(&self) -> Option<Vec<i128>> {
        self.choices().iter().map(Self::known).collect()
    }

    /// The number when `given` supplies those that come from outside.
    #[must_use]
    pub fn evaluate(&self, given: &dyn Fn(&str) -> Option<i128>) -> Option<i128> {
        match self {
            Self::Unknown | Self::Opaque(_) | Self::Either(_) => None,
            Self::Known(number) => Some(*number),
            Self::Given(name) => given(name),
            Self::Operation(operation) => {
                let left = operation.left.evaluate(given)?;
                let right = operation.right.evaluate(given)?;
                operation.op.apply(left, right)
            }
        }
    }

    /// The names of the numbers from outside of which this is made, each once; `None` when a part is not known.
    #[must_use]
    pub fn sources(&self) -> Option<Vec<Arc<str>>> {
        let mut found = Vec::new();
        self.add_sources(&mut found).then_some(found)
    }

    fn add_sources(&self, found: &mut Vec<Arc<str>>) -> bool {
        match self {
            Self::Unknown | Self::Opaque(_) => false,
            Self::Known(_) => true,
            Self::Given(name) => {
                if !found.contains(name) {
                    found.push(name.clone());
                }
                true
            }
            Self::Operation(operation) => operation.left.add_sources(found) && operation.right.add_sources(found),
            Self::Either(all) => all.iter().all(|one| one.add_sources(found)),
        }
    }

    /// The number as a polynomial over those from outside; `None` when it is none.
    #[must_use]
    pub fn poly(&self) -> Option<Poly> {
        match self {
            Self::Unknown | Self::Opaque(_) | Self::Either(_) => None,
            Self::Known(number) => Some(Poly::number(*number)),
            Self::Given(name) => Some(Poly::atom(Atom::Param(name.clone()))),
            Self::Operation(operation) => {
                let (left, right) = (operation.left.poly()?, operation.right.poly()?);
                match operation.op {
                    HostOperator::Python("+") => left.plus(&right, 1),
                    HostOperator::Python("-") => left.plus(&right, -1),
                    HostOperator::Python("*") => left.times(&right),
                    _ => None,
                }
            }
        }
    }

    /// Whether the two certainly are the same number.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        if matches!(self, Self::Unknown | Self::Either(_)) {
            return false;
        }
        self == other || self.poly().is_some_and(|poly| Some(poly) == other.poly())
    }
}

impl fmt::Display for HostNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("?"),
            Self::Known(number) => write!(f, "{number}"),
            Self::Given(name) => f.write_str(name),
            Self::Opaque(name) => f.write_str(name.split('@').next().unwrap_or(name)),
            Self::Operation(operation) => {
                let HostOperation { op, left, right, .. } = &**operation;
                match op {
                    HostOperator::Python(op) => write!(f, "({left} {op} {right})"),
                    HostOperator::CeilDiv => write!(f, "cdiv({left}, {right})"),
                    HostOperator::Min => write!(f, "min({left}, {right})"),
                    HostOperator::Max => write!(f, "max({left}, {right})"),
                    HostOperator::NextPowerOfTwo => write!(f, "next_power_of_2({left})"),
                }
            }
            Self::Either(all) => {
                for (at, one) in all.iter().enumerate() {
                    write!(f, "{}{one}", if at > 0 { " or " } else { "" })?;
                }
                Ok(())
            }
        }
    }
}
