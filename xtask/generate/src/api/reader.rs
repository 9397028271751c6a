//! Reads the Python files of one release into a [`Table`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use model::api::{Member, MemberKind, MemberParameter, Table, Version};
use model::syntax::Source;
use tree_sitter::Node;

/// The modules that the tables describe.
const DESCRIBED: [&str; 6] = [
    "triton",
    "triton.language",
    "triton.language.core",
    "triton.language.math",
    "triton.language.random",
    "triton.language.standard",
];

/// The dataclasses whose fields are keyword arguments of a launch.
const OPTIONS: [(&str, &str); 2] =
    [("triton/backends/nvidia/compiler.py", "CUDAOptions"), ("triton/backends/amd/compiler.py", "HIPOptions")];

/// The parameters that the compiler passes itself.
const INTERNAL: [&str; 3] = ["_builder", "_semantic", "_generator"];

pub(super) type Members = BTreeMap<String, Member>;

/// Reads the table of the release whose files lie in `root`.
pub(super) fn read(root: &Path, version: Version) -> Result<Table> {
    let mut reader = Reader { root, read: BTreeMap::new() };
    let mut modules = BTreeMap::new();
    for name in DESCRIBED {
        modules.insert(name.to_owned(), reader.module(name)?);
    }
    modules.insert("triton.language.tensor".to_owned(), super::tensor::members(root)?);
    let mut launch_options = Vec::new();
    for (path, class) in OPTIONS {
        for option in option_names(&root.join(path), class)? {
            if !launch_options.contains(&option) {
                launch_options.push(option);
            }
        }
    }
    Ok(Table { version, modules, launch_options })
}

struct Reader<'a> {
    root: &'a Path,
    /// Modules read so far; `None` while one is being read, which ends cycles of imports.
    read: BTreeMap<String, Option<Members>>,
}

/// A module that is being read.
struct Scope<'a> {
    name: &'a str,
    is_package: bool,
    text: &'a str,
    members: Members,
}

impl Scope<'_> {
    fn str(&self, node: Node<'_>) -> &str {
        &self.text[node.byte_range()]
    }

    fn bind(&mut self, name: &str, kind: MemberKind) {
        self.members.insert(name.to_owned(), Member { kind, params: Vec::new() });
    }
}

