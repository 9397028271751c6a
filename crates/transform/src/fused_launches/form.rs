//! A normal form of expressions, in which equal forms mean equal values.

/// The normal form of an expression; equal forms mean equal values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    Sum(Vec<Form>),
    Product(Vec<Form>),
    /// The conjunction of conditions.
    All(Vec<Form>),
    /// Anything else: the operation, and its operands.
    Of(String, Vec<Form>),
}

impl Form {
    pub(super) fn leaf(name: impl Into<String>) -> Self {
        Self::Of(name.into(), Vec::new())
    }

    pub(super) fn of(name: impl Into<String>, parts: Vec<Self>) -> Self {
        Self::Of(name.into(), parts)
    }

    /// `left op right`
    pub(super) fn binary(op: &str, left: Self, right: Self) -> Self {
        match op {
            "+" => Self::sum([left, right]),
            "*" => Self::product([left, right]),
            "&" => Self::all([left, right]),
            _ => Self::of(op, vec![left, right]),
        }
    }

    fn sum(parts: impl IntoIterator<Item = Self>) -> Self {
        let flat = parts.into_iter().flat_map(|part| if let Self::Sum(parts) = part { parts } else { vec![part] });
        joined(flat.collect(), "0", Self::Sum)
    }

    pub(super) fn product(parts: impl IntoIterator<Item = Self>) -> Self {
        let flat = parts.into_iter().flat_map(|part| if let Self::Product(parts) = part { parts } else { vec![part] });
        joined(flat.collect(), "1", Self::Product)
    }

    fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        let flat = parts.into_iter().flat_map(|part| part.conditions().to_vec());
        joined(flat.collect(), "True", Self::All)
    }

    /// The conditions of a conjunction; any other form is a single condition.
    fn conditions(&self) -> &[Self] {
        if let Self::All(parts) = self { parts } else { std::slice::from_ref(self) }
    }

    /// Whether this condition implies the other.
    pub(super) fn implies(&self, other: &Self) -> bool {
        other.conditions().iter().all(|condition| self.conditions().contains(condition))
    }

    /// The form without conversions between integers: as an address it has the same value, unless it overflows.
    pub(super) fn address(&self) -> Self {
        match self {
            Self::Sum(parts) => Self::sum(parts.iter().map(Self::address)),
            Self::Product(parts) => Self::product(parts.iter().map(Self::address)),
            Self::All(parts) => Self::all(parts.iter().map(Self::address)),
            Self::Of(name, parts) => match (name.as_str(), parts.as_slice()) {
                (".to", [value, Self::Of(to, _)]) if matches!(to.as_str(), "int64" | "int32") => value.address(),
                _ => Self::of(name.clone(), parts.iter().map(Self::address).collect()),
            },
        }
    }
}

fn joined(mut parts: Vec<Form>, neutral: &str, join: fn(Vec<Form>) -> Form) -> Form {
    parts.retain(|part| *part != Form::leaf(neutral));
    parts.sort();
    match parts.len() {
        0 => Form::leaf(neutral),
        1 => parts.remove(0),
        _ => join(parts),
    }
}
