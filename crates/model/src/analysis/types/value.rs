//! What an expression in a kernel may stand for.

use std::fmt;
use std::sync::Arc;

use super::dtype::Number;
use super::index::About;
use super::shape::{self, Dim, Shape, Symbol};
use crate::syntax::Span;

/// The type of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// Nobody can tell.
    Unknown,
    /// A number.
    Number(Number),
    /// A pointer to numbers; `None` when nobody can tell to which.
    Pointer(Option<Number>),
}

impl Element {
    /// The number type, where known.
    #[must_use]
    pub fn number(self) -> Option<Number> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Whether it is a pointer.
    #[must_use]
    pub fn is_pointer(self) -> bool {
        matches!(self, Self::Pointer(_))
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("?"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Pointer(Some(number)) => write!(f, "*{number}"),
            Self::Pointer(None) => f.write_str("*?"),
        }
    }
}

/// A run-time value: a scalar or a tile.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// The type of a lane.
    pub element: Element,
    /// The sizes; `None` when not even the rank is known.
    pub shape: Option<Shape>,
    /// What is known of its lanes.
    pub about: About,
}

impl Tile {
    /// A tile.
    #[must_use]
    pub fn new(element: Element, shape: Option<Shape>) -> Self {
        Self { element, shape, about: About::Nothing }
    }

    /// A scalar.
    #[must_use]
    pub fn scalar(number: Number) -> Self {
        Self::new(Element::Number(number), Some(Shape::default()))
    }

    /// The same with what is known of its lanes.
    #[must_use]
    pub fn knowing(mut self, about: About) -> Self {
        self.about = about;
        self
    }

    /// Whether it certainly is a scalar, or certainly is none.
    #[must_use]
    pub fn is_scalar(&self) -> Option<bool> {
        self.shape.as_ref().map(|shape| shape.is_empty())
    }

    /// Whether it certainly has at least one axis.
    #[must_use]
    pub fn is_block(&self) -> bool {
        self.is_scalar() == Some(false)
    }

    /// The same lanes of another type.
    #[must_use]
    pub fn with(&self, element: Element) -> Self {
        Self::new(element, self.shape.clone())
    }

    /// Whether type and sizes are known, if only as symbols.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let sizes = self.shape.as_ref().is_some_and(|shape| !shape.contains(&Dim::Unknown));
        sizes && !matches!(self.element, Element::Unknown | Element::Pointer(None))
    }

    /// Whether the two certainly have different types.
    #[must_use]
    pub fn differs(&self, other: &Self) -> bool {
        let elements = match (self.element, other.element) {
            (Element::Unknown, _) | (_, Element::Unknown) => false,
            (Element::Pointer(a), Element::Pointer(b)) => a.is_some() && b.is_some() && a != b,
            (a, b) => a != b,
        };
        let shapes = match (&self.shape, &other.shape) {
            (Some(a), Some(b)) => a.len() != b.len() || a.iter().zip(b.iter()).any(|(a, b)| a.differs(b)),
            _ => false,
        };
        elements || shapes
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.element)?;
        match &self.shape {
            Some(sizes) if sizes.is_empty() => Ok(()),
            Some(sizes) => f.write_str(&shape::text(sizes)),
            None => f.write_str("[…]"),
        }
    }
}

/// A compile-time value.
#[derive(Clone, Debug, PartialEq)]
pub enum Const {
    /// Certainly known at compile time, but nobody can tell what it is.
    Unknown,
    /// `None`
    None,
    /// `True`, `False`
    Bool(bool),
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
    /// A string.
    Str(Arc<str>),
    /// A dtype.
    Type(Element),
    /// An integer that depends on parameters.
    Symbol(Symbol),
    /// A list, dict or object that the analysis does not look into.
    Object,
}

