//! Writes the loops.

use std::collections::{BTreeSet, HashMap, HashSet};

use model::kernel::ast::{Expr, StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;
use rules::Edit;

use super::parts::{Home, Part, Reduction, Role};
use super::row::Row;

/// The edits that turn a kernel's work on its row into loops; `None` where something would change its meaning.
pub(super) fn edits(row: &Row<'_>, home: &Home<'_>) -> Option<Vec<Edit>> {
    Writer::new(row, home)?.edits()
}

/// The result of a rewritten reduction.
#[derive(Clone)]
struct Gathered {
    /// The name of the tile of partial results.
    tile: String,
    /// The name of the result, where it has one.
    result: Option<String>,
}

/// The contents of a loop, in order.
enum Item<'a, 'r> {
    Part(usize),
    Gather(usize, &'r Reduction<'a>),
}

struct Writer<'a, 'r> {
    row: &'r Row<'a>,
    home: &'r Home<'a>,
    parts: &'r [Part<'a>],
    /// Names that have a meaning in the kernel already.
    taken: HashSet<String>,
    start: String,
    range: String,
    /// The indentation of a block relative to its statement.
    deeper: &'a str,
    gathered: HashMap<*const Expr, Gathered>,
    /// Comments above statements that are not written yet, for the next loop that contains the statement.
    comments: HashMap<usize, Vec<&'a str>>,
    lines: Vec<String>,
    /// Whether a statement with an empty line before it was dropped.
    is_apart: bool,
}

impl<'a, 'r> Writer<'a, 'r> {
    fn new(row: &'r Row<'a>, home: &'r Home<'a>) -> Option<Self> {
        if row.text.contains('\r') {
            return None;
        }
        let mut taken: HashSet<String> = row.kernel.locals.iter().chain(row.module.bindings.keys()).cloned().collect();
        walk_expressions(&row.kernel.body, &mut |expr| taken.extend(expr.as_name().map(str::to_owned)));
        let has_range = !row.kernel.locals.contains("range") && !row.module.bindings.contains_key("range");
        let range = if has_range { "range".to_owned() } else { row.module.language_name(row.kernel, "range")? };
        let (gathered, comments, lines) = Default::default();
        let (start, deeper) = (String::new(), "");
        let parts = home.parts.as_slice();
        let mut writer =
            Self { row, home, parts, taken, start, range, deeper, gathered, comments, lines, is_apart: false };
        writer.start = writer.fresh("start");
        let outer = row.indent_at(row.kernel.def_span.start)?;
        let inner = row.indent_at(row.kernel.body.first()?.span.start)?;
        writer.deeper = inner.strip_prefix(outer).filter(|deeper| !deeper.is_empty())?;
        Some(writer)
    }

    /// A name that is not in use.
    fn fresh(&mut self, base: &str) -> String {
        let numbered = (2..).map(|number| format!("{base}_{number}"));
        let mut names = std::iter::once(base.to_owned()).chain(numbered);
        let name = names.find(|name| !self.taken.contains(name)).unwrap_or_default();
        self.taken.insert(name.clone());
        name
    }

    fn of_triton(&self, name: &str) -> Option<String> {
        self.row.module.language_name(self.row.kernel, name)
    }

    /// Whether the results of all reductions within an expression are computed.
    fn is_ready(&self, expr: &Expr, reductions: &[Reduction<'a>]) -> bool {
        let is_within = |inner: &Reduction<'a>| {
            !std::ptr::eq(inner.call, expr)
                && expr.span.start <= inner.call.span.start
                && inner.call.span.end <= expr.span.end
        };
        reductions.iter().all(|inner| !is_within(inner) || self.gathered.contains_key(&std::ptr::from_ref(inner.call)))
    }

    // --- what is written ------------------------------------------------------------------------------------------

