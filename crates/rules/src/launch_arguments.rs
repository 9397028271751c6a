//! H001: a launch whose arguments do not fit the kernel's parameters.

use std::collections::HashMap;

use model::api::{Table, VersionCertainty};
use model::kernel::ast::{Arg, ExprKind, has_star};
use model::kernel::{Autotune, Config, Decorator, Kernel, Launch, Param};
use model::syntax::{Span, field};

use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity, scope};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H001",
        name: "launch-arguments",
        severity: Severity::Warning,
        summary: "a launch whose arguments do not fit the kernel's parameters",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("launch_arguments.md"),
    },
    check,
};

/// Options that the autotuner always passes, from the defaults of `triton.Config`.
const ALWAYS_TUNED: [&str; 3] = ["num_warps", "num_stages", "num_ctas"];

/// Keywords that Triton 3 rejects with a specific message.
const REFUSED: [&str; 3] = ["device", "device_type", "stream"];

/// Options of other vendors' back ends, seen in published packages. Files that use them are skipped.
const VENDOR_OPTIONS: [&str; 14] = [
    "bottleneck",
    "buffer_size_limit",
    "enable_soft_i64",
    "enable_warp_specialization",
    "generate_native_code",
    "grf_mode",
    "groups_per_cluster",
    "isCLOSE",
    "isClose",
    "is_linear",
    "is_use_mask_zero",
    "multibuffer",
    "num_ldmatrixes",
    "one_matrix_per_load_for_bt",
];

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    // These are computed only for launches with findings, and cached.
    let (mut bound_once, mut hidden) = (HashMap::new(), HashMap::new());
    for launch in &context.module.launches {
        let Some(kernel) = launch.kernel.as_deref().and_then(|name| context.module.kernel(name)) else { continue };
        if launch.has_error || !is_clear(context, kernel) {
            continue;
        }
        let found = Binding::new(context, kernel, launch).diagnostics();
        if found.is_empty() {
            continue;
        }
        let is_certain = || scope::is_bound_once(context.source, kernel);
        let scopes = scope::scopes_of(context.source, launch.span);
        let is_hidden = || scope::is_hidden(context.source, kernel, &scopes);
        if *bound_once.entry(&kernel.name).or_insert_with(is_certain)
            && !*hidden.entry((&kernel.name, scopes.first().map(|scope| scope.id()))).or_insert_with(is_hidden)
        {
            findings.extend(found);
        }
    }
}

/// Whether the kernel has exactly the parameters in the model.
fn is_clear(context: &RuleContext<'_>, kernel: &Kernel) -> bool {
    let tuners = kernel.decorators.iter().filter(|decorator| is_autotune(decorator)).count();
    kernel.plain
        && !kernel.nested
        && !kernel.has_error
        && tuners <= 1
        && !has_keyword_only(context, kernel)
        && !kernel.params.iter().any(|param| param.variadic)
}

/// Whether the parameters contain a bare `*`, which the model leaves out.
fn has_keyword_only(context: &RuleContext<'_>, kernel: &Kernel) -> bool {
    let name = context.source.node_at(kernel.name_span);
    let params = name.and_then(|name| field(name.parent()?, "parameters"));
    params.is_none_or(|params| {
        let mut cursor = params.walk();
        params.named_children(&mut cursor).any(|child| child.kind() == "keyword_separator")
    })
}

fn is_autotune(decorator: &Decorator) -> bool {
    decorator.path.as_deref().is_some_and(|path| path.ends_with(".autotune"))
}

/// The assignment of a launch's arguments to the parameters of its kernel.
struct Binding<'a> {
    context: &'a RuleContext<'a>,
    kernel: &'a Kernel,
    launch: &'a Launch,
    /// The arguments by the names of their parameters.
    given: HashMap<&'a str, &'a Arg>,
    found: Vec<Diagnostic>,
}

impl<'a> Binding<'a> {
    fn new(context: &'a RuleContext<'a>, kernel: &'a Kernel, launch: &'a Launch) -> Self {
        Self { context, kernel, launch, given: HashMap::new(), found: Vec::new() }
    }

    fn diagnostics(mut self) -> Vec<Diagnostic> {
        self.positional();
        let unknown = self.keywords();
        self.tuned();
        let mut missing = self.missing();
        for (name, span) in unknown {
            self.unknown(name, span, &mut missing);
        }
        if !missing.is_empty() {
            self.report_missing(&missing);
        }
        self.found
    }

