//! The values of lanes outside a load's mask that `other` filled, and how later arithmetic changes them.
//!
//! `tl.load(p, mask=m, other=0.0)` is neutral in a sum, and stays so through casts, products and quotients. It is no
//! longer neutral after a subtraction or an exponential: then each lane of padding changes the result.

use super::lanes::{Along, LaneValue, Operation};
use crate::kernel::ast::Expr;
use crate::syntax::Span;

/// A finite `other` of at least this magnitude counts as an infinity.
const ALMOST_INFINITE: f64 = 1e4;

/// The value in each lane of padding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    /// The same number in every lane.
    Number(f64),
    /// A number that depends on what the kernel computes, and that is zero only by coincidence.
    Other {
        /// Whether it is never negative.
        nonnegative: bool,
    },
}

use Content::{Number, Other};

/// The padding of a value: the lanes that a load filled with `other`.
#[derive(Clone, Debug, PartialEq)]
pub struct Fill<'a> {
    /// The load.
    pub load: &'a Expr,
    /// The mask of the load.
    pub mask: &'a Expr,
    /// For each axis of the value, whether the mask certainly changes along it.
    pub axes: Vec<bool>,
    /// The present value of these lanes.
    pub content: Content,
    /// The number with which the load filled them.
    pub filled: f64,
    /// Span of the operation that changed them; `None` while they hold what the load filled in.
    pub changed: Option<Span>,
    /// Whether no lane is negative, padding or not.
    pub is_nonnegative: bool,
    /// Whether the axes of the value are no longer those of the load.
    pub is_moved: bool,
}

impl<'a> Fill<'a> {
    /// The padding of `load`, which fills it with `number`.
    #[must_use]
    pub fn of(load: &'a Expr, mask: &'a Expr, axes: Vec<bool>, number: f64) -> Self {
        let filled = if number.abs() >= ALMOST_INFINITE { f64::INFINITY.copysign(number) } else { number };
        Self {
            load,
            mask,
            axes,
            content: Number(filled),
            filled,
            changed: None,
            is_nonnegative: false,
            is_moved: false,
        }
    }

    fn holding(self, content: Content, is_nonnegative: bool) -> Self {
        Self { content, is_nonnegative, ..self }
    }

    /// Whether the lanes hold zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.content == Number(0.0)
    }

    /// The padding after broadcasting to a tile of rank `rank`.
    fn in_rank(&self, rank: usize) -> Self {
        let missing = rank.saturating_sub(self.axes.len());
        let axes = std::iter::repeat_n(false, missing).chain(self.axes.iter().copied()).collect();
        Self { axes, is_moved: self.is_moved || missing > 0, ..self.clone() }
    }

    /// Records `at` as the operation that changed the content, unless one is recorded already.
    pub fn note(&mut self, at: Span) {
        if self.changed.is_none() && self.content != Number(self.filled) {
            self.changed = Some(at);
        }
    }

    fn is_alike(&self, other: &Self) -> bool {
        let same_mask = match (self.mask.as_name(), other.mask.as_name()) {
            (Some(a), Some(b)) => a == b,
            _ => self.mask.span == other.mask.span,
        };
        same_mask && self.axes == other.axes
    }

    /// What is certain when the padding is one of the two.
    #[must_use]
    pub fn either(&self, other: &Self) -> Option<Self> {
        let is_positive = |content: Content| match content {
            Number(number) => number > 0.0 && number.is_finite(),
            Other { nonnegative } => nonnegative,
        };
        let content = if self.content == other.content {
            self.content
        } else if is_positive(self.content) && is_positive(other.content) {
            Other { nonnegative: true }
        } else {
            return None;
        };
        self.is_alike(other).then(|| self.clone().holding(content, self.is_nonnegative && other.is_nonnegative))
    }

    /// The padding after the reduction `name` (`sum`, `max`, …) along another axis; `axes` are those of the result.
    #[must_use]
    pub fn reduced(mut self, name: &str, axes: Vec<bool>) -> Option<Self> {
        let stays = match (name, self.content) {
            ("sum", content) => matches!(content, Number(0.0) | Other { nonnegative: true }),
            ("max" | "min", content) => matches!(content, Number(_)),
            _ => false,
        };
        (self.axes, self.is_moved) = (axes, true);
        (stays && self.axes.contains(&true)).then_some(self)
    }

    /// The padding after a cast to an integer.
    #[must_use]
    pub fn truncated(self) -> Option<Self> {
        match self.content {
            Number(number) if number.is_finite() => Some(Self { content: Number(number.trunc()), ..self }),
            _ => None,
        }
    }

    /// The padding after the elementwise function `name`.
    #[must_use]
    pub fn mapped(self, name: &str) -> Option<Self> {
        let number = |function: fn(f64) -> f64| match self.content {
            Number(number) => {
                Some(Number(function(number))).filter(|content| !matches!(content, Number(n) if n.is_nan()))
            }
            Other { .. } => None,
        };
        let or_other = |function: fn(f64) -> f64, nonnegative| number(function).or(Some(Other { nonnegative }));
        let content = match name {
            "exp" => or_other(f64::exp, true),
            "exp2" => or_other(f64::exp2, true),
            "abs" => or_other(f64::abs, true),
            "sigmoid" => or_other(|x| 1.0 / (1.0 + (-x).exp()), true),
            "sqrt" | "sqrt_rn" => or_other(f64::sqrt, true),
            "tanh" => or_other(f64::tanh, false),
            "cos" => number(f64::cos),
            "sin" => number(f64::sin),
            "floor" => number(f64::floor),
            "ceil" => number(f64::ceil),
            "log" => number(f64::ln),
            "log2" => number(f64::log2),
            "-" => match self.content {
                Number(number) => Some(Number(-number + 0.0)),
                Other { .. } => Some(Other { nonnegative: false }),
            },
            _ => None,
        };
        let is_nonnegative = matches!(name, "exp" | "exp2" | "abs" | "sigmoid" | "sqrt" | "sqrt_rn");
        content.map(|content| self.holding(content, is_nonnegative))
    }
}

