//! What integers and pointers are made of: polynomials over the numbers of programs, lanes, loops and parameters.
//!
//! `pid * BLOCK + tl.arange(0, BLOCK)` is the polynomial `program(0)·BLOCK + lane(0)`, varying along axis 0 by lane 0; a
//! pointer is a parameter plus such a polynomial; a mask is a conjunction of comparisons of two of them. Two values with the
//! same polynomial are the same number in every lane of every program. What cannot be written so has none.

use std::fmt;
use std::sync::Arc;

use super::dtype::Number;
use super::shape::{Dim, Symbol};
use super::value::{Const, Tile, Value};
use crate::syntax::Span;

/// More terms than this, or factors in one term, are not kept.
const MAX_TERMS: usize = 16;
const MAX_DEGREE: usize = 4;

/// An integer that the text gives no number for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// `tl.program_id(axis)`
    Program(u8),
    /// `tl.num_programs(axis)`
    Programs(u8),
    /// A parameter (run-time or `tl.constexpr`) or a compile-time expression of parameters.
    Param(Arc<str>),
    /// The position in a `tl.arange`; see [`Lane`].
    Lane(u32),
    /// The variable of a loop; see [`Loop`].
    Loop(u32),
    /// Something that is the same wherever this number stands: what a loop changes, what was loaded, a quotient.
    Other(u32),
}

/// A `tl.arange`.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// The call.
    pub span: Span,
    /// Its first value.
    pub start: Option<i128>,
    /// How many values it has.
    pub size: Dim,
}

/// A loop at run time with a counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// Its head.
    pub span: Span,
    /// Where the counter starts.
    pub start: Option<Poly>,
    /// Where it ends (exclusively).
    pub end: Option<Poly>,
    /// By how much it grows.
    pub step: Option<Poly>,
}

/// A sum of products of atoms, in one form: sorted, without zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Poly {
    /// Products of atoms (sorted) with their factors, sorted by the atoms.
    pub terms: Vec<(Vec<Atom>, i128)>,
    /// The number that stands alone.
    pub constant: i128,
}

impl Poly {
    /// A number.
    #[must_use]
    pub fn number(constant: i128) -> Self {
        Self { terms: Vec::new(), constant }
    }

    /// An atom.
    #[must_use]
    pub fn atom(atom: Atom) -> Self {
        Self { terms: vec![(vec![atom], 1)], constant: 0 }
    }

    /// A compile-time value.
    #[must_use]
    pub fn of_constant(constant: &Const) -> Option<Self> {
        match constant {
            Const::Symbol(symbol) => Some(Self::of_symbol(symbol)),
            _ => constant.int().map(Self::number),
        }
    }

    /// A size.
    #[must_use]
    pub fn of_dim(size: &Dim) -> Option<Self> {
        match size {
            Dim::Known(size) => Some(Self::number(i128::from(*size))),
            Dim::Symbol(symbol) => Some(Self::of_symbol(symbol)),
            Dim::Unknown => None,
        }
    }

    fn of_symbol(symbol: &Symbol) -> Self {
        let atoms = symbol.names.iter().cloned().map(Atom::Param).collect();
        Self { terms: vec![(atoms, i128::from(symbol.factor))], constant: 0 }
    }

