//! Adds masks to unmasked tiles whose sizes are multiples of them, since the masks give the bounds for descriptors.

use std::collections::BTreeMap;

use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_expressions, walk_statements};
use rules::{Edit, apply_edits};

use super::wrapped::{DEPTH, Lengths, forms, is_arange, masked};
use crate::statements::assigned;
use crate::subject::Subject;
use crate::subject_launch::{only_launch, passed_as};
use crate::unmasked::divided;
use crate::written::{bindings, only_value};

/// The file with masks for the unmasked lanes of loads, where the sizes that the tiles divide are known.
pub(super) fn bounded(subject: &Subject<'_>) -> Option<String> {
    let (kernel, text) = (subject.kernel, subject.candidate.text.as_str());
    let mut lengths: BTreeMap<&str, Option<String>> = BTreeMap::new();
    let (mut lanes, mut found): (BTreeMap<&str, &str>, Vec<(&str, String)>) = Default::default();
    walk_statements(&kernel.body, &mut |stmt| {
        let Some(Offsets { name, tile, is_bare }) = offsets(subject, stmt, &lanes) else { return };
        lanes.extend(is_bare.then_some((name, tile)));
        let length = lengths.entry(tile).or_insert_with(|| length(subject, tile));
        let Some(length) = length.as_ref() else { return };
        // The lanes of the first tile: the pointers move in each iteration.
        let length = if is_bare { left(subject, tile, length) } else { Some(length.clone()) };
        found.extend(length.map(|length| (name, length)));
    });
    let mut edits: Vec<Edit> = Vec::new();
    walk_expressions(&kernel.body, &mut |expr| {
        let Some(call) = expr.as_call().filter(|call| subject.member(call).as_deref() == Some("load")) else { return };
        let mask = call.argument("mask", Some(1));
        let is_open = |name: &str| mask.is_none_or(|mask| !is_of(subject, mask, name));
        let names = found.iter().filter(|(name, _)| is_open(name)).map(|(name, length)| (*name, length.as_str()));
        let (names, mut said): (Lengths<'_>, _) = (names.collect(), BTreeMap::new());
        let pointer = call.argument("pointer", Some(0)).filter(|_| !call.has_star());
        if pointer.and_then(|pointer| forms(subject, &names, pointer, DEPTH, &mut said)).is_some() {
            edits.extend(masked(call, &said).unwrap_or_default());
        }
    });
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    (!edits.is_empty()).then(|| apply_edits(text, &edits))
}

/// Whether a mask mentions a name.
fn is_of(subject: &Subject<'_>, mask: &Expr, name: &str) -> bool {
    let mut found = mask.mentions(name);
    mask.walk(&mut |part| {
        let value = part.as_name().and_then(|name| only_value(&subject.kernel.body, name));
        found |= value.is_some_and(|value| value.mentions(name));
    });
    found
}

/// A name for a vector of as many numbers as a tile has lanes.
struct Offsets<'a> {
    name: &'a str,
    tile: &'a str,
    /// Whether it is nothing but the lane indices.
    is_bare: bool,
}

/// `rows = pid * BLOCK + tl.arange(0, BLOCK)`, where the lanes may also have a name.
fn offsets<'a>(subject: &'a Subject<'a>, stmt: &'a Stmt, lanes: &BTreeMap<&str, &'a str>) -> Option<Offsets<'a>> {
    let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind else { return None };
    let [target] = targets.as_slice() else { return None };
    let name = target.as_name().filter(|name| bindings(&subject.kernel.body, name).len() == 1)?;
    let is_bare = is_arange(subject, value);
    if !is_bare && !matches!(&value.kind, ExprKind::Binary { op, .. } if op == "+") {
        return None;
    }
    let mut tiles = Vec::new();
    value.walk(&mut |part| {
        let call = part.as_call().filter(|_| is_arange(subject, part));
        tiles.extend(call.map(|call| call.args.get(1).and_then(|end| end.value.as_name())));
        tiles.extend(part.as_name().and_then(|name| lanes.get(name)).map(|tile| Some(*tile)));
    });
    let [Some(tile)] = tiles.as_slice() else { return None };
    subject.kernel.param(tile).filter(|param| param.constexpr)?;
    Some(Offsets { name, tile, is_bare })
}

/// The parameter for the size that a tile divides, where no mask mentions it.
fn length(subject: &Subject<'_>, tile: &str) -> Option<String> {
    let module = &subject.candidate.module;
    let launch = only_launch(subject)?;
    let number = subject.knobs.iter().find(|knob| knob.name == tile)?.current;
    let assigned = assigned(subject.kernel);
    let tile = subject.kernel.param(tile)?.name.as_str();
    let mut sizes = divided(module, subject.kernel, launch, tile, number).into_iter();
    sizes.find_map(|size| passed_as(subject, launch, size).filter(|name| !assigned.contains(name)).map(str::to_owned))
}

/// The remaining size in an iteration of the only loop over such tiles: `K - k`, or `K - k * BLOCK_K` where the loop
/// counts tiles.
fn left(subject: &Subject<'_>, tile: &str, length: &str) -> Option<String> {
    let mut found = Vec::new();
    walk_statements(&subject.kernel.body, &mut |stmt| {
        let StmtKind::For { target, iter, .. } = &stmt.kind else { return };
        let Some((round, call)) = target.as_name().zip(iter.as_call()) else { return };
        if call.args.get(2).is_some_and(|step| step.value.as_name() == Some(tile)) {
            found.push(format!("{length} - {round}"));
        } else if call.args.iter().any(|arg| arg.value.mentions(tile)) {
            found.push(format!("{length} - {round} * {tile}"));
        }
    });
    found.pop().filter(|_| found.is_empty())
}
