//! Orders the programs of a product in groups, so that programs that run together share loads.

use base::rng::Rng;
use model::kernel::Kernel;
use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, walk_statements};
use model::syntax::Span;
use rules::Edit;

use super::candidate::Change;
use super::proposal::Proposal;
use super::skill::Skill;
use super::statements::first_statement;
use super::step::StepSize;
use super::subject::Subject;
use super::words::{fresh, indent_of};
use super::written::assigned;

/// The numbers of tile rows per group that are tried.
const GROUPS: [i64; 3] = [4, 8, 16];

/// Reorders the programs of a product by `tl.swizzle2d`: a group has some rows of tiles and iterates over their
/// columns, so that programs that run at the same time need fewer rows and columns of the factors, which then stay in
/// the L2 cache. This is a permutation of the programs. For a grid with two axes, both orders of the axes are tried;
/// where a kernel splits one index by `//` and `%`, that expression is replaced.
pub(super) struct GroupedOrder;

impl Skill for GroupedOrder {
    fn name(&self) -> &'static str {
        "grouped_order"
    }

    fn about(&self) -> &'static str {
        "The programs of a product in groups, so that those that run together share what they load."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn keeps_contract(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let is_product = calls(subject.kernel).iter().any(|(_, call)| subject.member(call).as_deref() == Some("dot"));
        let is_grouped =
            calls(subject.kernel).iter().any(|(_, call)| subject.member(call).as_deref() == Some("swizzle2d"));
        if !is_product || is_grouped || subject.kernel.has_error {
            return Vec::new();
        }
        let mut turns = Vec::new();
        for group in GROUPS {
            let ways = match one_number(subject, group) {
                Some(edits) => vec![edits],
                None => [false, true].into_iter().filter_map(|turned| two_axes(subject, group, turned)).collect(),
            };
            for edits in ways {
                let changes = vec![Change::Structure(format!("programs in groups of {group}"))];
                turns.push(Proposal { kind: "grouped_order".to_owned(), edits, changes });
            }
        }
        turns
    }
}

/// All calls in a kernel.
pub(super) fn calls(kernel: &Kernel) -> Vec<(&Expr, &Call)> {
    let mut found = Vec::new();
    walk_statements(&kernel.body, &mut |stmt| {
        for expr in stmt.exprs() {
            expr.walk(&mut |expr| found.extend(expr.as_call().map(|call| (expr, call))));
        }
    });
    found
}

/// The axis of `tl.program_id(…)`.
pub(super) fn axis(subject: &Subject<'_>, expr: &Expr) -> Option<i64> {
    let call = expr.as_call()?;
    let is_id = subject.member(call).as_deref() == Some("program_id");
    let axis = call.argument("axis", Some(0)).filter(|_| is_id)?;
    i64::try_from(axis.as_int()?).ok()
}

/// The edits for a grid of two axes: both indices of a program are replaced at the start of the kernel.
fn two_axes(subject: &Subject<'_>, group: i64, is_turned: bool) -> Option<Vec<Edit>> {
    let text = subject.candidate.text.as_str();
    let of = |name: &str| subject.candidate.module.language_name(subject.kernel, name);
    let (id, count, swizzle) = (of("program_id")?, of("num_programs")?, of("swizzle2d")?);
    let (order, names) = (fresh(text, "order"), [fresh(text, "program_0"), fresh(text, "program_1")]);
    let mut edits = Vec::new();
    let mut seen = [false; 2];
    for (expr, call) in calls(subject.kernel) {
        if subject.member(call).as_deref() != Some("program_id") {
            continue;
        }
        let at = usize::try_from(axis(subject, expr)?).ok()?;
        if let Some(name) = names.get(at) {
            seen[at] = true;
            edits.push(Edit { span: expr.span, text: name.clone() });
        }
    }
    let first = first_statement(subject.kernel).filter(|_| seen == [true; 2])?;
    let indent = indent_of(text, first.span.start)?;
    let (rows, columns) = if is_turned { (1, 0) } else { (0, 1) };
    let start = format!(
        "{order} = {id}(1) * {count}(0) + {id}(0)\n{indent}{}, {} = {swizzle}(\n{indent}    {order} // {count}({columns}), \
         {order} % {count}({columns}), {count}({rows}), {count}({columns}), {group}\n{indent})\n{indent}",
        names[rows], names[columns]
    );
    // This precedes all other edits, also an index in the first statement.
    edits.insert(0, Edit { span: Span::new(first.span.start, first.span.start), text: start });
    Some(edits)
}

/// `row = program // columns` and `column = program % columns`.
fn one_number(subject: &Subject<'_>, group: i64) -> Option<Vec<Edit>> {
    let text = subject.candidate.text.as_str();
    let of = |name: &str| subject.candidate.module.language_name(subject.kernel, name);
    let (count, swizzle) = (of("num_programs")?, of("swizzle2d")?);
    let parts: Vec<Part<'_>> = subject.kernel.body.iter().flat_map(|stmt| parts(subject, stmt)).collect();
    let row = parts.iter().find(|part| part.op == "//")?;
    let column = parts.iter().find(|part| part.op == "%" && part.columns == row.columns)?;
    let last = if row.at.span.end > column.at.span.end { row.at } else { column.at };
    let indent = indent_of(text, last.span.start)?;
    let (a, b, columns) = (row.name, column.name, row.columns);
    let grouped = format!("\n{indent}{a}, {b} = {swizzle}({a}, {b}, {count}(0) // {columns}, {columns}, {group})");
    Some(vec![Edit { span: Span::new(last.span.end, last.span.end), text: grouped }])
}

