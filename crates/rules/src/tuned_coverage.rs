//! H014: an autotuned kernel whose configurations write different parts of the output.

use std::collections::BTreeMap;

use model::analysis::tuning::Tuner;
use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{AccessKind, Mask, MemoryAccess};
use model::analysis::types::index::{Atom, Index, Poly};
use model::analysis::types::shape::Dim;
use model::host::HostNumber;
use model::kernel::Kernel;
use model::kernel::ast::ExprKind;
use model::syntax::Span;

use super::known_launch::configured;
use super::memory_accesses::{call_at, global, guard, index, is_certain, kernels, lanes_in, upper_bound};
use super::truncated_row::{compares, is_size_of_tensor};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H014",
        name: "tuned-coverage",
        severity: Severity::Warning,
        summary: "an autotuned kernel whose configurations write different parts of the output",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("tuned_coverage.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    for (kernel, facts) in kernels(context).filter(|(kernel, _)| kernel.autotune.is_some() && kernel.plain) {
        let Some(tuned) = Tuned::of(context, kernel, facts) else { continue };
        let mut seen: Vec<Span> = Vec::new();
        let stores = facts.accesses.iter().filter(|access| access.kind == AccessKind::Store && is_certain(access));
        for access in stores {
            let found = tuned.along_a_lane(access).or_else(|| tuned.by_the_grid(access));
            if let Some(found) = found.filter(|_| !seen.contains(&access.span) && !context.is_for_other_compiler()) {
                seen.push(access.span);
                findings.push(found);
            }
        }
    }
}

/// A kernel with all of its configurations.
struct Tuned<'c, 'a> {
    context: &'c RuleContext<'a>,
    kernel: &'a Kernel,
    facts: &'c KernelAnalysis,
    configs: Vec<BTreeMap<&'a str, i128>>,
    place: Span,
}

impl<'c, 'a> Tuned<'c, 'a> {
    fn of(context: &'c RuleContext<'a>, kernel: &'a Kernel, facts: &'c KernelAnalysis) -> Option<Self> {
        let module = context.module;
        let tuner = Tuner::of(module, kernel)?;
        let is_pruned = tuner.call.argument("prune_configs_by", Some(2)).is_some_and(|by| by.kind != ExprKind::None);
        let is_known = module.kernel(&kernel.name).is_some() && kernel.heuristics.as_ref().is_some_and(Vec::is_empty);
        if is_pruned || tuner.may_have_hook() || !is_known {
            return None;
        }
        let configs = tuner.assignments().filter(|configs| configs.len() > 1)?;
        Some(Self { context, kernel, facts, configs, place: kernel.autotune.as_ref()?.span })
    }

    /// The least and the greatest value of a meta-parameter that differs between the configurations.
    fn differs(&self, name: &str) -> Option<(i128, i128)> {
        let values: Vec<i128> = self.configs.iter().map(|config| config.get(name).copied()).collect::<Option<_>>()?;
        let (least, most) = (*values.iter().min()?, *values.iter().max()?);
        (least < most).then_some((least, most))
    }

    /// Whether a number depends on a meta-parameter that the configurations set.
    fn is_tuned(&self, poly: &Poly) -> bool {
        let is_set = |text: &str| self.configs.iter().flat_map(BTreeMap::keys).any(|name| text.contains(name));
        poly.any(|atom| matches!(atom, Atom::Param(name) if is_set(name)))
    }

    /// The finding for a store whose tile has another size or start in another configuration, and moves with nothing
    /// else.
    fn along_a_lane(&self, access: &MemoryAccess) -> Option<Diagnostic> {
        let index = index(access).filter(|index| index.base.is_some() && access.loops.is_empty())?;
        let moves = |atom: &Atom| matches!(atom, Atom::Loop(_) | Atom::Other(_) | Atom::Programs(_));
        if index.poly.any(moves) || self.is_tuned(&index.poly) {
            return None;
        }
        lanes_in(index).into_iter().find_map(|lane| {
            let known = self.facts.lanes.get(lane as usize)?;
            let (name, what) = match (&known.size, known.start) {
                (Dim::Symbol(size), Some(0)) => match size.names.as_ref() {
                    [name] => (name.to_string(), "ends behind"),
                    _ => return None,
                },
                (_, None) => (self.start(known.span)?, "starts at"),
                _ => return None,
            };
            let (least, most) = self.differs(&name)?;
            let bound = self.bound(access, index, lane)?;
            let rest = bound.map_or_else(String::new, |bound| format!(" when `{bound}` is larger than {least}"));
            let message = format!(
                "the tile {what} `{name}`, which is {least} in one configuration and {most} in another: they write different \
                 parts of the output{rest}, and since the tuner runs all on the same output, this shows from the second call on only"
            );
            Some(
                Diagnostic::new(&RULE.declaration, access.span, message)
                    .with_related(known.span, "the tile")
                    .with_related(self.place, "the configurations"),
            )
        })
    }