    /// The number, when it is one.
    #[must_use]
    pub fn as_number(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    fn add_term(&mut self, atoms: Vec<Atom>, factor: i128) -> Option<()> {
        match self.terms.binary_search_by(|(known, _)| known.cmp(&atoms)) {
            Ok(at) => {
                self.terms[at].1 = self.terms[at].1.checked_add(factor)?;
                if self.terms[at].1 == 0 {
                    self.terms.remove(at);
                }
            }
            Err(at) if factor != 0 => self.terms.insert(at, (atoms, factor)),
            Err(_) => {}
        }
        (self.terms.len() <= MAX_TERMS).then_some(())
    }

    /// `self + factor * other`
    #[must_use]
    pub fn plus(&self, other: &Self, factor: i128) -> Option<Self> {
        let mut sum = self.clone();
        sum.constant = sum.constant.checked_add(other.constant.checked_mul(factor)?)?;
        for (atoms, of_term) in &other.terms {
            sum.add_term(atoms.clone(), of_term.checked_mul(factor)?)?;
        }
        Some(sum)
    }

    /// `self * other`
    #[must_use]
    pub fn times(&self, other: &Self) -> Option<Self> {
        let mut product = Self::number(self.constant.checked_mul(other.constant)?);
        let one = |poly: &Self| {
            let constant = (poly.constant != 0).then(|| (Vec::new(), poly.constant));
            poly.terms.iter().cloned().chain(constant).collect::<Vec<_>>()
        };
        for (left, a) in &one(self) {
            for (right, b) in &one(other) {
                if left.is_empty() && right.is_empty() {
                    continue;
                }
                let mut atoms: Vec<Atom> = left.iter().chain(right).cloned().collect();
                if atoms.len() > MAX_DEGREE {
                    return None;
                }
                atoms.sort();
                product.add_term(atoms, a.checked_mul(*b)?)?;
            }
        }
        Some(product)
    }

    /// Whether the atom is in it.
    #[must_use]
    pub fn has(&self, atom: &Atom) -> bool {
        self.terms.iter().any(|(atoms, _)| atoms.contains(atom))
    }

    /// Whether some atom satisfies `wanted`.
    #[must_use]
    pub fn any(&self, wanted: impl Fn(&Atom) -> bool) -> bool {
        self.terms.iter().any(|(atoms, _)| atoms.iter().any(&wanted))
    }

    /// What `atom` is multiplied with, where it stands once in each of its terms: `BLOCK` for program 0 in
    /// `program(0)·BLOCK + lane(0)`.
    #[must_use]
    pub fn factor_of(&self, atom: &Atom) -> Option<Self> {
        let mut factor = Self::default();
        for (atoms, number) in self.terms.iter().filter(|(atoms, _)| atoms.contains(atom)) {
            let rest: Vec<Atom> = atoms.iter().filter(|other| *other != atom).cloned().collect();
            if rest.len() + 1 != atoms.len() {
                return None;
            }
            if rest.is_empty() {
                factor.constant = factor.constant.checked_add(*number)?;
            } else {
                factor.add_term(rest, *number)?;
            }
        }
        Some(factor)
    }

    /// The least and the greatest value when each atom is within the bounds that `of` gives; `None` when a bound is missing.
    /// Both are reached when the atoms are independent and no atom stands in two terms with different signs.
    #[must_use]
    pub fn range(&self, of: &dyn Fn(&Atom) -> Option<(i128, i128)>) -> Option<(i128, i128)> {
        let (mut low, mut high) = (self.constant, self.constant);
        for (atoms, factor) in &self.terms {
            let mut bounds = (*factor, *factor);
            for atom in atoms {
                let (from, to) = of(atom)?;
                let ends = [
                    bounds.0.checked_mul(from)?,
                    bounds.0.checked_mul(to)?,
                    bounds.1.checked_mul(from)?,
                    bounds.1.checked_mul(to)?,
                ];
                bounds = (*ends.iter().min()?, *ends.iter().max()?);
            }
            low = low.checked_add(bounds.0)?;
            high = high.checked_add(bounds.1)?;
        }
        Some((low, high))
    }
}

impl fmt::Display for Poly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (atoms, factor)) in self.terms.iter().enumerate() {
            write!(f, "{}", if at > 0 { " + " } else { "" })?;
            if *factor != 1 {
                write!(f, "{factor}*")?;
            }
            let names: Vec<String> = atoms.iter().map(Atom::to_string).collect();
            f.write_str(&names.join("*"))?;
        }
        match (self.terms.is_empty(), self.constant) {
            (true, constant) => write!(f, "{constant}"),
            (false, 0) => Ok(()),
            (false, constant) => write!(f, " + {constant}"),
        }
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(axis) => write!(f, "program_id({axis})"),
            Self::Programs(axis) => write!(f, "num_programs({axis})"),
            Self::Param(name) => f.write_str(name),
            Self::Lane(lane) => write!(f, "lane{lane}"),
            Self::Loop(id) => write!(f, "loop{id}"),
            Self::Other(id) => write!(f, "other{id}"),
        }
    }
}

