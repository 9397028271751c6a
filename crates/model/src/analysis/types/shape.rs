//! Sizes of tiles: numbers, products of compile-time parameters, or unknown.

use std::fmt;
use std::sync::Arc;

/// A compile-time integer whose value is not known: a factor times names of parameters, sorted. An expression that has
/// no simpler form counts as one name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SymbolicSize {
    /// The constant factor.
    pub factor: i64,
    /// The names, sorted; at least one.
    pub names: Arc<[Arc<str>]>,
}

impl SymbolicSize {
    /// The value of the parameter `name`.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self { factor: 1, names: Arc::from([Arc::from(name)]) }
    }

    /// `self * number`
    #[must_use]
    pub fn times(&self, number: i64) -> Option<Self> {
        Some(Self { factor: self.factor.checked_mul(number)?, names: self.names.clone() })
    }

    /// `self * other`
    #[must_use]
    pub fn product(&self, other: &Self) -> Option<Self> {
        let mut names: Vec<Arc<str>> = self.names.iter().chain(other.names.iter()).cloned().collect();
        if names.len() > 8 {
            return None;
        }
        names.sort();
        Some(Self { factor: self.factor.checked_mul(other.factor)?, names: names.into() })
    }

    /// The symbol for `left op right` when it has no simpler form.
    #[must_use]
    pub fn opaque(left: &dyn fmt::Display, op: &str, right: &dyn fmt::Display) -> Option<Self> {
        let text = format!("({left} {op} {right})");
        (text.len() <= 80).then(|| Self::of(&text))
    }
}

impl fmt::Display for SymbolicSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.factor != 1 {
            write!(f, "{}*", self.factor)?;
        }
        for (at, name) in self.names.iter().enumerate() {
            write!(f, "{}{name}", if at > 0 { "*" } else { "" })?;
        }
        Ok(())
    }
}

/// The size of a tile along one axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A known size.
    Known(i64),
    /// A compile-time value that is not known.
    Symbol(SymbolicSize),
    /// Not known.
    Unknown,
}

impl Dim {
    /// The size as a number, if it is known.
    #[must_use]
    pub fn known(&self) -> Option<i64> {
        match self {
            Self::Known(size) => Some(*size),
            _ => None,
        }
    }

    /// `self * other`
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        let product = match (self, other) {
            (Self::Known(a), Self::Known(b)) => return a.checked_mul(*b).map_or(Self::Unknown, Self::Known),
            (Self::Known(number), Self::Symbol(symbol)) | (Self::Symbol(symbol), Self::Known(number)) => {
                symbol.times(*number)
            }
            (Self::Symbol(a), Self::Symbol(b)) => a.product(b),
            _ => None,
        };
        product.map_or(Self::Unknown, Self::Symbol)
    }

    /// Whether the two sizes certainly differ.
    #[must_use]
    pub fn differs(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Known(a), Self::Known(b)) if a != b)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(size) => write!(f, "{size}"),
            Self::Symbol(symbol) => write!(f, "{symbol}"),
            Self::Unknown => f.write_str("?"),
        }
    }
}

/// The sizes of a tile, outermost axis first; empty for a scalar.
pub type Shape = Arc<[Dim]>;

/// The shape as text for messages: `[64, BLOCK]`.
#[must_use]
pub fn text(shape: &[Dim]) -> String {
    let sizes: Vec<String> = shape.iter().map(Dim::to_string).collect();
    format!("[{}]", sizes.join(", "))
}

/// Two shapes that cannot be broadcast together: the axis and both sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Clash {
    /// The axis, as an index into the longer shape.
    pub axis: usize,
    /// The size in the first shape.
    pub left: Dim,
    /// The size in the second shape.
    pub right: Dim,
}

/// The shape to which two operands are broadcast. A scalar takes the shape of the other operand, and a shorter shape
/// gets axes in front.
///
/// # Errors
/// Returns the axis and its sizes when two sizes certainly differ and neither is 1.
pub fn broadcast(left: &Shape, right: &Shape) -> Result<Shape, Clash> {
    if left == right || right.is_empty() {
        return Ok(left.clone());
    }
    if left.is_empty() {
        return Ok(right.clone());
    }
    let rank = left.len().max(right.len());
    let at = |shape: &Shape, axis: usize| {
        let missing = rank - shape.len();
        if axis < missing { Dim::Known(1) } else { shape[axis - missing].clone() }
    };
    (0..rank)
        .map(|axis| match (at(left, axis), at(right, axis)) {
            (Dim::Known(1), other) | (other, Dim::Known(1)) => Ok(other),
            (a, b) if a == b => Ok(a),
            (Dim::Known(a), Dim::Known(b)) => Err(Clash { axis, left: Dim::Known(a), right: Dim::Known(b) }),
            // A size that is compatible with a number other than 1 is that number, or 1.
            (Dim::Known(size), _) | (_, Dim::Known(size)) => Ok(Dim::Known(size)),
            _ => Ok(Dim::Unknown),
        })
        .collect()
}

/// The number of lanes: the product of the sizes.
#[must_use]
pub fn lanes(shape: &[Dim]) -> Dim {
    shape.iter().fold(Dim::Known(1), |product, size| product.times(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape<const N: usize>(sizes: [&Dim; N]) -> Shape {
        sizes.into_iter().cloned().collect()
    }

    #[test]
    fn shapes_broadcast_like_triton() {
        let (m, n) = (Dim::Symbol(SymbolicSize::of("M")), Dim::Symbol(SymbolicSize::of("N")));
        let one = Dim::Known(1);
        let result = broadcast(&shape([&m, &one]), &shape([&one, &n]));
        assert_eq!(text(&result.unwrap()), "[M, N]");
        assert_eq!(text(&broadcast(&shape([&m]), &shape([&n])).unwrap()), "[?]");
        assert_eq!(text(&broadcast(&shape([&m]), &shape([&Dim::Known(64)])).unwrap()), "[64]");
        assert_eq!(text(&broadcast(&shape([&n]), &shape([&m, &n])).unwrap()), "[M, N]");
        let clash = broadcast(&shape([&Dim::Known(64)]), &shape([&m, &Dim::Known(32)])).unwrap_err();
        assert_eq!((clash.axis, clash.left, clash.right), (1, Dim::Known(64), Dim::Known(32)));
    }

    #[test]
    fn products_have_one_form() {
        let (m, n) = (Dim::Symbol(SymbolicSize::of("M")), Dim::Symbol(SymbolicSize::of("N")));
        assert_eq!(m.times(&n), n.times(&m));
        assert_eq!(m.times(&Dim::Known(2)).times(&n).to_string(), "2*M*N");
    }
}
