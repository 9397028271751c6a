//! Reduction of failing programs: statements, arguments and parameters are removed while Triton reports the same error.

use tree_sitter::Node;

use model::kernel::Module;
use model::syntax::{Source, Span, each_node, node_span};

use super::failure::ErrorSignature;
use super::oracle::OracleClient;
use super::program::{KernelProgram, signature_comment};

/// A failing program, and a program that compiles and differs from it in one place.
#[derive(Clone, Debug)]
pub(crate) struct ReducedPair {
    pub(crate) bad: KernelProgram,
    pub(crate) good: Option<KernelProgram>,
}

/// Reduces a failing program. `keeps` decides whether a smaller one still shows what matters besides the error. What is
/// removed is also removed from the passing program where that still compiles.
pub(crate) fn reduced(
    asker: &mut OracleClient<'_>,
    bad: &KernelProgram,
    passing: Option<&KernelProgram>,
    signature: &ErrorSignature,
    keeps: &dyn Fn(&KernelProgram) -> bool,
) -> ReducedPair {
    let mut pair = ReducedPair { bad: bad.clone(), good: passing.cloned() };
    // Removing a statement can make the definitions of other names superfluous.
    for _ in 0..3 {
        let before = pair.bad.text.len();
        pass(asker, &mut pair, signature, keeps);
        if pair.bad.text.len() == before {
            break;
        }
    }
    without_parameters(asker, &mut pair, signature, keeps);
    pair
}

fn pass(
    asker: &mut OracleClient<'_>,
    pair: &mut ReducedPair,
    signature: &ErrorSignature,
    keeps: &dyn Fn(&KernelProgram) -> bool,
) {
    let mut at = removable(&pair.bad).len();
    while at > 0 {
        at -= 1;
        let spans = removable(&pair.bad);
        let Some((span, stand_in)) = spans.get(at).copied() else { continue };
        let text = &pair.bad.text;
        let smaller = pair.bad.with(format!("{}{stand_in}{}", &text[..span.start], &text[span.end..]));
        let verdict = asker.verdict(&smaller);
        let is_same = verdict.failing().is_some_and(|failing| ErrorSignature::of(failing) == *signature);
        if !is_same || !keeps(&smaller) {
            continue;
        }
        let gone = text[span.start..span.end].to_owned();
        pair.bad = smaller;
        if let Some(good) = &pair.good
            && good.text.matches(&gone).count() == 1
        {
            let other = good.with(good.text.replacen(&gone, stand_in, 1));
            if asker.verdict(&other).is_accepted() {
                pair.good = Some(other);
            }
        }
    }
}

/// The spans that can be removed, with the text that replaces each: statements with their lines, and keyword arguments.
fn removable(program: &KernelProgram) -> Vec<(Span, &'static str)> {
    let source = Source::parse(program.text.as_str());
    let text = source.text();
    let mut found = Vec::new();
    let mut visit = |node: Node<'_>| {
        let Some(parent) = node.parent() else { return };
        if parent.kind() == "block" || (parent.kind() == "module" && !is_needed(node)) {
            let start = text[..node.start_byte()].rfind('\n').map_or(0, |at| at + 1);
            let end = text[node.end_byte()..].find('\n').map_or(text.len(), |at| node.end_byte() + at + 1);
            let is_alone = parent.named_child_count() == 1;
            if is_alone && node.kind() != "pass_statement" {
                found.push((node_span(node), "pass"));
            } else if !is_alone && text[start..node.start_byte()].trim().is_empty() {
                found.push((Span::new(start, end), ""));
            }
        } else if node.kind() == "keyword_argument"
            && let Some(before) = node.prev_named_sibling()
        {
            found.push((Span::new(before.end_byte(), node.end_byte()), ""));
        }
    };
    for root in source.roots() {
        each_node(root, &mut visit);
    }
    found.sort_unstable_by_key(|(span, _)| (span.start, std::cmp::Reverse(span.end)));
    found
}

fn is_needed(node: Node<'_>) -> bool {
    matches!(node.kind(), "import_statement" | "import_from_statement" | "decorated_definition" | "comment")
}

/// Removes parameters that the kernel does not use.
fn without_parameters(
    asker: &mut OracleClient<'_>,
    pair: &mut ReducedPair,
    signature: &ErrorSignature,
    keeps: &dyn Fn(&KernelProgram) -> bool,
) {
    let module = Module::build(&Source::parse(pair.bad.text.as_str()));
    let Some(kernel) = module.kernel(&pair.bad.kernel) else { return };
    let names: Vec<String> = kernel.params.iter().map(|param| param.name.clone()).collect();
    for name in names {
        let Some(bad) = without(&pair.bad, &name) else { continue };
        let is_same = |failing: &super::Failing| ErrorSignature::of(failing) == *signature;
        if !asker.verdict(&bad).failing().is_some_and(is_same) || !keeps(&bad) {
            continue;
        }
        pair.bad = bad;
        let other = pair.good.as_ref().and_then(|good| without(good, &name));
        if let Some(other) = other.filter(|other| asker.verdict(other).is_accepted()) {
            pair.good = Some(other);
        }
    }
}

/// The program without a parameter; `None` when its kernel uses it or it is the only one.
fn without(program: &KernelProgram, name: &str) -> Option<KernelProgram> {
    let source = Source::parse(program.text.as_str());
    let module = Module::build(&source);
    let kernel = module.kernel(&program.kernel)?;
    let at = kernel.params.iter().position(|param| param.name == name)?;
    if kernel.params.len() < 2 || kernel.body.iter().any(|stmt| mentions(source.slice(stmt.span), name)) {
        return None;
    }
    let params = &kernel.params;
    let span = match params.get(at + 1) {
        Some(next) => Span::new(params[at].span.start, next.span.start),
        None => Span::new(params[at - 1].span.end, params[at].span.end),
    };
    let text = source.text();
    let Span { start: line, end } = signature_comment(text, kernel.def_span.start)?;
    let word =
        text[line..end].split(' ').find(|word| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))?;
    let comment = text[line..end].replacen(&format!(" {word}"), "", 1);
    let rest = format!("{}{}", &text[end..span.start], &text[span.end..]);
    Some(program.with(format!("{}{comment}{rest}", &text[..line])))
}

fn mentions(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removing_a_parameter_also_removes_it_from_the_comment() {
        let text =
            "import triton\n\n# warpsmith: signature x=*fp32 n=i32 B=64\n@triton.jit\ndef k(x, n, B):\n    y = x + B\n";
        let smaller = without(&KernelProgram::new(text, "k"), "n").unwrap().text;
        assert_eq!(smaller, text.replace(" n=i32", "").replace("n, ", ""));
        assert_eq!(without(&KernelProgram::new(text, "k"), "x"), None);
    }

    #[test]
    fn statements_and_keyword_arguments_are_removable() {
        let text = "import triton\n\n@triton.jit\ndef k(x):\n    a = f(x, b=1)\n    if a:\n        c = 2\n";
        let program = KernelProgram::new(text, "k");
        let texts: Vec<&str> = removable(&program).iter().map(|(span, _)| &text[span.start..span.end]).collect();
        assert_eq!(texts, ["    a = f(x, b=1)\n", ", b=1", "    if a:\n        c = 2\n", "c = 2"]);
    }
}
