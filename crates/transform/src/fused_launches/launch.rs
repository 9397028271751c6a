//! The parameters of the fused kernel, and the launch that replaces two.

use model::kernel::Param;
use model::kernel::ast::Arg;
use model::syntax::Span;

use super::names::FusedNames;
use crate::words::has_word;

/// The line width in characters above which a launch is split into several lines.
const WIDTH: usize = 110;

/// A parameter, and its argument if there is one.
struct Row {
    param: String,
    name: String,
    passed: Option<String>,
    by_name: bool,
}

/// The parameters of the fused kernel, and its arguments.
pub(super) struct Called {
    params: Vec<String>,
    args: Vec<String>,
}

impl Called {
    /// The parameters for a kernel with this body; `None` where an argument is not known.
    pub(super) fn of(names: &FusedNames<'_>, body: &str) -> Option<Self> {
        let (owner, guest) = (names.owner, names.guest);
        let text = owner.around.text;
        let said = |span: Span| text.get(span.start..span.end);
        let before = owner.kernel.body.first().zip(owner.kernel.body.last());
        let before = before.and_then(|(first, last)| said(Span::new(first.span.start, last.span.end)))?;
        let is_kept = |param: &&Param| {
            param.constexpr
                || has_word(body, &param.name)
                || !has_word(before, &param.name)
                || owner.kernel.autotune.is_some()
        };
        let mut rows = Vec::new();
        for param in owner.kernel.params.iter().filter(is_kept) {
            let at = owner.kernel.params.iter().position(|one| one.name == param.name)?;
            let arg = passed(&owner.launch.args, &param.name, at);
            let by_name = arg.is_some_and(|arg| arg.keyword.is_some());
            let passed = arg.and_then(|arg| said(arg.value.span)).map(str::to_owned);
            rows.push(Row { param: said(param.span)?.to_owned(), name: param.name.clone(), passed, by_name });
        }
        let has_default = owner.kernel.params.iter().any(|param| param.default.is_some());
        let is_late = |param: &Param| param.constexpr || param.default.is_some();
        let first = owner.kernel.params.iter().filter(is_kept).position(is_late);
        let mut at = first.unwrap_or(rows.len());
        for param in &names.added {
            let name = names.new_name(&param.name);
            if !has_word(body, &name) {
                continue;
            }
            let passed = guest.passed(&param.name).and_then(|value| said(value.span))?.to_owned();
            let annotation = param.annotation.as_ref().and_then(|annotation| said(annotation.span));
            let declared = annotation.map_or_else(|| name.clone(), |annotation| format!("{name}: {annotation}"));
            let row = Row { param: declared, name, passed: Some(passed), by_name: param.constexpr };
            if param.constexpr && !has_default {
                rows.push(row);
            } else {
                rows.insert(at, row);
                at += 1;
            }
        }
        let params = rows.iter().map(|row| row.param.clone()).collect();
        let mut args = Vec::new();
        let mut by_name = false;
        for (place, row) in rows.into_iter().enumerate() {
            by_name |= row.by_name || row.passed.is_none() || (place >= at && !names.added.is_empty());
            args.extend(row.passed.map(|passed| if by_name { format!("{}={passed}", row.name) } else { passed }));
        }
        let is_option = |arg: &&Arg| arg.keyword.as_ref().is_some_and(|(name, _)| owner.kernel.param(name).is_none());
        for option in owner.launch.args.iter().filter(is_option) {
            args.push(said(option.span)?.to_owned());
        }
        (!args.iter().any(|arg| arg.contains(['#', '\n']))).then_some(Self { params, args })
    }

    /// `kernel[grid](arguments)`
    pub(super) fn launch(&self, start: &str, indent: &str) -> String {
        let is_named = |arg: &&String| {
            let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            arg.split_once('=').is_some_and(|(name, _)| name.chars().all(is_of_name))
        };
        let (named, others): (Vec<&String>, Vec<&String>) = self.args.iter().partition(is_named);
        in_lines(start, indent, &[others, named])
    }

    /// `def kernel(parameters)`
    pub(super) fn definition(&self, name: &str) -> String {
        let (constant, others): (Vec<&String>, Vec<&String>) =
            self.params.iter().partition(|param| param.contains("constexpr"));
        let is_in_order = self.params.iter().eq(others.iter().chain(&constant).copied());
        let all = if is_in_order { [others, constant] } else { [self.params.iter().collect(), Vec::new()] };
        in_lines(&format!("def {name}"), "", &all)
    }
}

/// A call or definition with its list in parentheses, on several lines where one is too short.
fn in_lines(start: &str, indent: &str, parts: &[Vec<&String>]) -> String {
    let joined = |parts: &[&String]| parts.iter().map(|part| part.as_str()).collect::<Vec<_>>().join(", ");
    let line = format!("{start}({})", joined(&parts.concat()));
    if indent.len() + line.len() <= WIDTH {
        return line;
    }
    let mut lines: Vec<String> = Vec::new();
    for parts in parts {
        let mut line = String::new();
        for part in parts {
            if !line.is_empty() && indent.len() + line.len() + part.len() + 2 > WIDTH {
                lines.push(std::mem::take(&mut line));
            }
            let gap = if line.is_empty() { format!("{indent}    ") } else { " ".to_owned() };
            line += &format!("{gap}{part},");
        }
        lines.extend(Some(line).filter(|line| !line.is_empty()));
    }
    format!("{start}(\n{}\n{indent})", lines.join("\n"))
}

fn passed<'b>(args: &'b [Arg], name: &str, at: usize) -> Option<&'b Arg> {
    let by_name = args.iter().find(|arg| arg.keyword.as_ref().is_some_and(|(keyword, _)| keyword == name));
    by_name.or_else(|| args.get(at).filter(|_| args[..=at].iter().all(|arg| arg.keyword.is_none())))
}
