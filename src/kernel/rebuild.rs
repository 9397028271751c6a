//! Reads the model off a text that differs little from one whose model is known.

use std::collections::HashMap;

use tree_sitter::Node;

use super::ast::{Expr, StmtKind};
use super::build::{TopLevel, top_level};
use super::lower::Lower;
use super::shift::Shift;
use super::{Host, Imports, Kernel, Launch, Module, bindings};
use crate::syntax::{Source, Span, node_span};

/// What the model has of one node below the root.
#[derive(Default)]
struct Item {
    row: usize,
    kernels: Vec<Kernel>,
    launches: Vec<Launch>,
    hosts: Vec<Host>,
}

impl Module {
    /// The same as [`Module::build`] of `source`, in less time: takes over what stands unchanged in definitions from
    /// `before`, the model of `before_source`.
    #[must_use]
    pub fn rebuild(source: &Source, before: Self, before_source: &Source) -> Self {
        if before.imports.is_empty() {
            return Self::build(source);
        }
        let change = Change::between(before_source.text(), source.text());
        let (old, new) = (children(before_source), children(source));
        let is_same =
            |old: &Node<'_>, new: &Node<'_>| old.kind_id() == new.kind_id() && !old.has_error() && !new.has_error();
        let by_span: HashMap<Span, usize> = new.iter().enumerate().map(|(at, node)| (node_span(*node), at)).collect();
        // For each new node the old one that is the same.
        let mut same = vec![None; new.len()];
        for (at, node) in old.iter().enumerate() {
            let found = change.follow(node_span(*node)).and_then(|span| by_span.get(&span));
            match found.filter(|&&found| is_same(node, &new[found])) {
                Some(&found) => same[found] = Some(at),
                None if is_contained(*node, before_source, &before.imports) => {}
                None => return Self::build(source),
            }
        }
        let is_fine =
            |(node, same): (&Node<'_>, &Option<usize>)| same.is_some() || is_contained(*node, source, &before.imports);
        if !new.iter().zip(&same).all(is_fine) {
            return Self::build(source);
        }
        let (mut items, imports) = take_apart(before, &old);
        let TopLevel { globals, functions, uncertain } = top_level(source, None);
        let (bindings, has_star_import) = bindings::read(source);
        let mut module = Self { imports, globals, functions, uncertain, bindings, has_star_import, ..Self::default() };
        for (node, same) in new.iter().zip(same) {
            match same {
                Some(at) => {
                    let by = node.start_byte().wrapping_sub(old[at].start_byte()).cast_signed();
                    module.append(std::mem::take(&mut items[at]), by, node.start_position().row);
                }
                None => module.read(source, *node),
            }
        }
        module.note_calls();
        module
    }

    fn append(&mut self, mut item: Item, by: isize, row: usize) {
        if by != 0 {
            item.kernels.shift(by);
            item.launches.shift(by);
            item.hosts.shift(by);
        }
        for host in &mut item.hosts {
            host.line = host.line - item.row + row;
        }
        let first = self.hosts.len();
        for launch in &mut item.launches {
            launch.host = launch.host.map(|host| host + first);
        }
        self.kernels.append(&mut item.kernels);
        self.launches.append(&mut item.launches);
        self.hosts.append(&mut item.hosts);
    }
}

fn children(source: &Source) -> Vec<Node<'_>> {
    let root = source.tree().root_node();
    let mut cursor = root.walk();
    root.named_children(&mut cursor).collect()
}

/// Whether a change of this node changes nothing for others: it neither imports nor has to do with what is imported.
fn is_contained(node: Node<'_>, source: &Source, imports: &Imports) -> bool {
    match node.kind() {
        "comment" => true,
        "expression_statement" => match Lower::new(source.text()).stmt(node).kind {
            StmtKind::Assign { targets, value: Some(value), .. } => {
                !targets.iter().filter_map(Expr::as_name).any(|name| imports.concern(name, &value))
            }
            _ => true,
        },
        "function_definition" | "class_definition" | "decorated_definition" => {
            !source.slice(node_span(node)).contains("import")
        }
        _ => false,
    }
}

/// The parts of a model by the nodes that they stand in; hosts are counted from the first of their node.
fn take_apart(module: Module, nodes: &[Node<'_>]) -> (Vec<Item>, Imports) {
    let Module { imports, kernels, launches, hosts, .. } = module;
    let (mut kernels, mut launches, mut hosts) =
        (kernels.into_iter().peekable(), launches.into_iter().peekable(), hosts.into_iter().peekable());
    let mut seen = 0;
    let items = nodes
        .iter()
        .map(|node| {
            let end = node.end_byte();
            let mut item = Item { row: node.start_position().row, ..Item::default() };
            item.kernels.extend(std::iter::from_fn(|| kernels.next_if(|kernel| kernel.span.start < end)));
            item.launches.extend(std::iter::from_fn(|| launches.next_if(|launch| launch.span.start < end)));
            item.hosts.extend(std::iter::from_fn(|| hosts.next_if(|host| host.span.start < end)));
            for launch in &mut item.launches {
                launch.host = launch.host.map(|host| host - seen);
            }
            seen += item.hosts.len();
            item
        })
        .collect();
    (items, imports)
}

/// The one stretch in which two texts differ.
struct Change {
    /// Where it begins in both.
    start: usize,
    /// Where it ends in the old text.
    old_end: usize,
    /// How much longer the new text is.
    by: isize,
}

impl Change {
    fn between(old: &str, new: &str) -> Self {
        let (old, new) = (old.as_bytes(), new.as_bytes());
        let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let rest = (old.len() - start).min(new.len() - start);
        let same = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
        Self { start, old_end: old.len() - same, by: new.len().wrapping_sub(old.len()).cast_signed() }
    }

    /// Where a span of the old text is in the new one, when nothing in it has changed.
    fn follow(&self, span: Span) -> Option<Span> {
        if span.end <= self.start {
            return Some(span);
        }
        (span.start >= self.old_end).then(|| {
            let mut span = span;
            span.shift(self.by);
            span
        })
    }
}