impl Reader<'_> {
    fn file(&self, module: &str) -> Option<(PathBuf, bool)> {
        let path = self.root.join(module.replace('.', "/"));
        let (package, plain) = (path.join("__init__.py"), path.with_extension("py"));
        if package.exists() { Some((package, true)) } else { plain.exists().then_some((plain, false)) }
    }

    /// The members of a module of Triton; none where its file does not exist (an extension module).
    fn module(&mut self, name: &str) -> Result<Members> {
        if let Some(read) = self.read.get(name) {
            return Ok(read.clone().unwrap_or_default());
        }
        let Some((path, is_package)) = self.file(name) else { return Ok(Members::new()) };
        self.read.insert(name.to_owned(), None);
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let source = Source::parse(text.as_str());
        ensure!(!source.has_error(), "{} does not parse", path.display());
        let mut scope = Scope { name, is_package, text: &text, members: Members::new() };
        for root in source.roots() {
            self.block(root, &mut scope)?;
        }
        let mut members = scope.members;
        if is_package {
            // A submodule becomes an attribute as soon as it is imported from anywhere, not only by the package itself.
            for submodule in submodules(path.parent().context("a file has a folder")?)? {
                members.entry(submodule).or_insert(Member { kind: MemberKind::Module, params: Vec::new() });
            }
        }
        self.read.insert(name.to_owned(), Some(members.clone()));
        Ok(members)
    }

    /// Reads the statements that run when the module is imported, including all branches of conditional ones.
    fn block(&mut self, node: Node<'_>, scope: &mut Scope<'_>) -> Result<()> {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            self.statement(child, scope)?;
        }
        Ok(())
    }

    fn statement(&mut self, node: Node<'_>, scope: &mut Scope<'_>) -> Result<()> {
        match node.kind() {
            "import_statement" => import(node, scope),
            "import_from_statement" => self.import_from(node, scope)?,
            "future_import_statement" => {
                let mut cursor = node.walk();
                for name in node.children_by_field_name("name", &mut cursor) {
                    let name = scope.str(name).to_owned();
                    scope.bind(&name, MemberKind::Value);
                }
            }
            "function_definition" | "class_definition" => definition(node, &[], scope),
            "decorated_definition" => {
                let mut cursor = node.walk();
                let decorators: Vec<Node<'_>> =
                    node.named_children(&mut cursor).filter(|child| child.kind() == "decorator").collect();
                let inner = node.child_by_field_name("definition").context("a decorator decorates something")?;
                definition(inner, &decorators, scope);
            }
            "expression_statement" => {
                if let Some(assignment) = node.named_child(0).filter(|inner| inner.kind() == "assignment") {
                    self.assignment(assignment, scope);
                }
            }
            "if_statement" => {
                let test = node.child_by_field_name("condition").map_or("", |test| &scope.text[test.byte_range()]);
                let mut cursor = node.walk();
                for child in node.named_children(&mut cursor) {
                    if !(test.ends_with("TYPE_CHECKING") && child.kind() == "block") {
                        self.statement(child, scope)?;
                    }
                }
            }
            "for_statement" => {
                if let Some(target) = node.child_by_field_name("left") {
                    bind_targets(target, scope);
                }
                self.block(node, scope)?;
            }
            "block" | "try_statement" | "with_statement" | "while_statement" | "else_clause" | "elif_clause"
            | "except_clause" | "finally_clause" => self.block(node, scope)?,
            "delete_statement" => {
                let mut cursor = node.walk();
                for name in node.named_children(&mut cursor) {
                    let name = scope.str(name).to_owned();
                    scope.members.remove(&name);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn import_from(&mut self, node: Node<'_>, scope: &mut Scope<'_>) -> Result<()> {
        let written = node.child_by_field_name("module_name").context("an import names a module")?;
        let module = absolute(scope.str(written), scope);
        let mut cursor = node.walk();
        if node.named_children(&mut cursor).any(|child| child.kind() == "wildcard_import") {
            bail!("{}: `from {module} import *` is not understood", scope.name);
        }
        for item in node.children_by_field_name("name", &mut cursor) {
            let (name, alias) = alias(item, scope);
            let (name, alias) = (name.to_owned(), alias.to_owned());
            let member = self.imported(&module, &name)?;
            scope.members.insert(alias, member);
        }
        Ok(())
    }

    /// Adds the names that `from module import name` binds.
    fn imported(&mut self, module: &str, name: &str) -> Result<Member> {
        let unknown = Member { kind: MemberKind::Value, params: Vec::new() };
        if module.split('.').next() != Some("triton") {
            return Ok(unknown);
        }
        if let Some(member) = self.module(module)?.remove(name) {
            return Ok(member);
        }
        let is_module = self.file(&format!("{module}.{name}")).is_some();
        Ok(if is_module { Member { kind: MemberKind::Module, params: Vec::new() } } else { unknown })
    }

    fn assignment(&mut self, node: Node<'_>, scope: &mut Scope<'_>) {
        let Some(left) = node.child_by_field_name("left") else { return };
        let Some(right) = node.child_by_field_name("right") else { return }; // a bare annotation binds nothing
        if right.kind() == "assignment" {
            self.assignment(right, scope);
        }
        if left.kind() == "identifier" {
            let member = self.value(right, scope);
            let name = scope.str(left).to_owned();
            scope.members.insert(name, member);
        } else {
            bind_targets(left, scope);
        }
    }

    /// The kind of an assigned expression: another name, a dtype, a lambda, or a plain value.
    fn value(&mut self, node: Node<'_>, scope: &Scope<'_>) -> Member {
        let kind = match node.kind() {
            "identifier" | "attribute" => {
                if let Some(member) = self.named(scope.str(node), scope) {
                    return member;
                }
                MemberKind::Value
            }
            "call" => match node.child_by_field_name("function").map(|function| scope.str(function)) {
                Some("dtype" | "pointer_type") => MemberKind::Dtype,
                _ => MemberKind::Value,
            },
            "lambda" => MemberKind::Function,
            _ => MemberKind::Value,
        };
        Member { kind, params: Vec::new() }
    }

    /// The member that a dotted name in a module refers to.
    fn named(&mut self, path: &str, scope: &Scope<'_>) -> Option<Member> {
        let Some((module, name)) = path.rsplit_once('.') else { return scope.members.get(path).cloned() };
        self.module(&format!("{}.{module}", scope.name)).ok()?.remove(name)
    }
}

/// `import a.b` binds `a`, `import a.b as c` binds `c`.
fn import(node: Node<'_>, scope: &mut Scope<'_>) {
    let mut cursor = node.walk();
    for item in node.children_by_field_name("name", &mut cursor) {
        let (name, alias) = alias(item, scope);
        let bound = if name == alias { name.split('.').next().unwrap_or(name) } else { alias }.to_owned();
        scope.bind(&bound, MemberKind::Module);
    }
}

/// The imported name and the name it is bound to.
fn alias<'a>(item: Node<'_>, scope: &'a Scope<'_>) -> (&'a str, &'a str) {
    let field = |name| item.child_by_field_name(name).map_or_else(|| scope.str(item), |node| scope.str(node));
    if item.kind() == "aliased_import" { (field("name"), field("alias")) } else { (scope.str(item), scope.str(item)) }
}

/// The full name of a module written in `from … import`.
fn absolute(written: &str, scope: &Scope<'_>) -> String {
    let rest = written.trim_start_matches('.');
    let dots = written.len() - rest.len();
    if dots == 0 {
        return written.to_owned();
    }
    let up = dots - usize::from(scope.is_package);
    let mut parts: Vec<&str> = scope.name.split('.').collect();
    parts.truncate(parts.len() - up);
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts.join(".")
}

fn bind_targets(target: Node<'_>, scope: &mut Scope<'_>) {
    if target.kind() == "identifier" {
        let name = scope.str(target).to_owned();
        scope.bind(&name, MemberKind::Value);
    } else if matches!(target.kind(), "pattern_list" | "tuple_pattern" | "list_pattern") {
        let mut cursor = target.walk();
        for inner in target.named_children(&mut cursor) {
            bind_targets(inner, scope);
        }
    }
}

fn definition(node: Node<'_>, decorators: &[Node<'_>], scope: &mut Scope<'_>) {
    let Some(name) = node.child_by_field_name("name").map(|name| scope.str(name).to_owned()) else { return };
    let decorated = |wanted: &[&str]| {
        decorators.iter().any(|decorator| {
            let text = scope.str(*decorator).trim_start_matches('@');
            let path = text.split('(').next().unwrap_or(text).trim();
            wanted.contains(&path.rsplit('.').next().unwrap_or(path))
        })
    };
    let member = if node.kind() == "class_definition" {
        Member { kind: MemberKind::Class, params: class_params(node, decorated(&["dataclass"]), scope) }
    } else {
        let kind = if decorated(&["builtin"]) {
            MemberKind::Builtin
        } else if decorated(&["jit"]) {
            MemberKind::Jit
        } else {
            MemberKind::Function
        };
        Member { kind, params: params(node, scope.text) }
    };
    scope.members.insert(name, member);
}

/// Whether a definition has the decorator `@wanted`, from whichever module.
pub(super) fn decorated(node: Node<'_>, text: &str, wanted: &str) -> bool {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|child| child.kind() == "decorator").any(|decorator| {
        let written = text[decorator.byte_range()].trim_start_matches('@');
        let path = written.split('(').next().unwrap_or(written).trim();
        path.rsplit('.').next() == Some(wanted)
    })
}