/// The padding of `left op right`. `is_square` is true when both operands are the same value.
#[must_use]
pub fn binary<'a>(
    operation: Operation,
    left: &LaneValue<'a>,
    right: &LaneValue<'a>,
    rank: usize,
    is_square: bool,
) -> Option<Fill<'a>> {
    let of = |value: &LaneValue<'a>| value.fill.as_ref().map(|fill| fill.in_rank(rank));
    let fills = (of(left), of(right));
    if !left.undefined.is_empty() || !right.undefined.is_empty() {
        // Zero times an undefined lane is zero or worse, so treating it as zero understates the effect.
        let ((Some(fill), None) | (None, Some(fill))) = fills else { return None };
        return (operation == Operation::Product && fill.is_zero()).then(|| fill.holding(Number(0.0), false));
    }
    match fills {
        (Some(a), Some(b)) => both(operation, a, b, is_square),
        (Some(fill), None) => one(operation, fill, right, rank, true),
        (None, Some(fill)) => one(operation, fill, left, rank, false),
        (None, None) => None,
    }
}

/// The padding of an operation between a tile with padding and a value without.
fn one<'a>(
    operation: Operation,
    fill: Fill<'a>,
    partner: &LaneValue<'a>,
    rank: usize,
    is_left: bool,
) -> Option<Fill<'a>> {
    let is_uniform = (0..rank).all(|at| !fill.axes[at] || partner.along(at, rank) == Along::Same);
    if !is_uniform {
        // A value that differs from lane to lane may be a mask.
        let is_zero = fill.is_zero() && matches!(operation, Operation::Product | Operation::And);
        return is_zero.then(|| fill.holding(Number(0.0), false));
    }
    let number = partner.number;
    if let (Number(content), Some(number)) = (fill.content, number) {
        let (a, b) = if is_left { (content, number) } else { (number, content) };
        let is_nonnegative = fill.is_nonnegative && number >= 0.0 && operation != Operation::Difference;
        return computed(operation, a, b).map(|content| fill.holding(content, is_nonnegative));
    }
    let is_positive = number.is_some_and(|number| number > 0.0);
    let stays = fill.is_nonnegative && is_positive;
    let content = match (operation, fill.content) {
        (Operation::Sum | Operation::Difference, content) if number == Some(0.0) && is_left => Some(content),
        (Operation::Sum, content) if number == Some(0.0) => Some(content),
        (Operation::Sum, Number(content)) if content.is_infinite() => Some(Number(content)),
        (Operation::Difference, Number(content)) if content.is_infinite() => {
            Some(Number(if is_left { content } else { -content }))
        }
        (Operation::Sum, Other { nonnegative }) => Some(Other { nonnegative: nonnegative && is_positive }),
        (Operation::Sum | Operation::Difference, _) => Some(Other { nonnegative: false }),
        (Operation::Product, Number(0.0)) => Some(Number(0.0)),
        (Operation::Quotient, Number(0.0)) if is_left => Some(Number(0.0)),
        (_, Number(content)) if content.is_infinite() => None,
        (Operation::Product, _) if number == Some(0.0) => Some(Number(0.0)),
        (Operation::Product, content) => Some(Other { nonnegative: is_positive && content.is_nonnegative() }),
        (Operation::Quotient, content) if is_left => {
            Some(Other { nonnegative: is_positive && content.is_nonnegative() })
        }
        _ => None,
    };
    content.map(|content| fill.holding(content, stays))
}

