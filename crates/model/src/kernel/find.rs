//! Finds the nodes of a syntax tree from which the model is built: decorated functions, launches and imports.

use std::rc::Rc;
use std::sync::LazyLock;

use tree_sitter::Node;

use crate::syntax::{field, node_span};

/// The nodes that one pass over a segment found, in source order.
#[derive(Default)]
pub(super) struct SegmentNodes<'tree> {
    /// Functions with decorators. Which decorators are Triton's is decided later, with the aliases of the file.
    pub(super) decorated: Vec<Node<'tree>>,
    /// `kernel[grid](arguments)`: calls of a subscript.
    pub(super) launches: Vec<LaunchNode<'tree>>,
    /// Statements that may bind a name to Triton.
    pub(super) imports: Vec<Node<'tree>>,
}

/// A launch with the functions and classes around it.
pub(super) struct LaunchNode<'tree> {
    pub(super) node: Node<'tree>,
    scope: Option<Rc<Scope<'tree>>>,
}

/// A function or class that contains other nodes.
pub(super) struct Scope<'tree> {
    pub(super) node: Node<'tree>,
    pub(super) is_function: bool,
    /// The function or class around this one.
    pub(super) outer: Option<Rc<Scope<'tree>>>,
}

impl<'tree> LaunchNode<'tree> {
    /// The innermost function that contains the launch.
    pub(super) fn function(&self) -> Option<&Scope<'tree>> {
        self.scope.as_deref()?.function()
    }
}

impl<'tree> Scope<'tree> {
    /// The innermost function among this scope and the scopes around it.
    pub(super) fn function(&self) -> Option<&Self> {
        std::iter::successors(Some(self), |scope| scope.outer.as_deref()).find(|scope| scope.is_function)
    }
}

/// The innermost function or class below `root` that contains byte `offset`.
pub(super) fn scope_at(root: Node<'_>, offset: usize) -> Option<Rc<Scope<'_>>> {
    let mut scope = None;
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        if node.start_byte() > offset {
            return scope;
        }
        let is_function = node.kind_id() == KINDS.function;
        if is_function || node.kind_id() == KINDS.class {
            scope = Some(Rc::new(Scope { node, is_function, outer: scope }));
        }
        if cursor.goto_first_child_for_byte(offset).is_none() {
            return scope;
        }
    }
}

/// Which kinds of nodes a text may contain, guessed from its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hints {
    pub(super) imports: bool,
    pub(super) decorators: bool,
    pub(super) launches: bool,
}

impl Hints {
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        Self {
            imports: may_import(bytes),
            decorators: memchr::memchr(b'@', bytes).is_some(),
            launches: may_launch(bytes),
        }
    }
}

/// Whether a `]` is followed by a `(` somewhere, with only spaces and comments between them.
fn may_launch(text: &[u8]) -> bool {
    memchr::memchr_iter(b']', text).any(|at| {
        let mut rest = text[at + 1..].trim_ascii_start();
        while rest.first() == Some(&b'#') {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            rest = rest[end..].trim_ascii_start();
        }
        matches!(rest.first(), Some(b'(' | b'\\' | 0x0b | 0x80..))
    })
}

/// Whether the word `import` occurs where a statement can be: first in its line, after `from`, `:` or `;`, or in a line
/// that continues the one before.
fn may_import(text: &[u8]) -> bool {
    memchr::memmem::find_iter(text, b"import").any(|at| {
        let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1);
        let before = text[start..at].trim_ascii_start();
        before.is_empty()
            || before.starts_with(b"from")
            || before.iter().any(|byte| matches!(byte, b':' | b';' | b'\r' | 0x0b..=0x0c))
    })
}

struct Kinds {
    decorated: u16,
    function: u16,
    class: u16,
    call: u16,
    subscript: u16,
    arguments: u16,
    import: u16,
    import_from: u16,
    /// The kinds of nodes that contain statements.
    containers: Vec<u16>,
}

const CONTAINERS: [&str; 18] = [
    "module",
    "block",
    "function_definition",
    "class_definition",
    "decorated_definition",
    "if_statement",
    "for_statement",
    "while_statement",
    "with_statement",
    "try_statement",
    "match_statement",
    "elif_clause",
    "else_clause",
    "except_clause",
    "finally_clause",
    "case_clause",
    "ERROR",
    "with_clause",
];

static KINDS: LazyLock<Kinds> = LazyLock::new(|| {
    let language = tree_sitter::Language::from(tree_sitter_python::LANGUAGE);
    let id = |kind: &str| language.id_for_node_kind(kind, true);
    Kinds {
        decorated: id("decorated_definition"),
        function: id("function_definition"),
        class: id("class_definition"),
        call: id("call"),
        subscript: id("subscript"),
        arguments: id("argument_list"),
        import: id("import_statement"),
        import_from: id("import_from_statement"),
        containers: CONTAINERS.into_iter().map(id).collect(),
    }
});

/// Nodes deeper than this are skipped. Real code nests at most 150 deep.
const MAX_DEPTH: usize = 1000;

/// Walks `root`, a node of `text`, once. The walk is iterative, because the trees of hostile files are deeper than the
/// stack.
pub(super) fn find<'tree>(text: &str, root: Node<'tree>) -> SegmentNodes<'tree> {
    let mut walk = Walk { text, found: SegmentNodes::default(), scope: None, open_end: 0 };
    let (mut cursor, mut depth) = (root.walk(), 0);
    loop {
        if walk.enters(cursor.node()) && depth < MAX_DEPTH && cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return walk.found;
            }
            depth -= 1;
        }
    }
}

