//! The abstract domain of tiles: the rank, the axes along which a value differs from lane to lane, and undefined lanes.
//!
//! A masked `tl.load` without `other` leaves the lanes outside its mask undefined. What matters for a reduction is not
//! *that* there are such lanes but whether they lie along the reduced axis: a mask over rows alone leaves whole rows
//! undefined, and a sum along the columns of each row mixes nothing. So each value carries, per load, the axes along
//! which definedness certainly changes. Elementwise operations keep this information, unless the other operand may be
//! there to neutralize the lanes (a mask that multiplies, a `-inf` that is added).
//!
//! Possible extensions of [`LaneValue`]: a dtype, an integer range, and a size for each axis.

use super::fills::{self, Fill};
use crate::kernel::ast::Expr;

/// Whether a value differs from lane to lane along one axis of its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// Every lane has the same value (this includes axes of size 1).
    Same,
    /// Every lane has its own value: it comes from `tl.arange` along this axis by adding, scaling and comparing.
    Varies,
    /// Not known.
    Unknown,
}

/// Numeric properties of a value that the analysis uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NumberKind<'a> {
    /// No special property.
    Plain,
    /// `tl.arange(0, end)`, possibly with added axes or a cast; holds its `end`.
    Index(&'a Expr),
    /// Built from `tl.arange` by arithmetic: finite in every lane.
    Affine,
    /// Zero in every lane.
    Zero,
    /// Loaded with a finite literal in the lanes outside the mask.
    Filled,
}

/// The lanes of a value that a load left undefined.
#[derive(Clone, Debug, PartialEq)]
pub struct Undefined<'a> {
    /// The load.
    pub load: &'a Expr,
    /// For each axis of the value, whether definedness certainly changes along it.
    pub axes: Vec<bool>,
    /// Whether filling the load's undefined lanes with zero would make these lanes zero, too.
    pub zero_stays: bool,
    /// Whether the value cannot be negative, whatever the load returns.
    pub nonnegative: bool,
    /// Whether the value is the loaded one, at most cast.
    pub as_loaded: bool,
}

impl<'a> Undefined<'a> {
    /// The lanes that `load` leaves undefined along `axes`.
    #[must_use]
    pub fn of(load: &'a Expr, axes: Vec<bool>) -> Self {
        Self { load, axes, zero_stays: true, nonnegative: false, as_loaded: true }
    }
}

/// The abstract value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneValue<'a> {
    /// One entry for each axis, so none for a scalar; `None` when the rank is not known.
    pub axes: Option<Vec<Along>>,
    /// Numeric properties of the value.
    pub kind: NumberKind<'a>,
    /// Its undefined lanes; empty when the rank is not known.
    pub undefined: Vec<Undefined<'a>>,
    /// The padding of the value; `None` when there is none or the rank is not known.
    pub fill: Option<Fill<'a>>,
    /// The number in all lanes, when it is a literal.
    pub number: Option<f64>,
}

impl<'a> LaneValue<'a> {
    /// A value about which nothing is known.
    #[must_use]
    pub fn unknown() -> Self {
        Self { axes: None, kind: NumberKind::Plain, undefined: Vec::new(), fill: None, number: None }
    }

    /// A defined value with these axes.
    #[must_use]
    pub fn tile(axes: Vec<Along>) -> Self {
        Self { axes: Some(axes), kind: NumberKind::Plain, undefined: Vec::new(), fill: None, number: None }
    }

    /// A scalar: a number or a pointer.
    #[must_use]
    pub fn scalar() -> Self {
        Self::tile(Vec::new())
    }

    /// The same value with the property `kind`.
    #[must_use]
    pub fn of_kind(mut self, kind: NumberKind<'a>) -> Self {
        self.kind = kind;
        self
    }

    /// The same value with `number` in all lanes.
    #[must_use]
    pub fn of_number(mut self, number: Option<f64>) -> Self {
        self.number = number;
        self
    }

    /// The number of axes, where known.
    #[must_use]
    pub fn rank(&self) -> Option<usize> {
        self.axes.as_ref().map(Vec::len)
    }

    /// How the value differs along axis `at` after broadcasting to a tile of rank `rank`.
    pub(super) fn along(&self, at: usize, rank: usize) -> Along {
        let Some(axes) = &self.axes else { return Along::Unknown };
        let missing = rank.saturating_sub(axes.len());
        if at < missing { Along::Same } else { axes[at - missing] }
    }

