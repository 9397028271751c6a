//! The queries of `queries/`, compiled together, once, when first needed.

use std::sync::LazyLock;

use tree_sitter::{Node, Query, QueryCursor, StreamingIterator};

use crate::syntax::Source;

const FILES: [&str; 3] = [
    include_str!("../../queries/kernels.scm"),
    include_str!("../../queries/launches.scm"),
    include_str!("../../queries/imports.scm"),
];

static QUERY: LazyLock<Query> = LazyLock::new(|| {
    Query::new(&tree_sitter_python::LANGUAGE.into(), &FILES.concat()).expect("the queries fit the grammar (tested)")
});

/// What one pass over a part of a file found, in source order.
#[derive(Default)]
pub(super) struct Found<'tree> {
    pub(super) decorated: Vec<Node<'tree>>,
    pub(super) launches: Vec<Node<'tree>>,
    pub(super) imports: Vec<Node<'tree>>,
}

/// Runs all queries in one pass over `node`.
pub(super) fn find<'tree>(source: &Source, node: Node<'tree>) -> Found<'tree> {
    let mut found = Found::default();
    let mut cursor = QueryCursor::new();
    let mut captures = cursor.captures(&QUERY, node, source.text().as_bytes());
    while let Some((matched, index)) = captures.next() {
        let capture = matched.captures()[*index];
        match QUERY.capture_names()[capture.index as usize] {
            "decorated" => found.decorated.push(capture.node),
            "launch" => found.launches.push(capture.node),
            _ => found.imports.push(capture.node),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_file_compiles_and_is_used() {
        for text in FILES {
            Query::new(&tree_sitter_python::LANGUAGE.into(), text).unwrap();
        }
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/queries");
        assert_eq!(std::fs::read_dir(dir).unwrap().count(), FILES.len(), "a file in queries/ is not compiled");
    }
}
