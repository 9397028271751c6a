//! Completion: members of Triton's modules, keyword arguments of calls and launches, names that a kernel can use.

use std::collections::HashSet;

use model::api::{Member, MemberKind};
use model::kernel::ast::{Expr, StmtKind, walk_statements};
use model::kernel::{Kernel, Module};
use model::syntax::Span;

use super::cursor::{Bracket, Inside};
use super::cursor_context::{Callee, CursorContext, is_callable};
use super::describe;

/// A completion item.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The name that is shown.
    pub name: String,
    /// The text to insert where it is not just the name: `other=`.
    pub insert: Option<String>,
    /// The kind of thing that the name refers to.
    pub kind: CompletionKind,
    /// The parameters of a function, or the default of a keyword: `(pointer, mask=None)`, `=None`.
    pub signature: Option<String>,
    /// A short description, such as the kind of the name and the Triton version.
    pub about: String,
    /// Items with a lower rank come first.
    pub rank: u8,
}

/// The kind of a completion item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionKind {
    /// A function.
    Function,
    /// A class.
    Class,
    /// A dtype.
    Dtype,
    /// A module.
    Module,
    /// A value of a module that is none of the above.
    Value,
    /// The keyword of a keyword argument.
    Keyword,
    /// A compile-time constant.
    Constexpr,
    /// A variable.
    Variable,
}

/// The completion items at a cursor, and the span that they replace.
#[derive(Clone, Debug, PartialEq)]
pub struct Completions {
    /// The span of the word around the cursor, which an item replaces.
    pub word: Span,
    /// The items; at least one.
    pub items: Vec<Item>,
}

/// The completions at `place`; `None` where there are none, as in strings, comments and numbers.
#[must_use]
pub fn at(place: &CursorContext<'_>) -> Option<Completions> {
    let cursor = &place.cursor;
    let text = place.source.text();
    let is_number = text[cursor.word.start..].starts_with(|c: char| c.is_ascii_digit())
        || (text[..cursor.word.start].ends_with('.') && !cursor.after_dot);
    if cursor.inside != Inside::Code || is_number {
        return None;
    }
    let items = if cursor.after_dot {
        members(place, &place.resolve(cursor.receiver?)?)
    } else if let Some(module) = imported_from(place) {
        members(place, &module)
    } else if cursor.keyword.is_some_and(|span| binds(place.source.slice(span))) {
        Vec::new()
    } else {
        let mut items = cursor.fresh_argument().map_or_else(Vec::new, |call| keywords(place, call));
        items.extend(place.kernel().into_iter().flat_map(|kernel| names(place, kernel)));
        items
    };
    (!items.is_empty()).then_some(Completions { word: cursor.word, items })
}

/// Whether a new name follows this keyword, or a name that is not part of an expression.
fn binds(keyword: &str) -> bool {
    matches!(keyword, "def" | "class" | "as" | "for" | "import" | "from" | "global" | "nonlocal" | "lambda" | "del")
}

/// The module whose members the statement imports: `from triton.language import …`.
fn imported_from(place: &CursorContext<'_>) -> Option<String> {
    let cursor = &place.cursor;
    let before = place.source.text().get(cursor.statement..cursor.word.start)?;
    let (module, names) = before.strip_prefix("from ")?.split_once(" import")?;
    let in_place = names.trim_end().is_empty() || names.trim_end().ends_with([',', '(']);
    in_place.then(|| module.trim().to_owned())
}

fn members(place: &CursorContext<'_>, module: &str) -> Vec<Item> {
    let Some(members) = place.target.table.modules.get(module) else { return Vec::new() };
    let is_public = |name: &str, member: &Member| {
        // The tables also hold what Triton's modules import for their own use.
        let is_own = !matches!(member.kind, MemberKind::Value | MemberKind::Module)
            || matches!(module, "triton" | "triton.language");
        !name.starts_with('_') && is_own
    };
    let version = describe::version(place.target);
    let items = members.iter().filter(|(name, member)| is_public(name, member)).map(|(name, member)| {
        let (kind, rank) = match member.kind {
            MemberKind::Builtin | MemberKind::Jit | MemberKind::Function => (CompletionKind::Function, 0),
            MemberKind::Dtype => (CompletionKind::Dtype, 1),
            MemberKind::Class => (CompletionKind::Class, 1),
            MemberKind::Module => (CompletionKind::Module, 2),
            MemberKind::Value => (CompletionKind::Value, 2),
        };
        Item {
            name: name.clone(),
            insert: None,
            kind,
            signature: is_callable(member).then(|| describe::parameters(member)),
            about: format!("{} · {version}", describe::kind(member)),
            rank,
        }
    });
    items.collect()
}

