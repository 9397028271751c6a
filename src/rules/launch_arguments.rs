//! H001: a launch whose arguments do not fit the kernel's parameters.

use std::collections::HashMap;

use super::{Context, Declaration, Diagnostic, Edit, Findings, Rule, Severity, scope};
use crate::api::{Certainty, Table};
use crate::kernel::ast::{Arg, ExprKind};
use crate::kernel::{Autotune, Config, Decorator, Kernel, Launch, Param};
use crate::syntax::Span;

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H001",
        name: "launch-arguments",
        severity: Severity::Warning,
        summary: "a launch whose arguments do not fit the kernel's parameters",
        since: "0.1.0",
        fixable: true,
        doc: r#"
## What it does
Compares the arguments of `kernel[grid](…)` with the parameters of the kernel, with what `@triton.autotune` and
`@triton.heuristics` add to them, and with the options that a launch takes (`num_warps`, `waves_per_eu`, …). It finds
parameters that nothing gives, keywords that nothing takes, positional arguments too many, and arguments given twice.

## Why is this bad?
The launch raises a `TypeError` or, for an unknown keyword, a `KeyError`.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def scale(x, out, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, factor * tl.load(x + offsets, mask=mask, other=0.0), mask=mask)


def double(x, out):
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    scale[grid](x, out, n, BLOCK=1024)
  # ^^^^^
    scale[grid](x, out, 2.0, n, BLOK=1024)
    #                           ^^^^
    scale[grid](x, out, 2.0, n, 1024, 4)
    #                                 ^
    scale[grid](x, out, 2.0, n, n=n, BLOCK=1024)
    #                           ^
```

What the tuner sets must not be given again:
```python
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 512}), triton.Config({"BLOCK": 1024})], key=["n"])
@triton.jit
def fill(out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, 0.0, mask=offsets < n)


def zero(out):
    n = out.numel()
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    fill[grid](out, n, BLOCK=1024)
    #                  ^^^^^
    fill[grid](out, n, num_warps=8)
    #                  ^^^^^^^^^
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def scale(x, out, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, factor * tl.load(x + offsets, mask=mask, other=0.0), mask=mask)


