//! Variations of failing programs that a more general pattern would also flag, among which counter-examples are
//! searched.

use base::rng::Rng;
use model::kernel::ast::{StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;

use super::parsed_files::Parsed;
use super::program::KernelProgram;
use super::tree_pattern::{Generalization, NodeCondition, PatternNode, TreePattern};
use super::value_variants::forms;

/// A failing program with what is needed to vary it.
#[derive(Debug)]
pub(crate) struct VariationBase<'a> {
    pub(crate) program: &'a KernelProgram,
    pub(crate) parsed: &'a Parsed,
    /// The constexpr parameters to which the signature comment gives integers.
    numbers: Vec<(String, i64)>,
}

impl<'a> VariationBase<'a> {
    pub(crate) fn new(program: &'a KernelProgram, parsed: &'a Parsed) -> Self {
        let request = program.request(false);
        let all = request.iter().flat_map(|request| &request.constexprs);
        let numbers = all.filter_map(|(name, value)| Some((name.clone(), value.as_i64()?))).collect();
        Self { program, parsed, numbers }
    }

    /// The prefix under which the kernel accesses the language, such as `tl.`.
    pub(super) fn language(&self) -> Option<String> {
        let kernel = self.parsed.module.kernel(&self.program.kernel)?;
        self.parsed.module.language_name(kernel, "")
    }
}

const LITERALS: &[&str] = &["1", "2.0", "None", "True", "\"text\"", "(1, 2)", "16", "0"];
const OPERATORS: &[&str] = &["+", "-", "*", "/", "//", "%", "&", "|", "<<", "**"];
const COMPARISONS: &[&str] = &["==", "<", ">=", "!=", "is", "in"];
const MEMBERS: &[&str] = &["sum", "to", "shape", "exp", "load", "dtype", "zeros", "float32", "max", "T"];
const KEYWORDS: &[&str] = &["axis", "mask", "other", "dtype", "keep_dims", "eviction_policy", "num_stages"];

/// Variations of example `number` in which the part that a step concerns is replaced. The most informative ones come
/// first.
pub(crate) fn variations(
    shape: &TreePattern,
    step: Generalization,
    ground: &VariationBase<'_>,
    number: usize,
) -> Vec<KernelProgram> {
    let parts = match step {
        Generalization::Condition(at, condition) => match shape.parts[at].conditions.get(condition) {
            Some(NodeCondition::Holds { other: Some(other), .. }) => vec![at, *other],
            _ => vec![at],
        },
        Generalization::Open(at) => vec![at],
        Generalization::Remove(at) => return removed(shape, at, ground, number),
        Generalization::Unclose(at) => return longer(shape, at, ground, number),
    };
    let text = &ground.program.text;
    let mut found = Vec::new();
    for at in parts {
        let Some(span) = shape.parts[at].spans.get(number).copied() else { continue };
        let others = alternatives(shape, at, ground, span);
        let others = spread(others).into_iter().map(|other| replaced(text, span, &other));
        let (mut forms, others) = (spread(other_forms(shape, at, ground, span)), others.collect::<Vec<_>>());
        // A condition on a value concerns its form; other replacements are less informative.
        let is_of_value = matches!(step, Generalization::Condition(at, condition) if !matches!(shape.parts[at].conditions.get(condition), Some(NodeCondition::Text(_))));
        forms.truncate(if is_of_value { FORMS } else { LOOKS / 2 });
        found.extend(alternating(others.into_iter().take(LOOKS), forms.into_iter()));
    }
    found.into_iter().map(|text| ground.program.with(text)).collect()
}

/// The largest number of variations with other words (`LOOKS`) and with other forms of a value (`FORMS`) for one step
/// and example.
const LOOKS: usize = 8;
const FORMS: usize = 24;

/// Alternates the items of both, so that neither takes the room of the other.
fn alternating(mut one: impl Iterator<Item = String>, mut other: impl Iterator<Item = String>) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        let (first, second) = (one.next(), other.next());
        if first.is_none() && second.is_none() {
            return found;
        }
        found.extend(first.into_iter().chain(second));
    }
}

/// Reorders texts so that neighbours, which are similar, are far apart.
fn spread(all: Vec<String>) -> Vec<String> {
    let stride = all.len().div_ceil(LOOKS).max(1);
    let mut order: Vec<(usize, String)> = all.into_iter().enumerate().map(|(at, text)| (at % stride, text)).collect();
    order.sort_by_key(|(phase, _)| *phase);
    order.into_iter().map(|(_, text)| text).collect()
}

/// The texts in which the value of a part has another form; empty for a part that is not a value.
fn other_forms(shape: &TreePattern, at: usize, ground: &VariationBase<'_>, span: Span) -> Vec<String> {
    let part = &shape.parts[at];
    let is_value = at > 0
        && !part.is_token
        && !matches!(part.field.as_deref(), Some("attribute" | "name" | "function" | "left"))
        && !matches!(part.kind.as_deref(), Some("argument_list" | "keyword_argument"));
    let language = ground.language().filter(|_| is_value);
    let values = (sizes(ground), pointers(ground, span));
    language.map(|tl| forms(ground, span, &tl, (&values.0, &values.1))).unwrap_or_default()
}

