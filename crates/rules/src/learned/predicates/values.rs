//! Predicates about the values of expressions.

use model::analysis::types::dtype::Dtype;
use model::analysis::types::shape::{self, Dim, Shape};
use model::analysis::types::{AbstractValue, Const, LaneType, RuntimeValue};
use model::api::{Lookup, MemberKind};

use super::predicate::{Predicate, PredicateInput, Words, element};
use crate::learned::kernel_view::KernelView;

pub(super) static TABLE: &[Predicate] = &[
    Predicate::new("constexpr", (1, 1), Words::None, constexpr),
    Predicate::new("kind", (1, 1), Words::Of(KINDS), kind),
    Predicate::new("dtype", (1, 1), Words::Types, dtype),
    Predicate::new("rank", (1, 1), Words::Some, rank),
    Predicate::new("power-of-two", (1, 1), Words::None, power_of_two),
    Predicate::new("value", (1, 1), Words::Some, value),
    Predicate::new("less", (1, 1), Words::Number, less),
    Predicate::new("lanes-less", (1, 1), Words::Number, lanes_less),
    Predicate::new("shapes-differ", (2, 2), Words::None, shapes_differ),
    Predicate::new("broadcast", (2, 2), Words::None, broadcast),
    Predicate::new("same-dtype", (2, 2), Words::None, same_dtype),
];

const KINDS: &[&str] = &[
    "pointer",
    "int",
    "float",
    "bool",
    "block",
    "scalar",
    "tuple",
    "none",
    "string",
    "dtype",
    "function",
    "module",
    "block-pointer",
    "descriptor",
];

/// `(#constexpr? @x)`: the value is known at compile time, though perhaps not to this analysis. For a plain parameter
/// this is unknown: Triton treats 1 and `None` as compile-time values.
fn constexpr(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let node = argument.nodes[0];
    match subject.value(node) {
        Some(AbstractValue::Const(_)) => return Some(true),
        Some(value) if value.is_runtime() => return Some(false),
        _ => {}
    }
    let name = subject.name(node)?;
    let is_helper = subject.module().called_in_kernels().contains(&subject.kernel.name);
    let is_so = subject.kernel.param(name)?.constexpr && !is_helper && !subject.is_assigned(name);
    is_so.then_some(true)
}

/// `(#kind? @x "pointer" "int" …)`: the value is of one of these kinds. `int`, `float`, `bool` and `pointer` describe a
/// lane, at run time or at compile time; `block` has axes, `scalar` has none.
fn kind(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let value = subject.value(argument.nodes[0])?;
    any(argument.words.iter().map(|kind| is_kind(subject, value, kind)))
}

fn is_kind(subject: &KernelView<'_>, value: &AbstractValue<'_>, kind: &str) -> Option<bool> {
    if matches!(value, AbstractValue::Const(Const::Unknown | Const::Object))
        && !matches!(kind, "pointer" | "block" | "descriptor" | "block-pointer")
    {
        return None;
    }
    let number = |of_number: fn(Dtype) -> bool, constant: bool| match value {
        AbstractValue::Tile(RuntimeValue { element: LaneType::Unknown, .. }) => None,
        AbstractValue::Tile(tile) => Some(tile.element.number().is_some_and(of_number)),
        _ => Some(constant),
    };
    let constant = value.constant();
    match kind {
        "pointer" => match value {
            AbstractValue::Tile(RuntimeValue { element: LaneType::Unknown, .. }) => None,
            AbstractValue::Tile(tile) => Some(tile.element.is_pointer()),
            _ => Some(false),
        },
        "int" => number(is_int, matches!(constant, Some(Const::Int(_) | Const::Symbol(_)))),
        "float" => number(is_float, matches!(constant, Some(Const::Float(_)))),
        "bool" => number(|number| number == Dtype::Int1, matches!(constant, Some(Const::Bool(_)))),
        "block" => value.tile().map_or(Some(false), |tile| tile.is_scalar().map(|is_scalar| !is_scalar)),
        "scalar" => match (value.tile(), constant) {
            (Some(tile), _) => tile.is_scalar(),
            (None, constant) => {
                Some(matches!(constant, Some(Const::Int(_) | Const::Float(_) | Const::Bool(_) | Const::Symbol(_))))
            }
        },
        "tuple" => Some(matches!(value, AbstractValue::Tuple(_))),
        "none" => value.is_none(),
        "string" => Some(matches!(constant, Some(Const::Str(_)))),
        "dtype" => Some(matches!(constant, Some(Const::Type(_)))),
        "block-pointer" => Some(matches!(value, AbstractValue::BlockPointer(_))),
        "descriptor" => Some(matches!(value, AbstractValue::Descriptor(_))),
        "module" => match value {
            AbstractValue::Member(path) => Some(is_module(subject, path)),
            AbstractValue::File(_) => Some(true),
            _ => Some(false),
        },
        "function" => match value {
            AbstractValue::Member(path) => Some(!is_module(subject, path)),
            _ => {
                Some(matches!(value, AbstractValue::Kernel(_) | AbstractValue::Builtin(_) | AbstractValue::Method(..)))
            }
        },
        _ => None,
    }
}

