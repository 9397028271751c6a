//! Writes tiles and descriptors as source with the kernel's own names.

use std::collections::BTreeSet;

use model::analysis::types::index::{Atom, Loop, Poly};
use model::kernel::ast::{Expr, Stmt, StmtKind, walk_statements};
use rules::Edit;

use super::Loaded;
use crate::statements::first_statement;
use crate::subject::Subject;
use crate::words::indent_of;

pub(super) struct Words<'a> {
    pub(super) subject: &'a Subject<'a>,
    pub(super) loops: &'a [Loop],
    /// Names that are assigned.
    pub(super) assigned: BTreeSet<&'a str>,
    /// The names of scalars, which positions may mention.
    pub(super) numbers: BTreeSet<&'a str>,
}

impl<'a> Words<'a> {
    /// The indentation of a block relative to its statement.
    pub(super) fn step(&self) -> Option<&'a str> {
        let (text, kernel) = (self.subject.candidate.text.as_str(), self.subject.kernel);
        let outer = indent_of(text, kernel.def_span.start)?;
        indent_of(text, first_statement(kernel)?.span.start)?.strip_prefix(outer).filter(|step| !step.is_empty())
    }

    /// The statement that makes a descriptor.
    pub(super) fn descriptor(&self, it: &Loaded<'_>) -> Option<String> {
        let make = self.subject.candidate.module.language_name(self.subject.kernel, "make_tensor_descriptor")?;
        let [outer, inner] = it.axes();
        // A descriptor is made before the kernel has computed any scalar.
        let is_number = |atom: &Atom| matches!(atom, Atom::Param(name) if self.numbers.contains(&**name));
        let say = |poly: &Poly| self.poly(poly).filter(|_| !poly.any(is_number));
        let is_kept = !self.assigned.contains(it.tile.base.as_str());
        Some(format!(
            "{} = {make}(\n{}{}, shape=[{}, {}], strides=[{}, 1], block_shape=[{}, {}]\n)",
            it.name,
            self.step()?,
            Some(&it.tile.base).filter(|_| is_kept)?,
            say(&outer.length)?,
            say(&inner.length)?,
            say(&outer.stride)?,
            say(&outer.size)?,
            say(&inner.size)?,
        ))
    }

    /// The statement as it is, preceded by its form with descriptors.
    pub(super) fn branch(&self, it: &Loaded<'_>, switch: &str) -> Option<Edit> {
        let text = self.subject.candidate.text.as_str();
        let (indent, step) = (indent_of(text, it.stmt.span.start)?, self.step()?);
        let (stmt, load) = (it.stmt.span, it.load.span);
        let before = text.get(stmt.start..load.start).filter(|before| !before.contains(['\n', '#']))?;
        let (whole, after) = (text.get(stmt.start..stmt.end)?, text.get(load.end..stmt.end)?);
        let [outer, inner] = it.axes();
        let tile = format!("{}.load([{}, {}])", it.name, self.poly(&outer.start)?, self.poly(&inner.start)?);
        let transposed = self.subject.candidate.module.language_name(self.subject.kernel, "trans")?;
        let tile = if it.inner == 0 { format!("{transposed}({tile})") } else { tile };
        let whole = whole.replace('\n', &format!("\n{step}"));
        let text = format!("if {switch}:\n{indent}{step}{before}{tile}{after}\n{indent}else:\n{indent}{step}{whole}");
        Some(Edit { span: stmt, text })
    }

    fn poly(&self, poly: &Poly) -> Option<String> {
        let mut said = String::new();
        for (at, (atoms, factor)) in poly.terms.iter().enumerate() {
            let sign = match (at, *factor < 0) {
                (0, true) => "-",
                (0, false) => "",
                (_, true) => " - ",
                (_, false) => " + ",
            };
            let number = (factor.abs() != 1).then(|| factor.abs().to_string());
            // The index of a program or an iteration comes before its factor.
            let (numbers, sizes): (Vec<&Atom>, Vec<&Atom>) =
                atoms.iter().partition(|atom| !matches!(atom, Atom::Param(name) if !self.numbers.contains(&**name)));
            let names: Option<Vec<String>> = numbers.into_iter().chain(sizes).map(|atom| self.atom(atom)).collect();
            let factors: Vec<String> = names?.into_iter().chain(number).collect();
            said += &format!("{sign}{}", factors.join(" * "));
        }
        match (said.is_empty(), poly.constant) {
            (true, constant) => Some(constant.to_string()),
            (false, 0) => Some(said),
            (false, constant) if constant < 0 => Some(format!("{said} - {}", -constant)),
            (false, constant) => Some(format!("{said} + {constant}")),
        }
    }

    fn atom(&self, atom: &Atom) -> Option<String> {
        match atom {
            Atom::Param(name) => {
                let is_param = self.subject.kernel.param(name).is_some() && !self.assigned.contains(&**name);
                (is_param || self.numbers.contains(&**name)).then(|| name.to_string())
            }
            Atom::Program(axis) => {
                let of = |name: &str| self.subject.candidate.module.language_name(self.subject.kernel, name);
                let axis = i64::from(*axis);
                let known = self.subject.kernel.body.iter().find_map(|stmt| self.named_program(stmt, axis));
                known.map(str::to_owned).or_else(|| Some(format!("{}({axis})", of("program_id")?)))
            }
            Atom::Loop(id) => {
                let known = self.loops.get(usize::try_from(*id).ok()?)?;
                let mut found = None;
                walk_statements(&self.subject.kernel.body, &mut |stmt| {
                    if let StmtKind::For { target, .. } = &stmt.kind
                        && stmt.span.start == known.span.start
                    {
                        found = target.as_name();
                    }
                });
                found.map(str::to_owned)
            }
            Atom::Programs(_) | Atom::Lane(_) | Atom::Other(_) => None,
        }
    }

    /// `pid_m = tl.program_id(0)`, where it is the only assignment to the name.
    fn named_program(&self, stmt: &'a Stmt, axis: i64) -> Option<&'a str> {
        let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind else { return None };
        let [target] = targets.as_slice() else { return None };
        let (name, call) = (target.as_name()?, value.as_call()?);
        let member = self.subject.candidate.module.language_member(self.subject.kernel, &call.func)?;
        let of = call.argument("axis", Some(0)).and_then(Expr::as_int)?;
        let mut count = 0;
        walk_statements(&self.subject.kernel.body, &mut |stmt| {
            count += stmt.targets().iter().filter(|target| target.mentions(name)).count();
        });
        (member == "program_id" && of == i128::from(axis) && count == 1).then_some(name)
    }
}