/// The programs in which a part of the shape has another form, regardless of its conditions.
pub(crate) fn formed(shape: &TreePattern, ground: &VariationBase<'_>, number: usize) -> Vec<KernelProgram> {
    let of_part = |at: usize| {
        let span = shape.parts[at].spans.get(number).copied();
        span.map(|span| spread(other_forms(shape, at, ground, span))).unwrap_or_default()
    };
    shape.present().flat_map(of_part).map(|text| ground.program.with(text)).collect()
}

/// The pointer arguments of loads and stores before a place, at most two.
fn pointers(ground: &VariationBase<'_>, span: Span) -> Vec<String> {
    let Some(kernel) = ground.parsed.module.kernel(&ground.program.kernel) else { return Vec::new() };
    let mut found = Vec::new();
    walk_expressions(&kernel.body, &mut |expr| {
        let Some(call) = expr.as_call().filter(|_| expr.span.end <= span.start) else { return };
        let source = &ground.parsed.source;
        let function = source.slice(call.func.span);
        let is_access = ["load", "store"].iter().any(|name| function.rsplit('.').next() == Some(name));
        found.extend(call.args.first().filter(|_| is_access).map(|arg| source.slice(arg.value.span).to_owned()));
    });
    found.retain(|text| text.len() < 60 && !text.contains('\n'));
    found.sort();
    found.dedup();
    found.truncate(2);
    found
}

/// The constexpr parameters that may be tile sizes (powers of two above 1).
fn sizes(ground: &VariationBase<'_>) -> Vec<String> {
    let is_size = |value: i64| value > 1 && value.count_ones() == 1;
    ground.numbers.iter().filter(|(_, value)| is_size(*value)).map(|(name, _)| name.clone()).collect()
}

/// Programs in which all wildcards and word lists are replaced at random.
pub(crate) fn shaken(
    shape: &TreePattern,
    ground: &VariationBase<'_>,
    number: usize,
    count: usize,
    chance: &mut Rng,
) -> Vec<KernelProgram> {
    let is_open = |at: &usize| {
        let part = &shape.parts[*at];
        let is_listed = listed(part).is_some_and(|words| words.len() > 1);
        *at > 0 && !part.is_token && (is_listed || part.kind.is_none() && part.children.is_empty())
    };
    let open: Vec<usize> = shape.present().filter(is_open).collect();
    let one = |chance: &mut Rng| {
        let mut changes: Vec<(Span, String)> = Vec::new();
        for &at in &open {
            let Some(span) = shape.parts[at].spans.get(number).copied() else { continue };
            // A listed word may meet any word of another list.
            let others =
                listed(&shape.parts[at]).map_or_else(|| alternatives(shape, at, ground, span), <[String]>::to_vec);
            let other = others.get(chance.below(others.len().max(1) as u64) as usize);
            changes.extend(other.map(|other| (span, other.clone())));
        }
        changes.sort();
        let mut text = ground.program.text.clone();
        for (span, other) in changes.iter().rev() {
            text = replaced(&text, *span, other);
        }
        ground.program.with(text)
    };
    let mut found = combined(shape, ground, number, count);
    if !open.is_empty() {
        found.extend((0..count).map(|_| one(chance)));
    }
    found
}

/// Programs with combinations of listed words that no failure has shown; nothing else is changed.
fn combined(shape: &TreePattern, ground: &VariationBase<'_>, number: usize, count: usize) -> Vec<KernelProgram> {
    let lists: Vec<(Span, &[String])> = shape
        .present()
        .filter_map(|at| Some((*shape.parts[at].spans.get(number)?, listed(&shape.parts[at])?)))
        .filter(|(_, words)| words.len() > 1)
        .collect();
    let all: usize = lists.iter().map(|(_, words)| words.len()).fold(1, usize::saturating_mul);
    let stride = all.div_ceil(2 * count).max(1);
    let one = |choice: usize| {
        let (mut choice, mut changes) = (choice, Vec::new());
        for (span, words) in &lists {
            changes.push((*span, words[choice % words.len()].clone()));
            choice /= words.len();
        }
        changes.sort();
        let text =
            changes.iter().rev().fold(ground.program.text.clone(), |text, (span, word)| replaced(&text, *span, word));
        ground.program.with(text)
    };
    if lists.len() < 2 { Vec::new() } else { (0..all).step_by(stride).map(one).collect() }
}

/// The words that a part may be, if its text is restricted.
fn listed(part: &PatternNode) -> Option<&[String]> {
    part.conditions.iter().find_map(|condition| match condition {
        NodeCondition::Text(words) => Some(words.as_slice()),
        _ => None,
    })
}

fn replaced(text: &str, span: Span, other: &str) -> String {
    format!("{}{other}{}", text.get(..span.start).unwrap_or(text), text.get(span.end..).unwrap_or_default())
}

