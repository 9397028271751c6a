//! Splits a reduction loop over more programs, each of which takes a part of its range.

mod after;
mod first;
mod gather;
mod host;
mod second;
#[cfg(test)]
mod tests;

use base::rng::Rng;
use model::kernel::Autotune;
use model::kernel::ast::ExprKind;
use model::syntax::Span;
use protocol::WorkloadSource;
use rules::Edit;

use crate::candidate::Change;
use crate::proposal::Proposal;
use crate::skill::Skill;
use crate::step::StepSize;
use crate::subject::Subject;
use crate::words::{fresh, indent_of};

use after::After;
use first::put;
use gather::{Gather, How};
use host::Site;

/// The numbers of parts that are tried; small steps change the number further.
const SPLITS: &[i64] = &[4, 16];
/// The numbers of parts for an autotuned kernel, where the number does not change later.
const FIXED: &[i64] = &[2, 4, 8, 16];
/// The number of programs that keeps a device busy.
const PROGRAMS: i64 = 4096;

/// Adds an axis of programs that share the range of the kernel's loop, where few programs have long loops (a product
/// with few rows, a sum over rows). Each program accumulates its part. The parts are combined by a second kernel, which
/// does the work after the kernel's loop, or by atomic additions, where that work is only the store of an fp32 value.
pub(super) struct SplitLoop;

impl Skill for SplitLoop {
    fn name(&self) -> &'static str {
        "split"
    }

    fn about(&self) -> &'static str {
        "Parts of a loop that only gathers (a sum over rows, a product of few rows) in programs of their own: a second kernel puts the parts together and does the work after the loop, or, where an fp32 is stored as it is, the programs add to it atomically (then results of two runs may differ in their last bits)."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let Some(split) = Split::of(subject) else { return Vec::new() };
        let rounds = host::rounds(subject, &split.gather);
        let programs = host::programs(subject);
        let splits = if subject.kernel.autotune.is_none() { SPLITS } else { FIXED };
        let is_meant = |by: &i64| {
            rounds.is_none_or(|rounds| rounds >= 2 * by)
                && programs.is_none_or(|programs| programs * by <= 4 * PROGRAMS)
        };
        let mut turns = Vec::new();
        for by in
            splits.iter().copied().filter(is_meant).filter(|_| programs.is_none_or(|programs| programs < PROGRAMS))
        {
            let ways = [
                ("split_parts", "parts of the loop in programs of their own", split.in_two(by)),
                (
                    "split_atomic",
                    "parts of the loop in programs of their own, added atomically (the last bits differ between runs)",
                    split.atomic(by),
                ),
            ];
            for (kind, words, edits) in ways {
                let changes = vec![
                    Change::Structure(words.to_owned()),
                    Change::Number { name: split.names.size.clone(), from: 1, to: by },
                ];
                turns.extend(edits.map(|edits| Proposal { kind: kind.to_owned(), edits, changes }));
            }
        }
        turns
    }
}

/// A kernel that can be split.
struct Split<'a> {
    subject: &'a Subject<'a>,
    text: &'a str,
    gather: Gather<'a>,
    after: After<'a>,
    site: Site<'a>,
    names: Names,
}

/// Names that are not in use yet.
struct Names {
    /// The index of a program's part, and the number of parts.
    split: String,
    size: String,
    /// The number of iterations of a part, and its first and last one.
    rounds: String,
    first: String,
    last: String,
    /// The buffer for the parts, and the distance between them.
    parts: String,
    stride: String,
    at: String,
    part: String,
    /// Names in the host function.
    count: String,
    partial: String,
}

impl<'a> Split<'a> {
    fn of(subject: &'a Subject<'a>) -> Option<Self> {
        let (kernel, text) = (subject.kernel, subject.candidate.text.as_str());
        let is_plain = kernel.plain
            && kernel.heuristics.as_ref().is_some_and(Vec::is_empty)
            && !kernel.has_error
            && !kernel.nested
            && !kernel.params.iter().any(|param| param.variadic || param.keyword_only)
            && !subject.candidate.module.called_in_kernels().contains(&kernel.name);
        if subject.workload.source == WorkloadSource::Launch || !is_plain || text.contains('\r') {
            return None;
        }
        let gather = Gather::of(subject)?;
        let after = After::of(subject, &gather)?;
        let site = Site::of(subject, after.root)?;
        let within = |span: Span| text.get(span.start..span.end).unwrap_or_default();
        let fresh_in_host = |base: &str| fresh(within(site.host.span), base);
        let fresh = |base: &str| fresh(within(kernel.span), base);
        let names = Names {
            split: fresh("split"),
            size: fresh("SPLIT"),
            rounds: fresh("rounds"),
            first: fresh("first"),
            last: fresh("last"),
            parts: fresh("parts_ptr"),
            stride: fresh("stride_part"),
            at: fresh("part_ptrs"),
            part: fresh("part"),
            count: fresh_in_host("splits"),
            partial: fresh_in_host("parts"),
        };
        Some(Self { subject, text, gather, after, site, names })
    }