fn is_int(number: Dtype) -> bool {
    !is_float(number) && number != Dtype::Int1
}

fn is_float(number: Dtype) -> bool {
    matches!(
        number,
        Dtype::Fp8e4b15
            | Dtype::Fp8e4nv
            | Dtype::Fp8e4b8
            | Dtype::Fp8e5
            | Dtype::Fp8e5b16
            | Dtype::Fp16
            | Dtype::Bf16
            | Dtype::Fp32
            | Dtype::Fp64
    )
}

fn is_module(subject: &KernelView<'_>, path: &str) -> bool {
    !path.contains('.')
        || matches!(subject.target().lookup(path), Lookup::Found(member) if member.kind == MemberKind::Module)
}

/// `(#dtype? @x "fp16" "*int32")`: its lanes have one of these types, or it is such a type itself.
fn dtype(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let of = lane(subject.value(argument.nodes[0])?)?;
    let is = |word: &String| match (of, element(word)?) {
        (LaneType::Unknown, _) => None,
        (LaneType::Pointer(None), LaneType::Pointer(_)) => None,
        (of, wanted) => Some(of == wanted),
    };
    any(argument.words.iter().map(is))
}

fn lane(value: &AbstractValue<'_>) -> Option<LaneType> {
    match value {
        AbstractValue::Tile(tile) | AbstractValue::BlockPointer(tile) | AbstractValue::Descriptor(tile) => {
            Some(tile.element)
        }
        AbstractValue::Const(Const::Type(element)) => Some(*element),
        _ => None,
    }
}

/// `(#rank? @x "1" "2")`: its number of axes is one of these; a scalar has 0.
fn rank(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let rank = shape_of(subject.value(argument.nodes[0])?)?.len();
    Some(argument.words.iter().any(|word| word.parse() == Ok(rank)))
}

fn shape_of(value: &AbstractValue<'_>) -> Option<Shape> {
    match value {
        AbstractValue::Tile(tile) | AbstractValue::BlockPointer(tile) | AbstractValue::Descriptor(tile) => {
            tile.shape.clone()
        }
        AbstractValue::Const(Const::Int(_) | Const::Float(_) | Const::Bool(_) | Const::Symbol(_)) => {
            Some(Shape::default())
        }
        _ => None,
    }
}

/// `(#power-of-two? @x)`: a compile-time integer that is a power of two.
fn power_of_two(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let value = subject.value(argument.nodes[0])?.constant()?.int()?;
    Some(u128::try_from(value).is_ok_and(u128::is_power_of_two))
}

/// `(#value? @x "0" "None")`: the compile-time value is one of these, in Python's notation.
fn value(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    match subject.value(argument.nodes[0])?.constant()? {
        Const::Unknown | Const::Object | Const::Symbol(_) => None,
        constant => Some(argument.words.iter().any(|word| *word == constant.to_string())),
    }
}

/// `(#less? @x "16")`: a compile-time integer below this number.
fn less(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let value = subject.value(argument.nodes[0])?.constant()?.int()?;
    Some(value < argument.words[0].parse().ok()?)
}

/// `(#lanes-less? @x "16")`: some axis of the tile is certainly shorter than this; false when none is.
fn lanes_less(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let shape = shape_of(subject.value(argument.nodes[0])?)?;
    let limit: i64 = argument.words[0].parse().ok()?;
    any(shape.iter().map(|size| size.known().map(|size| size < limit)))
}

/// `(#shapes-differ? @a @b)`: both are tiles or scalars, and their axes differ.
fn shapes_differ(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let (left, right) = shapes(subject, argument)?;
    if left.len() != right.len() {
        return Some(true);
    }
    any(left.iter().zip(right.iter()).map(|(left, right)| differs(left, right)))
}

fn shapes(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<(Shape, Shape)> {
    let shape = |at: usize| shape_of(subject.value(argument.nodes[at])?);
    Some((shape(0)?, shape(1)?))
}

fn differs(left: &Dim, right: &Dim) -> Option<bool> {
    match (left, right) {
        (Dim::Unknown, _) | (_, Dim::Unknown) => None,
        _ if left == right => Some(false),
        _ => left.differs(right).then_some(true),
    }
}

/// `(#broadcast? @a @b)`: the two can be broadcast to one shape.
fn broadcast(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let (left, right) = shapes(subject, argument)?;
    match shape::broadcast(&left, &right) {
        Err(_) => Some(false),
        Ok(_) if left.iter().chain(right.iter()).all(|size| size.known().is_some()) => Some(true),
        Ok(_) => None,
    }
}

/// `(#same-dtype? @a @b)`: the lanes of both have the same type.
fn same_dtype(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let of = |at: usize| lane(subject.value(argument.nodes[at])?);
    match (of(0)?, of(1)?) {
        (LaneType::Unknown | LaneType::Pointer(None), _) | (_, LaneType::Unknown | LaneType::Pointer(None)) => None,
        (left, right) => Some(left == right),
    }
}

/// Whether one of the answers is true; false only when all are false.
pub(super) fn any(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let answers: Vec<Option<bool>> = answers.collect();
    if answers.contains(&Some(true)) {
        return Some(true);
    }
    (!answers.contains(&None)).then_some(false)
}