/// The keywords that the call has not used yet.
fn keywords(place: &CursorContext<'_>, call: &Bracket) -> Vec<Item> {
    let used: HashSet<&str> = call.keywords.iter().map(|span| place.source.slice(*span)).collect();
    let positional = if call.has_star { 0 } else { call.commas - call.keywords.len().min(call.commas) };
    let text = place.source.text();
    let mut items = match place.callee(call) {
        Some(Callee::Member(member)) => keywords_of(member, positional, place),
        Some(Callee::Kernel(kernel)) => params_of(kernel, positional, false, text),
        Some(Callee::Imported(file, kernel)) => params_of(kernel, positional, false, &file.text),
        Some(Callee::Launch(kernel)) => {
            let mut items = kernel.map_or_else(Vec::new, |kernel| params_of(kernel, positional, true, text));
            items.extend(launch_options(kernel, place));
            items
        }
        None => Vec::new(),
    };
    items.retain(|item| !used.contains(item.name.as_str()));
    items
}

fn keyword(name: &str, signature: Option<String>, about: String, rank: u8) -> Item {
    Item {
        name: name.to_owned(),
        insert: Some(format!("{name}=")),
        kind: CompletionKind::Keyword,
        signature,
        about,
        rank,
    }
}

fn keywords_of(member: &Member, positional: usize, place: &CursorContext<'_>) -> Vec<Item> {
    let about = format!("keyword · {}", describe::version(place.target));
    let bare_star = member.params.iter().position(|param| param.name == "*");
    let params = member.params.iter().enumerate().filter(|(at, param)| {
        let keyword_only = bare_star.is_some_and(|star| *at > star);
        !param.name.starts_with('*') && (*at >= positional || keyword_only)
    });
    params
        .map(|(_, param)| {
            keyword(&param.name, param.default.as_ref().map(|default| format!("={default}")), about.clone(), 0)
        })
        .collect()
}

fn params_of(kernel: &Kernel, positional: usize, is_launch: bool, text: &str) -> Vec<Item> {
    let free = kernel.params.iter().enumerate().filter(|(at, param)| *at >= positional || param.keyword_only);
    let params = free.map(|(_, param)| param).filter(|param| {
        // It is an error to pass a parameter that `@triton.autotune` or `@triton.heuristics` sets.
        let is_set = is_launch && set_by(kernel, &param.name).is_some();
        !param.variadic && !is_set
    });
    params
        .map(|param| {
            let what = if param.constexpr { "constexpr parameter" } else { "parameter" };
            let written = describe::source_param(param, text);
            let rest = written.strip_prefix(&param.name).filter(|rest| !rest.is_empty()).map(str::to_owned);
            keyword(&param.name, rest, format!("{what} of `{}`", kernel.name), u8::from(!param.constexpr))
        })
        .collect()
}

/// The decorator that sets a parameter of a launched kernel instead of the caller: `autotune` or `heuristics`.
pub(super) fn set_by(kernel: &Kernel, name: &str) -> Option<&'static str> {
    let configs = kernel.autotune.as_ref().and_then(|autotune| autotune.configs.as_ref());
    if configs.is_some_and(|configs| configs.iter().any(|config| config.meta.iter().any(|(meta, _)| meta == name))) {
        return Some("autotune");
    }
    let names = kernel.heuristics.as_ref()?;
    names.iter().any(|set| set == name).then_some("heuristics")
}