    fn edits(mut self) -> Option<Vec<Edit>> {
        let stores: Vec<usize> = (0..self.parts.len()).filter(|&at| self.parts[at].role == Role::Store).collect();
        let last = stores.last().copied();
        if let (Some(&first), Some(last)) = (stores.first(), last)
            && self.parts[first..last].iter().any(|part| part.leaves)
        {
            return None;
        }
        let mut edits = Vec::new();
        for at in (0..self.home.first).filter(|&at| self.parts[at].role == Role::Along) {
            edits.push(self.without(at)?);
        }
        for at in self.home.first..self.parts.len() {
            let above = if at == self.home.first { "" } else { self.row.slice(self.row.above(self.parts[at].stmt)) };
            if self.parts[at].role == Role::Scalar {
                self.come_to(above);
                self.reduce(at)?;
                let text = self.kept(at)?;
                self.lines.push(text);
                continue;
            }
            self.is_apart |= above.lines().any(|line| line.trim().is_empty());
            self.comments.insert(at, above.lines().filter(|line| !line.trim().is_empty()).collect());
            self.reduce(at)?;
            if Some(at) == last {
                self.store(&stores)?;
            }
        }
        let (first, last) = (self.parts.get(self.home.first)?, self.parts.last()?);
        let span = Span::new(self.row.lines_of(first.stmt)?.start, self.row.lines_of(last.stmt)?.end);
        edits.push(Edit { span, text: self.lines.join("\n") });
        Some(edits)
    }

    /// The edit that removes a statement before the block.
    fn without(&mut self, at: usize) -> Option<Edit> {
        let (above, lines) = (self.row.above(self.parts[at].stmt), self.row.lines_of(self.parts[at].stmt)?);
        let comments: Vec<&str> =
            self.row.slice(above).lines().rev().take_while(|line| !line.trim().is_empty()).collect();
        let start = lines.start - comments.iter().map(|line| line.len() + 1).sum::<usize>();
        self.comments.insert(at, comments.into_iter().rev().collect());
        Some(Edit { span: Span::new(start, lines.end + 1), text: String::new() })
    }

    /// Writes the comments above a statement that stays.
    fn come_to(&mut self, above: &str) {
        let is_apart = std::mem::take(&mut self.is_apart) && !self.lines.is_empty();
        if is_apart && !above.lines().any(|line| line.trim().is_empty()) {
            self.lines.push(String::new());
        }
        let is_first = self.lines.is_empty();
        let lines = above.lines().map(str::to_owned).skip_while(|line| is_first && line.trim().is_empty());
        self.lines.extend(lines);
    }