    fn positional(&mut self) {
        let (kernel, name) = (self.kernel, &self.kernel.name);
        let mut certain = true;
        let mut count = 0;
        for arg in self.launch.args.iter().filter(|arg| arg.keyword.is_none()) {
            if matches!(arg.value.kind, ExprKind::Starred(_)) {
                // The positions after `*args` are not known.
                certain &= self.is_double_star(arg);
                continue;
            }
            match kernel.params.get(count) {
                Some(param) if certain => {
                    self.given.insert(&param.name, arg);
                    if kernel.heuristics.as_ref().is_some_and(|names| names.contains(&param.name)) {
                        let message = format!("`{}` is given twice: `@triton.heuristics` sets it too", param.name);
                        self.report(arg.span, message, param.name_span, "the parameter".to_owned());
                    }
                }
                Some(_) => {}
                None => {
                    let (takes, gets) = (kernel.params.len(), self.explicit_positions());
                    let takes = format!("{takes} argument{}", if takes == 1 { "" } else { "s" });
                    let message = format!("`{name}` takes {takes}, but gets {gets} by position");
                    self.report(arg.span, message, kernel.name_span, "the kernel".to_owned());
                    return;
                }
            }
            count += 1;
        }
    }

    fn explicit_positions(&self) -> usize {
        let is_plain = |arg: &&Arg| arg.keyword.is_none() && !matches!(arg.value.kind, ExprKind::Starred(_));
        self.launch.args.iter().filter(is_plain).count()
    }

    fn is_double_star(&self, arg: &Arg) -> bool {
        self.context.source.slice(arg.span).starts_with("**")
    }

    /// Assigns the keyword arguments, and returns those that match no parameter or option.
    fn keywords(&mut self) -> Vec<(&'a str, Span)> {
        let mut unknown = Vec::new();
        for arg in &self.launch.args {
            let Some((name, span)) = &arg.keyword else { continue };
            if matches!(name.as_str(), "grid" | "warmup") {
                let what = if name == "grid" { "the brackets give the grid" } else { "the launch sets it itself" };
                let message = format!("`{name}` is given twice: {what}");
                self.found.push(Diagnostic::new(&RULE.declaration, *span, message));
            } else if let Some(param) = self.kernel.param(name) {
                if self.given.insert(&param.name, arg).is_some() {
                    let message = format!("`{name}` is given twice: by position and by keyword");
                    self.report(*span, message, param.name_span, "the parameter".to_owned());
                }
            } else {
                self.given.insert(name, arg);
                if REFUSED.contains(&name.as_str()) {
                    if self.is_stock() {
                        let message =
                            format!("Triton refuses `{name}` in a launch: the current device and stream are used");
                        self.found.push(Diagnostic::new(&RULE.declaration, *span, message));
                    }
                } else if !is_option(self.context, name) {
                    unknown.push((name.as_str(), *span));
                }
            }
        }
        unknown
    }

    /// Reports arguments that the autotuner passes as well.
    fn tuned(&mut self) {
        let Some(configs) = self.kernel.autotune.as_ref().and_then(|autotune| autotune.configs.as_ref()) else {
            return;
        };
        for arg in &self.launch.args {
            let name = match &arg.keyword {
                Some((name, _)) => name.as_str(),
                None => match self.given.iter().find(|(_, given)| std::ptr::eq(**given, arg)) {
                    Some((name, _)) => name,
                    None => continue,
                },
            };
            let span = arg.keyword.as_ref().map_or(arg.span, |(_, span)| *span);
            let by_keyword = arg.keyword.is_some();
            let setting =
                configs.iter().find(|config| sets(config, name) || (by_keyword && passes_option(config, name)));
            if let Some(config) = setting {
                let message = format!("`{name}` is given twice: `@triton.autotune` sets it too");
                self.report(span, message, config.span, "set by this configuration".to_owned());
            }
        }
    }