fn launch_options(kernel: Option<&Kernel>, place: &CursorContext<'_>) -> Vec<Item> {
    let configs = kernel.and_then(|kernel| kernel.autotune.as_ref()?.configs.as_ref());
    let is_tuned = |name: &String| {
        configs
            .is_some_and(|configs| configs.iter().any(|config| config.options.iter().any(|(option, _)| option == name)))
    };
    let about = format!("launch option · {}", describe::version(place.target));
    let options = place.target.table.launch_options.iter().filter(|name| !is_tuned(name));
    options.map(|name| keyword(name, None, about.clone(), if is_usual(name) { 2 } else { 3 })).collect()
}

fn is_usual(option: &str) -> bool {
    matches!(option, "num_warps" | "num_stages" | "num_ctas")
}

/// The names that the body of `kernel` can use.
fn names(place: &CursorContext<'_>, kernel: &Kernel) -> Vec<Item> {
    let item = |name: &str, kind, about: String, rank| Item {
        name: name.to_owned(),
        insert: None,
        kind,
        signature: None,
        about,
        rank,
    };
    let mut items = Vec::new();
    for param in &kernel.params {
        let (kind, what) = if param.constexpr {
            (CompletionKind::Constexpr, "constexpr parameter")
        } else {
            (CompletionKind::Variable, "parameter")
        };
        items.push(item(&param.name, kind, format!("{what} of `{}`", kernel.name), 4));
    }
    let constants = constexpr_locals(kernel);
    let is_param = |name: &&String| kernel.param(name).is_some();
    let mut locals: Vec<&String> = kernel.locals.iter().filter(|name| !is_param(name)).collect();
    locals.sort_unstable();
    for name in locals {
        let kind = if constants.contains(name.as_str()) { CompletionKind::Constexpr } else { CompletionKind::Variable };
        items.push(item(name, kind, format!("local of `{}`", kernel.name), 4));
    }
    let module = place.module();
    let is_visible = |name: &str| !kernel.locals.contains(name);
    for name in constexpr_globals(module).filter(|name| is_visible(name)) {
        items.push(item(name, CompletionKind::Constexpr, "constexpr of this file".to_owned(), 5));
    }
    // A kernel that is launched and never called by a kernel is not a helper; a kernel that is never launched may be.
    let is_helper =
        |other: &&Kernel| other.name != kernel.name && is_visible(&other.name) && module.kernel(&other.name).is_some();
    for helper in module.kernels.iter().filter(is_helper) {
        let is_launched = module.launches_of(&helper.name).next().is_some();
        if !is_launched || module.called_in_kernels().contains(&helper.name) {
            let signature = format!("({})", describe::source_params(helper, place.source.text()));
            let about = "Triton function of this file".to_owned();
            items.push(Item { signature: Some(signature), ..item(&helper.name, CompletionKind::Function, about, 5) });
        }
    }
    for path in ["triton.language", "triton"] {
        for alias in module.imports.aliases_of(path).into_iter().filter(|name| is_visible(name)) {
            items.push(item(alias, CompletionKind::Module, format!("`{path}`"), 6));
        }
    }
    items
}

/// Locals that are annotated as constexpr.
pub(super) fn constexpr_locals(kernel: &Kernel) -> HashSet<&str> {
    let mut names = HashSet::new();
    walk_statements(&kernel.body, &mut |stmt| {
        if let StmtKind::Assign { targets, annotation: Some(annotation), .. } = &stmt.kind
            && annotation.dotted().is_some_and(|parts| parts.last() == Some(&"constexpr"))
        {
            names.extend(targets.iter().filter_map(|target| target.as_name()));
        }
    });
    names
}

/// Global names that are assigned exactly once, to a constexpr: kernels may read them.
pub(super) fn constexpr_globals(module: &Module) -> impl Iterator<Item = &str> {
    let is_called = |value: &Expr| {
        let path = value.as_call().and_then(|call| module.imports.resolve(&call.func));
        path.is_some_and(|resolved| resolved.path == "triton.language.constexpr")
    };
    let globals = module.globals.iter().filter(move |global| global.is_constexpr || is_called(&global.value));
    globals.map(|global| global.name.as_str()).filter(|name| !module.uncertain.contains(*name))
}