    /// The text of a statement that stays, with partial results in its reductions.
    fn kept(&self, at: usize) -> Option<String> {
        let part = &self.parts[at];
        let lines = self.row.lines_of(part.stmt)?;
        let outer = part.reductions.iter().filter(|reduction| !reduction.is_inner);
        let edit = |reduction: &Reduction<'a>| {
            let gathered = self.gathered.get(&std::ptr::from_ref(reduction.call))?;
            Some(Edit { span: reduction.input.span, text: gathered.tile.clone() })
        };
        Some(self.row.edited(lines, outer.map(edit).collect::<Option<_>>()?))
    }

    /// Writes the loops for the reductions of a part, each together with later reductions that can share the loop.
    fn reduce(&mut self, at: usize) -> Option<()> {
        let parts = self.parts;
        loop {
            let own = self.open_reductions(at).into_iter();
            let now: Vec<&Reduction<'a>> = own.filter(|one| self.is_ready(one.call, &parts[at].reductions)).collect();
            if now.is_empty() {
                return Some(());
            }
            let mut group: Vec<(usize, &Reduction<'a>)> = now.into_iter().map(|one| (at, one)).collect();
            for (later, part) in parts.iter().enumerate().skip(at + 1) {
                for one in self.open_reductions(later) {
                    if self.is_ready(one.call, &part.reductions) && self.is_had_before(later, one, at) {
                        group.push((later, one));
                    }
                }
            }
            self.reduction_loop(at, &group)?;
        }
    }

    /// The reductions of a part that have no loop yet.
    fn open_reductions(&self, at: usize) -> Vec<&'r Reduction<'a>> {
        let all = self.parts[at].reductions.iter();
        all.filter(|one| !self.gathered.contains_key(&std::ptr::from_ref(one.call))).collect()
    }

    /// Whether a reduction of a later part can be computed before part `at`.
    fn is_had_before(&self, later: usize, one: &Reduction<'a>, at: usize) -> bool {
        let Some(needed) = self.home.needed(self.row, later, &self.reads_of(later, one).0) else { return false };
        let waits = needed.range(at..).any(|&part| !self.parts[part].reductions.is_empty());
        !waits && self.home.is_steady(self.row, &one.reads, later, at) && self.home.are_steady(self.row, &needed, at)
    }

    /// The names that a reduction and its mask read, and the mask.
    fn reads_of(&self, at: usize, one: &Reduction<'a>) -> (BTreeSet<&'a str>, String) {
        let mut lane = None;
        let mut reads = one.reads.clone();
        for part in self.parts[..at].iter().filter(|part| part.is_certain) {
            let StmtKind::Assign { value: Some(value), .. } = &part.stmt.kind else { continue };
            let Some(&name) = part.writes.first().filter(|name| self.row.only(name).is_some()) else { continue };
            if self.row.compared(value) == Some(self.row.length) {
                reads.insert(name);
                return (reads, name.to_owned());
            }
            if self.row.is_lane(value) {
                lane = lane.or(Some(name));
            }
        }
        reads.extend(lane);
        let lane = lane.map_or_else(|| self.lane(), |lane| Some(lane.to_owned()));
        (reads, format!("{} < {}", lane.unwrap_or_default(), self.row.length))
    }

    /// The expression of the lane indices.
    fn lane(&self) -> Option<String> {
        Some(format!("{} + {}(0, {})", self.start, self.of_triton("arange")?, self.row.block))
    }

    fn indent(&self) -> Option<&'a str> {
        self.row.indent_at(self.parts.get(self.home.first)?.stmt.span.start)
    }

    fn reduction_loop(&mut self, at: usize, group: &[(usize, &'r Reduction<'a>)]) -> Option<()> {
        let indent = self.indent()?;
        let mut needed = BTreeSet::new();
        let mut begin = Vec::new();
        let mut results = Vec::new();
        for &(of, one) in group {
            needed.extend(self.home.needed(self.row, of, &self.reads_of(of, one).0)?);
            let tile = self.fresh(&format!("partial_{}", one.name));
            begin.push(format!("{indent}{tile} = {}", self.neutral_tile(one)?));
            let is_named = one.is_inner || self.parts[of].role != Role::Scalar;
            let result = is_named.then(|| self.fresh(&format!("row_{}", one.name)));
            if let Some(result) = &result {
                let input = Edit { span: one.input.span, text: tile.clone() };
                results.push(format!("{indent}{result} = {}", joined(&self.row.edited(one.call.span, vec![input]))?));
            }
            self.gathered.insert(std::ptr::from_ref(one.call), Gathered { tile, result });
        }
        if !self.home.are_steady(self.row, &needed, at) || !self.is_length_known(at) {
            return None;
        }
        let mut items: Vec<(usize, Item<'a, 'r>)> = needed.into_iter().map(|at| (at, Item::Part(at))).collect();
        items.extend(group.iter().map(|&(at, one)| (at, Item::Gather(at, one))));
        items.sort_by_key(|(at, item)| (*at, matches!(item, Item::Part(_))));
        self.apart();
        self.lines.extend(begin);
        self.write_loop(items)?;
        self.lines.extend(results);
        Some(())
    }

    fn store(&mut self, stores: &[usize]) -> Option<()> {
        let last = *stores.last()?;
        let mut parts = BTreeSet::new();
        for &at in stores {
            parts.extend(self.home.needed(self.row, at, &self.parts[at].reads)?);
            parts.insert(at);
        }
        if !self.home.are_steady(self.row, &parts, last) || !self.is_length_known(last) {
            return None;
        }
        self.apart();
        self.write_loop(parts.into_iter().map(|at| (at, Item::Part(at))).collect())
    }

    fn apart(&mut self) {
        if std::mem::take(&mut self.is_apart) && !self.lines.is_empty() {
            self.lines.push(String::new());
        }
    }

    /// Whether the row length is bound before part `at`.
    fn is_length_known(&self, at: usize) -> bool {
        let length = self.row.length;
        let is_param = self.row.kernel.param(length).is_some();
        is_param || self.parts[..at].iter().any(|part| part.writes.contains(length))
    }

    fn write_loop(&mut self, items: Vec<(usize, Item<'a, 'r>)>) -> Option<()> {
        let outer = self.indent()?;
        let (start, range, row) = (&self.start, &self.range, self.row);
        self.lines.push(format!("{outer}for {start} in {range}(0, {}, {}):", row.length, row.block));
        let indent = format!("{outer}{}", self.deeper);
        for (_, item) in items {
            match item {
                Item::Part(at) => self.write_part(at, &indent)?,
                Item::Gather(at, one) => {
                    let text = self.gather(at, one)?;
                    self.lines.push(format!("{indent}{text}"));
                }
            }
        }
        Some(())
    }

    /// Writes a statement about elements of the row into a loop.
    fn write_part(&mut self, at: usize, indent: &str) -> Option<()> {
        let part = &self.parts[at];
        let lines = self.row.movable_lines_of(part.stmt)?;
        let mut edits = Vec::new();
        self.inside(part, &mut edits);
        let own = self.row.indent_at(part.stmt.span.start)?;
        let text = self.row.edited(lines, edits);
        let comments = self.comments.remove(&at).unwrap_or_default();
        for line in comments.into_iter().chain(text.lines()) {
            let line = line.strip_prefix(own).unwrap_or_else(|| line.trim_start());
            self.lines.push(if line.is_empty() { String::new() } else { format!("{indent}{line}") });
        }
        Some(())
    }

    /// Adds the edits that a statement needs inside a loop.
    fn inside(&self, part: &Part<'a>, edits: &mut Vec<Edit>) {
        let mut exprs = Vec::new();
        walk_statements(std::slice::from_ref(part.stmt), &mut |stmt| {
            let is_whole = matches!(stmt.kind, StmtKind::Assign { .. });
            exprs.extend(stmt.exprs().into_iter().map(|expr| (expr, is_whole)));
        });
        for (expr, is_whole) in exprs {
            self.inside_of(expr, is_whole, edits);
        }
    }

    fn inside_of(&self, expr: &Expr, is_whole: bool, edits: &mut Vec<Edit>) {
        let gathered = self.gathered.get(&std::ptr::from_ref(expr)).and_then(|gathered| gathered.result.clone());
        if let Some(text) = gathered {
            edits.push(Edit { span: expr.span, text });
            return;
        }
        let is_lane = expr.as_call().is_some_and(|call| self.row.function(call).as_deref() == Some("arange"));
        if is_lane {
            let text = format!("{} + {}", self.start, self.row.slice(expr.span));
            edits.push(Edit { span: expr.span, text: if is_whole { text } else { format!("({text})") } });
            return;
        }
        expr.each_child(&mut |child| self.inside_of(child, false, edits));
    }

    /// The statement that accumulates one more tile for a reduction. Lanes beyond the end of the row are excluded.
    fn gather(&self, at: usize, one: &Reduction<'a>) -> Option<String> {
        let mut edits = Vec::new();
        self.inside_of(one.input, true, &mut edits);
        let input = joined(&self.row.edited(one.input.span, edits))?;
        let (_, mask) = self.reads_of(at, one);
        let kept = format!("{}({mask}, {input}, {})", self.of_triton("where")?, neutral(&one.name));
        let tile = &self.gathered.get(&std::ptr::from_ref(one.call))?.tile;
        Some(match one.name.as_str() {
            "sum" => format!("{tile} += {kept}"),
            name => format!("{tile} = {}({tile}, {kept})", self.of_triton(&format!("{name}imum"))?),
        })
    }

    /// The neutral tile of a reduction.
    fn neutral_tile(&self, one: &Reduction<'a>) -> Option<String> {
        let float = self.of_triton(self.row.gathered_in(one.input)?)?;
        let block = self.row.block;
        Some(match one.name.as_str() {
            "sum" => format!("{}([{block}], dtype={float})", self.of_triton("zeros")?),
            name => format!("{}([{block}], {}, dtype={float})", self.of_triton("full")?, neutral(name)),
        })
    }
}

fn neutral(name: &str) -> &'static str {
    match name {
        "max" => "float(\"-inf\")",
        "min" => "float(\"inf\")",
        _ => "0.0",
    }
}

/// An expression in one line; `None` where it contains a comment or a string of several lines.
fn joined(text: &str) -> Option<String> {
    if !text.contains('\n') {
        return Some(text.to_owned());
    }
    let is_plain = !text.contains(['#', '\'', '"', '\\']);
    is_plain.then(|| text.lines().map(str::trim).collect::<Vec<_>>().join(" "))
}
