//! A parser for the text of Triton's intermediate representation: operations with their regions, as far as the model
//! needs them.

use std::collections::HashMap;

/// The kind of an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ScalarKind {
    /// An integer or a boolean.
    Int,
    /// A floating-point number.
    Float,
    /// An address.
    Pointer,
    /// Anything else, such as a descriptor.
    #[default]
    Other,
}

/// The type of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Type {
    /// Empty for a scalar.
    pub(super) shape: Vec<usize>,
    pub(super) kind: ScalarKind,
    /// The bits of an element; for a pointer, of the element that it points to.
    pub(super) bits: u32,
}

impl Type {
    /// The number of elements.
    pub(super) fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    fn parse(text: &str) -> Self {
        let text = text.trim();
        let inner = |text: &str, head: &str| Some(text.strip_prefix(head)?.strip_suffix('>')?.to_owned());
        if let Some(inner) = inner(text, "!tt.tensordesc<") {
            return Self { kind: ScalarKind::Other, ..Self::parse(&inner) };
        }
        let Some(inner) = inner(text, "tensor<") else { return Self::scalar(text) };
        let inner = inner.split(',').next().unwrap_or_default();
        let mut rest = inner;
        let mut shape = Vec::new();
        while let Some((size, after)) = rest.split_once('x')
            && let Ok(size) = size.parse()
        {
            shape.push(size);
            rest = after;
        }
        Self { shape, ..Self::scalar(rest) }
    }

    fn scalar(text: &str) -> Self {
        if let Some(to) = text.strip_prefix("!tt.ptr<") {
            let to = to.split([',', '>']).next().unwrap_or_default();
            return Self { kind: ScalarKind::Pointer, ..Self::parse(to) };
        }
        let kind = match text.chars().next() {
            Some('i') => ScalarKind::Int,
            Some('f' | 'b') => ScalarKind::Float,
            _ => ScalarKind::Other,
        };
        let digits: String =
            text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        let bits = if text == "index" { 64 } else { digits.parse().unwrap_or(0) };
        Self { shape: Vec::new(), kind, bits }
    }
}

/// A value, by its index in its function.
pub(super) type ValueId = usize;

/// An operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Op {
    /// The name with its dialect: `arith.addi`.
    pub(super) name: String,
    pub(super) results: Vec<ValueId>,
    pub(super) operands: Vec<ValueId>,
    /// The types of the results; for an operation without results, the types at its end.
    pub(super) types: Vec<Type>,
    /// The text after the name.
    pub(super) text: String,
    pub(super) regions: Vec<Region>,
}

/// The blocks of a region; the first is its entry.
pub(super) type Region = Vec<BasicBlock>;

/// A sequence of operations.
#[derive(Clone, Debug, Default)]
pub(super) struct BasicBlock {
    /// The label, such as `bb1`; empty for a first block without arguments.
    pub(super) label: String,
    pub(super) arguments: Vec<ValueId>,
    pub(super) ops: Vec<Op>,
}

/// A function.
#[derive(Clone, Debug, Default)]
pub(super) struct TtirFunction {
    pub(super) name: String,
    pub(super) parameters: Vec<(ValueId, Type)>,
    pub(super) body: Region,
    /// The number of values.
    pub(super) values: usize,
}

/// Parses the functions of a module; the one that is launched is public.
pub(super) fn parse(text: &str) -> Vec<TtirFunction> {
    let text = without_locations(text);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
    let mut functions = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(head) = line.strip_prefix("tt.func ").filter(|head| head.ends_with('{')) {
            let mut reader = Reader { lines: &mut lines, names: HashMap::new() };
            let mut function = reader.head(head);
            function.body = reader.region().0;
            function.values = reader.names.len();
            functions.push(function);
        }
    }
    functions
}

