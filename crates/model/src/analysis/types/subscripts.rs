//! Transfer functions of subscripts: `tile[:, None]`, `parts[0]`.

use super::engine::{Engine, Frame};
use super::shape::{Dim, Shape};
use super::value::{AbstractValue, Const, ProblemKind, RuntimeValue};
use crate::kernel::ast::{Expr, ExprKind};

impl<'a> Engine<'a> {
    pub(super) fn subscript(
        &mut self,
        expr: &'a Expr,
        value: &'a Expr,
        index: &'a [Expr],
        frame: &mut Frame<'a>,
    ) -> AbstractValue<'a> {
        let value = self.eval(value, frame);
        let parts = match index {
            [Expr { kind: ExprKind::Tuple(parts), .. }] => parts.as_slice(),
            parts => parts,
        };
        let indices: Vec<AbstractValue<'a>> = parts.iter().map(|part| self.eval(part, frame)).collect();
        match &value {
            AbstractValue::Tile(tile) => self.expand(expr, tile, parts, &indices),
            AbstractValue::Tuple(known) => match indices.as_slice() {
                [AbstractValue::Const(Const::Int(at))] => {
                    let len = i128::try_from(known.len()).unwrap_or(i128::MAX);
                    let at = if *at < 0 { at + len } else { *at };
                    match usize::try_from(at).ok().and_then(|at| known.get(at)) {
                        Some(part) => part.clone(),
                        None => {
                            let message = format!("a tuple of {len} has no part {at}");
                            self.problem(ProblemKind::Subscript, expr.span, message);
                            AbstractValue::Unknown
                        }
                    }
                }
                [AbstractValue::Tile(at)] if self.since(3) == Some(true) => {
                    let message = format!(
                        "a tuple can only be subscripted by a compile-time value, and this is `{at}`; unroll with `tl.static_range`"
                    );
                    self.problem(ProblemKind::Subscript, expr.span, message);
                    AbstractValue::Unknown
                }
                _ => AbstractValue::Unknown,
            },
            AbstractValue::Const(Const::Int(_) | Const::Float(_) | Const::Bool(_)) => {
                self.problem(ProblemKind::Subscript, expr.span, "a compile-time number cannot be subscripted");
                AbstractValue::Unknown
            }
            AbstractValue::Const(_) => {
                if matches!(indices.as_slice(), [AbstractValue::Const(Const::Str(_))]) {
                    self.problem(
                        ProblemKind::Subscript,
                        expr.span,
                        "a kernel cannot look up a string; pass the entry as a parameter",
                    );
                } else if self.since(4) == Some(false)
                    && !matches!(value, AbstractValue::Const(Const::Unknown | Const::Symbol(_)))
                {
                    self.problem(
                        ProblemKind::Subscript,
                        expr.span,
                        "a compile-time value cannot be subscripted before Triton 3.4",
                    );
                }
                AbstractValue::Const(Const::Unknown)
            }
            _ => AbstractValue::Unknown,
        }
    }

    /// `tile[:, None]`
    fn expand(
        &mut self,
        expr: &Expr,
        tile: &RuntimeValue,
        parts: &[Expr],
        indices: &[AbstractValue<'a>],
    ) -> AbstractValue<'a> {
        let mut sizes: Option<Vec<Dim>> = tile.shape.as_ref().map(|shape| shape.to_vec());
        let mut about = tile.about.clone();
        let axes = parts.iter().filter(|part| matches!(part.kind, ExprKind::Slice(_))).count();
        if let Some(sizes) = &sizes
            && axes > sizes.len()
            && self.since(9) == Some(true)
        {
            let message = format!("{axes} axes are taken, and `{tile}` has {}", sizes.len());
            self.problem(ProblemKind::Subscript, expr.span, message);
            return AbstractValue::Unknown;
        }
        for (at, (part, value)) in parts.iter().zip(indices).enumerate() {
            match (&part.kind, value) {
                (ExprKind::None, _) | (_, AbstractValue::Const(Const::None)) => match &mut sizes {
                    Some(sizes) if at <= sizes.len() => {
                        sizes.insert(at, Dim::Known(1));
                        about = about.expanded(at);
                    }
                    // A scalar accepts any index and gets one axis for each `None`.
                    Some(sizes) if tile.is_scalar() == Some(true) => sizes.push(Dim::Known(1)),
                    Some(_) => return AbstractValue::Unknown,
                    None => {}
                },
                (ExprKind::Slice(bounds), _) if bounds.is_empty() => {}
                (ExprKind::Other(kind), _) if kind == "ellipsis" => {
                    self.problem(
                        ProblemKind::Subscript,
                        expr.span,
                        "a tile cannot be subscripted with `...`; write a `:` for each axis",
                    );
                    return AbstractValue::Unknown;
                }
                (_, AbstractValue::Unknown | AbstractValue::Const(Const::Unknown | Const::Symbol(_))) => {
                    return AbstractValue::Unknown;
                }
                _ => {
                    let hint = if tile.element.is_pointer() {
                        "use `tl.load`"
                    } else {
                        "a tile can only be subscripted with `:` and `None`"
                    };
                    self.problem(
                        ProblemKind::Subscript,
                        expr.span,
                        format!("this value (`{tile}`) has no single elements; {hint}"),
                    );
                    return AbstractValue::Unknown;
                }
            }
        }
        AbstractValue::Tile(RuntimeValue::new(tile.element, sizes.map(Shape::from)).knowing(about))
    }
}
