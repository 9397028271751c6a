//! Polynomials over the indices of programs and lanes, loop variables and parameters.

use std::fmt;
use std::sync::Arc;

use super::shape::{Dim, SymbolicSize};
use super::value::Const;

/// Polynomials with more terms, or with more factors in a term, are not represented.
const MAX_TERMS: usize = 16;
const MAX_DEGREE: usize = 4;

/// An integer variable of a polynomial.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// `tl.program_id(axis)`
    Program(u8),
    /// `tl.num_programs(axis)`
    Programs(u8),
    /// A parameter (run-time or `tl.constexpr`) or a compile-time expression of parameters.
    Param(Arc<str>),
    /// The position in a `tl.arange`, by the index of its [`Lane`].
    Lane(u32),
    /// The variable of a loop, by the index of its [`Loop`].
    Loop(u32),
    /// Another integer. Equal numbers mean equal values: a variable that a loop changes, a loaded value, a quotient.
    Other(u32),
}

/// A polynomial with integer coefficients, in a canonical form: sorted, without zero terms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Poly {
    /// Products of atoms (sorted), each with its coefficient, sorted by the atoms.
    pub terms: Vec<(Vec<Atom>, i128)>,
    /// The constant term.
    pub constant: i128,
}

impl Poly {
    /// A constant polynomial.
    #[must_use]
    pub fn number(constant: i128) -> Self {
        Self { terms: Vec::new(), constant }
    }

    /// The polynomial of a single atom.
    #[must_use]
    pub fn atom(atom: Atom) -> Self {
        Self { terms: vec![(vec![atom], 1)], constant: 0 }
    }

    /// The polynomial of a compile-time value; `None` when it is not an integer.
    #[must_use]
    pub(crate) fn of_constant(constant: &Const) -> Option<Self> {
        match constant {
            Const::Symbol(symbol) => Some(Self::of_symbol(symbol)),
            _ => constant.int().map(Self::number),
        }
    }

    /// The polynomial of a size; `None` when it is not known.
    #[must_use]
    pub fn of_dim(size: &Dim) -> Option<Self> {
        match size {
            Dim::Known(size) => Some(Self::number(i128::from(*size))),
            Dim::Symbol(symbol) => Some(Self::of_symbol(symbol)),
            Dim::Unknown => None,
        }
    }

    fn of_symbol(symbol: &SymbolicSize) -> Self {
        let atoms = symbol.names.iter().cloned().map(Atom::Param).collect();
        Self { terms: vec![(atoms, i128::from(symbol.factor))], constant: 0 }
    }

    /// The value of a constant polynomial; `None` for others.
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

    /// `self + factor * other`; `None` on overflow or when the result is too large to represent.
    #[must_use]
    pub fn plus(&self, other: &Self, factor: i128) -> Option<Self> {
        let mut sum = self.clone();
        sum.constant = sum.constant.checked_add(other.constant.checked_mul(factor)?)?;
        for (atoms, of_term) in &other.terms {
            sum.add_term(atoms.clone(), of_term.checked_mul(factor)?)?;
        }
        Some(sum)
    }

    /// `self * other`; `None` on overflow or when the result is too large to represent.
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

    /// The quotient of two products, where it is exact: `n` for `m*n` and `m`.
    #[must_use]
    pub fn divided_by(&self, part: &Self) -> Option<Self> {
        let factors = |poly: &Self| match (poly.terms.as_slice(), poly.constant) {
            ([(atoms, factor)], 0) => Some((atoms.clone(), *factor)),
            ([], constant) => Some((Vec::new(), constant)),
            _ => None,
        };
        let ((mut rest, whole), (atoms, part)) = (factors(self)?, factors(part)?);
        for atom in &atoms {
            let at = rest.iter().position(|other| other == atom)?;
            rest.remove(at);
        }
        if part <= 0 || whole <= 0 || whole % part != 0 {
            return None;
        }
        let number = Self::number(whole / part);
        rest.into_iter().try_fold(number, |product, atom| product.times(&Self::atom(atom)))
    }

    /// Whether the atom occurs in the polynomial.
    #[must_use]
    pub fn has(&self, atom: &Atom) -> bool {
        self.terms.iter().any(|(atoms, _)| atoms.contains(atom))
    }

    /// Whether some atom satisfies `wanted`.
    #[must_use]
    pub fn any(&self, wanted: impl Fn(&Atom) -> bool) -> bool {
        self.terms.iter().any(|(atoms, _)| atoms.iter().any(&wanted))
    }

    /// The polynomial with each atom replaced; `None` on overflow.
    #[must_use]
    pub fn renamed(&self, new: &mut impl FnMut(&Atom) -> Atom) -> Option<Self> {
        let mut renamed = Self::number(self.constant);
        for (atoms, factor) in &self.terms {
            let mut atoms: Vec<Atom> = atoms.iter().map(&mut *new).collect();
            atoms.sort();
            renamed.add_term(atoms, *factor)?;
        }
        Some(renamed)
    }

    /// The factor of `atom`, where it occurs once in each of its terms: `BLOCK` for program 0 in `program(0)·BLOCK +
    /// lane(0)`.
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

    /// The value when `of` supplies the values of the atoms. Atoms that are multiplied with zero need no value.
    #[must_use]
    pub fn value(&self, of: &dyn Fn(&Atom) -> Option<i128>) -> Option<i128> {
        let mut sum = self.constant;
        for (atoms, factor) in &self.terms {
            let values: Vec<Option<i128>> = atoms.iter().map(of).collect();
            if values.contains(&Some(0)) {
                continue;
            }
            let product = values.into_iter().try_fold(*factor, |product, value| product.checked_mul(value?));
            sum = sum.checked_add(product?)?;
        }
        Some(sum)
    }

    /// The name of the parameter, when the polynomial is a single parameter.
    #[must_use]
    pub fn as_param(&self) -> Option<&str> {
        match self.terms.as_slice() {
            [(atoms, 1)] if self.constant == 0 => match atoms.as_slice() {
                [Atom::Param(name)] => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// The least and greatest value when `of` supplies bounds of the atoms; `None` when a bound is missing. Both are
    /// attained when the atoms are independent and no atom occurs in two terms with different signs.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn param(name: &str) -> Poly {
        Poly::atom(Atom::Param(name.into()))
    }

    #[test]
    fn exact_quotients_of_products_are_found() {
        let (m, n) = (param("m"), param("n"));
        let both = m.times(&n).unwrap();
        assert_eq!(both.divided_by(&m), Some(n.clone()));
        let six = both.times(&Poly::number(6)).unwrap();
        assert_eq!(six.divided_by(&n.times(&Poly::number(2)).unwrap()), m.times(&Poly::number(3)));
        assert_eq!(m.divided_by(&both), None);
        assert_eq!(m.plus(&n, 1).unwrap().divided_by(&m), None);
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
    fn polynomial_ranges_follow_from_atom_ranges() {
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
