//! L001: a name that `triton.language` does not have.

mod names;

use std::cell::RefCell;
use std::collections::HashMap;

use model::api::{Lookup, MemberKind, Table, TritonTarget, Version, VersionCertainty};
use model::kernel::Kernel;
use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_statements};
use model::syntax::Span;

use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L001",
        name: "unknown-member",
        severity: Severity::Error,
        summary: "a name that `triton.language` does not have in the Triton version in use",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("unknown_member.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let verdicts = RefCell::new(HashMap::new());
    findings.extend(context.in_kernels(&RULE, |kernel| {
        let mut findings = Vec::new();
        // A kernel under a condition may be for another version, and names near syntax errors are unreliable.
        if kernel.nested || kernel.has_error {
            return findings;
        }
        let mut verdicts = verdicts.borrow_mut();
        let mut walk = Walk { context, kernel, in_header: true, verdicts: &mut verdicts, findings: &mut findings };
        for param in &kernel.params {
            param.annotation.iter().chain(&param.default).for_each(|expr| walk.expr(expr, false));
        }
        walk.in_header = false;
        walk.block(&kernel.body, false);
        findings
    }));
}

struct Walk<'a, 'f> {
    context: &'a RuleContext<'a>,
    kernel: &'a Kernel,
    /// Whether the expression is in the parameters, where names of the body do not hide globals.
    in_header: bool,
    /// The verdicts by the name as in the source.
    verdicts: &'f mut HashMap<String, Verdict>,
    findings: &'f mut Vec<Diagnostic>,
}

impl Walk<'_, '_> {
    /// Checks a block. `conditional`: whether Triton may skip it because of a compile-time condition.
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
                StmtKind::Return(value) => {
                    value.iter().for_each(|value| self.expr(value, conditional));
                    return;
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

    /// Resolves `a.b.c` from the left, up to the first name that does not exist.
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
                let missing = Missing { path: &resolved.path, written: self.context.source.slice(expr.span), name };
                if let Some(diagnostic) = self.report(&missing, *name_span, conditional) {
                    self.findings.push(diagnostic);
                }
                Reached::End
            }
        }
    }

    fn report(&mut self, missing: &Missing<'_>, span: Span, conditional: bool) -> Option<Diagnostic> {
        let context = self.context;
        // The verdict depends on the rest of the text.
        context.ask_everything();
        let verdict = match self.verdicts.get(missing.written) {
            Some(known) => known,
            None => self.verdicts.entry(missing.written.to_owned()).or_insert(Verdict::of(missing, context)),
        };
        // Other vendors' versions of Triton have names of their own: a name that is neither a misspelling nor from
        // another library may be one of these.
        let unclear = conditional || context.target.certainty != VersionCertainty::Known;
        if verdict.silent || unclear && !verdict.explained || conditional && verdict.elsewhere {
            return None;
        }
        let diagnostic = Diagnostic::new(&RULE.declaration, span, verdict.message.as_str());
        Some(match verdict.nearest {
            Some(name) => {
                let edit = Edit { span, text: name.to_owned() };
                diagnostic.with_fix(format!("Replace `{}` by `{name}`", missing.name), vec![edit])
            }
            None => diagnostic,
        })
    }
}

/// Names of other vendors' versions of Triton, seen in published packages. Files that use them are skipped.
const VENDORS: &str = "atomic_mul extract_slice insert_slice masked_select";

/// Texts that show that a file checks which Triton version it runs on.
const VERSION_CHECKS: &[&str] = &["__version__", "_version", "_VERSION", "version(", "hasattr(tl", "hasattr(triton"];

#[derive(PartialEq)]
enum Reached {
    /// A module or class whose members may be in the API tables.
    Open,
    /// The chain needs no further check.
    End,
}

/// Whether a branch of the statement returns, so that the code after it may be dead.
fn leaves(stmt: &Stmt) -> bool {
    let mut found = false;
    walk_statements(std::slice::from_ref(stmt), &mut |stmt| found |= matches!(stmt.kind, StmtKind::Return(_)));
    found
}

/// A name that does not exist.
struct Missing<'a> {
    path: &'a str,
    /// The name as in the file: `tl.cidv`.
    written: &'a str,
    name: &'a str,
}

/// The verdict about a missing name, the same for all its occurrences in the file.
struct Verdict {
    message: String,
    nearest: Option<&'static str>,
    /// Whether the intended name is known.
    explained: bool,
    /// Whether other versions have the name.
    elsewhere: bool,
    /// Whether the file has its own reason to use the name, so that it is not reported.
    silent: bool,
}

impl Verdict {
    fn of(missing: &Missing<'_>, context: &RuleContext<'_>) -> Self {
        let text = context.source.text();
        let versions = TritonTarget::versions_with(missing.path);
        let alias = missing.written.split('.').next().unwrap_or("").trim();
        let mut message = missing.place(context.target, &versions);
        let (instead, nearest) = (names::instead(missing.path), names::nearest(missing.path, context.target));
        if let Some(instead) = &instead {
            message.push_str(&format!("; use {instead}"));
        } else if let Some(name) = nearest {
            message.push_str(&format!("; did you mean `{name}`?"));
        }
        Self {
            message,
            explained: instead.is_some() || nearest.is_some(),
            nearest: nearest.filter(|_| instead.is_none()),
            elsewhere: !versions.is_empty(),
            silent: names::has(VENDORS, missing.name)
                || !versions.is_empty() && VERSION_CHECKS.iter().any(|check| text.contains(check))
                || missing.is_patched(text, alias)
                || context.module.imports.binds_another(alias),
        }
    }
}