    /// The parameters for which no value is passed.
    fn missing(&self) -> Vec<&'a Param> {
        let open = has_star(&self.launch.args);
        let (kernel, autotune) = (self.kernel, self.kernel.autotune.as_ref());
        let readable = autotune.is_none_or(|autotune| autotune.configs.is_some() && !may_add_configs(kernel));
        let Some(heuristics) = kernel.heuristics.as_ref().filter(|_| !open && readable) else { return Vec::new() };
        let configs = configs(autotune);
        let is_tuned = |name: &str| {
            !configs.is_empty() && configs.iter().all(|config| sets(config, name) || passes_option(config, name))
        };
        let is_missing = |param: &&Param| {
            param.default.is_none()
                && !self.given.contains_key(param.name.as_str())
                && !heuristics.contains(&param.name)
                && !is_tuned(&param.name)
        };
        kernel.params.iter().filter(is_missing).collect()
    }

    fn report_missing(&mut self, missing: &[&Param]) {
        let names: Vec<String> = missing.iter().map(|param| format!("`{}`", param.name)).collect();
        let (last, init) = names.split_last().expect("something is missing");
        let list = if init.is_empty() { last.clone() } else { format!("{} and {last}", init.join(", ")) };
        let plural = if init.is_empty() { "" } else { "s" };
        let message = format!("`{}` is launched without its argument{plural} {list}", self.kernel.name);
        let mut diagnostic = Diagnostic::new(&RULE.declaration, self.launch.target.span, message);
        for param in missing {
            diagnostic = diagnostic.with_related(param.name_span, "the parameter");
            let configs = configs(self.kernel.autotune.as_ref());
            if let Some(config) = configs.iter().find(|config| !sets(config, &param.name))
                && configs.iter().any(|config| sets(config, &param.name))
            {
                diagnostic =
                    diagnostic.with_related(config.span, format!("this configuration does not set `{}`", param.name));
            }
        }
        self.found.push(diagnostic);
    }

    /// Reports a keyword that matches nothing. Where it is a misspelled parameter, that one is removed from `missing`.
    fn unknown(&mut self, name: &str, span: Span, missing: &mut Vec<&Param>) {
        let nearest = self.nearest(name);
        let stands_for = missing.iter().position(|param| nearest == Some(&param.name));
        // Other vendors' back ends have options of their own, none of which is in capitals.
        let is_constant = !name.chars().any(char::is_lowercase);
        if stands_for.is_none() && !is_constant && !self.is_stock() {
            return;
        }
        if let Some(at) = stands_for {
            missing.remove(at);
        }
        let mut message =
            format!("`{}` has no parameter `{name}`, and no launch option is called so", self.kernel.name);
        if let Some(nearest) = nearest {
            message.push_str(&format!("; did you mean `{nearest}`?"));
        }
        let mut diagnostic =
            Diagnostic::new(&RULE.declaration, span, message).with_related(self.kernel.name_span, "the kernel");
        if let Some(nearest) = nearest {
            let edit = Edit { span, text: nearest.to_owned() };
            diagnostic = diagnostic.with_fix(format!("Replace `{name}` by `{nearest}`"), vec![edit]);
        }
        self.found.push(diagnostic);
    }

    /// The only parameter or option without a value whose spelling is close to `name`.
    fn nearest(&self, name: &str) -> Option<&'a str> {
        let limit = if name.len() > 4 { 2 } else { 1 };
        let params = self.kernel.params.iter().map(|param| param.name.as_str());
        let options = self.context.target.table.launch_options.iter().map(String::as_str);
        let begins_alike = |option: &&str| option.chars().next() == name.chars().next();
        let mut close = params.chain(options.filter(begins_alike)).filter(|known| {
            !self.given.contains_key(known)
                && strsim::osa_distance(&known.to_lowercase(), &name.to_lowercase()) <= limit
        });
        let nearest = close.next()?;
        close.next().is_none().then_some(nearest)
    }

    /// Whether Triton itself, in a known version, receives the arguments.
    fn is_stock(&self) -> bool {
        let is_direct = |decorator: &Decorator| {
            let called = decorator.expr.as_call().map_or(&decorator.expr, |call| &call.func);
            self.context.module.imports.resolve(called).is_some_and(|resolved| resolved.direct)
        };
        self.context.target.certainty == VersionCertainty::Known && self.kernel.decorators.iter().all(is_direct)
    }

    fn report(&mut self, span: Span, message: String, related: Span, what: String) {
        self.found.push(Diagnostic::new(&RULE.declaration, span, message).with_related(related, what));
    }
}

fn configs(autotune: Option<&Autotune>) -> &[Config] {
    autotune.and_then(|autotune| autotune.configs.as_deref()).unwrap_or_default()
}

/// Whether a configuration sets a meta-parameter.
fn sets(config: &Config, name: &str) -> bool {
    config.meta.iter().any(|(set, _)| set == name)
}

/// Whether a configuration certainly passes on a launch option.
fn passes_option(config: &Config, name: &str) -> bool {
    match config.options.iter().find(|(set, _)| set == name) {
        Some((_, value)) => value.as_int().is_some(),
        None => ALWAYS_TUNED.contains(&name),
    }
}

/// Whether the autotuner may use configurations besides those in the source.
fn may_add_configs(kernel: &Kernel) -> bool {
    kernel
        .decorators
        .iter()
        .filter(|decorator| is_autotune(decorator))
        .filter_map(|decorator| decorator.expr.as_call())
        .any(|call| {
            call.has_star()
                || call.argument("prune_configs_by", Some(2)).is_some_and(|value| value.kind != ExprKind::None)
        })
}

fn is_option(context: &RuleContext<'_>, name: &str) -> bool {
    context.target.table.has_launch_option(name)
        || VENDOR_OPTIONS.iter().any(|option| name.starts_with(option))
        || Table::all().iter().any(|table| table.has_launch_option(name))
}

#[cfg(test)]
mod tests;
