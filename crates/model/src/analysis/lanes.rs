//! The domain of tiles: rank, along which axes a value differs from lane to lane, and which lanes nobody defined.
//!
//! A masked `tl.load` without `other` leaves the lanes outside its mask undefined. What matters for a reduction is not
//! *that* there are such lanes but whether they lie along the reduced axis: a mask over rows alone leaves whole rows
//! undefined, and a sum along the columns of each row mixes nothing. So each value carries, per load, the axes along
//! which definedness certainly changes; elementwise operations hand that on, unless the other operand may be there to
//! undo it (a mask that multiplies, a `-inf` that is added).
//!
//! To grow: a dtype, an integer range and a size per axis belong into [`Value`] beside what is there.

use super::fills::{self, Fill};
use crate::kernel::ast::Expr;

/// How a value differs from lane to lane along one axis of its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// It is the same in every lane (this includes axes of size 1).
    Same,
    /// It comes from `tl.arange` along this axis by adding, scaling and comparing: each lane has its own.
    Varies,
    /// Nobody can tell.
    Unknown,
}

/// What kind of number a value is, where that matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind<'a> {
    /// Nothing special.
    Plain,
    /// `tl.arange(0, end)`, at most with axes added or cast; with its `end`.
    Index(&'a Expr),
    /// Built from `tl.arange` by arithmetic: finite in every lane.
    Affine,
    /// Zero in every lane.
    Zero,
    /// Loaded with a finite literal in the lanes outside the mask.
    Filled,
}

/// Lanes of a value that a load left undefined.
#[derive(Clone, Debug, PartialEq)]
pub struct Undefined<'a> {
    /// The load.
    pub load: &'a Expr,
    /// For each axis of the value, whether definedness certainly changes along it.
    pub axes: Vec<bool>,
    /// Whether a zero in the load's undefined lanes would still be a zero in this value's.
    pub zero_stays: bool,
    /// Whether the value cannot be negative, whatever was loaded.
    pub nonnegative: bool,
    /// Whether the value is what was loaded, at most cast.
    pub as_loaded: bool,
}

impl<'a> Undefined<'a> {
    /// What `load` leaves undefined, along `axes`.
    #[must_use]
    pub fn of(load: &'a Expr, axes: Vec<bool>) -> Self {
        Self { load, axes, zero_stays: true, nonnegative: false, as_loaded: true }
    }
}

/// What is known about a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Value<'a> {
    /// One entry an axis, so none for a scalar; `None` when the rank is not known.
    pub axes: Option<Vec<Along>>,
    /// What kind of number it is.
    pub kind: Kind<'a>,
    /// Its undefined lanes; empty when the rank is not known.
    pub undefined: Vec<Undefined<'a>>,
    /// Its lanes that a load filled; none when the rank is not known.
    pub fill: Option<Fill<'a>>,
    /// The number that all lanes have, where it is written out.
    pub number: Option<f64>,
}

impl<'a> Value<'a> {
    /// A value of which nothing is known.
    #[must_use]
    pub fn unknown() -> Self {
        Self { axes: None, kind: Kind::Plain, undefined: Vec::new(), fill: None, number: None }
    }

    /// A defined value with these axes.
    #[must_use]
    pub fn tile(axes: Vec<Along>) -> Self {
        Self { axes: Some(axes), kind: Kind::Plain, undefined: Vec::new(), fill: None, number: None }
    }

    /// A number or a pointer.
    #[must_use]
    pub fn scalar() -> Self {
        Self::tile(Vec::new())
    }

    /// The same value, of another kind.
    #[must_use]
    pub fn of_kind(mut self, kind: Kind<'a>) -> Self {
        self.kind = kind;
        self
    }

    /// The same value, of which all lanes are this number.
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

    /// How it differs along axis `at` of a tile of rank `rank` that it is broadcast to.
    pub(super) fn along(&self, at: usize, rank: usize) -> Along {
        let Some(axes) = &self.axes else { return Along::Unknown };
        let missing = rank.saturating_sub(axes.len());
        if at < missing { Along::Same } else { axes[at - missing] }
    }