/// The programs in which one of some places has another text. Each place has its turn, so that a limit on their number
/// leaves none of them out.
pub(super) fn replaced_in_turn(ground: &VariationBase<'_>, places: &[(Span, Vec<String>)]) -> Vec<KernelProgram> {
    let text = &ground.program.text;
    let longest = places.iter().map(|(_, others)| others.len()).max().unwrap_or(0);
    let all =
        (0..longest).flat_map(|at| places.iter().filter_map(move |(span, others)| Some((*span, others.get(at)?))));
    all.filter(|(span, other)| text.get(span.start..span.end) != Some(other.as_str()))
        .map(|(span, other)| ground.program.with(replaced(text, span, other)))
        .collect()
}

/// The texts that may replace a part.
fn alternatives(shape: &TreePattern, at: usize, ground: &VariationBase<'_>, span: Span) -> Vec<String> {
    let part = &shape.parts[at];
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let parent =
        shape.parts.iter().find(|parent| parent.children.contains(&at)).and_then(|parent| parent.kind.as_deref());
    let field = part.field.as_deref();
    if part.is_token {
        return owned(if parent == Some("comparison_operator") { COMPARISONS } else { OPERATORS });
    }
    if field == Some("attribute") {
        return owned(MEMBERS);
    }
    if field == Some("name") && parent == Some("keyword_argument") {
        return owned(KEYWORDS);
    }
    let mut found = Vec::new();
    let kernel = ground.parsed.module.kernel(&ground.program.kernel);
    if field == Some("function") {
        let language = ground.language().unwrap_or_else(|| "tl.".to_owned());
        found.extend(MEMBERS.iter().map(|member| format!("{language}{member}")));
        found.extend(owned(&["min", "range", "len", "print", "float"]));
        return found;
    }
    if let Some(kernel) = kernel {
        found.extend(kernel.params.iter().map(|param| param.name.clone()));
        let mut locals = Vec::new();
        walk_statements(&kernel.body, &mut |stmt| {
            if let StmtKind::Assign { targets, .. } = &stmt.kind
                && stmt.span.end <= span.start
                && let Some(name) = targets.first().and_then(|target| target.as_name())
                && !locals.iter().any(|known| known == name)
            {
                locals.push(name.to_owned());
            }
        });
        found.extend(locals.into_iter().rev().take(6));
        // Pointers with offsets and masks, taken from other calls of the kernel.
        let mut given = Vec::new();
        walk_expressions(&kernel.body, &mut |expr| {
            if let Some(call) = expr.as_call().filter(|_| expr.span.end <= span.start) {
                let text = |arg: &model::kernel::ast::Arg| ground.parsed.source.slice(arg.value.span).to_owned();
                given.extend(call.args.iter().take(2).map(text));
            }
        });
        given.sort();
        given.dedup();
        given.retain(|text| text.contains([' ', '[']) && text.len() < 60);
        found.extend(given.into_iter().take(3).map(|text| format!("({text})")));
    }
    if let Some(tl) = ground.language() {
        // Triton accepts tiles of one element in some places where it rejects others.
        found.push(format!("{tl}zeros((1,), {tl}float32)"));
        found.push(format!("{tl}arange(0, 16)"));
        found.push(format!("{tl}zeros((16, 16), {tl}float16)"));
    }
    found.extend(constants(ground));
    found.extend(owned(LITERALS));
    found
}

/// The values of the integer constexpr parameters, which fit the shapes in the kernel.
fn constants(ground: &VariationBase<'_>) -> Vec<String> {
    let mut found: Vec<String> = ground.numbers.iter().map(|(_, value)| value.to_string()).collect();
    found.sort();
    found.dedup();
    found
}

/// The program without a part; an argument goes with its comma.
fn removed(shape: &TreePattern, at: usize, ground: &VariationBase<'_>, number: usize) -> Vec<KernelProgram> {
    let Some(span) = shape.parts[at].spans.get(number).copied() else { return Vec::new() };
    let text = &ground.program.text;
    let node = ground.parsed.source.node_at(span);
    let Some(node) = node.filter(|_| shape.parts[at].field.is_none()) else { return Vec::new() };
    let span = match (node.prev_named_sibling(), node.next_named_sibling()) {
        (Some(before), _) => Span::new(before.end_byte(), span.end),
        (None, Some(next)) => Span::new(span.start, next.start_byte()),
        (None, None) => span,
    };
    vec![ground.program.with(replaced(text, span, ""))]
}

/// Programs with one more child after the last one.
fn longer(shape: &TreePattern, at: usize, ground: &VariationBase<'_>, number: usize) -> Vec<KernelProgram> {
    let last = shape.parts[at].children.iter().rev().find(|child| !shape.parts[**child].is_gone);
    let Some(span) = last.and_then(|last| shape.parts[*last].spans.get(number)) else { return Vec::new() };
    let end = Span::new(span.end, span.end);
    let more = ["1", "None", "axis=0", "mask=None", "0.0", "dtype=None"];
    more.iter().map(|more| ground.program.with(replaced(&ground.program.text, end, &format!(", {more}")))).collect()
}