    /// The meta-parameter that a `tl.arange` starts at.
    fn start(&self, arange: Span) -> Option<String> {
        let call = call_at(self.context, arange)?;
        let name = call.argument("start", Some(0))?.as_name()?;
        self.kernel.param(name).filter(|param| param.constexpr).map(|param| param.name.clone())
    }

    /// The upper bound of a lane in the mask: `Some(None)` where no mask bounds it, `None` where that is not certain.
    #[expect(clippy::option_option, reason = "no mask is another answer than a mask that is not understood")]
    fn bound<'f>(&self, access: &'f MemoryAccess, index: &Index, lane: u32) -> Option<Option<&'f str>> {
        if access.mask == Mask::None {
            return Some(None);
        }
        let along = Poly::atom(Atom::Lane(lane));
        let mut bounds = guard(access)?
            .conditions
            .iter()
            .filter(|condition| condition.left.has(&Atom::Lane(lane)) || condition.right.has(&Atom::Lane(lane)));
        let Some(only) = bounds.next() else { return Some(None) };
        let (left, right) = upper_bound(only).filter(|_| bounds.next().is_none())?;
        let size = right.as_param().filter(|_| *left == along && index.poly.has(&Atom::Lane(lane)))?;
        self.is_any_size(size).then_some(Some(size))
    }

    /// Whether some launch passes the size of a tensor for a run-time parameter, and the host checks nothing.
    fn is_any_size(&self, size: &str) -> bool {
        let is_run_time = self.kernel.param(size).is_some_and(|param| !param.constexpr);
        is_run_time
            && self.context.launches_of(self.kernel).any(|known| {
                let host = known.launch.host.and_then(|host| known.module.hosts.get(host));
                host.is_some_and(|host| !compares(host)) && is_size_of_tensor(&known, size)
            })
    }

    /// The finding for a store by fewer programs than there are tiles in some configuration.
    fn by_the_grid(&self, access: &MemoryAccess) -> Option<Diagnostic> {
        let index = index(access)?;
        let conditions = &guard(access)?.conditions;
        for lane in lanes_in(index) {
            let Some(block) = Poly::of_dim(&self.facts.lanes.get(lane as usize)?.size) else { continue };
            let Some(name) = block.as_param() else { continue };
            let tiles = (0..3_u8).filter_map(|axis| Some((axis, global(self.facts, axis, lane)?)));
            for (axis, whole) in tiles {
                let size = conditions.iter().find_map(|condition| {
                    let (left, right) = upper_bound(condition)?;
                    right.as_param().filter(|_| *left == whole)
                });
                let Some(size) = size else { continue };
                for known in self.context.launches_of(self.kernel) {
                    let programs = known.passed.grid.as_ref().and_then(|grid| grid.get(usize::from(axis)));
                    let Some((covered, by)) = programs.and_then(HostNumber::tiles) else { continue };
                    let Some((other, config)) =
                        configured(by).and_then(|other| Some((other, self.fewer(name, other)?)))
                    else {
                        continue;
                    };
                    if !known.number(size).is(covered) {
                        continue;
                    }
                    let message = format!(
                        "each program writes `{name}` elements, and the grid counts tiles of `{other}`: with `{name}={}` and \
                         `{other}={}` programs are missing and part of the output is never written",
                        config.0, config.1
                    );
                    return Some(
                        Diagnostic::new(&RULE.declaration, access.span, message)
                            .with_related(known.launch.grid.span, "the grid counts these")
                            .with_related(self.place, "the configurations"),
                    );
                }
            }
        }
        None
    }

    /// The values of two parameters in a configuration in which the first is less than the second.
    fn fewer(&self, name: &str, other: &str) -> Option<(i128, i128)> {
        let both = self.configs.iter().map(|config| Some((*config.get(name)?, *config.get(other)?)));
        both.collect::<Option<Vec<_>>>()?.into_iter().find(|(taken, counted)| taken < counted)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;

    /// How many stores are found in a kernel with these configurations and this body, launched so.
    fn found(configs: &str, body: &str, launch: &str) -> usize {
        let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
        let text = format!(
            "import triton\nimport triton.language as tl\n\n@triton.autotune({configs}, key=['n'])\n@triton.jit\ndef k(y, stride, n, A: \
             tl.constexpr, B: tl.constexpr):\n{body}\n\ndef run(y):\n    {launch}\n"
        );
        messages(&text, "H014").len()
    }

    const TWO: &str = "configs=[triton.Config({'A': 16, 'B': 64}), triton.Config({'A': 32, 'B': 64})]";
    const ROW: &str = "k[(y.shape[0],)](y, y.stride(0), y.shape[1])";

    #[test]
    fn configurations_that_write_different_ranges_are_flagged() {
        let row = "i = tl.arange(0, A)\ntl.store(y + tl.program_id(0) * stride + i, 0.0, mask=i < n)";
        assert_eq!(found(TWO, row, ROW), 1);
        assert_eq!(found(TWO, "tl.store(y + tl.program_id(0) * stride + tl.arange(0, A), 0.0)", ROW), 1);
        assert_eq!(found(TWO, "tl.store(y + tl.arange(A, A + 64), 0.0)", "k[(1,)](y, 1, 1)"), 1);
        let made = "configs=[triton.Config({'A': a, 'B': 64}, num_warps=w) for a in [16, 64] for w in [2, 4]]";
        assert_eq!(found(made, row, ROW), 1);
    }

    #[test]
    fn configurations_that_cover_the_row_are_not_flagged() {
        let row = "i = tl.arange(0, A)\ntl.store(y + tl.program_id(0) * stride + i, 0.0, mask=i < n)";
        let one = "configs=[triton.Config({'A': 64, 'B': 64}), triton.Config({'A': 64, 'B': 64}, num_warps=2)]";
        assert_eq!(found(one, row, ROW), 0);
        assert_eq!(found(&format!("{TWO}, prune_configs_by={{'early_config_prune': f}}"), row, ROW), 0);
        assert_eq!(found(TWO, row, "assert y.shape[1] <= 16; k[(y.shape[0],)](y, y.stride(0), y.shape[1])"), 0);
        assert_eq!(found(TWO, row, "k[(y.shape[0],)](y, y.stride(0), 16)"), 0);
        let tiled = "i = tl.program_id(0) * A + tl.arange(0, A)\ntl.store(y + i, 0.0)";
        assert_eq!(found(TWO, tiled, ROW), 0);
        let looped = "for s in range(0, n, A):\n    i = s + tl.arange(0, A)\n    tl.store(y + i, 0.0, mask=i < n)";
        assert_eq!(found(TWO, looped, ROW), 0);
        let branch = "i = tl.arange(0, A)\nif n <= A:\n    tl.store(y + i, 0.0, mask=i < n)";
        assert_eq!(found(TWO, branch, ROW), 0);
    }

    #[test]
    fn the_grid_must_use_the_tile_that_programs_write() {
        let tiles = "i = tl.program_id(0) * A + tl.arange(0, A)\ntl.store(y + i, 0.0, mask=i < n)";
        let by = |name: &str| format!("n = y.numel(); k[lambda meta: (triton.cdiv(n, meta['{name}']),)](y, 1, n)");
        assert_eq!(found(TWO, tiles, &by("B")), 1);
        assert_eq!(found(TWO, tiles, &by("A")), 0);
        let more = "configs=[triton.Config({'A': 64, 'B': 16}), triton.Config({'A': 32, 'B': 32})]";
        assert_eq!(found(more, tiles, &by("B")), 0, "programs too many do no harm");
    }
}