struct Walk<'a, 'tree> {
    text: &'a str,
    found: SegmentNodes<'tree>,
    /// The innermost function or class that was entered; the walk may have left it already.
    scope: Option<Rc<Scope<'tree>>>,
    /// Nodes that end at or before this byte may contain a launch.
    open_end: usize,
}

impl<'tree> Walk<'_, 'tree> {
    /// Records `node` if it is of interest. Returns whether nodes of interest may be below it.
    fn enters(&mut self, node: Node<'tree>) -> bool {
        let (kinds, kind) = (&*KINDS, node.kind_id());
        if kind == kinds.import || kind == kinds.import_from {
            self.found.imports.push(node);
            return false;
        }
        if kinds.containers.contains(&kind) {
            let is_function = kind == kinds.function;
            if is_function || kind == kinds.class {
                let outer = self.scope_of(node);
                self.scope = Some(Rc::new(Scope { node, is_function, outer }));
            } else if kind == kinds.decorated {
                let definition = field(node, "definition");
                if definition.is_some_and(|definition| definition.kind_id() == kinds.function) {
                    self.found.decorated.push(node);
                }
            }
            return true;
        }
        if kind == kinds.call {
            let is = |name: &str, kind: u16| field(node, name).is_some_and(|child| child.kind_id() == kind);
            if is("function", kinds.subscript) && is("arguments", kinds.arguments) {
                let scope = self.scope_of(node);
                self.found.launches.push(LaunchNode { node, scope });
            }
        }
        let span = node_span(node);
        if span.end > self.open_end
            && self.text.get(span.start..span.end).is_some_and(|text| may_launch(text.as_bytes()))
        {
            self.open_end = span.end;
        }
        span.end <= self.open_end && node.child_count() > 0
    }

    /// The innermost function or class that contains `node`.
    fn scope_of(&mut self, node: Node<'_>) -> Option<Rc<Scope<'tree>>> {
        while let Some(scope) = self.scope.take_if(|scope| scope.node.end_byte() <= node.start_byte()) {
            self.scope.clone_from(&scope.outer);
        }
        self.scope.clone()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tree_sitter::{Query, QueryCursor, StreamingIterator};

    use super::*;
    use crate::syntax::{Source, Span};

    #[test]
    fn all_node_kinds_exist_in_the_grammar() {
        let kinds = &*KINDS;
        let single = [kinds.decorated, kinds.class, kinds.call, kinds.subscript, kinds.arguments, kinds.import];
        assert!(single.iter().chain([&kinds.import_from]).chain(&kinds.containers).all(|&kind| kind != 0));
    }

    /// The same definitions as tree-sitter queries.
    const QUERIES: [&str; 3] = [
        include_str!("../../../../queries/kernels.scm"),
        include_str!("../../../../queries/launches.scm"),
        include_str!("../../../../queries/imports.scm"),
    ];

    const TEXT: &str = "import a, b.c as d\nfrom e import (f, g)\nk[1](x)\n@jit\ndef h(x):\n    import i\n    @j\n    \
        class C:\n        @m\n        @n\n        async def o(self): return k[k[2](y)](lambda: [k[z](0) for z in q])\n\
        if x:\n    try:\n        @r\n        def s(): k[0] (1); k[0]\\\n            (2)\n    except E:\n        from t import *\n\
        with u[0]() as v:\n    match v:\n        case 1:\n            w = f'{k[3](1)}'\nk[4](x for x in y)\n";

    fn of_queries(source: &Source) -> [Vec<Span>; 3] {
        QUERIES.map(|text| {
            let query = Query::new(&tree_sitter_python::LANGUAGE.into(), text).unwrap();
            let mut spans = Vec::new();
            for root in source.roots() {
                let mut cursor = QueryCursor::new();
                let mut captures = cursor.captures(&query, root, source.text().as_bytes());
                while let Some((matched, index)) = captures.next() {
                    spans.push(node_span(matched.captures()[*index].node));
                }
            }
            spans.sort_unstable();
            spans
        })
    }

    fn of_walk(source: &Source) -> [Vec<Span>; 3] {
        let (mut decorated, mut launches, mut imports) = (Vec::new(), Vec::new(), Vec::new());
        for root in source.roots() {
            let found = find(source.text(), root);
            decorated.extend(found.decorated.into_iter().map(node_span));
            launches.extend(found.launches.into_iter().map(|launch| node_span(launch.node)));
            imports.extend(found.imports.into_iter().map(node_span));
        }
        [decorated, launches, imports].map(|mut spans: Vec<Span>| {
            spans.sort_unstable();
            spans
        })
    }

    #[test]
    fn the_walk_finds_what_the_queries_find() {
        let source = Source::parse(TEXT);
        let found = of_walk(&source);
        assert_eq!(found, of_queries(&source));
        assert_eq!(found.map(|spans| spans.len()), [3, 8, 4]);
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../queries");
        let files = std::fs::read_dir(dir).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_file());
        assert_eq!(files.count(), QUERIES.len(), "a file in queries/ is not compared");
    }

    proptest! {
        #[test]
        fn the_walk_finds_no_more_than_the_queries_in_broken_texts(from in 0..TEXT.len(), length in 0..40_usize) {
            let mut text = TEXT.to_owned();
            text.replace_range(from..(from + length).min(TEXT.len()), "");
            let source = Source::parse(text);
            // Where the parser found no statement, the walk may skip nodes that the queries find.
            for (walked, queried) in of_walk(&source).iter().zip(of_queries(&source)) {
                prop_assert!(walked.iter().all(|span| queried.contains(span)));
                prop_assert!(source.has_error() || walked.len() == queried.len());
            }
        }
    }
}
