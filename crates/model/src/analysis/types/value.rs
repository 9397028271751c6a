//! Abstract values: the possible results of an expression in a kernel.

use std::fmt;
use std::sync::Arc;

use super::dtype::Number;
use super::index::About;
use super::shape::{self, Dim, Shape, Symbol};
use crate::syntax::Span;

/// The type of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// Not known.
    Unknown,
    /// A number.
    Number(Number),
    /// A pointer to numbers; `None` when their type is not known.
    Pointer(Option<Number>),
}

impl Element {
    /// The number type; `None` for pointers and unknown types.
    #[must_use]
    pub fn number(self) -> Option<Number> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Whether the element is a pointer.
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
    /// The type of one lane.
    pub element: Element,
    /// The sizes of the axes; `None` when not even the rank is known.
    pub shape: Option<Shape>,
    /// What is known about the lanes beyond their type.
    pub about: About,
}

impl Tile {
    /// A tile about whose lanes nothing is known.
    #[must_use]
    pub fn new(element: Element, shape: Option<Shape>) -> Self {
        Self { element, shape, about: About::Nothing }
    }

    /// A scalar of this number type.
    #[must_use]
    pub fn scalar(number: Number) -> Self {
        Self::new(Element::Number(number), Some(Shape::default()))
    }

    /// The same tile with `about` as the knowledge about its lanes.
    #[must_use]
    pub fn knowing(mut self, about: About) -> Self {
        self.about = about;
        self
    }

    /// Whether the tile is a scalar; `None` when the rank is not known.
    #[must_use]
    pub fn is_scalar(&self) -> Option<bool> {
        self.shape.as_ref().map(|shape| shape.is_empty())
    }

    /// Whether it certainly has at least one axis.
    #[must_use]
    pub fn is_block(&self) -> bool {
        self.is_scalar() == Some(false)
    }

    /// A tile of the same shape with elements of another type.
    #[must_use]
    pub fn with(&self, element: Element) -> Self {
        Self::new(element, self.shape.clone())
    }

    /// Whether the element type and all sizes are known. Sizes may be symbols.
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
    /// A compile-time value that is not known.
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
    /// An integer in terms of compile-time parameters.
    Symbol(Symbol),
    /// A list, dict or object, whose content is not analysed.
    Object,
}

impl Const {
    /// The integer, if it is known; `True` is 1.
    #[must_use]
    pub fn int(&self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Bool(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    /// The truth value, if it is known.
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

    /// The value as the size of an axis.
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
    /// Index in [`Links`](crate::kernel::Links) of the file that defines it; `None` for the analysed file.
    pub file: Option<usize>,
    /// Its index in the kernels of that file.
    pub index: usize,
    /// Whether the name may refer to other definitions instead.
    pub is_one_of_several: bool,
}

/// The abstract value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Not known.
    Unknown,
    /// A parameter of a launched kernel, or arithmetic of such parameters: a scalar of unknown type, a compile-time
    /// value or `None`.
    Opaque(About),
    /// A compile-time value.
    Const(Const),
    /// A run-time value.
    Tile(Tile),
    /// A block pointer from `tl.make_block_ptr`, with the tile that it points to.
    BlockPointer(Tile),
    /// A tensor descriptor, with the tile that it loads.
    Descriptor(Tile),
    /// A tuple.
    Tuple(Arc<[Value<'a>]>),
    /// The full path of a member of Triton: a module or a function.
    Member(Arc<str>),
    /// A function under `@triton.jit`.
    Kernel(Callee),
    /// An imported file, by its index in [`Links`](crate::kernel::Links).
    File(usize),
    /// A method bound to a value: `x.to`.
    Method(Arc<Value<'a>>, &'a str),
    /// A builtin of Python that kernels may use.
    Builtin(&'static str),
    /// `lower:upper` with at least one bound.
    Slice,
}

impl<'a> Value<'a> {
    /// A run-time scalar of this number type.
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

    /// The tile of a run-time value; `None` for other values.
    #[must_use]
    pub fn tile(&self) -> Option<&Tile> {
        match self {
            Self::Tile(tile) => Some(tile),
            _ => None,
        }
    }

    /// The constant of a compile-time value; `None` for other values.
    #[must_use]
    pub fn constant(&self) -> Option<&Const> {
        match self {
            Self::Const(value) => Some(value),
            _ => None,
        }
    }

    /// The value as an operand: a parameter becomes a scalar.
    #[must_use]
    pub fn scalarized(&self) -> Self {
        match self {
            Self::Opaque(about) => {
                Self::Tile(Tile::new(Element::Unknown, Some(Shape::default())).knowing(about.clone()))
            }
            other => other.clone(),
        }
    }

    /// Whether the two have the same type and, for compile-time values, the same value.
    #[must_use]
    pub fn same_type(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tile(a), Self::Tile(b)) => a.element == b.element && a.shape == b.shape,
            _ => self == other,
        }
    }

    /// Whether the value is Python's `None`; `None` when that is not known.
    #[must_use]
    pub fn is_none(&self) -> Option<bool> {
        match self {
            Self::Unknown | Self::Opaque(_) | Self::Const(Const::Unknown) => None,
            Self::Const(Const::None) => Some(true),
            _ => Some(false),
        }
    }

    /// The value without references to the model: bound methods become unknown.
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

    /// Whether the value certainly is a run-time value.
    #[must_use]
    pub fn is_runtime(&self) -> bool {
        matches!(self, Self::Tile(_) | Self::BlockPointer(_) | Self::Descriptor(_))
    }

    /// The join of two values: what is certain when the value is one of them.
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

/// The kinds of errors that Triton's front end reports.
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

/// An error that Triton's front end would report.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The kind of error.
    pub kind: Kind,
    /// The span at which Triton reports it.
    pub span: Span,
    /// A description of the error, with a way to fix it.
    pub message: String,
    /// Spans that explain it, each with a text.
    pub related: Vec<(Span, String)>,
}
