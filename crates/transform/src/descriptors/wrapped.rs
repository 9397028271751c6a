//! Rows that wrap around, `(pid * BLOCK + tl.arange(0, BLOCK)) % M`, and whose excess is not stored: masks can replace
//! the remainder.

use std::collections::BTreeMap;

use model::kernel::ast::{Call, Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;
use rules::{Edit, apply_edits};

use crate::masked::and_mask;
use crate::pointwise::is_function;
use crate::statements::assigned;
use crate::subject::Subject;
use crate::written::{bindings, only_value};

/// Functions of `triton.language` that do not mix lanes.
const APART: [&str; 18] = [
    "program_id",
    "num_programs",
    "cdiv",
    "minimum",
    "maximum",
    "swizzle2d",
    "arange",
    "zeros",
    "full",
    "load",
    "store",
    "dot",
    "trans",
    "range",
    "where",
    "max_contiguous",
    "multiple_of",
    "assume",
];
/// The greatest number of names that are followed.
pub(super) const DEPTH: usize = 4;

/// Names of lanes, and their bounds.
pub(super) type Lengths<'a> = BTreeMap<&'a str, &'a str>;

/// The file with masks in place of the remainder, where the lanes of the kernel's products never meet and stores mask
/// off the rows that do not exist.
pub(super) fn unwrapped(subject: &Subject<'_>) -> Option<String> {
    let (kernel, text) = (subject.kernel, subject.candidate.text.as_str());
    let (names, mut edits) = wrapped(subject)?;
    let (mut are_apart, mut has_product) = (true, false);
    let mut calls: Vec<(&Call, String)> = Vec::new();
    walk_expressions(&kernel.body, &mut |expr| {
        let Some(call) = expr.as_call() else { return };
        let Some(member) = subject.member(call) else {
            // Methods that convert types, and functions of Python, do not mix lanes; a helper may do anything.
            let is_method = matches!(&call.func.kind, ExprKind::Attribute { name, .. } if name == "to");
            are_apart &= is_method || call.func.as_name().is_some_and(|name| ["min", "max", "range"].contains(&name));
            return;
        };
        are_apart &= (APART.contains(&member.as_str()) || is_function(&member)) && !call.has_star();
        has_product |= member == "dot";
        calls.push((call, member));
    });
    if !are_apart || !has_product {
        return None;
    }
    for (call, member) in calls {
        match member.as_str() {
            "store" => {
                let mask = call.argument("mask", Some(2))?;
                names.values().all(|length| is_below(subject, mask, length, DEPTH)).then_some(())?;
            }
            "load" => {
                let mut found = BTreeMap::new();
                forms(subject, &names, call.argument("pointer", Some(0))?, DEPTH, &mut found)?;
                edits.extend(masked(call, &found)?);
            }
            _ => {}
        }
    }
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    Some(apply_edits(text, &edits))
}

/// The edits that mask a load by lengths, for the forms (`offs[:, None]`) of the lanes in its pointer.
pub(super) fn masked(call: &Call, lengths: &BTreeMap<&str, &str>) -> Option<Vec<Edit>> {
    let conditions: Vec<String> = lengths.iter().map(|(form, length)| format!("({form} < {length})")).collect();
    let Some(last) = call.args.last().filter(|_| !conditions.is_empty()) else { return Some(Vec::new()) };
    let mut edits = and_mask(call, 1, &conditions.join(" & "))?;
    if call.argument("other", Some(2)).is_none() {
        let end = last.value.span.end;
        edits.push(Edit { span: Span::new(end, end), text: ", other=0".to_owned() });
    }
    Some(edits)
}

/// `name = … (… tl.arange(…) …) % M …`, and the edits that remove the remainder.
fn wrapped<'a>(subject: &'a Subject<'a>) -> Option<(Lengths<'a>, Vec<Edit>)> {
    let (kernel, text) = (subject.kernel, subject.candidate.text.as_str());
    let assigned = assigned(kernel);
    let (mut names, mut edits) = (Lengths::new(), Vec::new());
    walk_statements(&kernel.body, &mut |stmt| {
        let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind else { return };
        let Some(name) = targets.first().filter(|_| targets.len() == 1).and_then(Expr::as_name) else { return };
        let mut remainders = Vec::new();
        value.walk(&mut |expr| {
            if let ExprKind::Binary { op, left, right } = &expr.kind
                && op == "%"
                && has_lanes(subject, left, DEPTH)
            {
                remainders.push((expr, left, right));
            }
        });
        let [(whole, left, right)] = remainders.as_slice() else { return };
        let is_only = bindings(&kernel.body, name).len() == 1 && is_itself(subject, value, whole);
        let length = right.as_name().filter(|length| kernel.param(length).is_some() && !assigned.contains(length));
        if let Some(length) = length.filter(|_| is_only) {
            names.insert(name, length);
            edits.push(Edit { span: whole.span, text: text[left.span.start..left.span.end].to_owned() });
        }
    });
    (!names.is_empty()).then_some((names, edits))
}

