//! Updates a model after an edit: segments that did not change are reused.

use super::ast::ExprKind;
use super::ast_builder::AstBuilder;
use super::build::SegmentReader;
use super::span_shift::ShiftSpans;
use super::{Global, Imports, Module, Part};
use crate::syntax::{Source, unchanged};

/// The parts of a model that decide which names of the file mean Triton.
#[derive(PartialEq)]
struct Aliasing<'a> {
    imported: Vec<&'a Imports>,
    /// Assigned names, each with the dotted name of its value and whether the value is `None`.
    assigned: Vec<(&'a str, Option<String>, bool)>,
}

impl Module {
    /// The same as [`Module::build`] of `source`, in less time: reuses what comes from unchanged segments of `before`,
    /// the model of `before_source`.
    #[must_use]
    pub fn rebuild(source: &Source, mut before: Self, before_source: &Source) -> Self {
        if before.imports.is_empty() {
            return Self::build(source);
        }
        if before.parts.iter().any(|part| !part.words.is_known()) {
            before.set_surroundings(before_source);
        }
        let (old, new) = (before_source.segments(), source.segments());
        let mut pieces = Vec::new();
        for run in unchanged(old, new).into_iter().rev() {
            let gone = before.split_off(run.old + run.count);
            pieces.push((run, before.split_off(run.old), gone));
        }
        pieces.reverse();
        let lower = AstBuilder::new(source.text());
        // Removed first: the part before the first reused run, then the part behind each run. Fields that do not belong
        // to single segments stay.
        let mut gone = before.split_off(0);
        let mut module = before;
        for (run, mut kept, next) in pieces {
            if !module.replace(source, run.new, &gone, lower) {
                return Self::build(source);
            }
            let (then, now) = (&old[run.old], &new[run.new]);
            kept.shift(now.start().wrapping_sub(then.start()).cast_signed());
            kept.hosts.iter_mut().for_each(|host| host.line = host.line - then.row() + now.row());
            module.append(kept);
            gone = next;
        }
        if !module.replace(source, new.len(), &gone, lower) {
            return Self::build(source);
        }
        module.conclude();
        module.set_surroundings(source);
        module
    }

    /// Reads the next segments, up to `end`, in place of `gone`. Returns false when the change affects names of Triton
    /// elsewhere, so that the whole model must be built anew.
    fn replace(&mut self, source: &Source, end: usize, gone: &Self, lower: AstBuilder<'_>) -> bool {
        let first = self.parts.len();
        let mut readings: Vec<_> =
            source.segments()[first..end].iter().map(|segment| SegmentReader::new(source, segment)).collect();
        let mut come = Self::default();
        readings.iter_mut().for_each(|reading| come.add_top_level(reading, lower));
        if gone.aliasing(&self.imports) != come.aliasing(&self.imports) {
            return false;
        }
        self.append(come);
        for (at, reading) in readings.iter_mut().enumerate() {
            self.add(first + at, reading, lower);
        }
        true
    }

    /// Removes and returns what comes from the segments from index `at` on.
    fn split_off(&mut self, at: usize) -> Self {
        let parts = self.parts.split_off(at);
        let count = |count: fn(&Part) -> usize| parts.iter().map(count).sum::<usize>();
        let (kernels, launches) = (count(|part| part.kernels), count(|part| part.launches));
        let (hosts, globals) = (count(|part| part.hosts), count(|part| part.globals));
        let functions = count(|part| part.functions);
        let first_host = self.hosts.len() - hosts;
        let mut launches = self.launches.split_off(self.launches.len() - launches);
        launches.iter_mut().for_each(|launch| launch.host = launch.host.map(|host| host - first_host));
        Self {
            kernels: self.kernels.split_off(self.kernels.len() - kernels),
            launches,
            hosts: self.hosts.split_off(first_host),
            globals: self.globals.split_off(self.globals.len() - globals),
            functions: self.functions.split_off(self.functions.len() - functions),
            parts,
            ..Self::default()
        }
    }

    /// Appends what [`Self::split_off`] removed.
    fn append(&mut self, mut rest: Self) {
        let hosts = self.hosts.len();
        rest.launches.iter_mut().for_each(|launch| launch.host = launch.host.map(|host| host + hosts));
        self.kernels.append(&mut rest.kernels);
        self.launches.append(&mut rest.launches);
        self.hosts.append(&mut rest.hosts);
        self.globals.append(&mut rest.globals);
        self.functions.append(&mut rest.functions);
        self.parts.append(&mut rest.parts);
    }

