//! Puts the body of a kernel into a loop over programs.

use std::collections::BTreeSet;

use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;
use rules::Edit;

use super::LoopForm;
use super::grid::Count;
use crate::statements::{assigned, first_statement};
use crate::subject::Subject;
use crate::words::{fresh, indent_of};

/// Functions of Python that a kernel may call.
const BUILTINS: &[&str] = &["abs", "bool", "float", "int", "len", "max", "min", "print", "range"];

/// The edits that put the kernel's body into such a loop, with as many iterations in total as the grid had programs.
/// `None` where an iteration might see an effect of an earlier one, or where something is not understood.
pub(super) fn edits(subject: &Subject<'_>, counts: &[Count], form: LoopForm) -> Option<Vec<Edit>> {
    let (kernel, text) = (subject.kernel, subject.candidate.text.as_str());
    let of = |name: &str| subject.candidate.module.language_name(kernel, name);
    let (id, all) = (of("program_id")?, of("num_programs")?);
    let (first, last) = (first_statement(kernel)?, kernel.body.last()?);
    if !is_understood(subject, first.span.start) || is_persistent(subject) {
        return None;
    }
    let outer = indent_of(text, first.span.start)?;
    let step = outer.strip_prefix(indent_of(text, kernel.def_span.start)?).filter(|step| !step.is_empty())?;
    let program = unused(subject, "program");
    let (mut edits, before, total) = match counts {
        [count] => (numbers(subject, &program, std::slice::from_ref(&count.text))?, String::new(), count.text.clone()),
        [_, _] => {
            let names: Vec<String> = (0..2).map(|axis| fresh(text, &format!("programs_{axis}"))).collect();
            let bound = names.iter().zip(counts).filter(|(name, count)| **name != count.text);
            let bound: String = bound.map(|(name, count)| format!("{name} = {}\n{outer}", count.text)).collect();
            (numbers(subject, &program, &names)?, bound, names.join(" * "))
        }
        _ => return None,
    };
    let (range, option) = match form {
        LoopForm::Plain => ("range".to_owned(), String::new()),
        LoopForm::Pipelined(stages) => (of("range")?, format!(", num_stages={stages}")),
        LoopForm::Flat => (of("range")?, ", flatten=True".to_owned()),
    };
    let mut head = format!("{before}for {program} in {range}({id}(0), {total}, {all}(0){option}):\n{outer}{step}");
    for name in assigned_parameters(subject)? {
        let (renamed, line) = renamed(subject, name)?;
        edits.extend(renamed);
        if let Some(line) = line {
            head += &format!("{line}\n{outer}{step}");
        }
    }
    let put = |at: usize, text: &str| Edit { span: Span::new(at, at), text: text.to_owned() };
    let body = text.get(first.span.start..last.span.end)?;
    let mut at = first.span.start;
    let mut deeper = vec![put(at, &head)];
    for line in body.split_inclusive('\n') {
        if at > first.span.start && !line.trim().is_empty() {
            deeper.push(put(at, step));
        }
        at += line.len();
    }
    deeper.extend(edits);
    Some(deeper)
}

/// A name that the kernel does not use.
fn unused(subject: &Subject<'_>, base: &str) -> String {
    let is_bound = |name: &str| {
        let mut found = subject.kernel.locals.contains(name) || subject.candidate.module.bindings.contains_key(name);
        walk_expressions(&subject.kernel.body, &mut |expr| found |= expr.as_name() == Some(name));
        found
    };
    let mut name = base.to_owned();
    while is_bound(&name) {
        name.push('_');
    }
    name
}

