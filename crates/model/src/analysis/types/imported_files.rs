//! Functions and values of other files. Their results are used, but their errors are not reported here.

use std::sync::Arc;

use super::arguments::EvaluatedCall;
use super::engine::{Engine, Frame};
use super::index::{Atom, LaneFact};
use super::value::{AbstractValue, JitFunction, ProblemKind, RuntimeValue};
use crate::kernel::{Link, Module};
use crate::syntax::Span;

/// The longest chain of files that re-export a name.
const MAX_HANDS: u32 = 24;

impl<'a> Engine<'a> {
    /// The model and the text of a file.
    pub(super) fn home(&self, file: Option<usize>) -> (&'a Module, &'a str) {
        match file.and_then(|file| self.links.files().get(file)) {
            Some(file) => (&file.module, &file.text),
            None => self.root,
        }
    }

    /// Runs a closure with names resolved in `file`.
    pub(super) fn in_file(
        &mut self,
        file: Option<usize>,
        run: impl FnOnce(&mut Self) -> AbstractValue<'a>,
    ) -> AbstractValue<'a> {
        let before = (self.module, self.text, self.file);
        if file == before.2 {
            return run(self);
        }
        ((self.module, self.text), self.file) = (self.home(file), file);
        let result = if file.is_some() { self.silently(run) } else { run(self) };
        (self.module, self.text, self.file) = before;
        result
    }

    /// Runs a closure without recording anything. Its result does not refer to spans.
    fn silently(&mut self, run: impl FnOnce(&mut Self) -> AbstractValue<'a>) -> AbstractValue<'a> {
        let (lanes, loops) = (self.facts.lanes.len(), self.facts.loops.len());
        self.silent += 1;
        let result = run(self);
        self.silent -= 1;
        self.facts.lanes.truncate(lanes);
        self.facts.loops.truncate(loops);
        without_places(&result)
    }

    /// A kernel of the file by its name, which the top level may define under conditions.
    pub(super) fn kernel_named(&self, name: &str) -> AbstractValue<'a> {
        let found = self.module.kernels_named(name);
        let is_one_of_several = match found.as_slice() {
            [] => return AbstractValue::Unknown,
            [only] => self.module.kernels[*only].nested,
            _ => true,
        };
        AbstractValue::Kernel(JitFunction { file: self.file, index: found[0], is_one_of_several })
    }

    /// Calls all kernels that a name may refer to, and joins their results.
    pub(super) fn call_of_several(
        &mut self,
        span: Span,
        callee: JitFunction,
        given: &EvaluatedCall<'a, '_>,
        frame: &Frame<'a>,
    ) -> AbstractValue<'a> {
        let (module, _) = self.home(callee.file);
        let mut all: Option<AbstractValue<'a>> = None;
        for index in module.kernels_named(&module.kernels[callee.index].name) {
            let callee = JitFunction { index, is_one_of_several: false, ..callee };
            let result = self.silently(|engine| engine.helper_call(span, callee, given, frame));
            all = Some(all.map_or_else(|| result.clone(), |all| all.either(&result)));
        }
        all.unwrap_or(AbstractValue::Unknown)
    }

    /// The value that the file imports as `name`.
    pub(super) fn imported(&mut self, name: &str, span: Span) -> AbstractValue<'a> {
        match self.links.get(self.file, name) {
            Some(Link::Member { file, name: there }) => {
                let refused = self.refused;
                let value = self.member_of(*file, there);
                if self.refused > refused {
                    let message = format!(
                        "kernels can only use imported values that are made with `tl.constexpr(…)`, and `{name}` is not"
                    );
                    self.problem(ProblemKind::Global, span, message);
                }
                value
            }
            Some(Link::File(file)) => AbstractValue::File(*file),
            None => AbstractValue::Unknown,
        }
    }

    /// The value that another file binds to a name.
    pub(super) fn member_of(&mut self, file: usize, name: &'a str) -> AbstractValue<'a> {
        if self.silent > MAX_HANDS {
            return AbstractValue::Unknown;
        }
        self.silently(|engine| {
            engine.in_file(Some(file), |engine| match engine.module.bindings.contains_key(name) {
                true => engine.top_level_name(name, Span::new(0, 0)),
                false => AbstractValue::Unknown,
            })
        })
    }
}