impl Missing<'_> {
    /// The text that says in which versions the name is missing, and which have it.
    fn place(&self, target: TritonTarget, having: &[Version]) -> String {
        let written = self.written;
        if target.certainty == VersionCertainty::Assumed {
            let releases = Table::versions();
            let (first, last) = (releases[0], releases[releases.len() - 1]);
            return format!("no Triton from {} to {} has `{written}`", short(first), short(last));
        }
        let version = target.table.version;
        let absent = format!("`{written}` is not in Triton {}", short(version));
        let later = having.iter().find(|with| **with > version);
        let earlier = having.iter().rfind(|with| **with < version);
        match (later, earlier) {
            (Some(came), _) => format!("{absent}; it came with {}", short(*came)),
            (None, Some(last)) => format!("{absent}; {} was the last to have it", short(*last)),
            (None, None) => absent,
        }
    }

    /// Whether the file assigns the member to the module itself, or mentions it in a string.
    fn is_patched(&self, text: &str, alias: &str) -> bool {
        let assigned = text.match_indices(self.written).any(|(at, written)| {
            let rest = text[at + written.len()..].trim_start();
            rest.starts_with('=') && !rest.starts_with("==")
        });
        let name = self.name;
        let quoted = || text.contains(&format!("\"{name}\"")) || text.contains(&format!("'{name}'"));
        assigned || text.contains(&format!("setattr({alias}")) || text.contains("attr(") && quoted()
    }
}

/// A version without its patch number: the releases of a minor version have the same members.
fn short(version: Version) -> String {
    let (major, minor) = version.series();
    format!("{major}.{minor}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check as check_file;
    use crate::{Fix, Selection};
    use model::kernel::Module;
    use model::syntax::Source;

    fn findings(text: &str, target: TritonTarget) -> Vec<Diagnostic> {
        let source = Source::parse(text);
        let module = Module::build(&source);
        let selection = Selection { select: vec!["L001".to_owned()], ignore: Vec::new() };
        check_file(&RuleContext::new(&source, &module, target), &selection)
    }

    fn kernel(body: &str) -> String {
        let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
        format!("import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, y, C: tl.constexpr):\n{body}")
    }

    fn messages(text: &str, version: Option<&str>) -> Vec<String> {
        let target = version.map_or_else(TritonTarget::newest, |version| TritonTarget::of(version.parse().unwrap()));
        findings(text, target).into_iter().map(|found| found.message).collect()
    }

    fn all_of(text: &str) -> Vec<String> {
        messages(text, None)
    }

    #[test]
    fn the_message_names_the_versions_with_the_member() {
        let new = kernel("d = tl.make_tensor_descriptor(x, [8], [1], [8])");
        let old = kernel("x = tl.advance(x, [0])");
        assert_eq!(
            messages(&new, Some("3.1.0")),
            ["`tl.make_tensor_descriptor` is not in Triton 3.1; it came with 3.4"]
        );
        assert_eq!(messages(&old, Some("3.9.0")), ["`tl.advance` is not in Triton 3.9; 3.8 was the last to have it"]);
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
            let found = findings(&text, TritonTarget::of(Table::newest().version));
            assert_eq!(found.len(), 1, "{written}");
            let clear = found[0].fix.is_some() || found[0].message.contains("; use");
            assert_eq!(findings(&text, TritonTarget::newest()).len(), usize::from(clear), "{written}");
            let fixed = found[0].fix.as_ref().map(|fix: &Fix| fix.apply(&text));
            assert_eq!(fixed, mended.map(|mended| kernel(&format!("y = {mended}"))), "{written}");
        }
    }

    #[test]
    fn functions_of_other_libraries_are_explained() {
        let tanh = "no Triton from 3.1 to 3.9 has `tl.tanh`; \
                    use `libdevice.tanh` of `triton.language.extra`, which takes 32-bit and 64-bit floats";
        assert_eq!(all_of(&kernel("y = tl.tanh(x)")), [tanh]);
        assert_eq!(
            all_of(&kernel("y = tl.ones_like(x)")),
            ["no Triton from 3.1 to 3.9 has `tl.ones_like`; use `tl.full(x.shape, 1, x.dtype)`"]
        );
    }

    #[test]
    fn only_the_first_missing_name_of_a_chain_is_marked() {
        let text = kernel("y = tl.maths.exp.thing(x)\nz = tl.float32.frobnicate\nw = tl.extra.cuda.frobnicate(x)");
        let found = findings(&text, TritonTarget::of(Table::newest().version));
        let marked: Vec<_> = found.iter().map(|found| &text[found.span.start..found.span.end]).collect();
        assert_eq!(marked, ["maths"]);
    }

    #[test]
    fn annotations_and_defaults_are_checked_too() {
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
            ("return CALL", false),
            ("try:\n    y = CALL\nexcept Exception:\n    pass", true),
        ] {
            for (call, silent) in [(unknown, silent), (new, silent), (typo, false)] {
                let found = messages(&kernel(&shape.replace("CALL", call)), Some("3.1.0"));
                assert_eq!(found.is_empty(), silent, "{shape} with {call}: {found:?}");
            }
        }
    }

    #[test]
    fn members_that_the_file_sets_or_checks_are_not_flagged() {
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
            (call.replace("y = ", "return\n    y = "), None),
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