/// Whether no statement leaves the kernel early, all calls are known, and the lines from `start` on can be indented.
fn is_understood(subject: &Subject<'_>, start: usize) -> bool {
    let kernel = subject.kernel;
    let mut is_known = true;
    walk_statements(&kernel.body, &mut |stmt| {
        is_known &= matches!(
            stmt.kind,
            StmtKind::Assign { .. }
                | StmtKind::AugAssign { .. }
                | StmtKind::Expr(_)
                | StmtKind::If { .. }
                | StmtKind::For { .. }
                | StmtKind::While { .. }
                | StmtKind::Pass
        );
    });
    walk_expressions(&kernel.body, &mut |expr| {
        is_known &= match &expr.kind {
            ExprKind::Other(_) | ExprKind::Named { .. } | ExprKind::Lambda { .. } => false,
            ExprKind::Str(_) | ExprKind::FString(_) => {
                let text = subject.candidate.text.get(expr.span.start..expr.span.end);
                expr.span.start < start || text.is_some_and(|text| !text.contains('\n'))
            }
            ExprKind::Call(call) => is_known_call(subject, call),
            _ => true,
        };
    });
    is_known
}

/// Whether a call is of a function of Triton, of a method, or of a function of the file that does not use the program
/// index.
fn is_known_call(subject: &Subject<'_>, call: &Call) -> bool {
    let (module, kernel) = (&subject.candidate.module, subject.kernel);
    if module.resolve_in(kernel, &call.func).is_some() {
        return true;
    }
    match &call.func.kind {
        ExprKind::Attribute { value, .. } => {
            value.first_name().is_none_or(|name| kernel.locals.contains(name) || kernel.param(name).is_some())
        }
        ExprKind::Name(name) => match module.kernel(name).filter(|_| !kernel.locals.contains(name)) {
            Some(_) => module.kernels.iter().filter(|other| other.name != kernel.name).all(|helper| {
                let is_called = module.called_in_kernels().contains(&helper.name);
                let text = subject.candidate.text.get(helper.span.start..helper.span.end).unwrap_or_default();
                !is_called || !["program_id", "num_programs"].iter().any(|word| text.contains(word))
            }),
            None => BUILTINS.contains(&name.as_str()) && !module.bindings.contains_key(name),
        },
        _ => false,
    }
}

/// Whether a loop begins with the program index.
fn is_persistent(subject: &Subject<'_>) -> bool {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let mut found = false;
    walk_statements(&subject.kernel.body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign { targets, value: Some(value), .. } if axis_of(subject, value).is_some() => {
            known.extend(targets.iter().filter_map(Expr::as_name));
        }
        StmtKind::For { iter, .. } => {
            let start = iter.as_call().filter(|call| call.args.len() > 2).and_then(|call| call.args.first());
            let is_of_name = start.and_then(|arg| arg.value.as_name()).is_some_and(|name| known.contains(name));
            iter.walk(&mut |expr| found |= axis_of(subject, expr).is_some());
            found |= is_of_name;
        }
        _ => {}
    });
    found
}

/// Whether a call is `program_id` (`true`) or `num_programs` (`false`), and its axis.
fn axis_of(subject: &Subject<'_>, expr: &Expr) -> Option<(bool, Option<usize>)> {
    let call = expr.as_call()?;
    let member = subject.candidate.module.language_member(subject.kernel, &call.func)?;
    let is_id = match member.as_str() {
        "program_id" => true,
        "num_programs" => false,
        _ => return None,
    };
    let axis = call.argument("axis", Some(0)).and_then(Expr::as_int).and_then(|axis| usize::try_from(axis).ok());
    Some((is_id, axis))
}

