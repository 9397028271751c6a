//! The kernel model: the kernels, parameters, launches and autotune configurations of one file.
//!
//! The model is pure: it is built from a [`Source`](crate::syntax::Source) alone, owns its data and can be compared.

pub mod ast;
mod ast_builder;
mod bindings;
mod build;
mod dependencies;
mod fact_anchors;
mod facts;
mod find;
mod imports;
mod incremental;
mod links;
mod recorded_launches;
mod span_shift;
mod statement;
#[cfg(test)]
mod tests;
mod top_level;

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

pub use bindings::GlobalBinding;
pub use build::MAX_TEXT;
pub use fact_anchors::{FactAnchors, SpanMoves};
pub use facts::{Fact, FactCache};
use imports::is_triton;
pub use imports::{Imports, QualifiedName};
pub use links::{ImportTarget, ImportedFile, Link, Links};
pub use recorded_launches::{RecordedArgument, RecordedLaunch};
pub use span_shift::ShiftSpans;
pub use statement::Statement;
pub use top_level::{is_main_guard, main_guard};

use crate::syntax::Span;
use ast::{Arg, Expr, Stmt};

/// The model of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// The names that the file binds to Triton's modules and their members.
    pub imports: Imports,
    /// Functions under `@triton.jit`, in source order.
    pub kernels: Vec<Kernel>,
    /// Calls of the form `name[grid](…)`, in source order, whether or not `name` is a kernel of this file.
    pub launches: Vec<Launch>,
    /// Functions that hold a launch, in source order.
    pub hosts: Vec<HostFunction>,
    /// Assignments `name = value` at the top level, in source order.
    pub globals: Vec<Global>,
    /// Functions of the top level without decorators, in source order.
    pub functions: Vec<PlainFunction>,
    /// Names that the top level binds more than once or under a condition: what they are is not certain.
    pub uncertain: HashSet<String>,
    /// How the top level binds each of its names.
    pub bindings: HashMap<String, GlobalBinding>,
    /// Whether names may come from `from … import *`, or from a part that the parser could not read.
    pub has_star_import: bool,
    /// The result of [`Module::links`].
    links: Arc<Links>,
    /// The result of [`Module::recorded`].
    recorded: Arc<[RecordedLaunch]>,
    /// The result of [`Module::called_in_kernels`].
    called: HashSet<String>,
    /// The contribution of each segment of the source, in order.
    parts: Vec<Part>,
}

/// The contribution of one segment of the source to the model: numbers of items, and names.
#[derive(Clone, Debug, Default, PartialEq)]
struct Part {
    kernels: usize,
    launches: usize,
    hosts: usize,
    globals: usize,
    functions: usize,
    /// The names that its import statements bind.
    imports: Imports,
    words: dependencies::Cached,
    /// Names that its top level binds, each with whether that is under a condition.
    bound: Vec<(String, bool)>,
    /// How its top level binds names, in order.
    bindings: Vec<(String, GlobalBinding)>,
    /// Whether names may come from `from … import *`; see [`Module::has_star_import`].
    has_star_import: bool,
    /// Names that its kernels call.
    calls: HashSet<String>,
    /// Names that its kernels use and do not bind.
    free: HashSet<String>,
}

/// A function that Triton compiles: one under `@triton.jit`.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// The name; several kernels of a file may share it.
    pub name: String,
    /// Span of the name in the `def`.
    pub name_span: Span,
    /// Span of the definition with its decorators.
    pub span: Span,
    /// Span of the definition without its decorators, from `def` on.
    pub def_span: Span,
    /// The parameters, in order.
    pub params: Vec<Param>,
    /// All decorators, outermost first.
    pub decorators: Vec<Decorator>,
    /// `@triton.autotune`, if any.
    pub autotune: Option<Autotune>,
    /// Names set by `@triton.heuristics`; `None` when they cannot be read off.
    pub heuristics: Option<Vec<String>>,
    /// Whether every decorator is one of Triton's that the model understands.
    pub plain: bool,
    /// The body.
    pub body: Vec<Stmt>,
    /// Names bound inside: parameters, assignments, loop variables. They hide imports and globals.
    pub locals: HashSet<String>,
    /// Whether the definition is under a condition or inside another definition.
    pub nested: bool,
    /// Whether the definition is under a condition, but inside no other definition.
    pub conditional: bool,
    /// Whether the parser found an error inside.
    pub has_error: bool,
    /// Cached results of analyses of this kernel.
    pub facts: FactCache,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// The name, without the `*` of a variadic parameter.
    pub name: String,
    /// Span of the name.
    pub name_span: Span,
    /// Span of the whole parameter, with annotation and default.
    pub span: Span,
    /// The annotation, if any.
    pub annotation: Option<Expr>,
    /// Whether it is annotated as `tl.constexpr`.
    pub constexpr: bool,
    /// The default, if any.
    pub default: Option<Expr>,
    /// Whether it is `*args` or `**kwargs`.
    pub variadic: bool,
    /// Whether it comes behind `*`, so that it can be passed by name only.
    pub keyword_only: bool,
}

