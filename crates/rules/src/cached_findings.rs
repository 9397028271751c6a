//! A cache of findings per kernel, which survives edits elsewhere in the file.

use std::hash::{DefaultHasher, Hash, Hasher};

use model::kernel::{FactAnchors, Kernel, Module, ShiftSpans};
use model::syntax::Span;

use super::context::{ContextDependencies, RuleContext};
use super::diagnostic::Diagnostic;
use super::rule::Rule;

impl<'a> RuleContext<'a> {
    /// The findings of `find` in each kernel, in the order of the kernels. Kernels that have not changed keep their
    /// earlier findings.
    ///
    /// `find` may read the kernel, its launches, imports and globals: see [`Facts`](model::kernel::FactCache) for what else
    /// is cached. The cache accounts for what `find` reads from the context: line numbers, facts, the text of the file.
    pub(super) fn in_kernels(&self, rule: &Rule, find: impl Fn(&'a Kernel) -> Vec<Diagnostic>) -> Vec<Diagnostic> {
        self.kept_in_kernels(rule.declaration.code, |index| find(&self.module.kernels[index]))
    }

    /// The same with any cache key instead of a rule; `find` takes the index of a kernel.
    pub(super) fn kept_in_kernels(&self, key: impl Hash, find: impl Fn(usize) -> Vec<Diagnostic>) -> Vec<Diagnostic> {
        let mut hasher = DefaultHasher::new();
        (key, self.target.key()).hash(&mut hasher);
        let key = hasher.finish();
        let mut all = Vec::new();
        for (index, kernel) in self.module.kernels.iter().enumerate() {
            let mut fresh = None;
            let line = || self.source.lines().line_of(kernel.span.start);
            let find = || {
                let (found, asked) = self.asking(|| find(index));
                let kept = CachedFindings::new(self.module, kernel, &found, asked, line);
                fresh = Some(found);
                kept
            };
            let kept = kernel.facts.get_while(key, |kept: &CachedFindings| kept.holds(self.module, kernel, line), find);
            all.extend(fresh.unwrap_or_else(|| kept.now(self.module, kernel)));
        }
        all
    }
}

/// The cached findings of a rule in a kernel.
struct CachedFindings {
    findings: Vec<Diagnostic>,
    homes: FactAnchors,
    /// The line, counted from 0, where the kernel began; present where the findings mention line numbers.
    line: Option<usize>,
}

impl CachedFindings {
    fn new(
        module: &Module,
        kernel: &Kernel,
        findings: &[Diagnostic],
        asked: ContextDependencies,
        line: impl Fn() -> usize,
    ) -> Self {
        let mut findings = findings.to_vec();
        let mut homes = if asked.everything { FactAnchors::lost() } else { FactAnchors::new() };
        each_span(&mut findings, &mut |span| homes.add(module, kernel, *span));
        if asked.lines && !homes.are_own() {
            homes = FactAnchors::lost();
        }
        if !homes.are_known() {
            findings.clear();
        }
        Self { findings, homes, line: asked.lines.then(line) }
    }

    fn holds(&self, module: &Module, kernel: &Kernel, line: impl Fn() -> usize) -> bool {
        self.homes.span_moves(module, kernel).is_some() && self.line.is_none_or(|then| then == line())
    }

