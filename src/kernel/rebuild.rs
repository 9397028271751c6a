//! Reads the model off a text that differs little from one whose model is known.

use tree_sitter::Node;

use super::ast::{Expr, StmtKind};
use super::lower::Lower;
use super::shift::Shift;
use super::{Imports, Module, Part, query};
use crate::syntax::{Segment, Source, node_span, unchanged};

impl Module {
    /// The same as [`Module::build`] of `source`, in less time: takes over what stands unchanged in segments from
    /// `before`, the model of `before_source`.
    #[must_use]
    pub fn rebuild(source: &Source, mut before: Self, before_source: &Source) -> Self {
        let (old, new) = (before_source.segments(), source.segments());
        let (first, last) = unchanged(old, new);
        let (gone, come) = (&old[first..old.len() - last], &new[first..new.len() - last]);
        let is_contained = |segments: &[Segment], source| {
            segments.iter().all(|segment| is_contained(segment.root(), source, &before.imports))
        };
        if before.imports.is_empty() || !is_contained(gone, before_source) || !is_contained(come, source) {
            return Self::build(source);
        }
        let mut rest = before.split_off(old.len() - last);
        before.split_off(first);
        let lower = Lower::new(source.text());
        for segment in come {
            before.add_top_level(segment.root(), lower);
            before.add(before.parts.len() - 1, &query::find(source, segment.root()), lower);
        }
        if let (Some(old), Some(new)) = (old[old.len() - last..].first(), new[new.len() - last..].first()) {
            rest.shift(new.start().wrapping_sub(old.start()).cast_signed());
            rest.hosts.iter_mut().for_each(|host| host.line = host.line - old.row() + new.row());
        }
        before.append(rest);
        before.conclude();
        before
    }

    /// Takes off what comes from the segments from `at` on.
    fn split_off(&mut self, at: usize) -> Self {
        let parts = self.parts.split_off(at);
        let count = |count: fn(&Part) -> usize| parts.iter().map(count).sum::<usize>();
        let (kernels, launches) = (count(|part| part.kernels), count(|part| part.launches));
        let (hosts, globals) = (count(|part| part.hosts), count(|part| part.globals));
        let first_host = self.hosts.len() - hosts;
        let mut launches = self.launches.split_off(self.launches.len() - launches);
        launches.iter_mut().for_each(|launch| launch.host = launch.host.map(|host| host - first_host));
        Self {
            kernels: self.kernels.split_off(self.kernels.len() - kernels),
            launches,
            hosts: self.hosts.split_off(first_host),
            globals: self.globals.split_off(self.globals.len() - globals),
            parts,
            ..Self::default()
        }
    }

    /// Adds what [`Self::split_off`] took off.
    fn append(&mut self, mut rest: Self) {
        let hosts = self.hosts.len();
        rest.launches.iter_mut().for_each(|launch| launch.host = launch.host.map(|host| host + hosts));
        self.kernels.append(&mut rest.kernels);
        self.launches.append(&mut rest.launches);
        self.hosts.append(&mut rest.hosts);
        self.globals.append(&mut rest.globals);
        self.parts.append(&mut rest.parts);
    }

    fn shift(&mut self, by: isize) {
        if by != 0 {
            self.kernels.shift(by);
            self.launches.shift(by);
            self.hosts.shift(by);
            self.globals.shift(by);
        }
    }
}

/// Whether a change of these statements changes nothing for others: they neither import nor have to do with what is
/// imported.
fn is_contained(root: Node<'_>, source: &Source, imports: &Imports) -> bool {
    let mut cursor = root.walk();
    root.named_children(&mut cursor).all(|node| match node.kind() {
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
    })
}
