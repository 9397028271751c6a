//! Types of kernel expressions as text: inlay hints after assignments, and the expression under the cursor on hover.

use std::collections::HashMap;
use std::fmt::Write as _;

use model::analysis::ranges::{Range, range};
use model::analysis::types::access::{AccessKind, Mask, MemoryAccess};
use model::analysis::types::index::{Atom, IndexComparison, Lane, LaneFact, Poly};
use model::analysis::types::{AbstractValue, KernelAnalysis, infer};
use model::analysis::verdict::FrontEndVerdict;
use model::api::TritonTarget;
use model::kernel::Module;
use model::kernel::ast::{Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;

use super::hints::{Hint, HintKind};

/// Type hints after the assigned names of the kernel `module.kernels[index]`: `: fp16[BLOCK_M, BLOCK_K]`. Scalars get
/// none: there are many of them, and most are `int32`.
#[must_use]
pub fn hints(module: &Module, text: &str, target: TritonTarget, index: usize) -> Vec<Hint> {
    let Some(kernel) = module.kernels.get(index) else { return Vec::new() };
    let facts = infer(module, text, target, index, true);
    let values = joined(&facts);
    let verdict = FrontEndVerdict::of(kernel);
    let mut hints = Vec::new();
    walk_statements(&kernel.body, &mut |stmt| {
        let StmtKind::Assign { targets, value, .. } = &stmt.kind else { return };
        // The type that Triton's own front end gave the value.
        let measured = value.as_ref().and_then(|value| verdict.as_deref()?.type_of(value.span));
        let names = targets.iter().flat_map(|target| match &target.kind {
            ExprKind::Tuple(parts) => parts.iter().collect(),
            _ => vec![target],
        });
        for name in names.filter(|name| name.as_name().is_some()) {
            let is_whole = matches!(targets.as_slice(), [only] if only.span == name.span);
            let measured = measured.filter(|shown| is_whole && shown.ends_with(']')).map(str::to_owned);
            let Some(shown) = measured.or_else(|| tile(values.get(&name.span)?)) else { continue };
            hints.push(Hint {
                offset: name.span.end,
                label: format!(": {shown}"),
                tooltip: "The element type and the size along each axis.".to_owned(),
                kind: HintKind::Type,
            });
        }
    });
    hints
}

/// The value at each span, joined over all iterations of loops.
fn joined(facts: &KernelAnalysis) -> HashMap<Span, AbstractValue<'static>> {
    let mut values: HashMap<Span, AbstractValue<'static>> = HashMap::new();
    for (span, value) in &facts.types {
        values.entry(*span).and_modify(|known| *known = known.either(value)).or_insert_with(|| value.clone());
    }
    values
}

/// The text of a tile, a block pointer or a descriptor; `None` for other values.
fn tile(value: &AbstractValue<'_>) -> Option<String> {
    match value {
        AbstractValue::Tile(tile) if tile.is_block() => Some(tile.to_string()),
        AbstractValue::BlockPointer(_) | AbstractValue::Descriptor(_) => Some(value.to_string()),
        _ => None,
    }
}

/// The type and the analysis of the innermost expression at byte `offset` of a kernel in Markdown, and its span.
#[must_use]
pub fn describe_at(module: &Module, text: &str, target: TritonTarget, offset: usize) -> Option<(String, Span)> {
    let index = module.kernels.iter().rposition(|kernel| kernel.span.touches(offset))?;
    let mut found: Option<&Expr> = None;
    let mut calls: Vec<&Expr> = Vec::new();
    walk_expressions(&module.kernels[index].body, &mut |expr| {
        if expr.span.touches(offset) && !matches!(expr.kind, ExprKind::Other(_)) {
            found = Some(expr);
            calls.extend(expr.as_call().map(|_| expr));
        }
    });
    let mut expr = found?;
    // On the name of a called function, the result of the call is described.
    if let Some(call) =
        calls.iter().rev().find(|call| call.as_call().is_some_and(|call| call.func.span.touches(offset)))
    {
        expr = call;
    }
    let facts = infer(module, text, target, index, true);
    let value = joined(&facts).remove(&expr.span)?;
    let verdict = FrontEndVerdict::of(&module.kernels[index]);
    let measured = verdict.as_deref().and_then(|verdict| verdict.type_of(expr.span));
    let shown = match &value {
        _ if let Some(measured) = measured => measured.to_owned(),
        AbstractValue::Tile(tile) if !tile.is_known() && tile.shape.is_none() => return None,
        AbstractValue::Tile(_) | AbstractValue::BlockPointer(_) | AbstractValue::Descriptor(_) => value.to_string(),
        AbstractValue::Const(_) if expr.as_name().is_some() => format!("constexpr {value}"),
        _ => return None,
    };
    let code: String = text[expr.span.start..expr.span.end].split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = format!("```python\n{code}: {shown}\n```");
    if let AbstractValue::Tile(tile) = &value {
        match &tile.about {
            LaneFact::Index(index) => {
                let poly = number(&index.poly, &facts.lanes);
                let base = index.base.as_ref().map_or(String::new(), |base| format!("{base} + "));
                let _ = write!(out, "\n\nEach lane: `{base}{poly}`");
                if index.base.is_none() {
                    out.push_str(&between(range(&facts, &index.poly)));
                }
            }
            LaneFact::Guard(guard) if !guard.conditions.is_empty() => {
                let _ = write!(out, "\n\nTrue where {}", conditions(&guard.conditions, &facts.lanes));
            }
            _ => {}
        }
    }
    if let Some(access) = facts.accesses.iter().find(|access| access.span == expr.span) {
        out.push_str(&guarded(access, &facts.lanes));
    }
    Some((out, expr.span))
}

