//! L001: a name that `triton.language` does not have.

use std::collections::HashMap;

use super::{Context, Declaration, Diagnostic, Edit, Findings, Rule, Severity, scope};
use crate::api::{Certainty, Lookup, MemberKind, Table, Target, Version};
use crate::kernel::Kernel;
use crate::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_statements};
use crate::syntax::Span;

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L001",
        name: "unknown-member",
        severity: Severity::Error,
        summary: "a name that `triton.language` does not have in the Triton version in use",
        since: "0.1.0",
        fixable: true,
        doc: r#"
## What it does
Finds names of `triton.language` and its modules that a kernel uses and that the Triton version in use does not have.
The version is the one in the settings or the one installed in the project's environment. Where neither is known, only
names are reported that no release from 3.1 on has and of which it is plain what was meant.

## Why is this bad?
Triton evaluates the name when it compiles the kernel, at its first launch, and stops there with
`AttributeError: module 'triton.language' has no attribute …`.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def blocks(out, n, BLOCK: tl.constexpr):
    tl.store(out, tl.cidv(n, BLOCK))
    #                ^^^^
```

Functions of PyTorch and NumPy that Triton has under another name or in `libdevice`:
```python
import triton
import triton.language as tl


@triton.jit
def gate(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask, other=0.0)
    tl.store(out + offsets, tl.math.tanh(value), mask=mask)
    #                               ^^^^
```

## Good
```python
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def gate(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask, other=0.0)
    tl.store(out + offsets, libdevice.tanh(value.to(tl.float32)), mask=mask)
