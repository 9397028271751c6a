//! Merges versions that differ in structure: both kernels are kept, and the function that launches chooses.

use std::collections::BTreeSet;

use model::kernel::ast::Stmt;
use model::kernel::{HostFunction, Kernel};
use model::syntax::{Source, Span, node_span};
use rules::{Edit, apply_edits};

use super::Two;
use crate::candidate::Candidate;
use crate::lines::{lines_of, lines_with_comments};
use crate::words::{fresh, has_word, indent_of, is_of_word};

/// A statement of the file that is in no other statement.
#[derive(Clone, Copy)]
struct Item<'a> {
    span: Span,
    text: &'a str,
    kind: &'a str,
}

/// The items that only the other version has.
#[derive(Default)]
struct Extra<'a> {
    imports: Vec<&'a str>,
    /// Constants and helpers of the host.
    others: Vec<&'a str>,
    /// The names of kernels that are new or different.
    kernels: BTreeSet<&'a str>,
    /// The statement that contains the host function.
    host: Option<Item<'a>>,
}

impl<'a> Two<'a> {
    /// Writes `if n <= 1024:` with one version's statements around the launch, and `else:` with those of the other.
    /// `None` where the versions differ in something that is not understood.
    pub fn in_versions(&self) -> Option<String> {
        let (kept, other) = self.kept_and_other();
        let (kept_source, other_source) = (Source::parse(kept.text.as_str()), Source::parse(other.text.as_str()));
        let (own, others) = (items(&kept_source)?, items(&other_source)?);
        let mut extra = extra(kept, other, &own, &others)?;
        take_callers(other, &mut extra.kernels);
        let renamed = self.new_names(kept, other, &extra.kernels);
        let (host, host_other) = hosts(kept, other, &extra)?;
        let (around, around_other) = (holding(&own, host.span)?, holding(&others, host_other.span)?);
        let is_same = frame(&kept.text, around.span, host)? == frame(&other.text, around_other.span, host_other)?;
        let mut edits = vec![self.branches((host, host_other), &renamed).filter(|_| is_same)?];
        let put = |at: usize, text: String| Edit { span: Span::new(at, at), text };
        for name in &extra.kernels {
            let kernel = other.module.kernel(name)?;
            let text = replaced(other.text.get(kernel.span.start..kernel.span.end)?, &renamed);
            edits.push(match kept.module.kernel(name) {
                Some(beside) => put(beside.span.end, format!("\n\n\n{text}")),
                None => put(around.span.start, format!("{text}\n\n\n")),
            });
        }
        let above: Vec<&str> = extra.imports.iter().chain(&extra.others).copied().collect();
        if !above.is_empty() {
            let last = own.iter().rfind(|item| item.kind.contains("import"))?;
            edits.push(put(last.span.end, above.iter().map(|text| format!("\n{text}")).collect()));
        }
        edits.sort_by_key(|edit| edit.span);
        Some(apply_edits(&kept.text, &edits))
    }

    /// The new names of the other version's kernels where the kept version has kernels of the same names.
    fn new_names<'b>(
        &self,
        kept: &Candidate,
        other: &Candidate,
        kernels: &BTreeSet<&'b str>,
    ) -> Vec<(&'b str, String)> {
        let role = if self.keeps_small { "large" } else { "small" };
        let both = format!("{}\n{}", kept.text, other.text);
        let clash = kernels.iter().filter(|name| kept.module.kernel(name).is_some());
        clash.map(|name| (*name, fresh(&both, &format!("{name}_{role}")))).collect()
    }

    /// The statements in which the functions differ, under the condition.
    fn branches(&self, (host, other): (&HostFunction, &HostFunction), renamed: &[(&str, String)]) -> Option<Edit> {
        let (kept, from) = self.kept_and_other();
        let texts = |of: &'a Candidate, host: &HostFunction| -> Option<Vec<&'a str>> {
            host.body.iter().map(|stmt| of.text.get(stmt.span.start..stmt.span.end)).collect()
        };
        let (a, b) = (texts(kept, host)?, texts(from, other)?);
        let is_same = |one: &str, two: &str| one == two && renamed.iter().all(|(name, _)| !has_word(two, name));
        let before = a.iter().zip(&b).take_while(|(one, two)| is_same(one, two)).count();
        let rest = a[before..].iter().rev().zip(b[before..].iter().rev());
        let after = rest.take_while(|(one, two)| is_same(one, two)).count();
        let (range, range_other) = (before..a.len() - after, before..b.len() - after);
        let (span, indent, own) = lines(&kept.text, host.body.get(range)?)?;
        let (_, indent_other, others) = lines(&from.text, other.body.get(range_other)?)?;
        if indent != indent_other || !self.size.is_known(host, span.start) {
            return None;
        }
        let others = replaced(others, renamed);
        let (small, large) = if self.keeps_small { (own, others.as_str()) } else { (others.as_str(), own) };
        let step = if indent.starts_with('\t') { "\t" } else { "    " };
        let (small, large) = (indented(small, step), indented(large, step));
        let text = format!("{indent}if {}:\n{small}\n{indent}else:\n{large}", self.condition());
        Some(Edit { span, text })
    }
}

/// The statements of a file; `None` where some are not understood.
fn items(source: &Source) -> Option<Vec<Item<'_>>> {
    let mut items = Vec::new();
    for root in source.roots() {
        if root.has_error() {
            return None;
        }
        let mut cursor = root.walk();
        let nodes = root.named_children(&mut cursor).filter(|node| node.kind() != "comment");
        items.extend(nodes.map(|node| {
            let span = node_span(node);
            Item { span, text: source.slice(span), kind: node.kind() }
        }));
    }
    Some(items)
}

