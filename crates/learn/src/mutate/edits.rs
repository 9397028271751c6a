//! Mutations of existing code in a kernel: arguments, operators, names, annotations, sizes, types and whole statements.

use tree_sitter::Node;

use base::rng::Rng;
use model::kernel::Module;
use model::syntax::{Source, Span, each_node, field, node_span};

use crate::program::{KernelProgram, signature_comment};

type Change = (Span, String);

/// A mutation that finds a place for itself in a kernel.
type Edit = fn(&EditTarget<'_>, &mut Rng) -> Option<Vec<Change>>;

const EDITS: &[Edit] = &[
    drop_constexpr,
    odd_size,
    drop_argument,
    rename_keyword,
    add_keyword,
    swap_arguments,
    other_number,
    other_operator,
    misspell_member,
    misspell_name,
    other_member,
    other_type,
    drop_conversion,
    drop_axes,
    plain_start,
    delete_statement,
    global_number,
];

struct EditTarget<'a> {
    source: &'a Source,
    nodes: Vec<Node<'a>>,
    params: Vec<(String, Span, Option<Span>)>,
    kernel: Span,
}

impl<'a> EditTarget<'a> {
    fn text(&self, node: Node<'_>) -> &'a str {
        self.source.slice(node_span(node))
    }

    fn pick(&self, chance: &mut Rng, fits: impl Fn(Node<'a>) -> bool) -> Option<Node<'a>> {
        let all: Vec<Node<'a>> = self.nodes.iter().copied().filter(|node| fits(*node)).collect();
        all.get(chance.below(all.len() as u64) as usize).copied()
    }

    fn pick_kind(&self, chance: &mut Rng, kind: &str) -> Option<Node<'a>> {
        self.pick(chance, |node| node.kind() == kind)
    }
}

/// Applies one random mutation to a program's kernel.
pub(super) fn change(program: &KernelProgram, chance: &mut Rng) -> Option<Vec<Change>> {
    let source = Source::parse(program.text.as_str());
    let module = Module::build(&source);
    let kernel = module.kernel(&program.kernel)?;
    let body = Span::new(kernel.body.first()?.span.start, kernel.body.last()?.span.end);
    let mut nodes = Vec::new();
    for root in source.roots() {
        each_node(root, &mut |node| nodes.extend(body.contains(node_span(node)).then_some(node)));
    }
    let annotated = |param: &model::kernel::Param| {
        let annotation = param.annotation.as_ref()?;
        param.constexpr.then(|| Span::new(param.name_span.end, annotation.span.end))
    };
    let params = kernel.params.iter().map(|param| (param.name.clone(), param.name_span, annotated(param))).collect();
    let ground = EditTarget { source: &source, nodes, params, kernel: kernel.span };
    (0..4).find_map(|_| EDITS[chance.below(EDITS.len() as u64) as usize](&ground, chance))
}

fn one_of<'a>(choices: &[&'a str], chance: &mut Rng) -> &'a str {
    choices[chance.below(choices.len() as u64) as usize]
}

/// The span of the value of `name=…` in the signature comment.
fn in_comment(ground: &EditTarget<'_>, name: &str) -> Option<Span> {
    let text = ground.source.text();
    let comment = signature_comment(text, ground.kernel.start)?;
    let at = comment.start + text[comment.start..comment.end].find(&format!(" {name}="))? + name.len() + 2;
    let length = text[at..].find([' ', '\n'])?;
    Some(Span::new(at, at + length))
}

fn constexpr_param<'g>(ground: &'g EditTarget<'_>, chance: &mut Rng) -> Option<(&'g str, Span)> {
    let all: Vec<(&str, Span)> =
        ground.params.iter().filter_map(|(name, _, annotation)| Some((name.as_str(), (*annotation)?))).collect();
    all.get(chance.below(all.len() as u64) as usize).copied()
}

/// `BLOCK: tl.constexpr` → `BLOCK`
fn drop_constexpr(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let (name, annotation) = constexpr_param(ground, chance)?;
    Some(vec![(in_comment(ground, name)?, "i32".to_owned()), (annotation, String::new())])
}

/// Sets a tile size to another value, often one that is not a power of two.
fn odd_size(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let (name, _) = constexpr_param(ground, chance)?;
    let size = one_of(&["96", "100", "48", "3", "1000", "0", "-1", "None", "8", "4", "2.0"], chance);
    Some(vec![(in_comment(ground, name)?, size.to_owned())])
}

