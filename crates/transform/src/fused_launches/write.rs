//! Writes the fused kernel.

use std::collections::{BTreeSet, HashMap};

use model::kernel::ast::{Call, Expr, ExprKind, Stmt, argument, walk_expressions, walk_statements};
use model::syntax::Span;
use rules::{Edit, apply_edits};

use super::host::Element;
use super::names::FusedNames;
use super::pair::{Between, Pair};
use super::side::{Access, Side, mask_of, times_bound};
use crate::lines::{line_end, lines_of, lines_with_comments};
use crate::pointwise::is_function;
use crate::statements::first_statement;
use crate::words::indent_of;

/// A way to fuse two kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FusionKind {
    /// Both have the same tiles: the second body follows the first.
    SameTiles,
    /// The second kernel processes each tile at the place where the first stores it.
    AtStore,
    /// The first kernel computes each tile at the place where the second loads it.
    AtLoad,
}

/// The greatest number of tensors that are followed to find an element type.
const DEPTH: usize = 3;

/// Two kernels that are being fused. The owner keeps its tiles, its names and its launch.
pub(super) struct Fusion<'a> {
    pub(super) pair: &'a Pair<'a>,
    pub(super) way: FusionKind,
    pub(super) names: FusedNames<'a>,
    /// Replacements of expressions in either kernel.
    pub(super) replaced: HashMap<Span, String>,
    /// Addresses that are not accessed any more.
    pub(super) unread: BTreeSet<Span>,
    /// Comparisons of the guest's elements with a bound, the owner's mask that replaces each, and the bound itself
    /// where the comparison is kept in addition to the mask.
    pub(super) bounds: Vec<(&'a Expr, String, Option<&'a Expr>)>,
    /// The edits of the text of either kernel.
    pub(super) edits: [Vec<Edit>; 2],
}

impl<'a> Fusion<'a> {
    /// The body of the fused kernel; `None` where it cannot be written.
    pub(super) fn of(pair: &'a Pair<'a>, way: FusionKind) -> Option<(Self, String)> {
        let names = match way {
            FusionKind::SameTiles | FusionKind::AtStore => FusedNames::of(&pair.first, &pair.second)?,
            FusionKind::AtLoad => FusedNames::of(&pair.second, &pair.first)?,
        };
        let (replaced, unread, bounds, edits) = Default::default();
        let mut fusion = Self { pair, way, names, replaced, unread, bounds, edits };
        let mut before = String::new();
        match way {
            FusionKind::SameTiles => fusion.share()?,
            FusionKind::AtStore | FusionKind::AtLoad => before = fusion.take_tile()?,
        }
        fusion.names.keep_apart()?;
        fusion.bound();
        let values: Vec<String> = pair.between.iter().map(|between| fusion.pass(between)).collect::<Option<_>>()?;
        for (between, value) in pair.between.iter().zip(&values) {
            fusion.produce(between, value)?;
        }
        fusion.sweep(&pair.first)?;
        fusion.sweep(&pair.second)?;
        let body = fusion.body(&before)?;
        Some((fusion, body))
    }

