//! Pairs of consecutive launches in a function, of which the second reads what the first has written.

use model::kernel::Launch;
use model::kernel::ast::{Stmt, StmtKind, walk_statements};
use protocol::WorkloadSource;
use workload::reaches;

use super::host::Around;
use super::side::{Access, Side};
use crate::lines::lines_of;
use crate::names::in_expr;
use crate::subject::Subject;

/// Memory that the first kernel writes and the second reads.
pub(super) struct Between<'a> {
    pub(super) tensor: &'a str,
    pub(super) store: Access<'a>,
    pub(super) loads: Vec<Access<'a>>,
    /// Whether the memory is used after both launches.
    pub(super) is_kept: bool,
}

/// Two consecutive launches.
pub(super) struct Pair<'a> {
    pub(super) around: Around<'a>,
    pub(super) first: Side<'a>,
    pub(super) second: Side<'a>,
    /// The statement of the first launch.
    pub(super) stmt: &'a Stmt,
    pub(super) between: Vec<Between<'a>>,
}

/// The pairs whose first launch is that of the subject's kernel.
pub(super) fn pairs<'a>(subject: &'a Subject<'a>) -> Vec<Pair<'a>> {
    let (module, text) = (&subject.candidate.module, subject.candidate.text.as_str());
    if subject.workload.source == WorkloadSource::Launch || text.contains('\r') {
        return Vec::new();
    }
    let mut found = Vec::new();
    for launch in module.launches_of(&subject.kernel.name) {
        let Some(host) = launch.host.map(|host| &module.hosts[host]) else { continue };
        let outermost = host.qualname.split('.').next().unwrap_or_default();
        if reaches(text, &subject.workload.entry, outermost) {
            found.extend(Pair::of(subject, Around { module, host, text }, launch));
        }
    }
    found
}

impl<'a> Pair<'a> {
    fn of(subject: &'a Subject<'a>, around: Around<'a>, launch: &'a Launch) -> Option<Self> {
        let module = around.module;
        let (stmts, in_loop) = block_of(&around.host.body, launch, false)?;
        let (stmt, rest) = stmts.split_first()?;
        let next = rest.iter().position(|stmt| !around.is_quiet(stmt))?;
        let is_it = |launch: &&Launch| matches!(&rest[next].kind, StmtKind::Expr(value) if value.span == launch.span);
        let other = module.launches.iter().find(is_it)?;
        let kernel = module.kernel(other.kernel.as_deref()?).filter(|kernel| kernel.name != subject.kernel.name)?;
        lines_of(around.text, stmt)?;
        // The first kernel is launched later than before, so its arguments must not change in between.
        let mut passed = in_expr(&launch.grid);
        launch.args.iter().for_each(|arg| passed.extend(in_expr(&arg.value)));
        let bound = rest[..next].iter().flat_map(Stmt::targets).flat_map(in_expr);
        if bound.into_iter().any(|name| passed.contains(name)) || has_unknown(around) {
            return None;
        }
        let first = Side::of(around, subject.kernel, launch, 'a')?;
        let second = Side::of(around, kernel, other, 'b')?;
        let last = rest[next].span.end;
        let between = betweens(&first, &second, |tensor| {
            let uses = around.uses(tensor);
            let is_within = |at: &usize| *at > last || [launch, other].iter().any(|one| one.span.touches(*at));
            uses.iter().all(is_within).then(|| in_loop || uses.iter().any(|at| *at > last))
        })?;
        Some(Self { around, first, second, stmt, between })
    }
}

/// The memory between two kernels, if they have nothing else in common. `later` returns whether a tensor is used after
/// both launches; `None` where it may have another name.
fn betweens<'a>(first: &Side<'a>, second: &Side<'a>, later: impl Fn(&str) -> Option<bool>) -> Option<Vec<Between<'a>>> {
    let of = |side: &Side<'a>, is_store: bool| -> Vec<(&'a str, Access<'a>)> {
        let all = side.accesses.iter().filter(|access| access.is_store == is_store);
        all.filter_map(|access| Some((side.made(access.root)?, access.clone()))).collect()
    };
    let (stored, loaded) = (of(first, true), of(first, false));
    let (written, read) = (of(second, true), of(second, false));
    let is_apart = written.iter().all(|(tensor, _)| stored.iter().chain(&loaded).all(|(other, _)| other != tensor));
    // A tensor that the host function allocates is not passed under another name as well.
    let mut all = [&stored, &loaded, &written, &read].into_iter().flatten();
    if !is_apart || all.any(|(tensor, _)| later(tensor).is_none()) {
        return None;
    }
    let mut found = Vec::new();
    for (tensor, store) in &stored {
        let loads: Vec<Access<'a>> =
            read.iter().filter(|(other, _)| other == tensor).map(|(_, it)| it.clone()).collect();
        if loads.is_empty() {
            continue;
        }
        let is_only = stored.iter().chain(&loaded).filter(|(other, _)| other == tensor).count() == 1;
        found.push(Between { tensor, store: store.clone(), loads, is_kept: later(tensor)? });
        if !is_only {
            return None;
        }
    }
    (!found.is_empty()).then_some(found)
}

/// The statements of the innermost block from a launch on, and whether they may run more than once.
fn block_of<'a>(body: &'a [Stmt], launch: &Launch, in_loop: bool) -> Option<(&'a [Stmt], bool)> {
    for (at, stmt) in body.iter().enumerate() {
        if matches!(&stmt.kind, StmtKind::Expr(value) if value.span == launch.span) {
            return Some((&body[at..], in_loop));
        }
        let is_loop = matches!(stmt.kind, StmtKind::For { .. } | StmtKind::While { .. });
        let found = stmt.bodies().into_iter().find_map(|inner| block_of(inner, launch, in_loop || is_loop));
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Whether a function contains something whose effect is unknown.
fn has_unknown(around: Around<'_>) -> bool {
    let mut has_unknown = false;
    walk_statements(&around.host.body, &mut |stmt| {
        has_unknown |= matches!(stmt.kind, StmtKind::Other(_) | StmtKind::Definition { .. });
    });
    has_unknown
}