fn arguments(call: Node<'_>) -> Vec<Node<'_>> {
    let Some(list) = field(call, "arguments").filter(|list| list.kind() == "argument_list") else { return Vec::new() };
    list.named_children(&mut list.walk()).filter(|node| node.kind() != "comment").collect()
}

fn drop_argument(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let call = ground.pick(chance, |node| node.kind() == "call" && !arguments(node).is_empty())?;
    let arguments = arguments(call);
    let at = chance.below(arguments.len() as u64) as usize;
    let span = match (at, arguments.get(at + 1)) {
        (0, None) => node_span(arguments[0]),
        (_, None) => Span::new(arguments[at - 1].end_byte(), arguments[at].end_byte()),
        (_, Some(next)) => Span::new(arguments[at].start_byte(), next.start_byte()),
    };
    Some(vec![(span, String::new())])
}

fn rename_keyword(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let keyword = ground.pick_kind(chance, "keyword_argument")?;
    let name = field(keyword, "name")?;
    let others = match ground.text(name) {
        "mask" => &["masks", "condition", "where", "predicate"][..],
        "other" => &["default", "fill", "fill_value", "others"],
        "axis" => &["dim", "axes", "dims"],
        "dtype" => &["type", "out_dtype", "dt"],
        _ => &["value", "arg"],
    };
    Some(vec![(node_span(name), one_of(others, chance).to_owned())])
}

fn add_keyword(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let call = ground.pick(chance, |node| node.kind() == "call" && !arguments(node).is_empty())?;
    let last = *arguments(call).last()?;
    let words = [
        "keepdim=True",
        "keep_dims=True",
        "dim=0",
        "axis=0",
        "dtype=None",
        "device=\"cuda\"",
        "out=None",
        "mask=None",
        "other=0.0",
        "inplace=True",
        "axes=0",
        "where=None",
        "dims=(0,)",
        "unroll=True",
    ];
    Some(vec![(Span::new(last.end_byte(), last.end_byte()), format!(", {}", one_of(&words, chance)))])
}

fn swap_arguments(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let positional = |node: Node<'_>| arguments(node).iter().filter(|one| one.kind() != "keyword_argument").count() > 1;
    let call = ground.pick(chance, |node| node.kind() == "call" && positional(node))?;
    let arguments = arguments(call);
    let (a, b) = (arguments[0], arguments[1]);
    Some(vec![(node_span(a), ground.text(b).to_owned()), (node_span(b), ground.text(a).to_owned())])
}

fn other_number(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let number = ground.pick(chance, |node| matches!(node.kind(), "integer" | "float"))?;
    let others = ["1", "2", "3", "-1", "-2", "100", "0.5", "None", "\"0\"", "2 ** 70", "7", "(0, 1)", "[0]", "1.5"];
    Some(vec![(node_span(number), one_of(&others, chance).to_owned())])
}

fn other_operator(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let node = ground.pick(chance, |node| matches!(node.kind(), "binary_operator" | "comparison_operator"))?;
    let (operator, others) = if node.kind() == "binary_operator" {
        (field(node, "operator")?, &["+", "-", "*", "/", "//", "%", "**", "@", "<<", "&", "|", "and", "or", "=="][..])
    } else {
        (field(node, "operators")?, &["in", "is", "and", "not in", "<", "==", "!=", "is not", "<<", "+"][..])
    };
    Some(vec![(node_span(operator), one_of(others, chance).to_owned())])
}

/// Swaps two letters of an attribute name.
fn misspell_member(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let member = field(ground.pick_kind(chance, "attribute")?, "attribute")?;
    Some(vec![(node_span(member), misspelt(ground.text(member), chance)?)])
}

fn misspell_name(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let is_read = |node: Node<'_>| {
        let parent = node.parent();
        let field = |name| parent.and_then(|parent| field(parent, name));
        node.kind() == "identifier"
            && field("attribute") != Some(node)
            && field("name") != Some(node)
            && field("left") != Some(node)
    };
    let name = ground.pick(chance, is_read)?;
    Some(vec![(node_span(name), misspelt(ground.text(name), chance)?)])
}

fn misspelt(word: &str, chance: &mut Rng) -> Option<String> {
    if word.len() < 3 || !word.is_ascii() {
        return Some(format!("{word}{word}"));
    }
    let at = 1 + chance.below(word.len() as u64 - 2) as usize;
    let mut letters: Vec<char> = word.chars().collect();
    match chance.below(3) {
        0 => letters.swap(at, at + 1),
        1 => _ = letters.remove(at),
        _ => letters.push('s'),
    }
    Some(letters.into_iter().collect())
}