    pub(super) fn text(&self, span: Span) -> &'a str {
        self.pair.around.text.get(span.start..span.end).unwrap_or_default()
    }

    pub(super) fn is_owner(&self, side: &Side<'_>) -> bool {
        std::ptr::eq(self.names.owner.kernel, side.kernel) && self.names.owner.launch.span == side.launch.span
    }

    // --- what is the same in both ---------------------------------------------------------------------------------

    /// Replaces values that the second kernel computes again by those of the first.
    fn share(&mut self) -> Option<()> {
        let guest = self.names.guest;
        let is_passed =
            |stmt: &Stmt| self.pair.between.iter().any(|one| one.loads.iter().any(|load| load.stmt == stmt));
        let shared: Vec<(&'a Stmt, &'a str, String)> = guest
            .given
            .iter()
            .filter(|(stmt, ..)| !is_passed(stmt))
            .filter_map(|(stmt, name, form)| Some((*stmt, *name, self.names.known(form, name)?)))
            .filter(|(_, name, _)| times_bound(guest.kernel, name) == 1)
            .collect();
        for (stmt, name, known) in shared {
            if stmt.targets().iter().any(|target| target.as_name().is_some()) {
                self.names.renamed.insert(name, known);
                self.drop(guest, stmt)?;
            }
        }
        Some(())
    }

    /// Drops a statement of a kernel.
    pub(super) fn drop(&mut self, side: &Side<'a>, stmt: &Stmt) -> Option<()> {
        let lines = lines_with_comments(self.pair.around.text, stmt)?;
        let edit = Edit { span: Span::new(lines.start, lines.end + 1), text: String::new() };
        self.edits[usize::from(!self.is_owner(side))].push(edit);
        Some(())
    }

    // --- what goes from one to the other --------------------------------------------------------------------------

    /// Gives a name to the stored value, which replaces all loads.
    fn pass(&mut self, between: &Between<'a>) -> Option<String> {
        let value = self.names.fresh(between.tensor);
        let consumer = &self.pair.second;
        for load in &between.loads {
            let (mask, other) = (mask_of(load.call, false), load.call.argument("other", Some(2)));
            let is_where = mask.is_some() && other.is_some() && mixes(consumer);
            let text = match (mask, other) {
                (Some(mask), Some(other)) if is_where => {
                    let choose = self.pair.around.module.language_name(consumer.kernel, "where")?;
                    let (mask, other) = (self.edited(consumer, mask), self.edited(consumer, other));
                    format!("{choose}({mask}, {value}, {other})")
                }
                _ => value.clone(),
            };
            self.replaced.insert(self.span_of(load.call)?, text);
        }
        Some(value)
    }

    fn span_of(&self, call: &Call) -> Option<Span> {
        Some(Span::new(call.func.span.start, call.args_span.end))
    }

    /// Gives a name to the stored value, converted to the type of the memory. The store stays if the memory is used
    /// later.
    fn produce(&mut self, between: &Between<'a>, value: &str) -> Option<()> {
        let text = self.pair.around.text;
        let (side, store) = (&self.pair.first, &between.store);
        let stored = store.call.argument("value", Some(1))?;
        let root = self.names.param(side, store.root);
        let element = match self.element(between.tensor).filter(|_| !between.is_kept) {
            Some(element) => element,
            None => format!("{root}.dtype.element_ty"),
        };
        self.types(store.root, &element, &root);
        let is_cast = stored.as_call().is_some_and(|call| is_cast_to(call, store.root));
        let edited = self.edited(side, stored);
        let is_one = matches!(
            stored.kind,
            ExprKind::Name(_) | ExprKind::Call(_) | ExprKind::Subscript { .. } | ExprKind::Attribute { .. }
        );
        let cast = match (is_cast, is_one) {
            (true, _) => edited,
            (false, true) => format!("{edited}.to({element})"),
            (false, false) => format!("({edited}).to({element})"),
        };
        let lines = lines_of(text, store.stmt)?;
        let indent = indent_of(text, store.stmt.span.start)?;
        let mut new = format!("{indent}{value} = {cast}\n");
        if between.is_kept {
            self.replaced.insert(stored.span, value.to_owned());
            new += &format!("{indent}{}\n", self.edited_in(side, store.stmt));
            self.replaced.remove(&stored.span);
        }
        let of = usize::from(!self.is_owner(side));
        self.edits[of].push(Edit { span: Span::new(lines.start, lines.end + 1), text: new });
        Some(())
    }

    /// Records the expression for the element type of a parameter.
    fn types(&mut self, root: &str, element: &str, kept: &str) {
        if element.strip_suffix(".dtype.element_ty") == Some(kept) {
            return;
        }
        let mut found = Vec::new();
        for (side, root) in [(&self.pair.first, Some(root)), (&self.pair.second, self.root_in_second(root))] {
            walk_expressions(&side.kernel.body, &mut |expr| {
                if root.is_some_and(|root| is_element_of(expr, root)) {
                    found.push(expr.span);
                }
            });
        }
        self.replaced.extend(found.into_iter().map(|span| (span, element.to_owned())));
    }

    fn root_in_second(&self, root: &str) -> Option<&'a str> {
        let between = self.pair.between.iter().find(|between| between.store.root == root)?;
        between.loads.first().map(|load| load.root)
    }

    /// The expression for the element type of a tensor in the fused kernel, which does not have the tensor.
    fn element(&self, tensor: &'a str) -> Option<String> {
        let around = self.pair.around;
        let mut tensor = tensor;
        for _ in 0..DEPTH {
            match around.element(tensor)? {
                Element::Named(name) => {
                    const SAME: &[&str] =
                        &["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"];
                    let same = SAME.contains(&name).then_some(name)?;
                    return around.module.language_name(self.names.owner.kernel, same);
                }
                Element::Of(other) => tensor = other,
            }
            let is_between = self.pair.between.iter().any(|between| between.tensor == tensor);
            let passed = |side: &Side<'a>| {
                let mut params = side.kernel.params.iter().filter(|param| !param.constexpr);
                let found =
                    params.find(|param| side.passed(&param.name).is_some_and(|it| it.as_name() == Some(tensor)))?;
                Some(self.names.param(side, &found.name))
            };
            if let Some(param) =
                [self.names.owner, self.names.guest].into_iter().find_map(passed).filter(|_| !is_between)
            {
                return Some(format!("{param}.dtype.element_ty"));
            }
        }
        None
    }

    // --- text -----------------------------------------------------------------------------------------------------

    /// An expression as it is in the fused kernel.
    pub(super) fn edited(&self, side: &Side<'a>, expr: &Expr) -> String {
        let mut edits = Vec::new();
        self.edit(side, expr, &mut edits);
        self.applied(expr.span, &edits)
    }

    fn edited_in(&self, side: &Side<'a>, stmt: &Stmt) -> String {
        let mut edits = Vec::new();
        stmt.exprs().into_iter().for_each(|expr| self.edit(side, expr, &mut edits));
        self.applied(stmt.span, &edits)
    }

    fn edit(&self, side: &Side<'a>, expr: &Expr, edits: &mut Vec<Edit>) {
        if let Some(text) = self.replaced.get(&expr.span) {
            edits.push(Edit { span: expr.span, text: text.clone() });
        } else if let Some(name) = expr.as_name() {
            let new = self.names.renamed.get(name).filter(|_| !self.is_owner(side));
            edits.extend(new.map(|new| Edit { span: expr.span, text: new.clone() }));
        } else {
            expr.each_child(&mut |child| self.edit(side, child, edits));
        }
    }

    /// A part of the text with the edits inside it.
    fn applied(&self, span: Span, edits: &[Edit]) -> String {
        let within = edits.iter().filter(|edit| span.start <= edit.span.start && edit.span.end <= span.end);
        let moved = |edit: &Edit| {
            let span = Span::new(edit.span.start - span.start, edit.span.end - span.start);
            Edit { span, text: edit.text.clone() }
        };
        apply_edits(self.text(span), &within.map(moved).collect::<Vec<_>>())
    }

    /// The lines of a kernel's statements; `put` is the text to insert, and the statement before or after which it
    /// goes.
    fn lines(&self, side: &Side<'a>, put: Option<(Access<'a>, bool, &str)>) -> Option<String> {
        let text = self.pair.around.text;
        let mut edits = self.edits[usize::from(!self.is_owner(side))].clone();
        let mut own = Vec::new();
        walk_statements(&side.kernel.body, &mut |stmt| {
            stmt.exprs().into_iter().for_each(|expr| self.edit(side, expr, &mut own));
        });
        // Edits inside lines that are replaced are dropped.
        own.retain(|one| !edits.iter().any(|edit| edit.span.start <= one.span.start && one.span.end <= edit.span.end));
        if let Some((access, is_behind, guest)) = put {
            let lines = lines_with_comments(text, access.stmt)?;
            let at = if is_behind { lines.end + 1 } else { lines.start };
            match edits.iter_mut().find(|edit| edit.span.end == at && is_behind) {
                Some(edit) => edit.text += guest,
                None => own.push(Edit { span: Span::new(at, at), text: guest.to_owned() }),
            }
        }
        edits.extend(own);
        let start = lines_with_comments(text, first_statement(side.kernel)?)?.start;
        let end = line_end(text, side.kernel.span.end) + 1;
        Some(self.applied(Span::new(start, end), &edits))
    }

    fn body(&self, before: &str) -> Option<String> {
        let text = self.pair.around.text;
        let (owner, guest) = (self.names.owner, self.names.guest);
        // A last line without a line break cannot be removed.
        if [owner, guest].iter().any(|side| line_end(text, side.kernel.span.end) == text.len()) {
            return None;
        }
        let own = self.lines(guest, None)?;
        let first = |side: &Side<'a>| indent_of(text, first_statement(side.kernel)?.span.start);
        let indent = first(guest)?;
        match self.way {
            FusionKind::SameTiles => {
                let owned = self.lines(owner, None)?;
                (first(owner)? == indent).then(|| format!("{owned}\n{own}"))
            }
            FusionKind::AtStore | FusionKind::AtLoad => {
                let [between] = self.pair.between.as_slice() else { return None };
                let is_behind = self.way == FusionKind::AtStore;
                let access = if is_behind { between.store.clone() } else { only(&between.loads)?.clone() };
                let deeper = indent_of(text, access.stmt.span.start)?;
                let mut all = before.to_owned();
                for line in own.lines() {
                    match line.strip_prefix(indent) {
                        Some(rest) => all += &format!("{deeper}{rest}\n"),
                        None if line.trim().is_empty() => {}
                        None => return None,
                    }
                }
                self.lines(owner, Some((access, is_behind, &all)))
            }
        }
    }
}

pub(super) fn only<T>(all: &[T]) -> Option<&T> {
    if let [only] = all { Some(only) } else { None }
}

/// `root.dtype.element_ty`
fn is_element_of(expr: &Expr, root: &str) -> bool {
    expr.dotted().is_some_and(|parts| parts == [root, "dtype", "element_ty"])
}

/// `….to(root.dtype.element_ty)`
fn is_cast_to(call: &Call, root: &str) -> bool {
    let is_to = matches!(&call.func.kind, ExprKind::Attribute { name, .. } if name == "to");
    is_to && argument(&call.args, "dtype", Some(0)).is_some_and(|to| is_element_of(to, root))
}

/// Whether a kernel combines elements of a tile, so that the value of masked-off elements matters.
fn mixes(side: &Side<'_>) -> bool {
    const ALONE: &[&str] =
        &["load", "store", "program_id", "num_programs", "arange", "cdiv", "static_assert", "assume"];
    let mut mixes = false;
    walk_expressions(&side.kernel.body, &mut |expr| {
        if let Some(member) = expr.as_call().and_then(|call| side.member(&call.func)) {
            mixes |= !is_function(&member) && !ALONE.contains(&member.as_str());
        }
    });
    mixes
}
