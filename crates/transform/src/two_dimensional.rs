//! Two-dimensional tiles for kernels that process a matrix as a flat range of elements.

mod body;
mod flat;
mod host;
#[cfg(test)]
mod tests;

use base::rng::Rng;
use model::kernel::Kernel;
use model::kernel::ast::{Expr, ExprKind, walk_expressions};
use model::syntax::Span;
use protocol::WorkloadSource;
use rules::Edit;

use super::candidate::Change;
use super::lines::lines_of;
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::words::{fresh, indent_of};

use body::Body;
use flat::LinearOffsets;
use host::ElementLaunch;

/// The numbers of rows and columns that are tried.
const TILES: [(i64, i64); 5] = [(32, 32), (64, 64), (16, 64), (64, 16), (4, 256)];

/// Gives each program a tile of rows and columns, where a program takes consecutive elements and computes the row and
/// the column of each with `//` and `%`. Loads along a column, as in a transposition, then become contiguous, a value
/// that is the same for a row or a column is loaded once for it, and no element needs a division. The elements of a
/// matrix of `n` elements and `N` columns are `row * N + column`, also where its last row is not full.
pub(super) struct TwoDimensional;

impl Skill for TwoDimensional {
    fn name(&self) -> &'static str {
        "two_dimensional"
    }

    fn about(&self) -> &'static str {
        "Tiles of rows and columns, where programs take the elements of a matrix one after the other and work out row and column of \
         each (`offs // N`, `offs % N`): what is read along columns is read side by side, what belongs to a row or a column is loaded \
         once for it, and nothing is divided."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        if subject.workload.source == WorkloadSource::Launch || !is_plain(subject) {
            return Vec::new();
        }
        let Some(flat) = LinearOffsets::of(subject) else { return Vec::new() };
        let Some(site) = ElementLaunch::of(subject, flat.size) else { return Vec::new() };
        let turn = |columns: &str, tile| {
            let (edits, names) = tiled(subject, &flat, &site, columns, tile)?;
            let changes = vec![
                Change::Structure("tiles of rows and columns".to_owned()),
                Change::Chosen { name: names.height, to: tile.0 },
                Change::Chosen { name: names.width, to: tile.1 },
            ];
            Some(Proposal { kind: "two_dimensional".to_owned(), edits, changes })
        };
        let columns = divisors(subject.kernel, &flat);
        columns.iter().flat_map(|columns| TILES.into_iter().map_while(|tile| turn(columns, tile))).collect()
    }
}

/// Whether the file only launches the kernel and does nothing else with it.
fn is_plain(subject: &Subject<'_>) -> bool {
    let (module, kernel) = (&subject.candidate.module, subject.kernel);
    kernel.plain
        && kernel.autotune.is_none()
        && kernel.heuristics.as_ref().is_some_and(Vec::is_empty)
        && !kernel.has_error
        && kernel.params.iter().all(|param| !param.variadic)
        && !module.called_in_kernels().contains(&kernel.name)
}

/// The parameters that the element indices are divided by.
fn divisors<'a>(kernel: &'a Kernel, flat: &LinearOffsets<'_>) -> Vec<&'a str> {
    let mut found = Vec::new();
    walk_expressions(&kernel.body, &mut |expr| {
        let divisor = divided(expr, flat.offsets).and_then(|(_, by)| by.as_name());
        if let Some(name) = divisor.filter(|name| kernel.param(name).is_some())
            && !found.contains(&name)
        {
            found.push(name);
        }
    });
    found
}

/// `offsets // by` or `offsets % by`
fn divided<'a>(expr: &'a Expr, offsets: &str) -> Option<(&'a str, &'a Expr)> {
    let ExprKind::Binary { op, left, right } = &expr.kind else { return None };
    let is_it = left.as_name() == Some(offsets) && ["//", "%"].contains(&op.as_str());
    is_it.then_some((op.as_str(), right))
}

/// Names of the new kernel.
struct Names {
    /// The number of tiles in a row of tiles.
    across: String,
    /// The indices of a tile's rows and columns, and their masks.
    rows: String,
    columns: String,
    in_rows: String,
    in_columns: String,
    /// The mask of the tile's elements.
    in_tile: String,
    /// The numbers of rows and columns of a tile.
    height: String,
    width: String,
}

impl Names {
    fn new(text: &str) -> Self {
        let fresh = |base: &str| fresh(text, base);
        Self {
            across: fresh("tiles_across"),
            rows: fresh("rows"),
            columns: fresh("columns"),
            in_rows: fresh("in_rows"),
            in_columns: fresh("in_columns"),
            in_tile: fresh("in_tile"),
            height: fresh("BLOCK_R"),
            width: fresh("BLOCK_C"),
        }
    }
}

fn tiled(
    subject: &Subject<'_>,
    flat: &LinearOffsets<'_>,
    site: &ElementLaunch<'_>,
    columns: &str,
    tile: (i64, i64),
) -> Option<(Vec<Edit>, Names)> {
    let (kernel, text) = (subject.kernel, subject.candidate.text.as_str());
    let names = Names::new(text);
    let (mut edits, count) = Body::new(subject, flat, site, columns, &names).tiled()?;
    edits.push(Edit { span: flat.stmt.span, text: head(subject, flat, &count, columns, &names)? });
    for stmt in &flat.dropped {
        let lines = lines_of(text, stmt)?;
        edits.push(Edit { span: Span::new(lines.start, lines.end + 1), text: String::new() });
    }
    let constexpr = subject.candidate.module.language_name(kernel, "constexpr")?;
    let size = kernel.param(flat.size)?;
    let param = |name: &str, number: i64| match size.default {
        Some(_) => format!("{name}: {constexpr} = {number}"),
        None => format!("{name}: {constexpr}"),
    };
    let params = format!("{}, {}", param(&names.height, tile.0), param(&names.width, tile.1));
    edits.push(Edit { span: size.span, text: params });
    edits.extend(site.edits(columns, &names, tile)?);
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    Some((edits, names))
}

/// The statements that replace the element indices. The last row may be incomplete. Rows beyond it are masked by their
/// own indices, since the indices of their elements may not fit into 32 bits.
fn head(subject: &Subject<'_>, flat: &LinearOffsets<'_>, count: &str, columns: &str, names: &Names) -> Option<String> {
    let of = |name: &str| subject.candidate.module.language_name(subject.kernel, name);
    let (cdiv, arange) = (of("cdiv")?, of("arange")?);
    let Names { across, rows, columns: column, in_rows, in_columns, in_tile, height, width } = names;
    let (program, offsets) = (&flat.program, flat.offsets);
    let lines = [
        format!("{across} = {cdiv}({columns}, {width})"),
        format!("{rows} = {program} // {across} * {height} + {arange}(0, {height})[:, None]"),
        format!("{column} = {program} % {across} * {width} + {arange}(0, {width})[None, :]"),
        format!("{in_rows} = {rows} <= ({count} - 1) // {columns}"),
        format!("{in_columns} = ({column} < {columns}) & ({column} < {count})"),
        format!("{in_tile} = {in_rows} & {in_columns} & ({column} < {count} - {rows} * {columns})"),
        format!("{offsets} = {rows} * {columns} + {column}"),
    ];
    let indent = indent_of(&subject.candidate.text, flat.stmt.span.start)?;
    Some(lines.join(&format!("\n{indent}")))
}