pub(super) fn is_arange(subject: &Subject<'_>, expr: &Expr) -> bool {
    expr.as_call().is_some_and(|call| subject.member(call).as_deref() == Some("arange"))
}

/// Whether an expression differs from lane to lane.
fn has_lanes(subject: &Subject<'_>, expr: &Expr, depth: usize) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        found |= is_arange(subject, part);
        let value = part.as_name().filter(|_| depth > 0).and_then(|name| only_value(&subject.kernel.body, name));
        found |= value.is_some_and(|value| has_lanes(subject, value, depth - 1));
    });
    found
}

/// Whether the value, with or without a hint, is the same expression.
fn is_itself(subject: &Subject<'_>, value: &Expr, part: &Expr) -> bool {
    if value.span == part.span {
        return true;
    }
    let hint = value.as_call().filter(|call| {
        subject.member(call).is_some_and(|name| ["max_contiguous", "multiple_of"].contains(&name.as_str()))
    });
    hint.and_then(|call| call.args.first()).is_some_and(|first| is_itself(subject, &first.value, part))
}

/// Whether a mask disables all lanes that are not below a length.
fn is_below(subject: &Subject<'_>, mask: &Expr, length: &str, depth: usize) -> bool {
    match &mask.kind {
        ExprKind::Compare { rest, .. } => {
            matches!(rest.as_slice(), [(op, right)] if op == "<" && right.as_name() == Some(length))
        }
        ExprKind::Binary { op, left, right } if op == "&" => {
            is_below(subject, left, length, depth) || is_below(subject, right, length, depth)
        }
        ExprKind::Subscript { value, .. } => is_below(subject, value, length, depth),
        ExprKind::Name(name) if depth > 0 => {
            only_value(&subject.kernel.body, name).is_some_and(|value| is_below(subject, value, length, depth - 1))
        }
        _ => false,
    }
}

/// The forms (`offs[:, None]`) in which such names occur in a pointer; `None` where they cannot be followed.
pub(super) fn forms<'a>(
    subject: &'a Subject<'a>,
    names: &Lengths<'a>,
    pointer: &'a Expr,
    depth: usize,
    found: &mut BTreeMap<&'a str, &'a str>,
) -> Option<()> {
    let slice = |expr: &Expr| &subject.candidate.text[expr.span.start..expr.span.end];
    match &pointer.kind {
        ExprKind::Subscript { value, .. } if value.as_name().is_some_and(|name| names.contains_key(name)) => {
            found.insert(slice(pointer), names[value.as_name()?]);
        }
        ExprKind::Name(name) => match names.get(name.as_str()) {
            Some(length) => drop(found.insert(slice(pointer), length)),
            None => {
                for stmt in bindings(&subject.kernel.body, name) {
                    if let StmtKind::Assign { value: Some(value), .. } = &stmt.kind {
                        forms(subject, names, value, depth.checked_sub(1)?, found)?;
                    }
                }
            }
        },
        ExprKind::Binary { left, right, .. } => {
            forms(subject, names, left, depth, found)?;
            forms(subject, names, right, depth, found)?;
        }
        ExprKind::Int(_) => {}
        ExprKind::Call(_) | ExprKind::Subscript { .. } => {
            let mut is_free = true;
            pointer.walk(&mut |part| {
                is_free &= part.as_name().is_none_or(|name| !names.contains_key(name));
            });
            return is_free.then_some(());
        }
        _ => return None,
    }
    Some(())
}