/// The quotient or the remainder of a program index.
struct Part<'a> {
    at: &'a Stmt,
    name: &'a str,
    op: &'a str,
    columns: &'a str,
}

/// The parts of a program index that an assignment computes, also as
/// `row, column = program // columns, program % columns`.
fn parts<'a>(subject: &Subject<'a>, at: &'a Stmt) -> Vec<Part<'a>> {
    let mut names = Vec::new();
    at.targets().iter().for_each(|target| target.walk(&mut |part| names.extend(part.as_name())));
    names.into_iter().filter_map(|name| part(subject, at, name)).collect()
}

fn part<'a>(subject: &Subject<'a>, at: &'a Stmt, name: &'a str) -> Option<Part<'a>> {
    let ExprKind::Binary { op, left, right } = &assigned(at, name)?.kind else { return None };
    let is_program = match left.as_name() {
        Some(name) => only_binding(subject.kernel, name).is_some_and(|value| axis(subject, value) == Some(0)),
        None => axis(subject, left) == Some(0),
    };
    let op = op.as_str();
    (is_program && matches!(op, "//" | "%")).then_some(())?;
    Some(Part { at, name, op, columns: right.as_name()? })
}

/// The value of a name that is bound only once, at the top level of the kernel.
fn only_binding<'a>(kernel: &'a Kernel, name: &str) -> Option<&'a Expr> {
    let mut found = Vec::new();
    walk_statements(&kernel.body, &mut |stmt| {
        if let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind
            && targets.iter().any(|target| target.as_name() == Some(name))
        {
            found.push(value);
        }
    });
    if let [only] = found.as_slice() { Some(only) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turned::turned_by;

    fn turned(text: &str) -> Vec<String> {
        turned_by(&GroupedOrder, text)
    }

    fn text(body: &str) -> String {
        format!(
            "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, n, B: tl.constexpr):\n{body}    tl.store(x + m + c, tl.dot(x, x))\n\ndef run(x):\n    k[(7,)](x, 7, B=8)\n"
        )
    }

    #[test]
    fn both_program_indices_of_a_two_axis_grid_are_swizzled() {
        let body = "    '''A product.'''\n    m = tl.program_id(axis=0)\n    c = tl.program_id(1) * B  # columns\n";
        let all = turned(&text(body));
        assert_eq!(all.len(), 6);
        let expected = "    '''A product.'''
    order = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    program_0, program_1 = tl.swizzle2d(
        order // tl.num_programs(1), order % tl.num_programs(1), tl.num_programs(0), tl.num_programs(1), 4
    )
    m = program_0
    c = program_1 * B  # columns
";
        assert_eq!(all[0], text(expected));
        assert!(
            all[1].contains("program_1, program_0 = tl.swizzle2d(\n        order // tl.num_programs(0)"),
            "{}",
            all[1]
        );
        assert!(turned(&all[0]).is_empty(), "once is enough");
    }

    #[test]
    fn a_split_program_index_is_swizzled_after_the_split() {
        let body = "    pid = tl.program_id(0)\n    columns = tl.cdiv(n, B)\n    c = pid % columns\n    m = pid // columns  # rows\n    at = m * B\n";
        let all = turned(&text(body));
        assert_eq!(all.len(), 3);
        let line = "    m = pid // columns\n    m, c = tl.swizzle2d(m, c, tl.num_programs(0) // columns, columns, 8)  # rows\n    at";
        assert!(all[1].contains(line), "{}", all[1]);
    }

    #[test]
    fn a_program_index_split_in_one_statement_is_swizzled() {
        let body = "    pid = tl.program_id(0)\n    columns = tl.cdiv(n, B)\n    m, c = pid // columns, pid % columns\n    at = m * B\n";
        let all = turned(&text(body));
        assert_eq!(all.len(), 3);
        let line = "    m, c = pid // columns, pid % columns\n    m, c = tl.swizzle2d(m, c, tl.num_programs(0) // columns, columns, 8)\n    at";
        assert!(all[1].contains(line), "{}", all[1]);
    }

    #[test]
    fn kernels_without_product_or_with_one_axis_are_not_swizzled() {
        let one = text("    m = tl.program_id(0)\n    c = 0\n");
        let other = text("    m = tl.program_id(0)\n    c = tl.program_id(1)\n").replace("tl.dot(x, x)", "1.0");
        let computed = text("    m = tl.program_id(0)\n    c = tl.program_id(B)\n");
        assert!([one, other, computed].iter().all(|text| turned(text).is_empty()));
    }
}
