//! The names in scope at a place of a kernel, with their kinds.

use rustc_hash::FxHashMap as HashMap;

use model::kernel::Module;
use model::kernel::ast::{Stmt, StmtKind};
use model::syntax::{Source, Span};

use crate::oracle::TypedExpression;
use crate::program::KernelProgram;

/// The kind of value of a name or an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ValueKind {
    Float,
    Int,
    Bool,
    Pointers,
    Real,
    Integer,
    Pointer,
    Constant,
}

/// A name with the kind and shape of its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScopedName {
    pub(crate) text: String,
    pub(crate) kind: ValueKind,
    pub(crate) shape: String,
}

/// A statement with the names that are in scope after it.
#[derive(Clone, Debug)]
pub(crate) struct ScopedStatement {
    pub(crate) stmt: Span,
    pub(crate) names: Vec<ScopedName>,
}

/// The kind and shape of a type as Triton prints it (`fp32[64]`).
pub(crate) fn kind_of(ty: &str) -> Option<(ValueKind, &str)> {
    let (element, shape) = ty.split_at(ty.find('[').unwrap_or(ty.len()));
    let is_tile = !shape.is_empty();
    let kind = match element {
        _ if element.starts_with('*') => [ValueKind::Pointer, ValueKind::Pointers][usize::from(is_tile)],
        "int1" | "i1" if is_tile => ValueKind::Bool,
        _ if element.starts_with("fp") || element.starts_with("bf") => {
            [ValueKind::Real, ValueKind::Float][usize::from(is_tile)]
        }
        _ if element.starts_with('i') || element.starts_with('u') => {
            [ValueKind::Integer, ValueKind::Int][usize::from(is_tile)]
        }
        _ => return None,
    };
    Some((kind, shape))
}

/// The statements of a program's kernel after which code can be inserted.
pub(crate) fn places(program: &KernelProgram, typed: &[TypedExpression]) -> Vec<ScopedStatement> {
    let source = Source::parse(program.text.as_str());
    let module = Module::build(&source);
    let (Some(kernel), Some(request)) = (module.kernel(&program.kernel), program.request(false)) else {
        return Vec::new();
    };
    let types: HashMap<Span, &str> = typed.iter().map(|(span, ty)| (*span, ty.as_str())).collect();
    let mut names: Vec<ScopedName> = Vec::new();
    for param in &kernel.params {
        let kind = match request.signature.get(&param.name) {
            Some(ty) => kind_of(ty).map(|(kind, _)| kind),
            None => request.constexprs.get(&param.name).and_then(|value| value.as_i64()).map(|_| ValueKind::Constant),
        };
        names.extend(kind.map(|kind| ScopedName { text: param.name.clone(), kind, shape: String::new() }));
    }
    let mut places = Vec::new();
    walk(&kernel.body, &types, &names, &mut places);
    places
}

fn walk(body: &[Stmt], types: &HashMap<Span, &str>, outer: &[ScopedName], places: &mut Vec<ScopedStatement>) {
    let mut names = outer.to_vec();
    for stmt in body {
        match &stmt.kind {
            StmtKind::Assign { targets, value: Some(value), .. } => {
                let target = targets.first().and_then(|target| target.as_name());
                let known = types.get(&value.span).and_then(|ty| kind_of(ty));
                if let (Some(name), Some((kind, shape))) = (target, known) {
                    names.retain(|one| one.text != name);
                    names.push(ScopedName { text: name.to_owned(), kind, shape: shape.to_owned() });
                }
                places.push(ScopedStatement { stmt: stmt.span, names: names.clone() });
            }
            StmtKind::AugAssign { .. } => places.push(ScopedStatement { stmt: stmt.span, names: names.clone() }),
            StmtKind::If { branches, orelse } => {
                branches.iter().for_each(|(_, body)| walk(body, types, &names, places));
                walk(orelse, types, &names, places);
            }
            StmtKind::For { body, target, .. } => {
                let mut inner = names.clone();
                if let Some(name) = target.as_name() {
                    inner.push(ScopedName { text: name.to_owned(), kind: ValueKind::Integer, shape: String::new() });
                }
                walk(body, types, &inner, places);
            }
            StmtKind::While { body, .. } => walk(body, types, &names, places),
            _ => {}
        }
    }
}