/// A comparison of two integers.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// `<`, `<=`, `>`, `>=`, `==` or `!=`.
    pub op: Arc<str>,
    /// Left of the operator.
    pub left: Poly,
    /// Right of it.
    pub right: Poly,
    /// Where it stands.
    pub span: Span,
}

/// What the lanes of a tile are.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// For a pointer, the parameter that it starts from.
    pub base: Option<Arc<str>>,
    /// The number, or the offset of a pointer.
    pub poly: Poly,
    /// For each axis the `tl.arange`s along it.
    pub axes: Vec<Vec<u32>>,
}

/// Which lanes a mask lets through.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// All of these hold.
    pub conditions: Vec<Condition>,
    /// Whether there may be more that must hold.
    pub is_partial: bool,
}

/// What is known beyond the type of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum About {
    /// Nothing.
    #[default]
    Nothing,
    /// It is an integer or a pointer.
    Index(Arc<Index>),
    /// It is a mask.
    Guard(Arc<Guard>),
}

impl About {
    /// An integer that is the same in all lanes.
    #[must_use]
    pub fn scalar(poly: Poly) -> Self {
        Self::Index(Arc::new(Index { base: None, poly, axes: Vec::new() }))
    }

    /// The index, if it is one.
    #[must_use]
    pub fn index(&self) -> Option<&Index> {
        match self {
            Self::Index(index) => Some(index),
            _ => None,
        }
    }

    /// The mask, if it is one.
    #[must_use]
    pub fn guard(&self) -> Option<&Guard> {
        match self {
            Self::Guard(guard) => Some(guard),
            _ => None,
        }
    }

    /// With an axis of size 1 put in at `at`.
    #[must_use]
    pub fn expanded(&self, at: usize) -> Self {
        match self {
            Self::Index(index) => {
                let mut index = (**index).clone();
                index.axes.insert(at.min(index.axes.len()), Vec::new());
                Self::Index(Arc::new(index))
            }
            other => other.clone(),
        }
    }

    /// With axis `order[i]` at `i`.
    #[must_use]
    pub fn permuted(&self, order: &[usize]) -> Self {
        match self {
            Self::Index(index) if index.axes.len() == order.len() => {
                let axes = order.iter().filter_map(|&at| index.axes.get(at).cloned()).collect();
                Self::Index(Arc::new(Index { axes, ..(**index).clone() }))
            }
            Self::Index(_) => Self::Nothing,
            other => other.clone(),
        }
    }
}

/// The axes of two operands after broadcasting.
fn joined_axes(a: &[Vec<u32>], b: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let rank = a.len().max(b.len());
    let of = |axes: &[Vec<u32>], at: usize| {
        let missing = rank - axes.len();
        if at < missing { Vec::new() } else { axes[at - missing].clone() }
    };
    (0..rank)
        .map(|at| {
            let mut lanes = of(a, at);
            lanes.extend(of(b, at));
            lanes.sort_unstable();
            lanes.dedup();
            lanes
        })
        .collect()
}

/// A value as an index.
fn index_of(value: &Value<'_>) -> Option<Index> {
    match value {
        Value::Const(constant) => Some(Index { base: None, poly: Poly::of_constant(constant)?, axes: Vec::new() }),
        Value::Tile(tile) => tile.about.index().cloned(),
        _ => None,
    }
}