/// A decorator of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Decorator {
    /// The decorator's expression, for example the call of `triton.autotune`.
    pub expr: Expr,
    /// Its full name when it is Triton's, for example `triton.autotune`.
    pub path: Option<String>,
}

/// The decorator `@triton.autotune(configs=…, key=…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Autotune {
    /// The whole decorator call.
    pub span: Span,
    /// The configurations; `None` when they are not written out in place.
    pub configs: Option<Vec<Config>>,
    /// The names in `key`; `None` when they are not written out in place.
    pub key: Option<Vec<String>>,
}

/// `triton.Config({…}, num_warps=…)`: one candidate configuration of an autotuned kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The whole call.
    pub span: Span,
    /// The meta-parameters: name and value, in order.
    pub meta: Vec<(String, Expr)>,
    /// The launch options (`num_warps`, …): name and value, in order.
    pub options: Vec<(String, Expr)>,
}

/// A launch: `kernel[grid](arguments)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Name of the launched kernel, when it is a plain name.
    pub kernel: Option<String>,
    /// The expression that is subscripted with the grid.
    pub target: Expr,
    /// The expression of the grid.
    pub grid: Expr,
    /// The arguments, in order.
    pub args: Vec<Arg>,
    /// Span of the arguments with their parentheses.
    pub args_span: Span,
    /// The whole call.
    pub span: Span,
    /// Index into [`Module::hosts`] of the function that contains the launch; `None` at the top level.
    pub host: Option<usize>,
    /// Whether the parser found an error inside.
    pub has_error: bool,
}

/// A host function (or method) that launches kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct HostFunction {
    /// The qualified name, as Python's `__qualname__`: `Class.method`, `outer.<locals>.inner`.
    pub qualname: String,
    /// The name without classes and functions around it.
    pub name: String,
    /// Span of the name.
    pub name_span: Span,
    /// Span of the definition.
    pub span: Span,
    /// Zero-based line of `def`: Python's `ast` reports `lineno` one higher.
    pub line: usize,
    /// Parameter names, in order.
    pub params: Vec<String>,
    /// Name and default of each parameter that has a default.
    pub defaults: Vec<(String, Expr)>,
    /// The body.
    pub body: Vec<Stmt>,
    /// Cached results of analyses.
    pub facts: FactCache,
}

/// An assignment `name = value` at the top level.
#[derive(Clone, Debug, PartialEq)]
pub struct Global {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Expr,
    /// Whether it is annotated as `tl.constexpr`.
    pub is_constexpr: bool,
    /// The statement.
    pub span: Span,
}

/// A function at the top level without decorators.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainFunction {
    /// The name of the function.
    pub name: String,
    /// Span of the name.
    pub name_span: Span,
    /// Span of the definition.
    pub span: Span,
    /// The expression that it returns, when the `return` is all that its body does.
    pub result: Option<Expr>,
}