def double(x, out):
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    scale[grid](x, out, 2.0, n, BLOCK=1024, num_warps=8)
```

## When it is silent
When it is not certain which kernel is launched; about missing arguments where the launch has `*args` or `**kwargs` or
the configurations are not written out in place. Where the Triton version is not known, about keywords that may be an
option of another vendor's back end.

## Fix
Replaces an unknown keyword by the only parameter or option that is spelled almost like it.
"#,
    },
    check,
};

/// What the tuner always passes on, from the defaults of `triton.Config`.
const ALWAYS_TUNED: [&str; 3] = ["num_warps", "num_stages", "num_ctas"];

/// Keywords that Triton 3 refuses with a message of its own.
const REFUSED: [&str; 3] = ["device", "device_type", "stream"];

/// Options of other vendors' back ends, seen in published packages: files for those are left alone.
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

fn check(context: &Context<'_>, findings: &mut Findings<'_>) {
    for launch in &context.module.launches {
        let Some(kernel) = launch.kernel.as_deref().and_then(|name| context.module.kernel(name)) else { continue };
        if launch.has_error || !is_clear(context, kernel) {
            continue;
        }
        let found = Binding::new(context, kernel, launch).diagnostics();
        if !found.is_empty() && scope::names_the_kernel(context.source, kernel, launch) {
            found.into_iter().for_each(|diagnostic| findings.push(diagnostic));
        }
    }
}

/// Whether the kernel takes exactly the parameters that the model has.
fn is_clear(context: &Context<'_>, kernel: &Kernel) -> bool {
    let tuners = kernel.decorators.iter().filter(|decorator| is_autotune(decorator)).count();
    kernel.plain
        && !kernel.nested
        && !kernel.has_error
        && tuners <= 1
        && !has_keyword_only(context, kernel)
        && !kernel.params.iter().any(|param| param.variadic)
}

/// Whether a `*` stands among the parameters, which the model leaves out.
fn has_keyword_only(context: &Context<'_>, kernel: &Kernel) -> bool {
    let root = context.source.tree().root_node();
    let name = root.descendant_for_byte_range(kernel.name_span.start, kernel.name_span.end);
    let params = name.and_then(|name| name.parent()?.child_by_field_name("parameters"));
    params.is_none_or(|params| {
        let mut cursor = params.walk();
        params.named_children(&mut cursor).any(|child| child.kind() == "keyword_separator")
    })
}

fn is_autotune(decorator: &Decorator) -> bool {
    decorator.path.as_deref().is_some_and(|path| path.ends_with(".autotune"))
}

/// How the arguments of one launch fall to the parameters of its kernel.
struct Binding<'a> {
    context: &'a Context<'a>,
    kernel: &'a Kernel,
    launch: &'a Launch,
    /// Arguments by the name they fall to.
    given: HashMap<&'a str, &'a Arg>,
    found: Vec<Diagnostic>,
}

impl<'a> Binding<'a> {
    fn new(context: &'a Context<'a>, kernel: &'a Kernel, launch: &'a Launch) -> Self {
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
                // After `*args` the positions are not known.
                certain &= self.is_double_star(arg);
                continue;
            }
            match kernel.params.get(count) {
                Some(param) if certain => {
                    self.given.insert(&param.name, arg);
                    if kernel.heuristics.as_ref().is_some_and(|names| names.contains(&param.name)) {
                        let message = format!("`{}` is given twice: `@triton.heuristics` sets it too.", param.name);
                        self.report(arg.span, message, param.name_span, "the parameter".to_owned());
                    }
                }
                Some(_) => {}
                None => {
                    let (takes, gets) = (kernel.params.len(), self.explicit_positions());
                    let takes = format!("{takes} argument{}", if takes == 1 { "" } else { "s" });
                    let message = format!("`{name}` takes {takes}, but gets {gets} by position.");
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

    /// Takes the keywords; returns those that nothing takes.
    fn keywords(&mut self) -> Vec<(&'a str, Span)> {
        let mut unknown = Vec::new();
        for arg in &self.launch.args {
            let Some((name, span)) = &arg.keyword else { continue };
            if matches!(name.as_str(), "grid" | "warmup") {
                let what = if name == "grid" { "the brackets give the grid" } else { "the launch sets it itself" };
                let message = format!("`{name}` is given twice: {what}.");
                self.found.push(Diagnostic::new(&RULE.declaration, *span, message));
            } else if let Some(param) = self.kernel.param(name) {
                if self.given.insert(&param.name, arg).is_some() {
                    let message = format!("`{name}` is given twice: by position and by keyword.");
                    self.report(*span, message, param.name_span, "the parameter".to_owned());
                }
            } else {
                self.given.insert(name, arg);
                if REFUSED.contains(&name.as_str()) {
                    if self.is_stock() {
                        let message =
                            format!("Triton refuses `{name}` in a launch: the current device and stream are used.");
                        self.found.push(Diagnostic::new(&RULE.declaration, *span, message));
                    }
                } else if !is_option(self.context, name) {
                    unknown.push((name.as_str(), *span));
                }
            }
        }
        unknown
    }

    /// What the launch gives although the tuner does.
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
                let message = format!("`{name}` is given twice: `@triton.autotune` sets it too.");
                self.report(span, message, config.span, "set by this configuration".to_owned());
            }
        }
    }

    /// The parameters that nothing gives.
    fn missing(&self) -> Vec<&'a Param> {
        let open = self.launch.args.iter().any(|arg| matches!(arg.value.kind, ExprKind::Starred(_)));
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
        let message = format!("`{}` is launched without its argument{plural} {list}.", self.kernel.name);
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

    /// Reports a keyword that nothing takes; a missing parameter that it stands for is no longer missing.
    fn unknown(&mut self, name: &str, span: Span, missing: &mut Vec<&Param>) {
        let nearest = self.nearest(name);
        let stands_for = missing.iter().position(|param| nearest == Some(&param.name));
        // Other vendors' back ends have options of their own, none of them in capitals.
        let is_constant = !name.chars().any(char::is_lowercase);
        if stands_for.is_none() && !is_constant && !self.is_stock() {
            return;
        }
        if let Some(at) = stands_for {
            missing.remove(at);
        }
        let mut message =
            format!("`{}` has no parameter `{name}`, and no launch option is called so.", self.kernel.name);
        if let Some(nearest) = nearest {
            message.push_str(&format!(" Did you mean `{nearest}`?"));
        }
        let mut diagnostic =
            Diagnostic::new(&RULE.declaration, span, message).with_related(self.kernel.name_span, "the kernel");
        if let Some(nearest) = nearest {
            let edit = Edit { span, text: nearest.to_owned() };
            diagnostic = diagnostic.with_fix(format!("Replace `{name}` by `{nearest}`"), vec![edit]);
        }
        self.found.push(diagnostic);
    }

    /// The only parameter or option, not given yet, that is spelled almost like `name`.
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

    /// Whether it is Triton itself, of a version that is known, that takes the arguments.
    fn is_stock(&self) -> bool {
        let is_direct = |decorator: &Decorator| {
            let called = decorator.expr.as_call().map_or(&decorator.expr, |call| &call.func);
            self.context.module.imports.resolve(called).is_some_and(|resolved| resolved.direct)
        };
        self.context.target.certainty == Certainty::Known && self.kernel.decorators.iter().all(is_direct)
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

/// Whether the tuner may use other configurations than those written out.
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

fn is_option(context: &Context<'_>, name: &str) -> bool {
    context.target.table.has_launch_option(name)
        || VENDOR_OPTIONS.iter().any(|option| name.starts_with(option))
        || Table::all().iter().any(|table| table.has_launch_option(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Target;
    use crate::kernel::Module;
    use crate::rules::Selection;
    use crate::rules::engine::check as check_file;
    use crate::syntax::Source;

    const HEAD: &str = "import triton\nimport triton.language as tl\n\n";

    fn findings(text: &str, target: Target) -> Vec<Diagnostic> {
        let source = Source::parse(text);
        let module = Module::build(&source);
        let selection = Selection { select: vec!["H001".to_owned()], ignore: Vec::new() };
        check_file(&Context { source: &source, module: &module, target }, &selection)
    }

    fn known() -> Target {
        Target::of(Table::newest().version)
    }

    /// The marked texts and messages of a launch in a function, of a kernel with `decorators`.
    fn launch(decorators: &str, params: &str, arguments: &str) -> Vec<(String, String)> {
        let text = format!(
            "{HEAD}{decorators}@triton.jit\ndef k({params}):\n    pass\n\ndef run(x, y, *args, **kwargs):\n    k[(1,)]({arguments})\n"
        );
        let found = findings(&text, known());
        found.into_iter().map(|found| (text[found.span.start..found.span.end].to_owned(), found.message)).collect()
    }

    fn marked(decorators: &str, params: &str, arguments: &str) -> Vec<String> {
        launch(decorators, params, arguments).into_iter().map(|(marked, _)| marked).collect()
    }

    const PARAMS: &str = "x, out, n, BLOCK: tl.constexpr";

    #[test]
    fn what_fits_is_silent() {
        for arguments in [
            "x, y, 3, 64",
            "x, y, n=3, BLOCK=64",
            "BLOCK=64, n=3, out=y, x=x",
            "x, y, 3, BLOCK=64, num_warps=8, num_stages=2, maxnreg=128, launch_cooperative_grid=True, debug=True",
            "x, y, 3, BLOCK=64, waves_per_eu=2, matrix_instr_nonkdim=16, kpack=2, sanitize_overflow=False",
            "x, y, 3, BLOCK=64, num_consumer_groups=2", // 3.2 and 3.3
            "*args",
            "x, *args",
            "x, **kwargs",
            "x, y, 3, **{'BLOCK': 64}",
            "*args, BLOCK=64, **kwargs",
        ] {
            assert_eq!(launch("", PARAMS, arguments), [], "{arguments}");
        }
        assert_eq!(launch("", "x, n=1, BLOCK: tl.constexpr = 64", "x"), []);
    }

    #[test]
    fn missing_arguments_are_named() {
        assert_eq!(
            launch("", PARAMS, "x, BLOCK=64"),
            [("k".to_owned(), "`k` is launched without its arguments `out` and `n`.".to_owned())]
        );
        assert_eq!(
            launch("", PARAMS, "x, y, 3"),
            [("k".to_owned(), "`k` is launched without its argument `BLOCK`.".to_owned())]
        );
    }

    #[test]
    fn arguments_too_many_and_given_twice() {
        assert_eq!(
            launch("", PARAMS, "x, y, 3, 64, 128, 256"),
            [("128".to_owned(), "`k` takes 4 arguments, but gets 6 by position.".to_owned())]
        );
        assert_eq!(
            launch("", PARAMS, "x, y, 3, 64, n=4"),
            [("n".to_owned(), "`n` is given twice: by position and by keyword.".to_owned())]
        );
        assert_eq!(marked("", PARAMS, "x, y, 3, 64, grid=(1,)"), ["grid"]);
        assert_eq!(marked("", PARAMS, "x, y, 3, 64, stream=0"), ["stream"]);
        // What `*args` holds is not known.
        assert_eq!(marked("", PARAMS, "*args, x, n=4"), [""; 0]);
        assert_eq!(marked("", PARAMS, "x, y, *args, out=4"), ["out"]);
    }

    #[test]
    fn unknown_keywords_are_offered_the_nearest_name() {
        let text =
            format!("{HEAD}@triton.jit\ndef k({PARAMS}):\n    pass\n\ndef run(x):\n    k[(1,)](x, x, 3, ARGS)\n");
        for (written, mended) in [
            ("BLOK=64", Some("BLOCK=64")),
            ("block=64", Some("BLOCK=64")),
            ("BLOCK=64, num_warp=4", Some("BLOCK=64, num_warps=4")),
            ("BLOCK=64, num_wraps=4", Some("BLOCK=64, num_warps=4")),
            ("BLOCK=64, frobnicate=4", None),
            ("BLOCK=64, num_stage=4", Some("BLOCK=64, num_stages=4")),
        ] {
            let text = text.replace("ARGS", written);
            let found = findings(&text, known());
            assert_eq!(found.len(), 1, "{written}: {found:?}");
            let fixed = found[0].fix.as_ref().map(|fix| fix.apply(&text));
            assert_eq!(fixed, mended.map(|mended| text.replace(written, mended)), "{written}");
        }
        // Another back end may have such an option.
        for (written, count) in [("BLOCK=64, frobnicate=4", 0), ("BLOCK=64, FROB=4", 1), ("block=64", 1)] {
            assert_eq!(findings(&text.replace("ARGS", written), Target::newest()).len(), count, "{written}");
        }
    }

    #[test]
    fn the_tuner_and_heuristics_give_arguments() {
        let tune = |configs: &str| format!("@triton.autotune(configs={configs}, key=[])\n");
        let both = tune("[triton.Config({'BLOCK': 64}, num_warps=4), triton.Config({'BLOCK': 128})]");
        let one = tune("[triton.Config({'BLOCK': 64}), triton.Config({})]");
        let open = tune("CONFIGS");
        let pruned = one.replace("key=[]", "key=[], prune_configs_by={'early_config_prune': prune}");
        let heuristic = "@triton.heuristics({'BLOCK': lambda args: 64})\n";
        for (decorators, arguments, expected) in [
            (both.as_str(), "x, y, 3", vec![]),
            (&both, "x, y", vec!["k"]),
            (&both, "x, y, 3, BLOCK=64", vec!["BLOCK"]),
            (&both, "x, y, 3, 64", vec!["64"]),
            (&both, "x, y, 3, num_warps=4", vec!["num_warps"]),
            (&both, "x, y, 3, maxnreg=4", vec![]),
            (&tune("[triton.Config({'BLOCK': 64}, num_warps=None)]"), "x, y, 3, num_warps=4", vec![]),
            (&one, "x, y, 3", vec!["k"]),
            (&pruned, "x, y, 3", vec![]),
            (&open, "x", vec![]),
            (&open, "x, y, 3, BLOCK=64", vec![]),
            (&open, "x, y, 3, 64, 128", vec!["128"]),
            (heuristic, "x, y, 3", vec![]),
            (heuristic, "x, y, 3, BLOCK=64", vec![]), // overridden
            (heuristic, "x, y, 3, 64", vec!["64"]),
            ("@triton.heuristics(HEURISTICS)\n", "x", vec![]),
        ] {
            assert_eq!(marked(decorators, PARAMS, arguments), expected, "{decorators}{arguments}");
        }
        let related = launch(&one, PARAMS, "x, y, 3");
        assert_eq!(related[0].1, "`k` is launched without its argument `BLOCK`.");
    }

    #[test]
    fn only_a_certain_kernel_is_compared() {
        let host = "def run(x):\n    k[(1,)](x)\n";
        let plain = "@triton.jit\ndef k(x, y):\n    pass\n";
        let found = |text: String| findings(&format!("{HEAD}{text}"), known()).len();
        assert_eq!(found(format!("{plain}{host}")), 1);
        for text in [
            format!("{plain}k = wrap(k)\n{host}"),
            format!("{plain}a, k = wrap(k)\n{host}"),
            format!("{plain}from fast import k\n{host}"),
            format!("import k\n{plain}{host}"),
            format!("try:\n    from fast import f as k\nexcept ImportError:\n    pass\n{plain}{host}"),
            format!("{plain}def swap():\n    global k\n    k = None\n{host}"),
            format!("{plain}{}", host.replace("(x):", "(x, k):")),
            format!("{plain}{}", host.replace("    k[", "    k = choose()\n    k[")),
            format!("{plain}{}", host.replace("    k[", "    for k in x:\n        k[")),
            format!("{plain}{}", host.replace("    k[", "    with open() as k:\n        k[")),
            format!("{plain}{}", host.replace("    k[", "    from fast import k\n    k[")),
            format!("{plain}def outer(k):\n    def run(x):\n        k[(1,)](x)\n"),
            format!("{plain}def run(x):\n    return [k[(1,)](x) for k in x]\n"),
            format!("{plain}run = lambda k: k[(1,)](1)\n"),
            format!("if NEW:\n    {}{host}", plain.replace('\n', "\n    ").trim_end_matches(' ')),
            format!("@wrap\n{plain}{host}"),
            format!("{}{host}", plain.replace("x, y", "x, *, y")),
            format!("{}{host}", plain.replace("x, y", "*, x, y")),
            format!("{}{host}", plain.replace("x, y", "x, *y")),
            format!("{plain}def run(x):\n    k[(1,)](x, y=)\n"),
        ] {
            assert_eq!(found(text.clone()), 0, "{text}");
        }
        // Deeper than the stack.
        let deep = format!("X = {}1{}\n", "(".repeat(20_000), ")".repeat(20_000));
        assert_eq!(found(format!("{deep}{plain}{host}")), 1);
        // Elsewhere the name may mean something else.
        assert_eq!(found(format!("{plain}def other(k):\n    k = 1\n{host}class C:\n    k = 1\n")), 1);
    }
}
