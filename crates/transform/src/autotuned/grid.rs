//! Rewrites a grid so that it depends on the tile sizes of the chosen configuration.

use model::kernel::ast::{Expr, ExprKind};
use model::kernel::{HostFunction, Launch};
use model::syntax::Span;
use rules::Edit;

use super::kind::Tiles;
use super::numbers::LaunchNumber;
use crate::grid_tiles::{Tied, tied};
use crate::launched::innermost;
use crate::subject::Subject;
use crate::words::fresh;
use crate::written::{grid_of, is_settled, is_steady, is_used_once, word_count};

/// A grid whose axes are counted in tiles.
pub(super) struct TiledGrid {
    /// The tiles in which each axis is counted.
    pub(super) axes: Vec<Tiles>,
    pub(super) edits: Vec<Edit>,
    /// How often the grid mentions each tile by the host's name for it.
    pub(super) named: Vec<usize>,
}

/// A reader of the tiles that a grid mentions.
struct Reader<'a> {
    tiles: &'a [LaunchNumber<'a>],
    tied: Vec<Tied>,
    /// The name of the grid function's parameter, if the grid is a function.
    meta: Option<&'a str>,
}

/// A number in the grid that is to be replaced by an expression.
struct GridNumber {
    tile: usize,
    span: Span,
    /// ` - 1` where the grid has the tile size minus one.
    less: &'static str,
    is_named: bool,
}

impl TiledGrid {
    pub(super) fn of(
        subject: &Subject<'_>,
        launch: &Launch,
        host: &HostFunction,
        tiles: &[LaunchNumber<'_>],
    ) -> Option<Self> {
        let (module, text) = (&subject.candidate.module, subject.candidate.text.as_str());
        // Without tiles the grid stays as it is.
        if tiles.is_empty() {
            return Some(Self { axes: Vec::new(), edits: Vec::new(), named: Vec::new() });
        }
        let grid = grid_of(module, launch)?;
        let (body, meta) = match &grid.kind {
            ExprKind::Lambda { params, body } => {
                let [meta] = params.as_slice() else { return None };
                (body.as_ref(), Some(meta.as_str()))
            }
            _ => (grid, None),
        };
        let (ExprKind::Tuple(parts) | ExprKind::List(parts)) = &body.kind else { return None };
        let tied = tiles.iter().map(|tile| tied(module, subject.kernel, launch, tile.name, tile.value)).collect();
        let reader = Reader { tiles, tied, meta };
        let (mut axes, mut places) = (Vec::new(), Vec::new());
        for part in parts {
            let before = places.len();
            reader.places(part, &mut places)?;
            axes.push(places[before..].iter().fold(0, |all, place: &GridNumber| all | 1 << place.tile));
        }
        let named =
            (0..tiles.len()).map(|tile| places.iter().filter(|place| place.tile == tile && place.is_named).count());
        let named = named.collect();
        let name = meta.map_or_else(|| fresh(text, "meta"), str::to_owned);
        let mut edits: Vec<Edit> = places
            .iter()
            .filter_map(|place| Some(Edit { span: place.span, text: reader.written(place, &name)? }))
            .collect();
        if meta.is_none() && !edits.is_empty() {
            let is_enclosed = text.get(body.span.start..)?.starts_with(['(', '[']);
            (is_enclosed && parts.iter().all(is_steady) && is_late(text, host, launch, grid)).then_some(())?;
            edits.push(Edit { span: Span::new(grid.span.start, grid.span.start), text: format!("lambda {name}: ") });
        }
        Some(Self { axes, edits, named })
    }

    /// All tiles in which programs are counted.
    pub(super) fn of_grid(&self) -> Tiles {
        self.axes.iter().fold(0, |all, axis| all | axis)
    }
}

/// Whether a grid has the same value at the launch as at the place where it is written.
fn is_late(text: &str, host: &HostFunction, launch: &Launch, grid: &Expr) -> bool {
    let Some(name) = launch.grid.as_name() else { return true };
    let words = text.get(host.span.start..host.span.end).map(|text| word_count(text, name));
    let statement = innermost(host, grid.span);
    is_used_once(host, name)
        && words == Some(2)
        && statement.is_some_and(|stmt| is_settled(host, grid, stmt.span.start))
}

impl Reader<'_> {
    /// Collects the tile sizes in a part of the grid; `None` where one of them does not count tiles.
    fn places(&self, expr: &Expr, found: &mut Vec<GridNumber>) -> Option<()> {
        if self.place(expr).is_some() {
            return None;
        }
        let divided = match &expr.kind {
            ExprKind::Call(call) => {
                let (ExprKind::Name(name) | ExprKind::Attribute { name, .. }) = &call.func.kind else { return None };
                match call.args.as_slice() {
                    [of, by] if name == "cdiv" && of.keyword.is_none() && by.keyword.is_none() => {
                        self.place(&by.value).map(|place| (&of.value, vec![place]))
                    }
                    _ => None,
                }
            }
            ExprKind::Binary { op, left, right } if op == "//" => match self.place(right) {
                Some(place) => Some(self.rounded(left, place)?),
                None => None,
            },
            _ => None,
        };
        match divided {
            Some((of, places)) => {
                found.extend(places);
                self.places(of, found)
            }
            None => expr.children().into_iter().try_for_each(|child| self.places(child, found)),
        }
    }