    fn language(&self, name: &str) -> Option<String> {
        self.subject.candidate.module.language_name(self.subject.kernel, name)
    }

    /// The edits for two kernels.
    fn in_two(&self, by: i64) -> Option<Vec<Edit>> {
        let (names, site, kernel) = (&self.names, &self.site, self.subject.kernel);
        if kernel.autotune.as_ref().is_some_and(|autotune| !self.is_simple(autotune)) {
            return None;
        }
        let second = self.second()?;
        let (int64, out) = (self.language("int64")?, self.text_of(site.out));
        let offset = format!("{} += {}.to({int64}) * {}", self.after.root, names.split, names.stride);
        let mut edits = vec![self.parameters(&[&names.stride])?, self.head(&[offset])?];
        edits.extend(self.range()?);
        edits.extend(self.bare()?);
        edits.push(put(kernel.span.end, format!("\n\n\n{}", second.definition)));

        let (indent, torch) = (indent_of(self.text, site.stmt.span.start)?, site.torch);
        let (count, partial, dtype) = (&names.count, &names.partial, self.gather.dtype);
        let start = format!(
            "{count} = {by}\n{indent}{partial} = {torch}.empty(({count}, {out}.numel()), device={out}.device, \
             dtype={torch}.{dtype})\n{indent}"
        );
        edits.push(put(site.stmt.span.start, start));
        edits.push(site.longer(self.text, count)?);
        edits.push(Edit { span: site.out.span, text: partial.clone() });
        edits.push(self.passed(&[format!("{}={partial}.stride(0)", names.stride)])?);
        edits.push(put(site.lines.end, format!("\n{indent}{}", second.launch)));
        Some(sorted(edits))
    }

    /// The edits for one kernel, whose programs add to a common result atomically.
    fn atomic(&self, by: i64) -> Option<Vec<Edit>> {
        let (names, site, store) = (&self.names, &self.site, self.after.store);
        let is_meant = self.gather.how == How::Sum
            && self.gather.dtype == "float32"
            && self.after.is_plain
            && self.subject.kernel.autotune.is_none()
            && store.args.iter().all(|arg| arg.keyword.as_ref().is_none_or(|(name, _)| name == "mask"))
            && site.is_float32(self.subject, self.after.root);
        if !is_meant {
            return None;
        }
        let mut edits = vec![self.parameters(&[])?, self.head(&[])?];
        edits.extend(self.range()?);
        edits.extend(self.bare()?);
        edits.push(Edit { span: store.func.span, text: self.language("atomic_add")? });
        let indent = indent_of(self.text, site.stmt.span.start)?;
        edits.push(put(site.stmt.span.start, format!("{} = {by}\n{indent}", names.count)));
        edits.push(site.zeroed()?);
        edits.push(site.longer(self.text, &names.count)?);
        edits.push(self.passed(&[])?);
        Some(sorted(edits))
    }

    /// Whether the configurations have only names and numbers, and the autotuner does nothing else around a run.
    fn is_simple(&self, autotune: &Autotune) -> bool {
        let mut is_simple = autotune.configs.as_ref().is_some_and(|configs| !configs.is_empty());
        for decorator in &self.subject.kernel.decorators {
            if let ExprKind::Call(call) = &decorator.expr.kind
                && decorator.expr.span == autotune.span
            {
                let known = ["configs", "key", "warmup", "rep", "use_cuda_graph", "cache_results"];
                is_simple &= call.args.iter().enumerate().all(|(at, arg)| match &arg.keyword {
                    Some((name, _)) => known.contains(&name.as_str()),
                    None => at < 2,
                });
            }
        }
        is_simple
    }
}

/// The edits in the order of the text; those at one place keep their order.
fn sorted(mut edits: Vec<Edit>) -> Vec<Edit> {
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    edits
}