impl Module {
    /// The kernel of this name, when the file defines exactly one and does not bind the name otherwise.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        let mut of_name = self.kernels.iter().filter(|kernel| kernel.name == name);
        let kernel = of_name.next()?;
        (of_name.next().is_none() && !self.uncertain.contains(name)).then_some(kernel)
    }

    /// The top-level function of this name, when it has no decorators and the name is not bound otherwise.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<&PlainFunction> {
        let mut of_name = self.functions.iter().filter(|function| function.name == name);
        let function = of_name.next()?;
        (of_name.next().is_none() && !self.uncertain.contains(name)).then_some(function)
    }

    /// The innermost kernel whose definition (with decorators) holds byte `offset`.
    #[must_use]
    pub fn kernel_at(&self, offset: usize) -> Option<&Kernel> {
        self.kernels.iter().rev().find(|kernel| kernel.span.touches(offset))
    }

    /// The launches of the kernel named `name`.
    pub fn launches_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Launch> {
        self.launches.iter().filter(move |launch| launch.kernel.as_deref() == Some(name))
    }

    /// The full name of `expr` as written in the body of `kernel`, whose local names hide those of the file.
    #[must_use]
    pub fn resolve_in(&self, kernel: &Kernel, expr: &Expr) -> Option<QualifiedName> {
        let is_local = kernel.locals.contains(expr.first_name()?);
        if is_local { None } else { self.imports.resolve(expr) }
    }

    /// The path of `expr` below `triton.language.`; `None` when `expr` does not resolve to a member of
    /// `triton.language`.
    #[must_use]
    pub fn language_member(&self, kernel: &Kernel, expr: &Expr) -> Option<String> {
        let resolved = self.resolve_in(kernel, expr)?;
        resolved.path.strip_prefix("triton.language.").map(str::to_owned)
    }

    /// The text by which the body of `kernel` can refer to `triton.language.name`: `tl.name` under the file's alias, or
    /// `name` where the file imports it by itself. `None` when the file imports neither or local names hide both.
    #[must_use]
    pub fn language_name(&self, kernel: &Kernel, name: &str) -> Option<String> {
        let visible = |alias: &&str| !kernel.locals.contains(*alias);
        let module = self.imports.aliases_of("triton.language").into_iter().find(visible);
        if let Some(module) = module {
            return Some(format!("{module}.{name}"));
        }
        let member = self.imports.aliases_of(&format!("triton.language.{name}")).into_iter().find(visible);
        member.map(str::to_owned).or_else(|| {
            let triton = self.imports.aliases_of("triton").into_iter().find(visible)?;
            Some(format!("{triton}.language.{name}"))
        })
    }

    /// Names of functions that the kernels of this file call. Those are helpers, which the host does not need to
    /// launch.
    #[must_use]
    pub fn called_in_kernels(&self) -> &HashSet<String> {
        &self.called
    }

    /// The names that kernels of this file use and that exactly one import binds, unless it imports from Triton.
    #[must_use]
    pub fn imported_in_kernels(&self) -> BTreeSet<String> {
        let is_imported =
            |name: &&String| matches!(self.bindings.get(*name), Some(GlobalBinding::Import(path)) if !is_triton(path));
        self.parts.iter().flat_map(|part| &part.free).filter(is_imported).cloned().collect()
    }

    /// The names that exactly one import binds, unless it imports from Triton.
    pub(crate) fn imports_of_others(&self) -> impl Iterator<Item = &str> {
        let imports = self.bindings.iter();
        let others = imports.filter(|(_, binding)| matches!(binding, GlobalBinding::Import(path) if !is_triton(path)));
        others.map(|(name, _)| name.as_str())
    }

    /// The files that kernels of this file reach through imports; empty before [`Self::link`].
    #[must_use]
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// The file that defines `expr`, and the name it has there, for names that are imported. Names are resolved as in
    /// `kernel`, if one is given.
    #[must_use]
    pub fn imported(&self, kernel: Option<&Kernel>, expr: &Expr) -> Option<(&Arc<ImportedFile>, &str)> {
        let first = expr.first_name()?;
        if kernel.is_some_and(|kernel| kernel.locals.contains(first)) {
            return None;
        }
        self.links.definition(&expr.dotted()?)
    }

    /// The same model with the links of `other`, which is another version of the same file.
    #[must_use]
    pub fn linked_as(mut self, other: &Self) -> Self {
        self.links = Arc::clone(&other.links);
        self
    }

    /// Sets what the names of [`Self::imported_in_kernels`] refer to. Drops the cached facts of all kernels when that
    /// changed.
    pub fn link(&mut self, links: Arc<Links>) {
        if !Arc::ptr_eq(&self.links, &links) && *self.links != *links {
            self.kernels.iter_mut().for_each(|kernel| kernel.facts = FactCache::default());
        }
        self.links = links;
    }

    /// Launches of kernels that were observed when the user's program ran; empty before [`Self::observe`].
    #[must_use]
    pub fn recorded(&self) -> &Arc<[RecordedLaunch]> {
        &self.recorded
    }

    /// Sets the observed launches. Drops the cached facts of all kernels when they changed.
    pub fn observe(&mut self, recorded: Arc<[RecordedLaunch]>) {
        if !Arc::ptr_eq(&self.recorded, &recorded) && self.recorded != recorded {
            self.kernels.iter_mut().for_each(|kernel| kernel.facts = FactCache::default());
        }
        self.recorded = recorded;
    }

    /// Indices of the kernels of which the top level certainly binds one to `name`. There are several when it depends
    /// on conditions.
    #[must_use]
    pub(crate) fn kernels_named(&self, name: &str) -> Vec<usize> {
        let is_global = |kernel: &Kernel| kernel.name == name && (!kernel.nested || kernel.conditional);
        let found: Vec<usize> = (0..self.kernels.len()).filter(|&at| is_global(&self.kernels[at])).collect();
        let bindings = self.parts.iter().flat_map(|part| &part.bindings).filter(|(bound, _)| bound == name);
        if bindings.count() == found.len() { found } else { Vec::new() }
    }
}

impl Kernel {
    /// The parameter of this name.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name)
    }
}