```

## When it is silent
When `tl` comes from another module than Triton's own, when the file assigns the name itself or asks for it with
`hasattr`, and where a condition may depend on the version.

## Fix
Replaces the name by the only existing one that is spelled almost like it.
"#,
    },
    check,
};

/// Functions that all described releases have in `triton.language.extra.libdevice`, for both CUDA and ROCm.
const LIBDEVICE: &str = "acos acosh asin asinh atan atan2 atanh copysign cosh erfc erfinv expm1 fmod hypot isinf isnan log10 log1p \
    nearbyint pow signbit sinh tan tanh trunc";

/// What to write instead of names that other libraries have.
const INSTEAD: &[(&str, &str)] = &[
    ("all", "`tl.min(mask.to(tl.int32), axis) > 0`"),
    ("any", "`tl.max(mask.to(tl.int32), axis) > 0`"),
    ("bool", "`tl.int1`"),
    ("clip", "`tl.clamp(x, low, high)`"),
    ("full_like", "`tl.full(x.shape, value, x.dtype)`"),
    ("matmul", "`tl.dot(a, b)`"),
    ("mean", "`tl.sum(x, axis) / n`"),
    ("mm", "`tl.dot(a, b)`"),
    ("ones", "`tl.full(shape, 1, dtype)`"),
    ("ones_like", "`tl.full(x.shape, 1, x.dtype)`"),
    ("relu", "`tl.maximum(x, 0)`"),
    ("square", "`x * x`"),
    ("transpose", "`tl.trans(x)`"),
];

/// Names that other vendors' Tritons have, seen in published packages: files for those are left alone.
const VENDORS: &str = "atomic_mul extract_slice insert_slice masked_select";

/// Short names of dtypes.
const DTYPES: &[(&str, &str)] =
    &[("bf16", "bfloat16"), ("fp16", "float16"), ("fp32", "float32"), ("fp64", "float64"), ("bfloat", "bfloat16")];

/// Names that people mean when they write them, however close they are to one of Triton's.
const NO_TYPOS: &str = "absolute add amax amin arccos arcsin arctan argwhere bincount cbrt cosine cospi cross cummax cummin diag div \
    divide dump equal erfcx erfinv eye fabs float floor_div fmax fmin frexp gcd ge gt half hash index int \
    isfinite le len lgamma linspace logb logsumexp long lt max2 maxi mini mod mul ne neg norm not_equal outer \
    prod rand_like remainder rint roll rot90 round rsqrt scan scatter select sgn shape short sign sinc sinpi \
    size slice sqr stack std sub take tile tril triu uint unique var view_as zero";

fn check(context: &Context<'_>, findings: &mut Findings<'_>) {
    let mut foreign = HashMap::new();
    for kernel in &context.module.kernels {
        // Under a condition a kernel may be for another version; where the parser is lost, names are not what they seem.
        if kernel.nested || kernel.has_error {
            continue;
        }
        let mut walk = Walk { context, kernel, in_header: true, foreign: &mut foreign, findings };
        for param in &kernel.params {
            param.annotation.iter().chain(&param.default).for_each(|expr| walk.expr(expr, false));
        }
        walk.in_header = false;
        walk.block(&kernel.body, false);
    }
}

struct Walk<'a, 'f, 'o> {
    context: &'a Context<'a>,
    kernel: &'a Kernel,
    /// In the parameters, where the names of the body hide nothing.
    in_header: bool,
    /// Whether a name of the file is imported from elsewhere too, by name.
    foreign: &'f mut HashMap<String, bool>,
    findings: &'f mut Findings<'o>,
}

impl Walk<'_, '_, '_> {
    /// `conditional`: whether Triton may never look at this, because a condition holds at compile time.
    fn block(&mut self, body: &[Stmt], mut conditional: bool) {
        for stmt in body {
            match &stmt.kind {
                StmtKind::If { branches, orelse } => {
                    for (at, (test, _)) in branches.iter().enumerate() {
                        self.expr(test, conditional || at > 0);
                    }
                    branches.iter().for_each(|(_, body)| self.block(body, true));
                    self.block(orelse, true);
                    conditional |= leaves(stmt);
                }
                StmtKind::Block(bodies) => bodies.iter().for_each(|body| self.block(body, true)),
                _ => {
                    stmt.exprs().into_iter().for_each(|expr| self.expr(expr, conditional));
                    stmt.bodies().into_iter().for_each(|body| self.block(body, conditional));
                }
            }
        }
    }

    fn expr(&mut self, expr: &Expr, conditional: bool) {
        match &expr.kind {
            ExprKind::IfExp { test, body, orelse } => {
                self.expr(test, conditional);
                self.expr(body, true);
                self.expr(orelse, true);
            }
            ExprKind::BoolOp { left, right, .. } => {
                self.expr(left, conditional);
                self.expr(right, true);
            }
            ExprKind::Lambda { .. } => {}
            ExprKind::Attribute { .. } if expr.dotted().is_some() => {
                self.chain(expr, conditional);
            }
            _ => expr.children().into_iter().for_each(|child| self.expr(child, conditional)),
        }
    }

    /// Looks at `a.b.c` from the left, up to the first name that is not there.
    fn chain(&mut self, expr: &Expr, conditional: bool) -> Reached {
        let ExprKind::Attribute { value, name, name_span } = &expr.kind else { return Reached::Open };
        if self.chain(value, conditional) == Reached::End {
            return Reached::End;
        }
        let imports = &self.context.module.imports;
        let resolved =
            if self.in_header { imports.resolve(expr) } else { self.context.module.resolve_in(self.kernel, expr) };
        let Some(resolved) = resolved.filter(|resolved| resolved.direct) else { return Reached::End };
        match self.context.target.lookup(&resolved.path) {
            Lookup::Found(member) if member.kind == MemberKind::Module => Reached::Open,
            Lookup::Found(_) => Reached::End,
            Lookup::Undescribed => Reached::Open,
            Lookup::Absent => {
                let written = self.context.source.slice(expr.span);
                let missing = Missing { path: &resolved.path, written, name, span: *name_span };
                if self.is_certain(&missing, expr, conditional) {
                    self.findings.push(missing.diagnostic(self.context.target));
                }
                Reached::End
            }
        }
    }

    fn is_certain(&mut self, missing: &Missing<'_>, expr: &Expr, conditional: bool) -> bool {
        let target = self.context.target;
        let elsewhere = !Target::versions_with(missing.path).is_empty();
        // Other vendors' Tritons have names of their own: what is neither a slip nor of another library may be theirs.
        let unclear = conditional || target.certainty != Certainty::Known;
        if unclear && !missing.is_explained(target) || conditional && elsewhere || has(VENDORS, missing.name) {
            return false;
        }
        let text = self.context.source.text();
        if elsewhere && VERSION_CHECKS.iter().any(|check| text.contains(check)) {
            return false;
        }
        let alias = expr.dotted().and_then(|parts| parts.first().copied()).unwrap_or("");
        let source = self.context.source;
        let is_foreign = || scope::imports_another(source, alias);
        !is_patched(text, alias, missing) && !*self.foreign.entry(alias.to_owned()).or_insert_with(is_foreign)
    }
}

/// Signs that a file asks which Triton it runs on.
const VERSION_CHECKS: &[&str] = &["__version__", "_version", "_VERSION", "version(", "hasattr(tl", "hasattr(triton"];

#[derive(PartialEq)]
enum Reached {
    /// Something that may have members of which the tables know.
    Open,
    /// Nothing more is to be said.
    End,
}

/// Whether a branch of the statement returns: what follows may then be dead.
fn leaves(stmt: &Stmt) -> bool {
    let mut found = false;
    walk_statements(std::slice::from_ref(stmt), &mut |stmt| found |= matches!(stmt.kind, StmtKind::Return(_)));
    found
}

/// Whether the file gives the name to the module itself, or asks for it as a string.
fn is_patched(text: &str, alias: &str, missing: &Missing<'_>) -> bool {
    let name = missing.name;
    let assigned = text.match_indices(missing.written).any(|(at, written)| {
        let rest = text[at + written.len()..].trim_start();
        rest.starts_with('=') && !rest.starts_with("==")
    });
    let quoted = || text.contains(&format!("\"{name}\"")) || text.contains(&format!("'{name}'"));
    assigned || text.contains(&format!("setattr({alias}")) || text.contains("attr(") && quoted()
}

/// Whether a list of words has this one.
fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// The releases of a minor version offer the same.
fn short(version: Version) -> String {
    let (major, minor) = version.series();
    format!("{major}.{minor}")
}

/// A name that is not there.
struct Missing<'a> {
    path: &'a str,
    /// As the file has it: `tl.cidv`.
    written: &'a str,
    name: &'a str,
    span: Span,
}

impl Missing<'_> {
    /// Whether it is known what was meant.
    fn is_explained(&self, target: Target) -> bool {
        self.instead().is_some() || self.nearest(target).is_some()
    }

    fn diagnostic(&self, target: Target) -> Diagnostic {
        let mut message = self.verdict(target);
        let nearest = self.nearest(target);
        if let Some(instead) = self.instead() {
            message.push_str(&format!(" Use {instead}."));
        } else if let Some(name) = nearest {
            message.push_str(&format!(" Did you mean `{name}`?"));
        }
        let diagnostic = Diagnostic::new(&RULE.declaration, self.span, message);
        match nearest {
            Some(name) => {
                let edit = Edit { span: self.span, text: name.to_owned() };
                diagnostic.with_fix(format!("Replace `{}` by `{name}`", self.name), vec![edit])
            }
            None => diagnostic,
        }
    }

    /// Where the name is missing, and where it is not.
    fn verdict(&self, target: Target) -> String {
        let (written, version) = (self.written, short(target.table.version));
        let having = Target::versions_with(self.path);
        let releases = Table::versions();
        if target.certainty == Certainty::Assumed {
            let (first, last) = (releases[0], releases[releases.len() - 1]);
            return format!("No Triton from {} to {} has `{written}`.", short(first), short(last));
        }
        let later = having.iter().find(|&&with| with > target.table.version);
        let earlier = having.iter().rfind(|&&with| with < target.table.version);
        match (later, earlier) {
            (Some(came), _) => format!("`{written}` is not in Triton {version}; it came with {}.", short(*came)),
            (None, Some(last)) => {
                format!("`{written}` is not in Triton {version}; {} was the last to have it.", short(*last))
            }
            (None, None) => format!("`{written}` is not in Triton {version}."),
        }
    }

    /// What to write instead, in words.
    fn instead(&self) -> Option<String> {
        if !matches!(self.path.rsplit_once('.')?.0, "triton.language" | "triton.language.math") {
            return None;
        }
        let known = INSTEAD.iter().find(|(name, _)| *name == self.name).map(|(_, instead)| (*instead).to_owned());
        known.or_else(|| {
            let instead =
                format!("`libdevice.{}` of `triton.language.extra`, which takes 32-bit and 64-bit floats", self.name);
            has(LIBDEVICE, self.name).then_some(instead)
        })
    }

    /// The only name of the module that is spelled almost like this one and of the same numbers.
    fn nearest(&self, target: Target) -> Option<&'static str> {
        let (module, _) = self.path.rsplit_once('.')?;
        if self.instead().is_some() || has(NO_TYPOS, self.name) {
            return None;
        }
        if module == "triton.language"
            && let Some((_, name)) = DTYPES.iter().find(|(short, _)| *short == self.name)
        {
            return Some(name);
        }
        let digits = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
        let limit = if self.name.len() > 4 { 2 } else { 1 };
        let everywhere = |path: &str| {
            target.certainty == Certainty::Known || Target::versions_with(path).len() == Table::versions().len()
        };
        let mut close: Vec<(usize, &'static str)> = target
            .table
            .modules
            .get(module)?
            .iter()
            .filter(|(name, member)| {
                !name.starts_with('_') && !matches!(member.kind, MemberKind::Module | MemberKind::Value)
            })
            .map(|(name, _)| (strsim::osa_distance(name, self.name), name.as_str()))
            .filter(|(distance, name)| *distance <= limit && digits(name) == digits(self.name))
            .collect();
        close.sort_unstable();
        match close.as_slice() {
            [(_, name)] => Some(*name),
            [(best, name), (next, _), ..] if best < next => Some(*name),
            _ => None,
        }
        .filter(|name| everywhere(&format!("{module}.{name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Module;
    use crate::rules::engine::check as check_file;
    use crate::rules::{Fix, Selection};
    use crate::syntax::Source;

    fn findings(text: &str, target: Target) -> Vec<Diagnostic> {
        let source = Source::parse(text);
        let module = Module::build(&source);
        let selection = Selection { select: vec!["L001".to_owned()], ignore: Vec::new() };
        check_file(&Context { source: &source, module: &module, target }, &selection)
    }

    fn kernel(body: &str) -> String {
        let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
        format!("import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, y, C: tl.constexpr):\n{body}")
    }

    fn messages(text: &str, version: Option<&str>) -> Vec<String> {
        let target = version.map_or_else(Target::newest, |version| Target::of(version.parse().unwrap()));
        findings(text, target).into_iter().map(|found| found.message).collect()
    }

    fn all_of(text: &str) -> Vec<String> {
        messages(text, None)
    }

    #[test]
    fn says_in_which_versions_a_name_is() {
        let new = kernel("d = tl.make_tensor_descriptor(x, [8], [1], [8])");
        let old = kernel("x = tl.advance(x, [0])");
        assert_eq!(
            messages(&new, Some("3.1.0")),
            ["`tl.make_tensor_descriptor` is not in Triton 3.1; it came with 3.4."]
        );
        assert_eq!(messages(&old, Some("3.9.0")), ["`tl.advance` is not in Triton 3.9; 3.8 was the last to have it."]);
        for (text, version) in [(&new, Some("3.4.0")), (&old, Some("3.8.0")), (&new, None), (&old, None)] {
            assert_eq!(messages(text, version), [""; 0], "{version:?}");
        }
    }

    #[test]
    fn the_nearest_name_is_offered_when_it_is_the_only_one() {
        for (written, mended) in [
            ("tl.cidv(x, 2)", Some("tl.cdiv(x, 2)")),
            ("tl.laod(x)", Some("tl.load(x)")),
            ("tl.arrange(0, 4)", Some("tl.arange(0, 4)")),
            ("tl.math.sqtr(x)", Some("tl.math.sqrt(x)")),
            ("triton.cidv(x, 2)", Some("triton.cdiv(x, 2)")),
            ("x.to(tl.fp32)", Some("x.to(tl.float32)")),
            ("x.to(tl.flaot32)", Some("x.to(tl.float32)")),
            ("x.to(tl.float31)", None), // 32? 16? 8?
            ("tl.fmax(x, y)", None),    // not `tl.max`, which reduces
            ("tl.sinh(x)", None),
            ("tl.any(x)", None),
            ("tl.frobnicate(x)", None),
        ] {
            let text = kernel(&format!("y = {written}"));
            let found = findings(&text, Target::of(Table::newest().version));
            assert_eq!(found.len(), 1, "{written}");
            let clear = found[0].fix.is_some() || found[0].message.contains("Use");
            assert_eq!(findings(&text, Target::newest()).len(), usize::from(clear), "{written}");
            let fixed = found[0].fix.as_ref().map(|fix: &Fix| fix.apply(&text));
            assert_eq!(fixed, mended.map(|mended| kernel(&format!("y = {mended}"))), "{written}");
        }
    }

    #[test]
    fn functions_of_other_libraries_are_explained() {
        let tanh = "No Triton from 3.1 to 3.9 has `tl.tanh`. \
                    Use `libdevice.tanh` of `triton.language.extra`, which takes 32-bit and 64-bit floats.";
        assert_eq!(all_of(&kernel("y = tl.tanh(x)")), [tanh]);
        assert_eq!(
            all_of(&kernel("y = tl.ones_like(x)")),
            ["No Triton from 3.1 to 3.9 has `tl.ones_like`. Use `tl.full(x.shape, 1, x.dtype)`."]
        );
    }

    #[test]
    fn what_is_recommended_exists_in_every_version() {
        for (name, instead) in INSTEAD {
            let found = Target::versions_with(&format!("triton.language.{name}"));
            assert!(found.is_empty(), "{name} is in {found:?}");
            for recommended in instead.split("tl.").skip(1) {
                let end = recommended.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(recommended.len());
                let versions = Target::versions_with(&format!("triton.language.{}", &recommended[..end]));
                assert_eq!(versions, Table::versions(), "{instead}");
            }
        }
        for (_, dtype) in DTYPES {
            assert_eq!(Target::versions_with(&format!("triton.language.{dtype}")), Table::versions(), "{dtype}");
        }
        for name in LIBDEVICE.split(' ') {
            assert!(Target::versions_with(&format!("triton.language.{name}")).is_empty(), "{name}");
        }
    }

    #[test]
    fn only_the_first_missing_name_of_a_chain_is_marked() {
        let text = kernel("y = tl.maths.exp.thing(x)\nz = tl.float32.frobnicate\nw = tl.extra.cuda.frobnicate(x)");
        let found = findings(&text, Target::of(Table::newest().version));
        let marked: Vec<_> = found.iter().map(|found| &text[found.span.start..found.span.end]).collect();
        assert_eq!(marked, ["maths"]);
    }

    #[test]
    fn parameters_are_looked_at_too() {
        let text = "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x, n: tl.constexprr, t=tl.flaot32):\n    tl.load(x)\n";
        assert_eq!(all_of(text).len(), 2);
    }

    #[test]
    fn conditions_may_depend_on_the_version() {
        let unknown = "tl.frobnicate(x)";
        let new = "tl.make_tensor_descriptor(x, [8], [1], [8])";
        let typo = "tl.cidv(x, 2)";
        for (shape, silent) in [
            ("y = CALL", false),
            ("for i in range(4):\n    y = CALL", false),
            ("if C:\n    y = CALL", true),
            ("if C:\n    pass\nelse:\n    y = CALL", true),
            ("if C:\n    pass\nelif CALL:\n    pass", true),
            ("y = CALL if C else x", true),
            ("y = C and CALL", true),
            ("if C:\n    return\ny = CALL", true),
            ("try:\n    y = CALL\nexcept Exception:\n    pass", true),
        ] {
            for (call, silent) in [(unknown, silent), (new, silent), (typo, false)] {
                let found = messages(&kernel(&shape.replace("CALL", call)), Some("3.1.0"));
                assert_eq!(found.is_empty(), silent, "{shape} with {call}: {found:?}");
            }
        }
    }

    #[test]
    fn silent_about_what_the_file_decides_itself() {
        let call = kernel("y = tl.cidv(x, 2)");
        let new = kernel("y = tl.make_tensor_descriptor(x, [8], [1], [8])");
        for (text, version) in [
            (call.replace("import triton.language as tl", "from mine import tl"), None),
            (call.replace("@triton", "tl.cidv = my_cidv\n\n@triton"), None),
            (call.replace("@triton", "setattr(tl, NAME, my_cidv)\n\n@triton"), None),
            (call.replace("@triton", "if hasattr(tl, 'cidv'): pass\n\n@triton"), None),
            (call.replace("@triton", "if NPU:\n    import npu.language as tl\n\n@triton"), None),
            (call.replace("@triton", "if NPU:\n    from npu import language as tl\n\n@triton"), None),
            (call.replace("C: tl.constexpr", "tl"), None),
            (call.clone(), Some("3.0.0")),
            (call.clone(), Some("4.0.0")),
            (new.replace("@triton", "NEW = triton.__version__ >= '3.4'\n\n@triton"), Some("3.1.0")),
            (format!("{new}    y = tl.load(\n"), Some("3.1.0")),
        ] {
            assert_eq!(messages(&text, version), [""; 0], "{text}");
        }
        let nested = "import triton\nimport triton.language as tl\nif NEW:\n    @triton.jit\n    def k(x):\n        tl.cidv(x, 2)\n";
        assert_eq!(all_of(nested), [""; 0]);
        assert_eq!(all_of(&call).len(), 1);
    }
}