    /// The `n` of `(n + 63) // 64` or `(n + B - 1) // B`, and all places of the tile size in it.
    fn rounded<'e>(&self, sum: &'e Expr, by: GridNumber) -> Option<(&'e Expr, Vec<GridNumber>)> {
        let ExprKind::Binary { op, left, right } = &sum.kind else { return None };
        let is_same = |place: &GridNumber| place.tile == by.tile;
        if op == "+" {
            if self.tied[by.tile].less.contains(&right.span) {
                let less = GridNumber { tile: by.tile, span: right.span, less: " - 1", is_named: false };
                return Some((left, vec![less, by]));
            }
            // `n + (B - 1)`
            let ExprKind::Binary { op, left: more, right: one } = &right.kind else { return None };
            let more = self.place(more).filter(|place| is_same(place) && op == "-" && one.as_int() == Some(1))?;
            return Some((left, vec![more, by]));
        }
        let ExprKind::Binary { op: plus, left: of, right: more } = &left.kind else { return None };
        let is_meant = op == "-" && plus == "+" && right.as_int() == Some(1);
        let more = self.place(more).filter(|place| is_same(place) && is_meant)?;
        Some((of, vec![more, by]))
    }

    /// The tile whose size an expression is, if any.
    fn place(&self, expr: &Expr) -> Option<GridNumber> {
        let named = |tile: &LaunchNumber<'_>| tile.bound.is_some() && tile.bound == expr.as_name();
        if let Some(tile) = self.tiles.iter().position(named) {
            return Some(GridNumber { tile, span: expr.span, less: "", is_named: true });
        }
        let of = |tile: usize| GridNumber { tile, span: expr.span, less: "", is_named: false };
        if let Some(tile) = self.tied.iter().position(|tied| tied.whole.contains(&expr.span)) {
            return Some(of(tile));
        }
        let ExprKind::Subscript { value, index } = &expr.kind else { return None };
        let [Expr { kind: ExprKind::Str(name), .. }] = index.as_slice() else { return None };
        let is_meta = self.meta.is_some() && value.as_name() == self.meta;
        self.tiles.iter().position(|tile| is_meta && tile.name == name).map(of)
    }

    /// The text `meta["B"]`; `None` where the grid has that already.
    fn written(&self, place: &GridNumber, meta: &str) -> Option<String> {
        let is_number = place.is_named
            || self.tied[place.tile].whole.contains(&place.span)
            || self.tied[place.tile].less.contains(&place.span);
        is_number.then(|| format!("{meta}[\"{}\"]{}", self.tiles[place.tile].name, place.less))
    }
}
