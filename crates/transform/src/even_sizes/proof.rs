//! Proves which comparisons of offsets with a size hold for whole tiles.

use model::kernel::ast::{Arg, Expr, ExprKind, StmtKind};

use crate::subject::Subject;
use crate::subject_launch::{given, only_launch, programs_along};
use crate::written::bindings;

/// The greatest number of names that are followed.
const DEPTH: usize = 8;

/// The condition under which a comparison holds: the size is a multiple of the tile, or at least the tile where tiles
/// have no start.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Even<'a> {
    pub(super) size: &'a str,
    pub(super) tile: &'a str,
    /// Whether there are several tiles along the size.
    pub(super) has_start: bool,
    /// Whether these are the iterations of a loop.
    pub(super) in_rounds: bool,
}

/// A summand of an offset.
enum Term<'a> {
    /// `tl.arange(0, B)`
    Tile(&'a str),
    Size(&'a str),
    /// A multiple of a tile that is less than the size.
    Start {
        tile: &'a str,
        size: &'a str,
        in_rounds: bool,
    },
}

/// The value of a name, which is the same at all bindings.
enum Origin<'a> {
    Value(&'a Expr),
    Loop(&'a Expr),
}

/// The prover for one kernel and its launch.
pub(super) struct EvenSizesProof<'a> {
    subject: &'a Subject<'a>,
}

impl<'a> EvenSizesProof<'a> {
    pub(super) fn of(subject: &'a Subject<'a>) -> Self {
        Self { subject }
    }

    /// Whether `left < right` is `start + tl.arange(0, B) < n` in any form.
    pub(super) fn less(&self, left: &'a Expr, right: &'a Expr) -> Option<Even<'a>> {
        let mut terms = Vec::new();
        self.add(left, true, DEPTH, &mut terms)?;
        self.add(right, false, DEPTH, &mut terms)?;
        let (mut tile_of, mut size_of, mut start) = (None, None, None);
        for (is_left, term) in terms {
            let is_first = match (is_left, term) {
                (true, Term::Tile(tile)) => tile_of.replace(tile).is_none(),
                (false, Term::Size(size)) => size_of.replace(size).is_none(),
                (true, Term::Start { tile, size, in_rounds }) => start.replace((tile, size, in_rounds)).is_none(),
                _ => false,
            };
            is_first.then_some(())?;
        }
        let (tile, size) = (tile_of?, size_of?);
        let fits = start.is_none_or(|(of_tile, of_size, _)| (of_tile, of_size) == (tile, size));
        let in_rounds = start.is_some_and(|(.., in_rounds)| in_rounds);
        fits.then_some(Even { size, tile, has_start: start.is_some(), in_rounds })
    }

    /// Splits a sum into its terms; `None` where one of them has another form.
    fn add(&self, expr: &'a Expr, is_left: bool, depth: usize, terms: &mut Vec<(bool, Term<'a>)>) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match &expr.kind {
            ExprKind::Subscript { value, index } => {
                let is_axis = |part: &Expr| match &part.kind {
                    ExprKind::None => true,
                    ExprKind::Slice(parts) => parts.is_empty(),
                    _ => false,
                };
                index.iter().all(is_axis).then(|| self.add(value, is_left, depth, terms))?
            }
            ExprKind::Binary { op, left, right } if op == "+" || op == "-" => {
                self.add(left, is_left, depth, terms)?;
                self.add(right, is_left == (op == "+"), depth, terms)
            }
            ExprKind::Binary { op, left, right } if op == "*" => {
                let start = self.product(left, right).or_else(|| self.product(right, left))?;
                terms.push((is_left, start));
                Some(())
            }
            ExprKind::Name(name) if self.subject.kernel.param(name).is_some() => {
                terms.push((is_left, Term::Size(self.number(expr)?)));
                Some(())
            }
            ExprKind::Name(name) => match self.origin(name)? {
                Origin::Value(value) => self.add(value, is_left, depth, terms),
                Origin::Loop(range) => {
                    terms.push((is_left, self.steps(range)?));
                    Some(())
                }
            },
            ExprKind::Call(_) => {
                let [start, end] = self.called("arange", expr)?[..] else { return None };
                terms.push((is_left, Term::Tile(self.tile(end).filter(|_| start.as_int() == Some(0))?)));
                Some(())
            }
            _ => None,
        }
    }

    /// `for start in range(0, n, B)`
    fn steps(&self, range: &'a Expr) -> Option<Term<'a>> {
        let [start, end, step] = self.range(range)?[..] else { return None };
        let (size, tile) = (self.number(end)?, self.tile(step)?);
        (start.as_int() == Some(0)).then_some(Term::Start { tile, size, in_rounds: true })
    }

    /// `index * B`, with an index below `cdiv(n, B)`.
    fn product(&self, index: &'a Expr, tile: &'a Expr) -> Option<Term<'a>> {
        let tile = self.tile(tile)?;
        let program = |expr| self.program(expr, tile);
        let size = match index.as_name() {
            None => program(index).map(|size| (size, false)),
            Some(name) => match self.origin(name)? {
                Origin::Value(value) => program(value).map(|size| (size, false)),
                Origin::Loop(range) => self.rounds(range, tile).map(|size| (size, true)),
            },
        };
        size.map(|(size, in_rounds)| Term::Start { tile, size, in_rounds })
    }

    /// The `n` of `for k in range(0, cdiv(n, B))`.
    fn rounds(&self, range: &'a Expr, tile: &str) -> Option<&'a str> {
        let args = self.range(range)?;
        let end = match args[..] {
            [end] => end,
            [start, end] if start.as_int() == Some(0) => end,
            _ => return None,
        };
        let end = match end.as_name().map(|name| self.origin(name)) {
            Some(Some(Origin::Value(value))) => value,
            Some(_) => return None,
            None => end,
        };
        let [of, by] = self.called("cdiv", end)?[..] else { return None };
        self.number(of).filter(|_| self.tile(by) == Some(tile))
    }

    /// The size that is divided among the programs of an axis, where there are `cdiv(n, B)` of them.
    fn program(&self, expr: &'a Expr, tile: &str) -> Option<&'a str> {
        let (module, kernel) = (&self.subject.candidate.module, self.subject.kernel);
        let call = expr
            .as_call()
            .filter(|call| module.language_member(kernel, &call.func).as_deref() == Some("program_id"))?;
        let axis = usize::try_from(call.argument("axis", Some(0))?.as_int()?).ok()?;
        let launch = only_launch(self.subject)?;
        let (count, meta) = programs_along(self.subject, launch, axis)?;
        let count = count.as_call()?;
        let is_cdiv = module.imports.resolve(&count.func).is_some_and(|it| it.path == "triton.cdiv");
        let [of, by] = count.args.as_slice() else { return None };
        let given = |arg: &'a Arg| given(self.subject, launch, meta, &arg.value);
        let [size] = given(of)[..] else { return None };
        (is_cdiv && given(by).contains(&tile)).then_some(size)
    }

    /// A parameter that each launch passes and that is never assigned.
    fn number(&self, expr: &'a Expr) -> Option<&'a str> {
        let kernel = self.subject.kernel;
        let param = kernel.param(expr.as_name()?)?;
        let is_kept = param.default.is_none() && bindings(&kernel.body, &param.name).is_empty();
        is_kept.then_some(param.name.as_str())
    }

    fn tile(&self, expr: &'a Expr) -> Option<&'a str> {
        self.number(expr).filter(|name| self.subject.kernel.param(name).is_some_and(|param| param.constexpr))
    }

    /// The value of a name if it is the same at all of its bindings.
    fn origin(&self, name: &str) -> Option<Origin<'a>> {
        let text = self.subject.candidate.text.as_str();
        let mut found: Option<(bool, &'a Expr)> = None;
        for stmt in bindings(&self.subject.kernel.body, name) {
            let (target, value, is_loop) = match &stmt.kind {
                StmtKind::Assign { targets, value: Some(value), .. } if targets.len() == 1 => {
                    (&targets[0], value, false)
                }
                StmtKind::For { target, iter, .. } => (target, iter, true),
                _ => return None,
            };
            let slice = |expr: &Expr| text.get(expr.span.start..expr.span.end);
            let is_same = found.is_none_or(|(kind, first)| kind == is_loop && slice(first) == slice(value));
            (is_same && target.as_name() == Some(name)).then_some(())?;
            found = Some((is_loop, value));
        }
        found.map(|(is_loop, value)| if is_loop { Origin::Loop(value) } else { Origin::Value(value) })
    }

    /// The arguments of `range(…)` or `tl.range(…)`.
    fn range(&self, expr: &'a Expr) -> Option<Vec<&'a Expr>> {
        let call = expr.as_call()?;
        let is_plain = call.func.as_name() == Some("range") && !self.subject.kernel.locals.contains("range");
        if !is_plain {
            return self.called("range", expr);
        }
        (!call.has_star()).then(|| call.args.iter().map(|arg| &arg.value).collect())
    }

    /// The positional arguments of a call of a Triton function.
    fn called(&self, name: &str, expr: &'a Expr) -> Option<Vec<&'a Expr>> {
        let call = expr.as_call()?;
        let (module, kernel) = (&self.subject.candidate.module, self.subject.kernel);
        let is_it = module.language_member(kernel, &call.func).as_deref() == Some(name);
        let plain = call.args.iter().filter(|arg| arg.keyword.is_none());
        (is_it && !call.has_star()).then(|| plain.map(|arg| &arg.value).collect())
    }
}