    /// The undefined lanes after broadcasting to a tile of rank `rank`.
    fn undefined_in(&self, rank: usize) -> impl Iterator<Item = Undefined<'a>> {
        self.undefined.iter().map(move |undefined| {
            let missing = rank - undefined.axes.len();
            let axes = std::iter::repeat_n(false, missing).chain(undefined.axes.iter().copied()).collect();
            Undefined { axes, ..undefined.clone() }
        })
    }

    /// The value after an elementwise function. `zero_stays` is true when the function maps zero to zero, and
    /// `nonnegative` when its results are never negative.
    #[must_use]
    pub fn mapped(mut self, zero_stays: bool, nonnegative: bool) -> Self {
        self.kind = NumberKind::Plain;
        (self.fill, self.number) = (None, None);
        self.axes = self.axes.map(|axes| axes.into_iter().map(Along::mapped).collect());
        for undefined in &mut self.undefined {
            undefined.zero_stays &= zero_stays;
            undefined.nonnegative = nonnegative;
            undefined.as_loaded = false;
        }
        self
    }

    /// Whether lanes that are `undefined` in the other operand stay undefined when this value is combined with it. They
    /// may not when this value differs between defined and undefined lanes, because it may be there to neutralize them.
    fn keeps(&self, undefined: &Undefined<'a>, operation: Operation) -> bool {
        let rank = undefined.axes.len();
        let concerned: Vec<usize> = (0..rank).filter(|&at| undefined.axes[at]).collect();
        let same = |at: usize| self.along(at, rank) == Along::Same;
        let finite =
            matches!(self.kind, NumberKind::Index(_) | NumberKind::Affine | NumberKind::Zero | NumberKind::Filled);
        concerned.iter().all(|&at| same(at))
            || (operation.is_sum() && finite)
            || self.undefined_in(rank).any(|own| concerned.iter().all(|&at| own.axes[at] || same(at)))
    }

    /// The same for a product of matrices in which axis 0 of this value is summed: the lanes may not stay undefined
    /// when this value may be zero there.
    #[must_use]
    pub(crate) fn keeps_undefined(&self, lanes: &Undefined<'a>) -> bool {
        self.along(0, lanes.axes.len()) == Along::Same || self.undefined.iter().any(|own| own.axes[0])
    }

    /// `self op other`, lane by lane.
    #[must_use]
    pub fn binary(&self, operation: Operation, other: &Self) -> Self {
        let (Some(left), Some(right)) = (self.rank(), other.rank()) else { return Self::unknown() };
        let rank = left.max(right);
        let axes = (0..rank).map(|at| self.along(at, rank).with(other.along(at, rank), operation)).collect();
        let mut undefined: Vec<Undefined<'a>> = Vec::new();
        for (own, partner, left_side) in [(self, other, true), (other, self, false)] {
            for mut lanes in own.undefined_in(rank) {
                if partner.keeps(&lanes, operation) {
                    (lanes.zero_stays, lanes.nonnegative) = match operation {
                        Operation::Product => {
                            (lanes.zero_stays && partner.can_be_filled(), partner.is_square_with(&lanes))
                        }
                        Operation::Quotient => (lanes.zero_stays && left_side, false),
                        Operation::Sum | Operation::Difference => (
                            lanes.zero_stays && partner.adds_zero_to(&lanes),
                            lanes.nonnegative && partner.adds_nonnegative_to(&lanes),
                        ),
                        _ => (false, false),
                    };
                    lanes.as_loaded = false;
                    add_undefined(&mut undefined, lanes);
                }
            }
        }
        let affine =
            |value: &Self| matches!(value.kind, NumberKind::Index(_) | NumberKind::Affine) || value.rank() == Some(0);
        let kind = match operation {
            Operation::Sum | Operation::Difference | Operation::Product
                if rank > 0 && affine(self) && affine(other) =>
            {
                NumberKind::Affine
            }
            _ => NumberKind::Plain,
        };
        let fill = fills::binary(operation, self, other, rank, false);
        let is_zero = operation == Operation::Product && [self.number, other.number].contains(&Some(0.0));
        Self { axes: Some(axes), kind, undefined, fill, number: is_zero.then_some(0.0) }
    }

    /// Whether adding this value keeps zeros in the `lanes`, once their load fills them with zero.
    fn adds_zero_to(&self, lanes: &Undefined<'a>) -> bool {
        let rank = lanes.axes.len();
        self.kind == NumberKind::Zero || self.undefined_in(rank).any(|own| own.zero_stays && own.axes == lanes.axes)
    }

    fn adds_nonnegative_to(&self, lanes: &Undefined<'a>) -> bool {
        self.kind == NumberKind::Zero
            || (!self.undefined.is_empty() && self.undefined.iter().all(|own| own.nonnegative))
                && self.rank() == Some(lanes.axes.len())
    }

    /// Whether all undefined lanes of this value could be filled with zeros, too: zero times undefined may be NaN.
    fn can_be_filled(&self) -> bool {
        self.undefined.iter().all(|own| own.zero_stays)
    }

    /// Whether multiplying by this value squares the undefined `lanes`, because both are the same load.
    fn is_square_with(&self, lanes: &Undefined<'a>) -> bool {
        let same = |own: &Undefined<'a>| own.load.span == lanes.load.span && own.as_loaded;
        lanes.as_loaded && self.undefined.iter().any(same)
    }

    /// What is certain when the value is one of the two.
    #[must_use]
    pub fn either(&self, other: &Self) -> Self {
        let mut joined = self.alike(other);
        joined.fill = self.fill.as_ref().zip(other.fill.as_ref()).and_then(|(a, b)| a.either(b));
        if !self.undefined.is_empty() && !other.undefined.is_empty() {
            joined.take_undefined(self);
            joined.take_undefined(other);
        }
        joined
    }

    /// The value of a variable after a loop, where `self` is the value before it and `after` the value after the body.
    /// The undefined lanes are those of `after`.
    #[must_use]
    pub fn looped(&self, after: &Self) -> Self {
        let mut joined = self.alike(after);
        joined.take_undefined(after);
        joined.fill = match (&self.fill, &after.fill) {
            // The initial value of a running total.
            (None, Some(fill)) if joined.axes.is_some() && self.number == Some(0.0) => Some(fill.clone()),
            (Some(before), Some(after)) => before.either(after),
            _ => None,
        };
        joined
    }

    fn alike(&self, other: &Self) -> Self {
        let axes = match (&self.axes, &other.axes) {
            (Some(left), Some(right)) if left.len() == right.len() => {
                Some(left.iter().zip(right).map(|(a, b)| if a == b { *a } else { Along::Unknown }).collect())
            }
            _ => None,
        };
        let kind = if self.kind == other.kind { self.kind } else { NumberKind::Plain };
        let number = self.number.filter(|number| other.number == Some(*number));
        Self { axes, kind, undefined: Vec::new(), fill: None, number }
    }

    fn take_undefined(&mut self, from: &Self) {
        if self.axes.is_some() {
            from.undefined.iter().cloned().for_each(|lanes| add_undefined(&mut self.undefined, lanes));
        }
    }

    /// `tl.where(self, yes, no)`. A condition that differs from lane to lane may be there to exclude the undefined
    /// lanes.
    #[must_use]
    pub fn choose(&self, yes: &Self, no: &Self) -> Self {
        let (Some(a), Some(b), Some(c)) = (self.rank(), yes.rank(), no.rank()) else { return Self::unknown() };
        let rank = a.max(b).max(c);
        let same = |at: usize| [self, yes, no].iter().all(|value| value.along(at, rank) == Along::Same);
        let axes = (0..rank).map(|at| if same(at) { Along::Same } else { Along::Unknown }).collect();
        let mut chosen = Self::tile(axes);
        if (0..rank).all(|at| self.along(at, rank) == Along::Same)
            && !yes.undefined.is_empty()
            && !no.undefined.is_empty()
        {
            chosen.undefined.extend(yes.undefined_in(rank));
            no.undefined_in(rank).for_each(|lanes| add_undefined(&mut chosen.undefined, lanes));
        }
        chosen
    }

    /// The value with an axis of size 1 inserted at `at`.
    #[must_use]
    pub fn expanded(mut self, at: usize) -> Self {
        match &mut self.axes {
            Some(axes) if at <= axes.len() => {
                axes.insert(at, Along::Same);
                self.undefined.iter_mut().for_each(|undefined| undefined.axes.insert(at, false));
                if let Some(fill) = &mut self.fill {
                    fill.axes.insert(at, false);
                    fill.is_moved = true;
                }
                self
            }
            _ => Self::unknown(),
        }
    }

    /// The value with the order of its axes reversed.
    #[must_use]
    pub fn transposed(mut self) -> Self {
        if let Some(axes) = &mut self.axes {
            axes.reverse();
            self.undefined.iter_mut().for_each(|undefined| undefined.axes.reverse());
            if let Some(fill) = &mut self.fill {
                fill.axes.reverse();
                fill.is_moved = true;
            }
        }
        self
    }

    /// The value after the reduction `name` along `axis`, or along all axes, and the undefined lanes that lie along a
    /// reduced axis.
    #[must_use]
    pub fn reduced(self, axis: Option<usize>, keep_dims: bool, name: &str) -> (Self, Vec<Undefined<'a>>) {
        let Some(axes) = self.axes else { return (Self::unknown(), Vec::new()) };
        let gone = |at: usize| axis.is_none_or(|axis| axis == at);
        let is_kept = |fill: &Fill<'a>| !fill.axes.iter().enumerate().any(|(at, &on)| on && gone(at));
        let fill = self.fill.filter(is_kept).and_then(|fill| {
            let axes = without(&fill.axes, &gone, keep_dims, false);
            fill.reduced(name, axes)
        });
        let (mixed, mut kept): (Vec<_>, Vec<_>) =
            self.undefined.into_iter().partition(|lanes| lanes.axes.iter().enumerate().any(|(at, &on)| on && gone(at)));
        for lanes in &mut kept {
            lanes.zero_stays &= name == "sum";
            lanes.as_loaded = false;
            lanes.axes = without(&lanes.axes, &gone, keep_dims, false);
        }
        kept.retain(|lanes| lanes.axes.contains(&true));
        let mut left = without(&axes, &gone, keep_dims, Along::Same);
        left.iter_mut().for_each(|along| *along = along.mapped());
        (Self { axes: Some(left), kind: NumberKind::Plain, undefined: kept, fill, number: None }, mixed)
    }
}