/// The padding of an operation between two tiles with padding.
fn both<'a>(operation: Operation, a: Fill<'a>, b: Fill<'a>, is_square: bool) -> Option<Fill<'a>> {
    let infinite = |content: Content| matches!(content, Number(number) if number.is_infinite());
    if operation == Operation::Product && !infinite(a.content) && !infinite(b.content) {
        if a.is_zero() {
            return Some(a.holding(Number(0.0), is_square));
        }
        if b.is_zero() {
            return Some(b.holding(Number(0.0), false));
        }
    }
    if !a.is_alike(&b) {
        return None;
    }
    let nonnegative = a.is_nonnegative && b.is_nonnegative && operation != Operation::Difference;
    let content = match (operation, a.content, b.content) {
        (_, Number(x), Number(y)) => computed(operation, x, y),
        (Operation::Sum, Number(0.0), other) => Some(other),
        (Operation::Sum | Operation::Difference, other, Number(0.0)) => Some(other),
        (Operation::Difference, Number(0.0), _) => Some(Other { nonnegative: false }),
        (Operation::Sum, Other { nonnegative: true }, Other { nonnegative: true }) => Some(Other { nonnegative: true }),
        (Operation::Product, x, y) if !infinite(x) && !infinite(y) => {
            Some(Other { nonnegative: is_square || (x.is_nonnegative() && y.is_nonnegative()) })
        }
        (Operation::Quotient, Number(0.0), _) => Some(Number(0.0)),
        _ => None,
    };
    content.map(|content| a.holding(content, nonnegative || (is_square && operation == Operation::Product)))
}

impl Content {
    fn is_nonnegative(self) -> bool {
        match self {
            Number(number) => number >= 0.0,
            Other { nonnegative } => nonnegative,
        }
    }
}

fn computed(operation: Operation, a: f64, b: f64) -> Option<Content> {
    let number = match operation {
        Operation::Sum => a + b,
        Operation::Difference => a - b,
        Operation::Product => a * b,
        Operation::Quotient => a / b,
        Operation::And => f64::from(u8::from(a != 0.0 && b != 0.0)),
        _ => return None,
    };
    (!number.is_nan()).then_some(Number(number))
}

/// The padding of a comparison with a number.
#[must_use]
pub fn compared<'a>(op: &str, left: &LaneValue<'a>, right: &LaneValue<'a>, rank: usize) -> Option<Fill<'a>> {
    let of = |value: &LaneValue<'a>| match &value.fill {
        Some(Fill { content: Number(number), .. }) => Some(*number),
        Some(_) => None,
        None => value.number,
    };
    let (a, b) = (of(left)?, of(right)?);
    let fill = match (&left.fill, &right.fill) {
        (Some(fill), None) | (None, Some(fill)) => fill.in_rank(rank),
        _ => return None,
    };
    let holds = match op {
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        ">=" => a >= b,
        "==" => a == b,
        "!=" => a != b,
        _ => return None,
    };
    Some(fill.holding(Number(f64::from(u8::from(holds))), true))
}

/// The padding of `tl.maximum(left, right)` or `tl.minimum(left, right)` with a number.
#[must_use]
pub fn bounded<'a>(is_maximum: bool, left: &LaneValue<'a>, right: &LaneValue<'a>) -> Option<Fill<'a>> {
    let (fill, number) = match (&left.fill, &right.fill) {
        (Some(fill), None) if right.rank() == Some(0) => (fill, right.number?),
        (None, Some(fill)) if left.rank() == Some(0) => (fill, left.number?),
        _ => return None,
    };
    let Number(content) = fill.content else { return None };
    let bounded = if is_maximum { content.max(number) } else { content.min(number) };
    Some(fill.clone().holding(Number(bounded), is_maximum && number >= 0.0))
}

#[cfg(test)]
mod tests;