/// Removes source locations, which the model does not need.
fn without_locations(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(" loc(") {
        out.push_str(&rest[..at]);
        let (mut depth, mut quoted) = (0, false);
        let end = rest[at + 4..].find(|c| {
            match c {
                '"' => quoted = !quoted,
                '(' if !quoted => depth += 1,
                ')' if !quoted => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        rest = end.map_or("", |end| &rest[at + 4 + end + 1..]);
    }
    out + rest
}

struct Reader<'a, 't, I: Iterator<Item = &'t str>> {
    lines: &'a mut std::iter::Peekable<I>,
    names: HashMap<String, ValueId>,
}

impl<'t, I: Iterator<Item = &'t str>> Reader<'_, 't, I> {
    fn name(&mut self, name: &str) -> ValueId {
        let next = self.names.len();
        *self.names.entry(name.to_owned()).or_insert(next)
    }

    /// The indices of all values that a text names.
    fn named(&mut self, text: &str) -> Vec<ValueId> {
        named(text).into_iter().map(|name| self.name(name)).collect()
    }

    /// Parses a function's head: `public @kernel(%X: !tt.ptr<f16> {…}, %n: i32) attributes {…} {`.
    fn head(&mut self, head: &str) -> TtirFunction {
        let (before, rest) = head.split_once('(').unwrap_or((head, ""));
        let name = before.rsplit('@').next().unwrap_or_default().to_owned();
        let parameters = split(rest, &[',', ')']).into_iter().filter_map(|one| {
            let (name, of) = one.trim().strip_prefix('%')?.split_once(':')?;
            Some((self.name(name), Type::parse(of.split('{').next().unwrap_or_default())))
        });
        TtirFunction { name, parameters: parameters.collect(), ..TtirFunction::default() }
    }

    /// Parses a region up to its closing brace; returns it with the text after the brace.
    fn region(&mut self) -> (Region, String) {
        let mut blocks = vec![BasicBlock::default()];
        while let Some(line) = self.lines.next() {
            if let Some(after) = line.strip_prefix('}') {
                return (blocks, after.trim().to_owned());
            }
            if let Some(label) = line.strip_prefix('^') {
                let head = label.split_once("//").map_or(label, |(head, _)| head);
                let arguments = self.named(head);
                let label = label.split(['(', ':']).next().unwrap_or_default().to_owned();
                let block = BasicBlock { label, arguments, ops: Vec::new() };
                if let [first] = blocks.as_mut_slice()
                    && first.ops.is_empty()
                {
                    *first = block;
                } else {
                    blocks.push(block);
                }
                continue;
            }
            let op = self.op(line);
            if let Some(block) = blocks.last_mut() {
                block.ops.push(op);
            }
        }
        (blocks, String::new())
    }

    fn op(&mut self, line: &str) -> Op {
        let (results, rest) = match line.split_once(" = ") {
            Some((results, rest)) if line.starts_with('%') => (results, rest),
            _ => ("", line),
        };
        let results = self.results(results);
        let rest = rest.trim_start_matches('"');
        let end = rest.find([' ', '"', '(']).unwrap_or(rest.len());
        let (name, mut text) = (rest[..end].to_owned(), rest[end..].trim_start_matches('"').to_owned());
        let mut op = Op { name, results, ..Op::default() };
        op.operands = self.named(&text);
        let mut opens = text.ends_with('{');
        while opens {
            let (region, after) = self.region();
            op.regions.push(region);
            opens = after.ends_with('{');
            text = format!("{} {after}", text.trim_end_matches('{'));
        }
        op.types = types(&op.name, &text);
        op.text = text;
        op
    }

    /// Parses result names: `%a:2`, `%a, %b`.
    fn results(&mut self, text: &str) -> Vec<ValueId> {
        let mut all = Vec::new();
        for one in text.split(',').map(|one| one.trim().trim_start_matches('%')).filter(|one| !one.is_empty()) {
            match one.split_once(':').map(|(name, count)| (name, count.parse().unwrap_or(1))) {
                Some((name, count)) => (0..count).for_each(|at: usize| all.push(self.name(&format!("{name}#{at}")))),
                None => all.push(self.name(one)),
            }
        }
        all
    }
}

/// The names of all values in a text, in their order.
fn named(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_$.-#".contains(c);
    let names = text.split('%').skip(1).map(|rest| &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())]);
    names.filter(|name| !name.is_empty()).collect()
}

/// Splits a text at these characters outside of brackets, and stops at a bracket that closes more than was opened.
fn split<'t>(text: &'t str, at: &[char]) -> Vec<&'t str> {
    let (mut depth, mut from, mut parts) = (0_i32, 0, Vec::new());
    let mut last = ' ';
    for (index, c) in text.char_indices() {
        if depth == 0 && at.contains(&c) {
            parts.push(&text[from..index]);
            from = index + c.len_utf8();
        }
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if last == '-' => {}
            ')' | ']' | '}' | '>' => depth -= 1,
            _ => {}
        }
        last = c;
        if depth < 0 {
            return parts;
        }
    }
    parts.push(&text[from..]);
    parts
}

/// The first type in a list.
pub(super) fn first_type(text: &str) -> Option<Type> {
    let end = text.find(" * ").or_else(|| text.find(',')).unwrap_or(text.len());
    Some(Type::parse(&text[..end])).filter(|of| of.kind != ScalarKind::Other)
}