/// Parameters of `__init__`, of the base class of the same file where there is none, or a dataclass's fields.
fn class_params(class: Node<'_>, dataclass: bool, scope: &Scope<'_>) -> Vec<MemberParameter> {
    if let Some(init) = method(class, "__init__", scope.text) {
        return params(init, scope.text).split_off(1);
    }
    if dataclass {
        return fields(class, scope.text);
    }
    let base = class.child_by_field_name("superclasses").and_then(|list| list.named_child(0));
    let inherited = base.and_then(|base| scope.members.get(scope.str(base)));
    inherited.map_or_else(Vec::new, |base| base.params.clone())
}

fn method<'a>(class: Node<'a>, wanted: &str, text: &str) -> Option<Node<'a>> {
    let body = class.child_by_field_name("body")?;
    let mut cursor = body.walk();
    body.named_children(&mut cursor)
        .map(|child| child.child_by_field_name("definition").unwrap_or(child))
        .filter(|child| child.kind() == "function_definition")
        .find(|child| child.child_by_field_name("name").is_some_and(|name| &text[name.byte_range()] == wanted))
}

/// `name: type = default` in the body of a class.
fn fields(class: Node<'_>, text: &str) -> Vec<MemberParameter> {
    let Some(body) = class.child_by_field_name("body") else { return Vec::new() };
    let mut cursor = body.walk();
    body.named_children(&mut cursor)
        .filter_map(|child| child.named_child(0).filter(|inner| inner.kind() == "assignment"))
        .filter(|assignment| assignment.child_by_field_name("type").is_some())
        .filter_map(|assignment| {
            Some(MemberParameter {
                name: text[assignment.child_by_field_name("left")?.byte_range()].to_owned(),
                default: assignment.child_by_field_name("right").map(|value| one_line(&text[value.byte_range()])),
            })
        })
        .collect()
}

