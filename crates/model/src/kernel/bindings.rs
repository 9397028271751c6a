//! The bindings of the names at the top level of a file.

use tree_sitter::Node;

use super::ast::{Expr, StmtKind};
use super::ast_builder::AstBuilder;
use crate::syntax::field;

/// The way in which the top level binds a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GlobalBinding {
    /// By a single assignment; see [`Module::globals`](super::Module::globals).
    Assigned,
    /// By a plain function, without decorators.
    Function,
    /// By a class.
    Class,
    /// By a single import of the module or member with this path. A relative path begins with a dot.
    Import(String),
    /// In another way, or several times.
    Other,
}

/// The names that statements below `root` bind, in order and possibly repeated, and whether `from … import *` may bind
/// more.
pub(super) fn read(root: Node<'_>, lower: AstBuilder<'_>) -> (Vec<(String, GlobalBinding)>, bool) {
    let mut reader = Reader { lower, names: Vec::new(), star: false };
    reader.block(root, false);
    (reader.names, reader.star)
}

/// The names that a single top-level statement binds.
pub(super) fn of_statement(node: Node<'_>, lower: AstBuilder<'_>) -> Vec<String> {
    let mut reader = Reader { lower, names: Vec::new(), star: false };
    reader.statement(node, false);
    reader.names.into_iter().map(|(name, _)| name).collect()
}

struct Reader<'a> {
    lower: AstBuilder<'a>,
    names: Vec<(String, GlobalBinding)>,
    star: bool,
}

impl Reader<'_> {
    fn bind(&mut self, name: &str, binding: GlobalBinding, conditional: bool) {
        let binding = if conditional { GlobalBinding::Other } else { binding };
        self.names.push((name.to_owned(), binding));
    }

    fn block(&mut self, node: Node<'_>, conditional: bool) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            self.statement(child, conditional);
        }
    }

    fn statement(&mut self, node: Node<'_>, conditional: bool) {
        match node.kind() {
            "import_statement" | "import_from_statement" | "future_import_statement" => self.import(node, conditional),
            "function_definition" => self.named(node, GlobalBinding::Function, conditional),
            "class_definition" => self.named(node, GlobalBinding::Class, conditional),
            "decorated_definition" => {
                if let Some(inner) = field(node, "definition") {
                    self.named(inner, GlobalBinding::Other, conditional);
                }
            }
            "expression_statement" => self.assignment(node, conditional),
            "block" | "if_statement" | "elif_clause" | "else_clause" | "try_statement" | "except_clause"
            | "finally_clause" | "with_statement" | "while_statement" | "match_statement" | "case_clause" => {
                self.block(node, true);
            }
            "for_statement" => {
                if let Some(target) = field(node, "left") {
                    self.targets(&self.lower.expr(target), &GlobalBinding::Other);
                }
                self.block(node, true);
            }
            "ERROR" => self.star = true,
            _ => {}
        }
    }

    fn named(&mut self, node: Node<'_>, binding: GlobalBinding, conditional: bool) {
        if let Some(name) = field(node, "name") {
            let name = self.lower.str(name).to_owned();
            self.bind(&name, binding, conditional);
        }
    }

    fn assignment(&mut self, node: Node<'_>, conditional: bool) {
        match self.lower.stmt(node).kind {
            StmtKind::Assign { targets, value, .. } => {
                let binding = match (targets.as_slice(), &value) {
                    ([only], Some(_)) if only.as_name().is_some() => GlobalBinding::Assigned,
                    _ => GlobalBinding::Other,
                };
                let binding = if conditional { GlobalBinding::Other } else { binding };
                targets.iter().for_each(|target| self.targets(target, &binding));
            }
            StmtKind::AugAssign { target, .. } => self.targets(&target, &GlobalBinding::Other),
            StmtKind::Expr(expr) => expr.walk(&mut |expr| {
                if let super::ast::ExprKind::Named { name, .. } = &expr.kind {
                    self.bind(name, GlobalBinding::Other, true);
                }
            }),
            _ => {}
        }
    }

    fn targets(&mut self, target: &Expr, binding: &GlobalBinding) {
        match target.as_name() {
            Some(name) => self.bind(name, binding.clone(), false),
            None => target.walk(&mut |expr| {
                if let Some(name) = expr.as_name() {
                    self.bind(name, GlobalBinding::Other, true);
                }
            }),
        }
    }

    fn import(&mut self, node: Node<'_>, conditional: bool) {
        let mut cursor = node.walk();
        for item in node.named_children(&mut cursor) {
            if item.kind() == "wildcard_import" {
                self.star = true;
            }
        }
        let mut cursor = node.walk();
        for item in node.children_by_field_name("name", &mut cursor) {
            let alias = field(item, "alias").map(|alias| self.lower.str(alias));
            let full = self.lower.str(field(item, "name").unwrap_or(item));
            let name = alias.unwrap_or_else(|| full.split('.').next().unwrap_or("").trim()).to_owned();
            let module = field(node, "module_name").map(|module| self.lower.str(module));
            let path = match (module, alias) {
                (Some(module), _) => format!("{module}.{full}"),
                (None, Some(_)) => full.to_owned(),
                (None, None) => name.clone(),
            };
            self.bind(&name, GlobalBinding::Import(path), conditional);
        }
    }
}