    /// The findings with their spans moved to the current positions.
    fn now(&self, module: &Module, kernel: &Kernel) -> Vec<Diagnostic> {
        let mut findings = self.findings.clone();
        if let Some(moves) = self.homes.span_moves(module, kernel).filter(|moves| !moves.are_none()) {
            each_span(&mut findings, &mut |span| moves.apply(span));
        }
        findings
    }
}

impl ShiftSpans for CachedFindings {
    fn shift(&mut self, by: isize) {
        each_span(&mut self.findings, &mut |span| span.shift(by));
        self.homes.shift(by);
    }
}

fn each_span(findings: &mut [Diagnostic], visit: &mut dyn FnMut(&mut Span)) {
    for finding in findings {
        visit(&mut finding.span);
        finding.related.iter_mut().for_each(|related| visit(&mut related.span));
        finding.fix.iter_mut().flat_map(|fix| &mut fix.edits).for_each(|edit| visit(&mut edit.span));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use model::api::TritonTarget;
    use model::syntax::{Document, Encoding, Position, Source};

    const TEXT: &str =
        "import triton\n\n\nA = 1\n\n\n@triton.jit\ndef k(x):\n    return x + A\n\n\ndef host():\n    pass\n";

    /// Inserts `text` at the start of a line, and returns how often the rule then runs on the kernel, in a model that
    /// was rebuilt from the earlier one. `tell` gives the related span and the message of the finding.
    fn looks_after(line: u32, text: &str, tell: fn(&RuleContext<'_>, &Kernel) -> (Span, String)) -> usize {
        let rule = crate::all()[0];
        let check = |source: &Source, module: &Module| {
            let (context, looks) = (RuleContext::new(source, module, TritonTarget::newest()), Cell::new(0));
            let found = context.in_kernels(rule, |kernel| {
                looks.set(looks.get() + 1);
                let (span, message) = tell(&context, kernel);
                vec![Diagnostic::new(&rule.declaration, kernel.name_span, message).with_related(span, "there")]
            });
            (found, looks.get())
        };
        let mut document = Document::new(TEXT);
        let source = document.source();
        let module = Module::rebuild(&source, Module::build(&source), &source);
        assert_eq!(check(&source, &module).1, 1);
        let at = Position { line, column: 0 };
        document.edit(at, at, text, Encoding::Utf8).unwrap();
        let edited = document.source();
        let module = Module::rebuild(&edited, module, &source);
        let (found, looks) = check(&edited, &module);
        assert_eq!(found, check(&edited, &Module::build(&edited)).0);
        looks
    }

    #[test]
    fn findings_are_kept_through_edits_elsewhere() {
        let own = |_: &RuleContext<'_>, kernel: &Kernel| (kernel.span, "own".to_owned());
        let global = |context: &RuleContext<'_>, _: &Kernel| (context.module.globals[0].span, "global".to_owned());
        for tell in [own, global] {
            assert_eq!(looks_after(12, "    return\n", tell), 0);
            assert_eq!(looks_after(4, "\n", tell), 0);
            assert_eq!(looks_after(8, "    x += 1\n", tell), 1);
            assert_eq!(looks_after(3, "B = 2\n", tell), 1);
        }
    }

    /// `x = yy` is as long as the definition that the finding points to, and takes its number.
    #[test]
    fn a_finding_points_to_the_same_global_when_others_come_before_it() {
        let text = TEXT.replace("A = 1\n", "@ x.y = 1\nA = 1\n");
        let global = |context: &RuleContext<'_>| context.module.globals.iter().find(|it| it.name == "A").unwrap().span;
        let rule = crate::all()[0];
        let check = |source: &Source, module: &Module| {
            let context = RuleContext::new(source, module, TritonTarget::newest());
            context.in_kernels(rule, |kernel| {
                let message = String::new();
                vec![Diagnostic::new(&rule.declaration, kernel.name_span, message).with_related(global(&context), "it")]
            })
        };
        let mut document = Document::new(&text);
        let mut source = document.source();
        let mut module = Module::rebuild(&source, Module::build(&source), &source);
        check(&source, &module);
        for text in ["B = 3\n", "C = 2\n"] {
            let at = Position { line: 2, column: 0 };
            document.edit(at, at, text, Encoding::Utf8).unwrap();
            let edited = document.source();
            module = Module::rebuild(&edited, module, &source);
            source = edited;
            assert_eq!(check(&source, &module), check(&source, &Module::build(&source)), "after {text:?}");
        }
    }

    #[test]
    fn findings_that_read_other_text_are_computed_again() {
        let line = |context: &RuleContext<'_>, kernel: &Kernel| (kernel.span, context.line_of(kernel.span).to_string());
        assert_eq!(looks_after(12, "    return\n", line), 0);
        assert_eq!(looks_after(4, "\n", line), 1);
        let text =
            |context: &RuleContext<'_>, kernel: &Kernel| (kernel.span, context.is_for_other_compiler().to_string());
        assert_eq!(looks_after(12, "    npu()\n", text), 1);
        let nowhere = |context: &RuleContext<'_>, _: &Kernel| {
            let at = context.source.text().find("host").unwrap_or_default();
            (Span::new(at, at), String::new())
        };
        assert_eq!(looks_after(11, "\n", nowhere), 1);
    }
}