/// The types of an operation's results.
fn types(name: &str, text: &str) -> Vec<Type> {
    let said = match text.rsplit_once("->") {
        Some((_, types)) => types.trim(),
        None => match (text.rsplit_once(" to "), text.rsplit_once(" : ")) {
            (Some((_, types)), _) | (None, Some((_, types))) => types.trim(),
            (None, None) => "",
        },
    };
    let said = match said.strip_prefix('(') {
        Some(list) => split(list, &[')']).first().copied().unwrap_or_default(),
        // The type after a loop's types is that of its counter.
        None => said,
    };
    let mut types: Vec<Type> = split(said, &[',']).into_iter().map(Type::parse).collect();
    match name {
        "arith.cmpi" | "arith.cmpf" => types.iter_mut().for_each(|of| (of.kind, of.bits) = (ScalarKind::Int, 1)),
        "arith.select" => drop(types.drain(..types.len().saturating_sub(1))),
        _ => {}
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"#loc = loc("a.py":11:0)
module {
  tt.func public @kernel(%X: !tt.ptr<f16> {tt.divisibility = 16 : i32} loc("X"(#loc)), %N: i32 loc("N"(#loc))) attributes {noinline = false} {
    %cst = arith.constant dense<0.000000e+00> : tensor<512xf16> loc(#loc1)
    %sum:2 = scf.for %off = %c0_i32 to %N step %c512_i32 iter_args(%a = %cst, %b = %X) -> (tensor<512xf16>, !tt.ptr<f16>)  : i32 {
      %m = "tt.reduce"(%a) <{axis = 0 : i32}> ({
      ^bb0(%l: f16 loc(callsite(#loc1 at #loc76)), %r: f16 loc(#loc)):
        %s = arith.addf %l, %r : f16 loc(#loc114)
        tt.reduce.return %s : f16 loc(#loc110)
      }) : (tensor<512xf16>) -> f16 loc(#loc110)
      scf.yield %a, %b : tensor<512xf16>, !tt.ptr<f16> loc(#loc18)
    } {tt.num_stages = 3 : i32} loc(#loc69)
    %c = arith.cmpi slt, %N, %N : i32
    %d = scf.if %c -> (i32) {
      scf.yield %N : i32
    } else {
      scf.yield %N : i32
    }
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    tt.return
  ^bb2:  // pred: ^bb0
    %p = tt.load %sum#1, %c : !tt.ptr<f16>
    tt.return
  }
}
"#;

    #[test]
    fn operations_have_their_regions_types_and_operands() {
        let functions = parse(TEXT);
        let [kernel] = functions.as_slice() else { panic!("{functions:?}") };
        assert_eq!((kernel.name.as_str(), kernel.parameters.len(), kernel.body.len()), ("kernel", 2, 3));
        let half = Type { shape: vec![512], kind: ScalarKind::Float, bits: 16 };
        assert_eq!(kernel.parameters[0].1, Type { shape: Vec::new(), kind: ScalarKind::Pointer, bits: 16 });
        let names: Vec<&str> = kernel.body[0].ops.iter().map(|op| op.name.as_str()).collect();
        assert_eq!(names, ["arith.constant", "scf.for", "arith.cmpi", "scf.if", "cf.cond_br"]);
        let looped = &kernel.body[0].ops[1];
        assert_eq!((looped.results.len(), looped.types[0].clone(), looped.types.len()), (2, half, 2));
        assert_eq!(looped.regions[0][0].ops[0].regions[0][0].arguments.len(), 2);
        assert_eq!(looped.regions[0][0].ops[0].types[0].bits, 16);
        assert!(looped.text.contains("num_stages = 3"), "{}", looped.text);
        assert_eq!(kernel.body[0].ops[3].regions.len(), 2);
        assert_eq!(kernel.body[0].ops[2].types[0].bits, 1);
        assert_eq!((kernel.body[2].label.as_str(), kernel.body[2].ops.len()), ("bb2", 2));
        assert_eq!(kernel.body[2].ops[0].operands[0], looped.results[1]);
    }

    #[test]
    fn tensor_and_pointer_types_are_parsed() {
        let of = |text: &str| Type::parse(text);
        assert_eq!(
            of("tensor<64x32x!tt.ptr<bf16>>"),
            Type { shape: vec![64, 32], kind: ScalarKind::Pointer, bits: 16 }
        );
        assert_eq!(of("tensor<8xf8E4M3FN>").bits, 8);
        assert_eq!(of("i1"), Type { shape: Vec::new(), kind: ScalarKind::Int, bits: 1 });
        assert_eq!(of("!tt.tensordesc<tensor<16x32xf16>>").shape, [16, 32]);
        let dot = " %a, %b, %c, inputPrecision = tf32 : tensor<64x32xbf16> * tensor<32x8xbf16> -> tensor<64x8xf32>";
        assert_eq!(types("tt.dot", dot), [Type { shape: vec![64, 8], kind: ScalarKind::Float, bits: 32 }]);
        let chosen = types("arith.select", " %c, %a, %b : tensor<4xi1>, tensor<4xf32>");
        assert_eq!(chosen, [Type { shape: vec![4], kind: ScalarKind::Float, bits: 32 }]);
    }
}