/// A range in words; empty where it is not known or exceeds 32 bits.
fn between(Range { least, greatest }: Range) -> String {
    let is_small = |number: i128| i32::try_from(number).is_ok();
    match (least, greatest) {
        (Some(least), Some(greatest)) if is_small(least) && is_small(greatest) => {
            format!(", from {least} to {greatest}")
        }
        _ => String::new(),
    }
}

/// The condition under which an access takes place, in Markdown; empty without a mask.
fn guarded(access: &MemoryAccess, lanes: &[Lane]) -> String {
    let valid = match &access.mask {
        Mask::None => return String::new(),
        Mask::Tile(tile) => match tile.about.guard() {
            Some(guard) if !guard.conditions.is_empty() => {
                let more = if guard.is_partial { ", at most" } else { "" };
                format!("where {}{more}", conditions(&guard.conditions, lanes))
            }
            _ => "where the mask is true".to_owned(),
        },
        Mask::Unknown => "where the mask is true".to_owned(),
    };
    match (access.kind, access.has_other) {
        (AccessKind::Load, true) => format!("\n\nLoaded {valid}; `other` elsewhere"),
        (AccessKind::Load, false) => format!("\n\nLoaded {valid}; undefined elsewhere"),
        _ => format!("\n\nWritten {valid}"),
    }
}

fn conditions(conditions: &[IndexComparison], lanes: &[Lane]) -> String {
    let one = |condition: &IndexComparison| {
        format!("`{} {} {}`", number(&condition.left, lanes), condition.op, number(&condition.right, lanes))
    };
    conditions.iter().map(one).collect::<Vec<_>>().join(" and ")
}

/// The text of a polynomial, with `arange(0, BLOCK)` for its lanes.
fn number(poly: &Poly, lanes: &[Lane]) -> String {
    let atom = |atom: &Atom| match atom {
        Atom::Lane(at) => match usize::try_from(*at).ok().and_then(|at| lanes.get(at)) {
            Some(lane) if lane.start == Some(0) => format!("arange(0, {})", lane.size),
            _ => "arange(…)".to_owned(),
        },
        Atom::Loop(_) => "counter".to_owned(),
        Atom::Other(_) => "…".to_owned(),
        other => other.to_string(),
    };
    let mut parts: Vec<String> = Vec::new();
    for (atoms, factor) in &poly.terms {
        let names: Vec<String> = atoms.iter().map(atom).collect();
        let product = names.join("*");
        parts.push(if *factor == 1 { product } else { format!("{factor}*{product}") });
    }
    if poly.constant != 0 || parts.is_empty() {
        parts.push(poly.constant.to_string());
    }
    parts.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::syntax::Source;

    const TEXT: &str = "
import triton
import triton.language as tl

# warpsmith: signature x_ptr=*fp16 n=i32
@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    tl.store(x_ptr + offs, x * 2.0, mask=mask)
";

    fn model(text: &str) -> Module {
        Module::build(&Source::parse(text))
    }

    #[test]
    fn assigned_tiles_get_type_hints() {
        let module = model(TEXT);
        let hints = hints(&module, TEXT, TritonTarget::newest(), 0);
        let shown: Vec<String> = hints
            .iter()
            .map(|hint| format!("{}{}", TEXT[..hint.offset].rsplit(' ').next().unwrap_or(""), hint.label))
            .collect();
        assert_eq!(shown, ["offs: int32[BLOCK]", "mask: int1[BLOCK]", "x: fp16[BLOCK]"]);
    }

    #[test]
    fn hover_shows_type_lanes_and_mask_of_an_expression() {
        let module = model(TEXT);
        let at = |needle: &str| {
            describe_at(&module, TEXT, TritonTarget::newest(), TEXT.find(needle).unwrap() + 1).map(|(text, _)| text)
        };
        assert_eq!(
            at("offs < n").as_deref(),
            Some("```python\noffs: int32[BLOCK]\n```\n\nEach lane: `program_id(0)*BLOCK + arange(0, BLOCK)`")
        );
        assert_eq!(
            at("l.load").as_deref(),
            Some(
                "```python\ntl.load(x_ptr + offs, mask=mask, other=0.0): fp16[BLOCK]\n```\n\nLoaded where \
                 `program_id(0)*BLOCK + arange(0, BLOCK) < n`; `other` elsewhere"
            )
        );
        assert_eq!(at("def scale"), None);
    }

    #[test]
    fn hover_shows_a_range_if_both_ends_are_known() {
        let text = TEXT.replace("offs = pid * BLOCK + tl.arange(0, BLOCK)", "offs = tl.arange(0, 64) * 2");
        let (shown, _) =
            describe_at(&model(&text), &text, TritonTarget::newest(), text.find("offs < n").unwrap() + 1).unwrap();
        assert!(shown.ends_with("Each lane: `2*arange(0, 64)`, from 0 to 126"), "{shown}");
    }
}