fn extra<'a>(kept: &Candidate, other: &'a Candidate, own: &[Item<'a>], others: &[Item<'a>]) -> Option<Extra<'a>> {
    let known: BTreeSet<&str> = own.iter().map(|item| item.text).collect();
    let is_free = |name: &str| !kept.module.bindings.contains_key(name);
    let mut extra = Extra::default();
    for item in others.iter().filter(|item| !known.contains(item.text)) {
        let kernel = other.module.kernels.iter().find(|kernel| kernel.span == item.span);
        let global = other.module.globals.iter().find(|global| global.span == item.span);
        let function = other.module.functions.iter().find(|function| function.span == item.span);
        let has_host = other.module.hosts.iter().any(|host| item.span.contains(host.span));
        match (kernel, global, function) {
            (Some(kernel), ..) => {
                extra.kernels.insert(&kernel.name);
            }
            _ if item.kind.contains("import") => extra.imports.push(item.text),
            _ if has_host && extra.host.is_none() => extra.host = Some(*item),
            _ if has_host => return None,
            (_, Some(global), _) if is_free(&global.name) => extra.others.push(item.text),
            (.., Some(function)) if is_free(&function.name) => extra.others.push(item.text),
            _ => return None,
        }
    }
    let is_plain = |name: &&str| {
        // An autotuner chooses by its key instead.
        let plain = |kernel: &Kernel| kernel.plain && !kernel.nested && kernel.autotune.is_none();
        let beside = kept.module.kernels.iter().filter(|kernel| kernel.name == **name).count();
        other.module.kernel(name).is_some_and(plain)
            && (is_free(name) || beside == 1 && kept.module.kernel(name).is_some_and(plain))
    };
    extra.kernels.iter().all(is_plain).then_some(extra)
}

/// Adds the kernels that call a kernel that differs: they differ, too.
fn take_callers<'a>(other: &'a Candidate, kernels: &mut BTreeSet<&'a str>) {
    loop {
        let calls = |kernel: &&Kernel| {
            let text = &other.text[kernel.span.start..kernel.span.end];
            !kernels.contains(kernel.name.as_str()) && kernels.iter().any(|name| has_word(text, name))
        };
        let Some(found) = other.module.kernels.iter().find(calls) else { return };
        kernels.insert(&found.name);
    }
}

/// The host function that gets the condition, in both versions: the only one that launches the kernels, or the only one
/// that differs.
fn hosts<'a>(
    kept: &'a Candidate,
    other: &'a Candidate,
    extra: &Extra<'_>,
) -> Option<(&'a HostFunction, &'a HostFunction)> {
    let launches = extra.kernels.iter().flat_map(|name| other.module.launches_of(name));
    let mut of: BTreeSet<usize> = launches.map(|launch| launch.host).collect::<Option<_>>()?;
    if let Some(item) = extra.host {
        let within = other.module.hosts.iter().enumerate().filter(|(_, host)| item.span.contains(host.span));
        let text = |of: &'a Candidate, host: &HostFunction| of.text.get(host.span.start..host.span.end);
        let differs = |host: &HostFunction| {
            let mut same = kept.module.hosts.iter().filter(|one| one.qualname == host.qualname);
            !same.any(|one| text(kept, one) == text(other, host))
        };
        of.extend(within.filter(|(_, host)| differs(host)).map(|(at, _)| at));
    }
    let mut of = of.into_iter();
    let host = of.next().filter(|_| of.next().is_none()).map(|at| &other.module.hosts[at])?;
    let mut own = kept.module.hosts.iter().filter(|one| one.qualname == host.qualname);
    let found = own.next()?;
    own.next().is_none().then_some((found, host))
}

fn holding<'a>(items: &[Item<'a>], span: Span) -> Option<Item<'a>> {
    items.iter().copied().find(|item| item.span.contains(span))
}

/// The text around the body of a function.
fn frame<'a>(text: &'a str, around: Span, host: &HostFunction) -> Option<(&'a str, &'a str)> {
    let (first, last) = (host.body.first()?, host.body.last()?);
    Some((text.get(around.start..first.span.start)?, text.get(last.span.end..around.end)?))
}

/// The whole lines of some statements, with the text before each.
fn lines<'a>(text: &'a str, stmts: &[Stmt]) -> Option<(Span, &'a str, &'a str)> {
    let (first, last) = (stmts.first()?, stmts.last()?);
    let span = Span::new(lines_with_comments(text, first)?.start, lines_of(text, last)?.end);
    let lines = text.get(span.start..span.end)?;
    // Indentation would change a string of several lines.
    let has_text = lines.contains("\"\"\"") || lines.contains("'''");
    (!has_text).then_some((span, indent_of(text, first.span.start)?, lines))
}

fn indented(lines: &str, step: &str) -> String {
    let line = |line: &str| if line.trim().is_empty() { String::new() } else { format!("{step}{line}") };
    lines.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The text with other names.
fn replaced(text: &str, names: &[(&str, String)]) -> String {
    let mut new = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_of_word) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|letter| !is_of_word(letter)).unwrap_or(from.len()));
        new.push_str(before);
        new.push_str(names.iter().find(|(old, _)| *old == word).map_or(word, |(_, name)| name));
        rest = after;
    }
    new + rest
}