pub(super) fn params(function: Node<'_>, text: &str) -> Vec<MemberParameter> {
    let Some(list) = function.child_by_field_name("parameters") else { return Vec::new() };
    let str = |node: Node<'_>| one_line(&text[node.byte_range()]);
    let mut cursor = list.walk();
    list.named_children(&mut cursor)
        .filter_map(|node| match node.kind() {
            "comment" | "positional_separator" => None,
            "typed_parameter" => Some(MemberParameter { name: str(node.named_child(0)?), default: None }),
            "default_parameter" | "typed_default_parameter" => Some(MemberParameter {
                name: str(node.child_by_field_name("name")?),
                default: node.child_by_field_name("value").map(str),
            }),
            // A name, `*args`, `**kwargs`, and the `*` before keyword-only parameters.
            _ => Some(MemberParameter { name: str(node), default: None }),
        })
        .filter(|param| !INTERNAL.contains(&param.name.as_str()))
        .collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn submodules(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        // A folder without `__init__.py` is a module as well (`triton._C`).
        let is_module = path.extension().is_some_and(|extension| extension == "py") || path.is_dir();
        if is_module && !stem.starts_with("__") {
            names.push(stem.to_owned());
        }
    }
    Ok(names)
}

/// The fields of an options class, and the attributes that it sets itself: a launch may pass both.
fn option_names(path: &Path, class: &str) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let source = Source::parse(text.as_str());
    let node = source
        .roots()
        .flat_map(|root| (0..root.named_child_count()).filter_map(move |at| root.named_child(at as u32)))
        .map(|child| child.child_by_field_name("definition").unwrap_or(child))
        .find(|child| child.child_by_field_name("name").is_some_and(|name| &text[name.byte_range()] == class))
        .with_context(|| format!("{} has no class {class}", path.display()))?;
    let mut names: Vec<String> = fields(node, &text).into_iter().map(|field| field.name).collect();
    for at in text[node.byte_range()].split("object.__setattr__(self, '").skip(1) {
        names.extend(at.split('\'').next().map(str::to_owned));
    }
    Ok(names)
}