/// What `left op right` is.
#[must_use]
pub(super) fn binary(op: &str, left: &Value<'_>, right: &Value<'_>) -> About {
    if op == "&" || op == "and" {
        return both(left, right);
    }
    let (Some(a), Some(b)) = (index_of(left), index_of(right)) else { return About::Nothing };
    let base = match (&a.base, &b.base, op) {
        (Some(_), Some(_), _) => return About::Nothing,
        (Some(base), None, "+" | "-") | (None, Some(base), "+") => Some(base.clone()),
        (None, None, _) => None,
        _ => return About::Nothing,
    };
    let poly = match op {
        "+" => a.poly.plus(&b.poly, 1),
        "-" => a.poly.plus(&b.poly, -1),
        "*" => a.poly.times(&b.poly),
        _ => None,
    };
    match poly {
        Some(poly) => About::Index(Arc::new(Index { base, poly, axes: joined_axes(&a.axes, &b.axes) })),
        None => About::Nothing,
    }
}

/// What `left op right` lets through.
#[must_use]
pub(super) fn comparison(op: &str, left: &Value<'_>, right: &Value<'_>, span: Span) -> About {
    match (index_of(left), index_of(right)) {
        (Some(a), Some(b)) if a.base.is_none() && b.base.is_none() => {
            let condition = Condition { op: op.into(), left: a.poly, right: b.poly, span };
            About::Guard(Arc::new(Guard { conditions: vec![condition], is_partial: false }))
        }
        _ => About::Guard(Arc::new(Guard { conditions: Vec::new(), is_partial: true })),
    }
}

fn both(left: &Value<'_>, right: &Value<'_>) -> About {
    let guard = |value: &Value<'_>| match value {
        Value::Tile(tile) => match &tile.about {
            About::Guard(guard) => (**guard).clone(),
            _ => Guard { conditions: Vec::new(), is_partial: true },
        },
        _ => Guard { conditions: Vec::new(), is_partial: true },
    };
    let is_mask = |value: &Value<'_>| matches!(value, Value::Tile(tile) if tile.element.number() == Some(Number::Int1) || tile.about.guard().is_some());
    if !is_mask(left) && !is_mask(right) {
        return About::Nothing;
    }
    let (mut a, b) = (guard(left), guard(right));
    a.conditions.extend(b.conditions);
    a.is_partial |= b.is_partial;
    About::Guard(Arc::new(a))
}

/// What is known when it is either of two.
#[must_use]
pub(super) fn either(a: &Tile, b: &Tile) -> About {
    if a.about == b.about {
        return a.about.clone();
    }
    About::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(name: &str) -> Poly {
        Poly::atom(Atom::Param(name.into()))
    }

    #[test]
    fn polynomials_have_one_form() {
        let pid = Poly::atom(Atom::Program(0));
        let a = pid.times(&param("BLOCK")).unwrap().plus(&Poly::atom(Atom::Lane(0)), 1).unwrap();
        let b = Poly::atom(Atom::Lane(0)).plus(&param("BLOCK").times(&pid).unwrap(), 1).unwrap();
        assert_eq!(a, b);
        assert_eq!(a.to_string(), "program_id(0)*BLOCK + lane0");
        assert_eq!(a.plus(&b, -1).unwrap(), Poly::number(0));
        assert_eq!(a.factor_of(&Atom::Program(0)), Some(param("BLOCK")));
        let square = a.times(&a).unwrap();
        assert_eq!(square.factor_of(&Atom::Lane(0)), None);
    }

    #[test]
    fn ranges_are_those_of_the_ends() {
        let pid = Poly::atom(Atom::Program(0));
        let poly = pid.times(&Poly::number(-4)).unwrap().plus(&Poly::atom(Atom::Lane(0)), 1).unwrap();
        let of = |atom: &Atom| match atom {
            Atom::Program(_) => Some((0, 9)),
            Atom::Lane(_) => Some((0, 3)),
            _ => None,
        };
        assert_eq!(poly.range(&of), Some((-36, 3)));
        assert_eq!(param("N").range(&of), None);
    }
}