/// The edits that replace `tl.program_id(…)` and `tl.num_programs(…)`.
fn numbers(subject: &Subject<'_>, program: &str, counts: &[String]) -> Option<Vec<Edit>> {
    let text_of = |is_id: bool, axis: usize| match (is_id, counts, axis) {
        (true, [_], 0) => Some(program.to_owned()),
        (true, [first, _], 0) => Some(format!("{program} % {first}")),
        (true, [first, _], 1) => Some(format!("{program} // {first}")),
        (false, _, _) => counts.get(axis).cloned(),
        _ => None,
    };
    let mut whole = Vec::new();
    walk_statements(&subject.kernel.body, &mut |stmt| {
        if let StmtKind::Assign { value: Some(value), .. } = &stmt.kind {
            whole.push(value.span);
        }
    });
    let cast = subject.candidate.module.language_name(subject.kernel, "cast")?;
    let (mut edits, mut is_known, mut has_id) = (Vec::new(), true, false);
    let mut done = BTreeSet::new();
    walk_expressions(&subject.kernel.body, &mut |expr| {
        // In the interpreter, a loop variable has no methods.
        if let Some(call) = expr.as_call()
            && let ExprKind::Attribute { value, name, .. } = &call.func.kind
            && (name == "to", axis_of(subject, value)) == (true, Some((true, Some(0))))
            && let Some(text) = text_of(true, 0)
        {
            let span = Span::new(expr.span.start, call.args_span.start + 1);
            edits.push(Edit { span, text: format!("{cast}({text}, ") });
            (has_id, _) = (true, done.insert(value.span));
        }
        let Some((is_id, axis)) = axis_of(subject, expr).filter(|_| !done.contains(&expr.span)) else { return };
        has_id |= is_id;
        match axis.and_then(|axis| text_of(is_id, axis)) {
            Some(text) => {
                let is_tight = whole.contains(&expr.span) || !text.contains(' ');
                edits.push(Edit { span: expr.span, text: if is_tight { text } else { format!("({text})") } });
            }
            None => is_known = false,
        }
    });
    (is_known && has_id).then_some(edits)
}

/// Parameters that the body assigns: a later iteration would begin with the assigned value. `None` where one of them is
/// a constexpr.
fn assigned_parameters<'a>(subject: &Subject<'a>) -> Option<Vec<&'a str>> {
    let assigned = assigned(subject.kernel);
    let params = subject.kernel.params.iter().filter(|param| assigned.contains(param.name.as_str()));
    params.map(|param| (!param.constexpr).then_some(param.name.as_str())).collect()
}

/// Gives an assigned parameter another name in the body. Returns the edits and, where no assignment sets the new name
/// first, a statement that begins each iteration with the parameter's value.
fn renamed(subject: &Subject<'_>, name: &str) -> Option<(Vec<Edit>, Option<String>)> {
    let text = subject.candidate.text.as_str();
    let new = fresh(text, &format!("{name}_of_program"));
    let mentions = |stmt: &Stmt| {
        let mut found = false;
        walk_statements(std::slice::from_ref(stmt), &mut |stmt| {
            found |= stmt.exprs().iter().any(|expr| expr.mentions(name));
        });
        found
    };
    let first = subject.kernel.body.iter().find(|stmt| mentions(stmt))?;
    let mut edits = Vec::new();
    // The place where the parameter itself is meant.
    let mut kept: Option<Span> = None;
    match &first.kind {
        StmtKind::AugAssign { target, op, value }
            if ["+", "-"].contains(&op.as_str())
                && !value.mentions(name)
                && text.get(target.span.end..value.span.start)?.trim() == format!("{op}=") =>
        {
            let is_loose = matches!(&value.kind, ExprKind::Binary { op, .. } if op != "*");
            let is_loose = is_loose || matches!(value.kind, ExprKind::IfExp { .. } | ExprKind::Compare { .. });
            let open = if is_loose { "(" } else { "" };
            let start = Span::new(target.span.start, value.span.start);
            edits.push(Edit { span: start, text: format!("{new} = {name} {op} {open}") });
            if is_loose {
                edits.push(Edit { span: Span::new(value.span.end, value.span.end), text: ")".to_owned() });
            }
            kept = Some(first.span);
        }
        StmtKind::Assign { targets, value: Some(value), .. } if matches!(targets.as_slice(), [target] if target.as_name() == Some(name)) =>
        {
            kept = Some(value.span);
        }
        _ => {}
    }
    walk_expressions(&subject.kernel.body, &mut |expr| {
        let is_kept = kept.is_some_and(|kept| kept.start <= expr.span.start && expr.span.end <= kept.end);
        if expr.as_name() == Some(name) && !is_kept {
            edits.push(Edit { span: expr.span, text: new.clone() });
        }
    });
    let line = kept.is_none().then(|| format!("{new} = {name}"));
    Some((edits, line))
}