fn other_member(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let member = field(ground.pick_kind(chance, "attribute")?, "attribute")?;
    let others = [
        "sum",
        "max",
        "min",
        "maximum",
        "mean",
        "load",
        "store",
        "zeros",
        "full",
        "arange",
        "exp",
        "pow",
        "dot",
        "where",
        "float32",
        "cumsum",
        "argmax",
        "trans",
        "reshape",
        "broadcast_to",
        "abs",
        "cdiv",
        "atomic_add",
        "cat",
    ];
    Some(vec![(node_span(member), one_of(&others, chance).to_owned())])
}

fn other_type(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let is_type = |node: Node<'_>| {
        node.kind() == "attribute"
            && field(node, "attribute")
                .is_some_and(|member| ["float32", "float16", "int8", "int64", "int32"].contains(&ground.text(member)))
    };
    let member = field(ground.pick(chance, is_type)?, "attribute")?;
    let others =
        ["float16", "float64", "int32", "int1", "bfloat16", "uint8", "float8", "half", "int", "bool", "double"];
    Some(vec![(node_span(member), one_of(&others, chance).to_owned())])
}

/// The function of a method call (`x.f`), if the call is one.
fn method(call: Node<'_>) -> Option<Node<'_>> {
    field(call, "function").filter(|function| function.kind() == "attribute")
}

/// `x.to(tl.float32)` → `x`
fn drop_conversion(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let is_conversion = |node: Node<'_>| {
        let member = method(node).and_then(|function| field(function, "attribute"));
        node.kind() == "call" && member.is_some_and(|member| ground.text(member) == "to")
    };
    let call = ground.pick(chance, is_conversion)?;
    let object = field(method(call)?, "object")?;
    Some(vec![(node_span(call), ground.text(object).to_owned())])
}

/// `x[:, None]` → `x`, or with the other axis expanded.
fn drop_axes(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let subscript = ground.pick_kind(chance, "subscript")?;
    let value = field(subscript, "value")?;
    let rest = Span::new(value.end_byte(), subscript.end_byte());
    let other = match (ground.source.slice(rest), chance.below(3)) {
        (_, 0) => "",
        ("[:, None]", 1) => "[None, :]",
        ("[None, :]", 1) => "[:, None]",
        _ => one_of(&["[0]", "[:]", "[0, :]", "[:, 0]", "[-1]", "[:, :, None]", "[1:]"], chance),
    };
    Some(vec![(rest, other.to_owned())])
}

/// `acc = tl.zeros(…)` → `acc = 0`
fn plain_start(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let starts = |node: Node<'_>| {
        node.kind() == "call"
            && field(node, "function")
                .is_some_and(|function| [".zeros", ".full"].iter().any(|end| ground.text(function).ends_with(end)))
    };
    let call = ground.pick(chance, starts)?;
    Some(vec![(node_span(call), one_of(&["0", "0.0", "None", "[]", "1", "float('-inf')"], chance).to_owned())])
}

fn delete_statement(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let statement = ground.pick(chance, |node| {
        node.kind() == "expression_statement"
            && node.parent().is_some_and(|parent| parent.kind() == "block" && parent.named_child_count() > 1)
    })?;
    Some(vec![(node_span(statement), "pass".to_owned())])
}

/// Moves a number into a global variable of the file.
fn global_number(ground: &EditTarget<'_>, chance: &mut Rng) -> Option<Vec<Change>> {
    let number = ground.pick(chance, |node| matches!(node.kind(), "integer" | "float"))?;
    let text = ground.text(number);
    let name = one_of(&["FACTOR", "LOG2E", "SCALE", "LIMIT", "neg_inf", "EPS"], chance);
    let value = match chance.below(4) {
        0 => format!("{name}: {{}}.constexpr = {text}"),
        1 => format!("{name} = ({text}, 1)"),
        2 => format!("{name} = {{}}.constexpr({text})"),
        _ => format!("{name} = {text}"),
    };
    // The comment above the kernel stays with the kernel.
    let comment = signature_comment(ground.source.text(), ground.kernel.start)?.start;
    let language = if ground.source.text().contains(" as tlang") { "tlang" } else { "tl" };
    let line = value.replace("{}", language);
    Some(vec![(Span::new(comment, comment), format!("{line}\n\n\n")), (node_span(number), name.to_owned())])
}