    /// The undefined lanes as lanes of a tile of rank `rank`.
    fn undefined_in(&self, rank: usize) -> impl Iterator<Item = Undefined<'a>> {
        self.undefined.iter().map(move |undefined| {
            let missing = rank - undefined.axes.len();
            let axes = std::iter::repeat_n(false, missing).chain(undefined.axes.iter().copied()).collect();
            Undefined { axes, ..undefined.clone() }
        })
    }

    /// The value under a function of each lane; `zero_stays` tells whether it takes zero to zero, `nonnegative` whether
    /// it is never negative.
    #[must_use]
    pub fn mapped(mut self, zero_stays: bool, nonnegative: bool) -> Self {
        self.kind = Kind::Plain;
        (self.fill, self.number) = (None, None);
        self.axes = self.axes.map(|axes| axes.into_iter().map(Along::mapped).collect());
        for undefined in &mut self.undefined {
            undefined.zero_stays &= zero_stays;
            undefined.nonnegative = nonnegative;
            undefined.as_loaded = false;
        }
        self
    }

    /// Whether this value, as an operand of `operation`, leaves lanes undefined that `undefined` of the other operand
    /// leaves so. It does not when it may differ between defined and undefined lanes: then it may be there to undo them.
    fn keeps(&self, undefined: &Undefined<'a>, operation: Operation) -> bool {
        let rank = undefined.axes.len();
        let concerned: Vec<usize> = (0..rank).filter(|&at| undefined.axes[at]).collect();
        let same = |at: usize| self.along(at, rank) == Along::Same;
        let finite = matches!(self.kind, Kind::Index(_) | Kind::Affine | Kind::Zero | Kind::Filled);
        concerned.iter().all(|&at| same(at))
            || (operation.is_sum() && finite)
            || self.undefined_in(rank).any(|own| concerned.iter().all(|&at| own.axes[at] || same(at)))
    }

    /// Whether this value, as the other operand of a product of matrices whose axis 0 is summed, leaves undefined what
    /// `lanes` leaves so along it: it does not when it may be zero there.
    #[must_use]
    pub fn keeps_undefined(&self, lanes: &Undefined<'a>) -> bool {
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
        let affine = |value: &Self| matches!(value.kind, Kind::Index(_) | Kind::Affine) || value.rank() == Some(0);
        let kind = match operation {
            Operation::Sum | Operation::Difference | Operation::Product
                if rank > 0 && affine(self) && affine(other) =>
            {
                Kind::Affine
            }
            _ => Kind::Plain,
        };
        let fill = fills::binary(operation, self, other, rank, false);
        Self { axes: Some(axes), kind, undefined, fill, number: None }
    }

    /// Whether adding this leaves a zero a zero in the lanes that `lanes` leaves undefined, once its load is filled.
    fn adds_zero_to(&self, lanes: &Undefined<'a>) -> bool {
        let rank = lanes.axes.len();
        self.kind == Kind::Zero || self.undefined_in(rank).any(|own| own.zero_stays && own.axes == lanes.axes)
    }

    fn adds_nonnegative_to(&self, lanes: &Undefined<'a>) -> bool {
        self.kind == Kind::Zero
            || (!self.undefined.is_empty() && self.undefined.iter().all(|own| own.nonnegative))
                && self.rank() == Some(lanes.axes.len())
    }

    /// Whether all that is undefined in it can be filled with zeros, too: zero times undefined may be NaN.
    fn can_be_filled(&self) -> bool {
        self.undefined.iter().all(|own| own.zero_stays)
    }

    /// Whether multiplying with this squares what `lanes` leaves undefined: both are the same load.
    fn is_square_with(&self, lanes: &Undefined<'a>) -> bool {
        let same = |own: &Undefined<'a>| own.load.span == lanes.load.span && own.as_loaded;
        lanes.as_loaded && self.undefined.iter().any(same)
    }

    /// What is known when it is either of the two.
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

    /// What is known of a variable after a loop that found it as `self` and left it as `after`: the body counts.
    #[must_use]
    pub fn looped(&self, after: &Self) -> Self {
        let mut joined = self.alike(after);
        joined.take_undefined(after);
        joined.fill = match (&self.fill, &after.fill) {
            // What a running total starts from.
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
        let kind = if self.kind == other.kind { self.kind } else { Kind::Plain };
        let number = self.number.filter(|number| other.number == Some(*number));
        Self { axes, kind, undefined: Vec::new(), fill: None, number }
    }

    fn take_undefined(&mut self, from: &Self) {
        if self.axes.is_some() {
            from.undefined.iter().cloned().for_each(|lanes| add_undefined(&mut self.undefined, lanes));
        }
    }

    /// `tl.where(self, yes, no)`. A choice that is not the same everywhere may be there to leave the undefined lanes out.
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

    /// With an axis of size 1 put in at `at`.
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

    /// With the order of its axes reversed.
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

    /// Reduced along `axis`, or along all of them; also gives the lanes that were undefined along what was reduced.
    /// `name` is that of the reduction.
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
        (Self { axes: Some(left), kind: Kind::Plain, undefined: kept, fill, number: None }, mixed)
    }
}

fn without<T: Copy>(axes: &[T], gone: &dyn Fn(usize) -> bool, keep: bool, kept_as: T) -> Vec<T> {
    let each = axes.iter().enumerate();
    each.filter_map(|(at, &axis)| if gone(at) { keep.then_some(kept_as) } else { Some(axis) }).collect()
}

/// Two ways in which one load leaves lanes undefined are one: along the axes that both agree on.
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

/// The operations of two operands that the domain tells apart.
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
            // What lets through only some lanes still does with a further condition.
            (Self::Varies, _, Operation::And) | (_, Self::Varies, Operation::And) => Self::Varies,
            (Self::Varies, Self::Same, operation) | (Self::Same, Self::Varies, operation)
                if operation.is_sum() || matches!(operation, Operation::Product | Operation::Comparison) =>
            {
                Self::Varies
            }
            _ => Self::Unknown,
        }
    }

    /// After a function of each lane, which may take different lanes to one value.
    fn mapped(self) -> Self {
        if self == Self::Varies { Self::Unknown } else { self }
    }
}