impl Const {
    /// The integer, where known; `True` is 1.
    #[must_use]
    pub fn int(&self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Bool(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    /// The truth value, where known.
    #[must_use]
    pub fn truth(&self) -> Option<bool> {
        match self {
            Self::None => Some(false),
            Self::Bool(value) => Some(*value),
            Self::Int(value) => Some(*value != 0),
            Self::Float(value) => Some(*value != 0.0),
            Self::Str(text) => Some(!text.is_empty()),
            Self::Type(_) => Some(true),
            Self::Unknown | Self::Symbol(_) | Self::Object => None,
        }
    }

    /// As the size of an axis.
    #[must_use]
    pub fn dim(&self) -> Dim {
        match self {
            Self::Symbol(symbol) => Dim::Symbol(symbol.clone()),
            _ => self.int().and_then(|size| i64::try_from(size).ok()).map_or(Dim::Unknown, Dim::Known),
        }
    }
}

impl fmt::Display for Const {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown | Self::Object => f.write_str("?"),
            Self::None => f.write_str("None"),
            Self::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Str(text) => write!(f, "'{text}'"),
            Self::Type(element) => write!(f, "{element}"),
            Self::Symbol(symbol) => write!(f, "{symbol}"),
        }
    }
}

/// A function under `@triton.jit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Callee {
    /// The file that it stands in, by its number in [`Links`](crate::kernel::Links); `None` for the one that is looked at.
    pub file: Option<usize>,
    /// Its index in the model of the file.
    pub index: usize,
    /// Whether other definitions of the name may stand in its place.
    pub is_one_of_several: bool,
}