fn without<T: Copy>(axes: &[T], gone: &dyn Fn(usize) -> bool, keep: bool, kept_as: T) -> Vec<T> {
    let each = axes.iter().enumerate();
    each.filter_map(|(at, &axis)| if gone(at) { keep.then_some(kept_as) } else { Some(axis) }).collect()
}

/// Adds undefined lanes. Those of the same load are merged and keep the axes on which both agree.
fn add_undefined<'a>(into: &mut Vec<Undefined<'a>>, lanes: Undefined<'a>) {
    match into.iter_mut().find(|known| known.load.span == lanes.load.span && known.axes.len() == lanes.axes.len()) {
        Some(known) => {
            known.zero_stays &= lanes.zero_stays;
            known.nonnegative &= lanes.nonnegative;
            known.as_loaded &= lanes.as_loaded;
            known.axes.iter_mut().zip(&lanes.axes).for_each(|(known, more)| *known &= more);
        }
        None => into.push(lanes),
    }
}

/// The binary operations that the domain distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `+`
    Sum,
    /// `-`
    Difference,
    /// `*`
    Product,
    /// `/`
    Quotient,
    /// `<`, `<=`, `>`, `>=`, `==`, `!=`
    Comparison,
    /// `&` and `and`
    And,
    /// `|` and `or`
    Or,
    /// Anything else.
    Other,
}

impl Operation {
    fn is_sum(self) -> bool {
        matches!(self, Self::Sum | Self::Difference)
    }
}

impl Along {
    fn with(self, other: Self, operation: Operation) -> Self {
        match (self, other, operation) {
            (Self::Same, Self::Same, _) => Self::Same,
            // A mask stays a mask when another condition is added.
            (Self::Varies, _, Operation::And) | (_, Self::Varies, Operation::And) => Self::Varies,
            (Self::Varies, Self::Same, operation) | (Self::Same, Self::Varies, operation)
                if operation.is_sum() || matches!(operation, Operation::Product | Operation::Comparison) =>
            {
                Self::Varies
            }
            _ => Self::Unknown,
        }
    }

    /// The result of an elementwise function, which may map different lanes to the same value.
    fn mapped(self) -> Self {
        if self == Self::Varies { Self::Unknown } else { self }
    }
}