    fn shift(&mut self, by: isize) {
        if by != 0 {
            self.kernels.shift(by);
            self.launches.shift(by);
            self.hosts.shift(by);
            self.globals.shift(by);
            self.functions.shift(by);
        }
    }

    /// The parts of this model that decide which names mean Triton. While they stay the same, other segments are not
    /// affected.
    fn aliasing(&self, imports: &Imports) -> Aliasing<'_> {
        let concerns = |global: &&Global| imports.concern(&global.name, &global.value);
        let alias = |global: &Global| {
            let path = global.value.dotted().map(|parts| parts.join("."));
            (path, matches!(global.value.kind, ExprKind::None))
        };
        let assigned = self.globals.iter().filter(concerns).map(|global| {
            let (path, is_none) = alias(global);
            (global.name.as_str(), path, is_none)
        });
        let imported = self.parts.iter().map(|part| &part.imports).filter(|imports| !imports.says_nothing());
        Aliasing { imported: imported.collect(), assigned: assigned.collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::host::HostRun;
    use crate::kernel::{Kernel, RecordedLaunch};
    use crate::syntax::{Document, Encoding, Position};

    /// For each kernel, whether a fact of it was cached. Caches one if not.
    fn known(module: &Module) -> Vec<bool> {
        let of = |kernel: &Kernel| {
            let mut is_known = true;
            kernel.facts.get(0, || {
                is_known = false;
                vec![kernel.span]
            });
            is_known
        };
        module.kernels.iter().map(of).collect()
    }

    /// Inserts `text` at the start of each of the `lines`.
    fn edited(
        document: &mut Document,
        (source, module): (Source, Module),
        lines: &[u32],
        text: &str,
    ) -> (Source, Module) {
        for &line in lines {
            let at = Position { line, column: 0 };
            document.edit(at, at, text, Encoding::Utf8).unwrap();
        }
        let edited = document.source();
        let module = Module::rebuild(&edited, module, &source);
        let mut fresh = Module::build(&edited);
        fresh.observe(Arc::clone(module.recorded()));
        assert_eq!(module, fresh);
        (edited, module)
    }

    fn opened(text: &str) -> (Document, (Source, Module)) {
        let mut document = Document::new(text);
        let source = document.source();
        let module = Module::rebuild(&source, Module::build(&source), &source);
        assert!(known(&module).iter().all(|is_known| !is_known));
        (document, (source, module))
    }

    #[test]
    fn kernels_between_two_edits_keep_their_facts() {
        let kernel = |name: &str| format!("@triton.jit\ndef {name}(x):\n    return x\n\n\n");
        let text = format!("import triton\n\n\n{}{}{}", kernel("a"), kernel("b"), kernel("c"));
        let (mut document, mut state) = opened(&text);
        state = edited(&mut document, state, &[16, 5], "    x += 1\n");
        assert_eq!(known(&state.1), [false, true, false]);
        // Comments and blank lines around a kernel do not affect it.
        for (lines, text) in [([13, 8], "# c\n"), ([15, 1], "# d\n"), ([15, 8], "    \n")] {
            state = edited(&mut document, state, &lines, text);
            assert_eq!(known(&state.1), [true, true, true], "{lines:?}");
        }
    }

    #[test]
    fn recorded_launches_survive_edits() {
        let (mut document, (source, mut module)) =
            opened("import triton\n\n\n@triton.jit\ndef a(x):\n    return x\n\n\nA = 1\n");
        let launch =
            RecordedLaunch { kernel: "a".to_owned(), arguments: Vec::new(), grid: vec![1], options: Vec::new() };
        module.observe([launch].into());
        let recorded = Arc::clone(module.recorded());
        let (_, module) = edited(&mut document, (source, module), &[8], "B = 1\n");
        assert_eq!(*module.recorded(), recorded);
    }

    #[test]
    fn changing_a_launch_drops_facts_of_kernels_that_name_the_kernel() {
        let text = "import triton\n\n\n@triton.jit\ndef a(x):\n    return b(x)\n\n\n@triton.jit\ndef b(x):\n    return x\n\n\n\
                    @triton.jit\ndef c(x):\n    return x\n\n\ndef run(x):\n    b[(1,)](x)\n";
        let (mut document, state) = opened(text);
        let state = edited(&mut document, state, &[19], "    x += 1\n");
        assert_eq!(known(&state.1), [false, false, true]);
        // While code is typed, a name may follow a number without a space.
        let (mut document, state) = opened(&text.replace("    b[(1,)](x)\n", "    pass\n"));
        let state = edited(&mut document, state, &[19], "    f(0b[(1,)](x))\n");
        assert_eq!(state.1.launches_of("b").count(), 1);
        assert_eq!(known(&state.1), [false, false, true]);
    }

    #[test]
    fn changing_a_kernel_drops_facts_of_all_reachable_callees() {
        let text = "import triton\n\n\n@triton.jit\ndef outer(x):\n    return middle(x)\n\n\n\
                    @triton.jit\ndef middle(x):\n    return inner(x)\n\n\n@triton.jit\ndef inner(x):\n    return x\n\n\n\
                    @triton.jit\ndef other(x):\n    return x\n";
        let (mut document, state) = opened(text);
        let state = edited(&mut document, state, &[5], "    x += 1\n");
        assert_eq!(known(&state.1), [false, false, false, true]);
    }

    #[test]
    fn changing_a_global_drops_facts_of_kernels_that_reach_it() {
        let text = "import triton\n\n\nA = B\n\n\n@triton.jit\ndef a(x):\n    return x + A\n\n\n\
                    @triton.jit\ndef b(x):\n    return x + new\n\n\ndef run(x):\n    b[(C,)](x)\n\n\ndef pad():\n    pass\n";
        let after = |lines: &[u32], typed: &str| {
            let (mut document, state) = opened(text);
            known(&edited(&mut document, state, lines, typed).1)
        };
        // Definitions of names that neither kernel uses: a statement, a function and a kernel.
        for typed in ["other = 1\n", "def other():\n    pass\n", "@triton.jit\ndef c(x):\n    return x\n"] {
            let expected = if typed.starts_with('@') { vec![true, true, false] } else { vec![true, true] };
            assert_eq!(after(&[22], typed), expected, "{typed}");
        }
        // The value of a used name, in another statement; a name that a launch uses; a name that was not bound before.
        assert_eq!(after(&[22], "B = 1\n"), [false, true]);
        assert_eq!(after(&[22], "C = 1\n"), [true, false]);
        assert_eq!(after(&[22], "def new():\n    pass\n"), [true, false]);
        assert_eq!(after(&[3], "A = 2\n"), [false, true]);
        // Imports affect all kernels.
        assert_eq!(after(&[22], "from torch import *\n"), [false, false]);
    }

    #[test]
    fn runs_of_host_code_are_kept_until_something_changes_that_they_depend_on() {
        let text = "import triton\n\nB = 64\n\n\n@triton.jit\ndef a(x):\n    return x\n\n\n@triton.jit\ndef b(x):\n    return x\n\n\n\
                    def run(x):\n    a[(B,)](x)\n\n\ndef other(x):\n    b[(1,)](x)\n";
        // For each host function, whether its run is kept. Its launch must be found again.
        let after = |line: u32, typed: &str| -> Vec<bool> {
            let (mut document, (source, module)) = opened(text);
            drop(HostRun::all(&module, &source));
            let (source, module) = edited(&mut document, (source, module), &[line], typed);
            let is_kept = module.hosts.iter().map(|host| host.facts.peek::<HostRun>(0).is_some()).collect();
            for (run, launch) in HostRun::all(&module, &source).iter().zip(&module.launches) {
                assert_eq!(run.launches[0].span, launch.span, "{typed}");
            }
            is_kept
        };
        assert_eq!(after(1, "# a comment\n"), [true, true]);
        assert_eq!(after(7, "    x += 1\n"), [false, true]);
        assert_eq!(after(12, "    x += 1\n"), [true, false]);
        assert_eq!(after(16, "    x = x.half()\n"), [false, true]);
        assert_eq!(after(3, "B = 32\n"), [false, true]);
        assert_eq!(after(3, "import torch\ntorch.set_default_dtype(torch.half)\n"), [false, false]);
    }
}