/// What an expression stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Nobody can tell.
    Unknown,
    /// A parameter of a launched kernel, or arithmetic of such: a scalar of unknown type, a compile-time value or nothing.
    Opaque(About),
    /// A compile-time value.
    Const(Const),
    /// A run-time value.
    Tile(Tile),
    /// What `tl.make_block_ptr` gives.
    BlockPointer(Tile),
    /// A tensor descriptor, with the tile that it loads.
    Descriptor(Tile),
    /// A tuple.
    Tuple(Arc<[Value<'a>]>),
    /// A member of Triton by its full path: a module or a function.
    Member(Arc<str>),
    /// A function under `@triton.jit`.
    Kernel(Callee),
    /// A file that is imported, by its number in [`Links`](crate::kernel::Links).
    File(usize),
    /// A function of a value: `x.to`.
    Method(Arc<Value<'a>>, &'a str),
    /// A function of Python that kernels may use.
    Builtin(&'static str),
    /// `lower:upper` with at least one bound.
    Slice,
}

impl<'a> Value<'a> {
    /// A number at run time.
    #[must_use]
    pub fn scalar(number: Number) -> Self {
        Self::Tile(Tile::scalar(number))
    }

    /// `None`
    #[must_use]
    pub fn none() -> Self {
        Self::Const(Const::None)
    }

    /// A compile-time integer.
    #[must_use]
    pub fn int(value: i128) -> Self {
        Self::Const(Const::Int(value))
    }

    /// A tuple.
    #[must_use]
    pub fn tuple(parts: Vec<Self>) -> Self {
        Self::Tuple(parts.into())
    }

    /// The tile, when it is a run-time value.
    #[must_use]
    pub fn tile(&self) -> Option<&Tile> {
        match self {
            Self::Tile(tile) => Some(tile),
            _ => None,
        }
    }

    /// The constant, when it is a compile-time value.
    #[must_use]
    pub fn constant(&self) -> Option<&Const> {
        match self {
            Self::Const(value) => Some(value),
            _ => None,
        }
    }

    /// As an operand: a parameter that takes part in arithmetic is a scalar.
    #[must_use]
    pub fn scalarized(&self) -> Self {
        match self {
            Self::Opaque(about) => {
                Self::Tile(Tile::new(Element::Unknown, Some(Shape::default())).knowing(about.clone()))
            }
            other => other.clone(),
        }
    }

    /// Whether the two have the same type, and the same value where that is known while compiling.
    #[must_use]
    pub fn same_type(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tile(a), Self::Tile(b)) => a.element == b.element && a.shape == b.shape,
            _ => self == other,
        }
    }

    /// Whether it is `None`; `None` when nobody can tell.
    #[must_use]
    pub fn is_none(&self) -> Option<bool> {
        match self {
            Self::Unknown | Self::Opaque(_) | Self::Const(Const::Unknown) => None,
            Self::Const(Const::None) => Some(true),
            _ => Some(false),
        }
    }

    /// The same without what belongs to the model: a function of a value becomes unknown.
    #[must_use]
    pub fn detached(&self) -> Value<'static> {
        match self {
            Self::Unknown | Self::Opaque(_) | Self::Method(..) => Value::Unknown,
            Self::Const(value) => Value::Const(value.clone()),
            Self::Tile(tile) => Value::Tile(tile.clone()),
            Self::BlockPointer(tile) => Value::BlockPointer(tile.clone()),
            Self::Descriptor(tile) => Value::Descriptor(tile.clone()),
            Self::Tuple(parts) => Value::Tuple(parts.iter().map(Self::detached).collect()),
            Self::Member(path) => Value::Member(path.clone()),
            Self::Kernel(callee) => Value::Kernel(*callee),
            Self::File(file) => Value::File(*file),
            Self::Builtin(name) => Value::Builtin(name),
            Self::Slice => Value::Slice,
        }
    }

    /// Whether it certainly is a run-time value of Triton's.
    #[must_use]
    pub fn is_runtime(&self) -> bool {
        matches!(self, Self::Tile(_) | Self::BlockPointer(_) | Self::Descriptor(_))
    }

    /// What is known when it is either of the two.
    #[must_use]
    pub fn either(&self, other: &Self) -> Self {
        if self == other {
            return self.clone();
        }
        match (self, other) {
            (Self::Tile(a), Self::Tile(b)) => {
                let element = match (a.element, b.element) {
                    (a, b) if a == b => a,
                    (Element::Pointer(_), Element::Pointer(_)) => Element::Pointer(None),
                    _ => Element::Unknown,
                };
                let shape = match (&a.shape, &b.shape) {
                    (Some(a), Some(b)) if a.len() == b.len() => {
                        let sizes = a.iter().zip(b.iter());
                        Some(sizes.map(|(a, b)| if a == b { a.clone() } else { Dim::Unknown }).collect())
                    }
                    _ => None,
                };
                Self::Tile(Tile::new(element, shape).knowing(super::index::either(a, b)))
            }
            (Self::Const(_), Self::Const(_)) => Self::Const(Const::Unknown),
            (Self::Tuple(a), Self::Tuple(b)) if a.len() == b.len() => {
                Self::Tuple(a.iter().zip(b.iter()).map(|(a, b)| a.either(b)).collect())
            }
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown
            | Self::Opaque(_)
            | Self::Method(..)
            | Self::Builtin(_)
            | Self::Kernel(_)
            | Self::File(_)
            | Self::Slice => f.write_str("?"),
            Self::Const(value) => write!(f, "{value}"),
            Self::Tile(tile) => write!(f, "{tile}"),
            Self::BlockPointer(tile) => write!(f, "block pointer to {tile}"),
            Self::Descriptor(tile) => write!(f, "descriptor of {tile}"),
            Self::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(Self::to_string).collect();
                write!(f, "({})", parts.join(", "))
            }
            Self::Member(path) => f.write_str(path),
        }
    }
}

/// What Triton's front end will say no to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the subject of a rule, which documents it")]
pub enum Kind {
    Arange,
    Argument,
    Attribute,
    BlockPointerRemoved,
    BranchType,
    Broadcast,
    Condition,
    Conversion,
    Dot,
    Global,
    Keyword,
    LoopBounds,
    LoopCarried,
    MemoryAccess,
    Nesting,
    Operand,
    Overflow,
    Reduction,
    Return,
    ShapeChange,
    Subscript,
    Syntax,
    TileSize,
    UndefinedName,
    Unpacking,
}

/// A place that Triton's front end will say no to.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// What it is about.
    pub kind: Kind,
    /// Where Triton reports it.
    pub span: Span,
    /// What is wrong and what to do.
    pub message: String,
    /// Places that explain it.
    pub related: Vec<(Span, String)>,
}
