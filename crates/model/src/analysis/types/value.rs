//! Abstract values: the possible results of an expression in a kernel.

use std::fmt;
use std::sync::Arc;

use super::dtype::Dtype;
use super::index::LaneFact;
use super::shape::{self, Dim, Shape, SymbolicSize};
use crate::syntax::Span;

/// The type of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaneType {
    /// Not known.
    Unknown,
    /// A number.
    Number(Dtype),
    /// A pointer to numbers; `None` when their type is not known.
    Pointer(Option<Dtype>),
}

impl LaneType {
    /// The number type; `None` for pointers and unknown types.
    #[must_use]
    pub fn number(self) -> Option<Dtype> {
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

impl fmt::Display for LaneType {
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
pub struct RuntimeValue {
    /// The type of one lane.
    pub element: LaneType,
    /// The sizes of the axes; `None` when not even the rank is known.
    pub shape: Option<Shape>,
    /// What is known about the lanes beyond their type.
    pub about: LaneFact,
}

impl RuntimeValue {
    /// A tile about whose lanes nothing is known.
    #[must_use]
    pub fn new(element: LaneType, shape: Option<Shape>) -> Self {
        Self { element, shape, about: LaneFact::Nothing }
    }

    /// A scalar of this number type.
    #[must_use]
    pub fn scalar(number: Dtype) -> Self {
        Self::new(LaneType::Number(number), Some(Shape::default()))
    }

    /// The same tile with `about` as the knowledge about its lanes.
    #[must_use]
    pub(crate) fn knowing(mut self, about: LaneFact) -> Self {
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
    pub fn with(&self, element: LaneType) -> Self {
        Self::new(element, self.shape.clone())
    }

    /// Whether the element type and all sizes are known. Sizes may be symbols.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let sizes = self.shape.as_ref().is_some_and(|shape| !shape.contains(&Dim::Unknown));
        sizes && !matches!(self.element, LaneType::Unknown | LaneType::Pointer(None))
    }

    /// Whether the two certainly have different types.
    #[must_use]
    pub fn differs(&self, other: &Self) -> bool {
        let elements = match (self.element, other.element) {
            (LaneType::Unknown, _) | (_, LaneType::Unknown) => false,
            (LaneType::Pointer(a), LaneType::Pointer(b)) => a.is_some() && b.is_some() && a != b,
            (a, b) => a != b,
        };
        let shapes = match (&self.shape, &other.shape) {
            (Some(a), Some(b)) => a.len() != b.len() || a.iter().zip(b.iter()).any(|(a, b)| a.differs(b)),
            _ => false,
        };
        elements || shapes
    }
}

impl fmt::Display for RuntimeValue {
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
    Type(LaneType),
    /// An integer in terms of compile-time parameters.
    Symbol(SymbolicSize),
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
pub struct JitFunction {
    /// Index in [`Links`](crate::kernel::Links) of the file that defines it; `None` for the analysed file.
    pub file: Option<usize>,
    /// Its index in the kernels of that file.
    pub index: usize,
    /// Whether the name may refer to other definitions instead.
    pub is_one_of_several: bool,
}

/// The abstract value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum AbstractValue<'a> {
    /// Not known.
    Unknown,
    /// A parameter of a launched kernel, or arithmetic of such parameters: a scalar of unknown type, a compile-time
    /// value or `None`.
    Opaque(LaneFact),
    /// A compile-time value.
    Const(Const),
    /// A run-time value.
    Tile(RuntimeValue),
    /// A block pointer from `tl.make_block_ptr`, with the tile that it points to.
    BlockPointer(RuntimeValue),
    /// A tensor descriptor, with the tile that it loads.
    Descriptor(RuntimeValue),
    /// A tuple.
    Tuple(Arc<[AbstractValue<'a>]>),
    /// The full path of a member of Triton: a module or a function.
    Member(Arc<str>),
    /// A function under `@triton.jit`.
    Kernel(JitFunction),
    /// An imported file, by its index in [`Links`](crate::kernel::Links).
    File(usize),
    /// A method bound to a value: `x.to`.
    Method(Arc<AbstractValue<'a>>, &'a str),
    /// A builtin of Python that kernels may use.
    Builtin(&'static str),
    /// `lower:upper` with at least one bound.
    Slice,
}

impl<'a> AbstractValue<'a> {
    /// A run-time scalar of this number type.
    #[must_use]
    pub fn scalar(number: Dtype) -> Self {
        Self::Tile(RuntimeValue::scalar(number))
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
    pub fn tile(&self) -> Option<&RuntimeValue> {
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
    pub(crate) fn scalarized(&self) -> Self {
        match self {
            Self::Opaque(about) => {
                Self::Tile(RuntimeValue::new(LaneType::Unknown, Some(Shape::default())).knowing(about.clone()))
            }
            other => other.clone(),
        }
    }

    /// Whether the two have the same type and, for compile-time values, the same value.
    #[must_use]
    pub(crate) fn same_type(&self, other: &Self) -> bool {
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
    pub(crate) fn detached(&self) -> AbstractValue<'static> {
        match self {
            Self::Unknown | Self::Opaque(_) | Self::Method(..) => AbstractValue::Unknown,
            Self::Const(value) => AbstractValue::Const(value.clone()),
            Self::Tile(tile) => AbstractValue::Tile(tile.clone()),
            Self::BlockPointer(tile) => AbstractValue::BlockPointer(tile.clone()),
            Self::Descriptor(tile) => AbstractValue::Descriptor(tile.clone()),
            Self::Tuple(parts) => AbstractValue::Tuple(parts.iter().map(Self::detached).collect()),
            Self::Member(path) => AbstractValue::Member(path.clone()),
            Self::Kernel(callee) => AbstractValue::Kernel(*callee),
            Self::File(file) => AbstractValue::File(*file),
            Self::Builtin(name) => AbstractValue::Builtin(name),
            Self::Slice => AbstractValue::Slice,
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
                    (LaneType::Pointer(_), LaneType::Pointer(_)) => LaneType::Pointer(None),
                    _ => LaneType::Unknown,
                };
                let shape = match (&a.shape, &b.shape) {
                    (Some(a), Some(b)) if a.len() == b.len() => {
                        let sizes = a.iter().zip(b.iter());
                        Some(sizes.map(|(a, b)| if a == b { a.clone() } else { Dim::Unknown }).collect())
                    }
                    _ => None,
                };
                Self::Tile(RuntimeValue::new(element, shape).knowing(super::index::either(&a.about, &b.about)))
            }
            // A parameter of a kind that is not known, and a number.
            (Self::Opaque(a), Self::Tile(tile)) | (Self::Tile(tile), Self::Opaque(a))
                if tile.is_scalar() == Some(true) =>
            {
                Self::Opaque(super::index::either(a, &tile.about))
            }
            (Self::Opaque(a), Self::Opaque(b)) => Self::Opaque(super::index::either(a, b)),
            (Self::Const(_), Self::Const(_)) => Self::Const(Const::Unknown),
            (Self::Tuple(a), Self::Tuple(b)) if a.len() == b.len() => {
                Self::Tuple(a.iter().zip(b.iter()).map(|(a, b)| a.either(b)).collect())
            }
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for AbstractValue<'_> {
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
pub enum ProblemKind {
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
    pub kind: ProblemKind,
    /// The span at which Triton reports it.
    pub span: Span,
    /// A description of the error, with a way to fix it.
    pub message: String,
    /// Spans that explain it, each with a text.
    pub related: Vec<(Span, String)>,
}