/// The value without knowledge about its lanes, except for knowledge that is independent of the file.
pub(super) fn without_places<'a>(value: &AbstractValue<'a>) -> AbstractValue<'a> {
    let of_tile = |tile: &RuntimeValue| RuntimeValue { about: kept(&tile.about), ..tile.clone() };
    match value {
        AbstractValue::Opaque(about) => AbstractValue::Opaque(kept(about)),
        AbstractValue::Tile(tile) => AbstractValue::Tile(of_tile(tile)),
        AbstractValue::BlockPointer(tile) => AbstractValue::BlockPointer(of_tile(tile)),
        AbstractValue::Descriptor(tile) => AbstractValue::Descriptor(of_tile(tile)),
        AbstractValue::Tuple(parts) => AbstractValue::Tuple(parts.iter().map(without_places).collect()),
        AbstractValue::Method(receiver, name) => AbstractValue::Method(Arc::new(without_places(receiver)), name),
        other => other.clone(),
    }
}

fn kept(about: &LaneFact) -> LaneFact {
    let is_placed = |atom: &Atom| matches!(atom, Atom::Lane(_) | Atom::Loop(_));
    match about {
        LaneFact::Index(index)
            if index.axes.is_empty() && index.base.is_none() && !index.poly.any(|atom| is_placed(atom)) =>
        {
            LaneFact::scalar(index.poly.clone())
        }
        _ => LaneFact::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::analysis::types::{KernelAnalysis, infer};
    use crate::api::TritonTarget;
    use crate::kernel::{ImportTarget, ImportedFile, Links};
    use crate::syntax::Source;

    const HEAD: &str = "import triton\nimport triton.language as tl\n";

    /// The facts of the last kernel of a file that imports names from the other `files` by `from MODULE import NAME`.
    fn facts(files: &[(&str, &str)], text: &str, trace: bool) -> KernelAnalysis {
        let read = |(name, text): &(&str, &str)| {
            let source = Source::parse(format!("{HEAD}{text}"));
            let (path, module) = (PathBuf::from(name), Module::build_whole(&source));
            ((*name).to_owned(), Arc::new(ImportedFile { path, text: Arc::clone(source.text()), module }))
        };
        let files: HashMap<String, Arc<ImportedFile>> = files.iter().map(read).collect();
        let text = format!("{HEAD}{text}");
        let source = Source::parse(text.as_str());
        let mut module = Module::build(&source);
        let links = Links::follow(&module, Path::new("k"), &mut |_, import| match import.split_once('.') {
            Some((file, name)) => {
                Some(ImportTarget { file: Arc::clone(files.get(file)?), member: Some(name.to_owned()) })
            }
            None => Some(ImportTarget { file: Arc::clone(files.get(import)?), member: None }),
        });
        module.link(Arc::new(links));
        let last = module.kernels.len() - 1;
        infer(&module, &text, TritonTarget::of("3.6.0".parse().unwrap()), last, trace)
    }

    fn kernel(imports: &str, body: &str) -> String {
        format!(
            "{imports}\n# warpsmith: signature x=*fp16 n=i32 B=64\n@triton.jit\ndef k(x, n, B: tl.constexpr):\n    {body}\n"
        )
    }

    /// The type of the value that the body assigns.
    fn last(files: &[(&str, &str)], imports: &str, body: &str) -> String {
        let facts = facts(files, &kernel(imports, body), true);
        facts.types.last().map_or_else(String::new, |(_, value)| value.to_string())
    }

    const OP: &str = "from c import SCALE\nfrom b import wide\n\
        @triton.jit\ndef twice(x):\n    return wide(x) * SCALE\n\
        if FAST:\n    @triton.jit\n    def exp(x): return tl.exp(x.to(tl.float32))\n\
        else:\n    @triton.jit\n    def exp(x): return tl.exp2(x.to(tl.float32))\n\
        if FAST:\n    @triton.jit\n    def odd(x): return x.to(tl.float64)\n\
        else:\n    @triton.jit\n    def odd(x): return x.to(tl.float32)\n\
        if FAST:\n    @triton.jit\n    def host(x): return x\nelse:\n    host = None\n";
    const B: &str = "@triton.jit\ndef wide(x):\n    return x.to(tl.float32)\n";
    const C: &str = "SCALE = tl.constexpr(2.0)\nN = tl.constexpr(32)\nPLAIN = 3\n";

    #[test]
    fn imported_names_have_their_types_of_the_defining_file() {
        let files = [("a", OP), ("b", B), ("c", C), ("d", "from a import twice as again\n")];
        for (imports, body, expected) in [
            ("from a import twice", "v = twice(tl.load(x + tl.arange(0, B)))", "fp32[64]"),
            ("from d import again", "v = again(tl.load(x + tl.arange(0, B)))", "fp32[64]"),
            ("import b", "v = b.wide(tl.load(x))", "fp32"),
            ("from c import N", "v = tl.zeros((N, B), tl.float16)", "fp16[32, 64]"),
            // All definitions of the name give the same type, or they do not.
            ("from a import exp", "v = exp(tl.load(x))", "fp32"),
            ("from a import odd", "v = odd(tl.load(x + tl.arange(0, B)))", "?[64]"),
            ("from a import host", "v = host(n)", "?"),
            // Names that kernels cannot use, and names that do not exist.
            ("from c import PLAIN", "v = PLAIN", "int32"),
            ("from a import gone", "v = gone(n)", "?"),
            ("from elsewhere import twice", "v = twice(n)", "?"),
        ] {
            assert_eq!(last(&files, imports, body), expected, "{imports}: {body}");
        }
    }

    #[test]
    fn analysis_of_imported_helpers_adds_no_facts_about_their_files() {
        let helper = "@triton.jit\ndef f(p, i):\n    j = tl.arange(0, 100)\n    q = gone + 1\n    tl.store(p + i, 1.0)\n    return i + tl.arange(0, 64)\n";
        let body = "j = tl.arange(0, 64)\n    v = f(x, j)\n    tl.store(x + v, 1.0, mask=v < n)";
        let known = facts(&[("a", helper)], &kernel("from a import f", body), true);
        assert_eq!((known.problems.as_slice(), known.accesses.len(), known.lanes.len()), (&[][..], 1, 1));
        // The lanes of the helper do not belong to this file.
        assert_eq!(known.accesses[0].pointer.about, LaneFact::Nothing);
        let wrong = facts(&[("c", C)], &kernel("from c import N, PLAIN", "v = N + PLAIN"), false);
        assert_eq!(wrong.problems.len(), 1, "{:?}", wrong.problems);
        let wrong = facts(&[("a", helper)], &kernel("from a import f", "f(x)"), false);
        assert_eq!(wrong.problems.len(), 1, "{:?}", wrong.problems);
    }

    #[test]
    fn import_cycles_terminate() {
        let files = [("a", "from b import f\n"), ("b", "from a import f\n")];
        assert_eq!(last(&files, "from a import f", "v = f(n)"), "?");
        let again = "@triton.jit\ndef g(x):\n    return f(x)\n";
        let (a, b) = (format!("from b import g as f\n{again}"), format!("from a import g as f\n{again}"));
        assert_eq!(last(&[("a", &a), ("b", &b)], "from a import g", "v = g(n)"), "?");
    }
}
