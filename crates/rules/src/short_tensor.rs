//! M014: a mask that allows accesses past the end of the tensor.

use rustc_hash::FxHashMap;

use model::analysis::types::access::{Mask, MemoryAccess};
use model::analysis::types::index::{Atom, Poly};
use model::analysis::types::infer_as;
use model::analysis::types::signature;
use model::analysis::witness::largest;
use model::host::{HostNumber, HostOperator, HostTensor, TensorOrigin};
use model::kernel::Param;
use model::kernel::ast::{ExprKind, walk_expressions};
use model::syntax::Span;

use super::known_launch::AnalysedLaunch;
use super::memory_accesses::{conditions_on, global, guard, index, is_certain, lanes_in, tiled_by, upper_bound, verb};
use super::offset_overflow::launched;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M014",
        name: "short-tensor",
        severity: Severity::Warning,
        summary: "an access whose mask lets through more than the tensor has room for",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("short_tensor.md"),
    },
    check,
};

/// The number of launches per kernel that are examined, since each may cost an analysis of the kernel.
const MAX_LAUNCHES: usize = 32;

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    let mut launches = FxHashMap::default();
    if context.module.launches.is_empty() {
        return;
    }
    for known in context.launches().chain(context.called_launches()).filter(|known| !known.kernel.nested) {
        let site = Site { context, known };
        let examined: &mut usize = launches.entry(known.at).or_default();
        // A cheap test that rules out most launches before the analysis.
        if *examined == MAX_LAUNCHES || !known.kernel.params.iter().any(|param| site.made(&param.name).is_some()) {
            continue;
        }
        *examined += 1;
        let found = site.by_symbols().into_iter().chain(site.by_numbers());
        for (access, message, made) in found.filter(|_| !context.is_for_other_compiler()) {
            if !seen.contains(&access) {
                seen.push(access);
                findings.push(
                    Diagnostic::new(&RULE.declaration, access, message)
                        .with_related(made, "the tensor is made here")
                        .with_related(known.launch.args_span, "and passed here, with the bound of the mask"),
                );
            }
        }
    }
}

/// A launch of a kernel.
struct Site<'c, 'a> {
    context: &'c RuleContext<'a>,
    known: AnalysedLaunch<'c, 'a>,
}

/// The span of the finding, the message, and the span where the tensor is created.
type ShortAccess = (Span, String, Span);

impl<'c> Site<'c, '_> {
    /// The tensor whose memory the launch passes for a parameter, and where the host makes it.
    fn made(&self, param: &str) -> Option<(&'c HostTensor, Span)> {
        let owner = self.known.run.owner(self.known.tensor(param)?)?;
        let is_new = matches!(owner.origin, TensorOrigin::Unset | TensorOrigin::Set);
        Some((owner, owner.made.filter(|_| is_new)?))
    }

    /// The findings where the bound of a mask exceeds the length of a tensor for all sizes.
    fn by_symbols(&self) -> Vec<ShortAccess> {
        let accesses = self.known.facts.accesses.iter().filter(|access| is_certain(access));
        accesses.filter_map(|access| self.shorter(access)).collect()
    }

    fn shorter(&self, access: &MemoryAccess) -> Option<ShortAccess> {
        let index = index(access)?;
        let [condition] = guard(access)?.conditions.as_slice() else { return None };
        let (left, right) = upper_bound(condition)?;
        let (base, size) = (index.base.as_deref()?, right.as_param()?);
        if *left != index.poly || !self.is_reached(&index.poly, &lanes_in(index), size) {
            return None;
        }
        let (tensor, made) = self.made(base)?;
        let passed = self.known.number(size);
        let (bound, room) = (passed.poly()?, tensor.count());
        let text = if let HostNumber::Operation(quotient) = &room
            && quotient.op == HostOperator::Python("//")
        {
            let by = quotient.right.known().filter(|by| *by > 1 && quotient.left.is(&passed))?;
            format!("`{base}` is made with room for `{bound} // {by}`")
        } else {
            let room = room.poly()?;
            let factor = bound.divided_by(&room)?;
            let unless = match factor.as_number() {
                Some(1) => return None,
                Some(_) => String::new(),
                None if self.compares(&factor) => return None,
                None => format!(", which is less unless `{factor}` is 1"),
            };
            format!("`{base}` is made with room for `{room}`{unless}")
        };
        let message = format!(
            "this {} behind the end of `{base}`: the mask lets `{bound}` elements through (`{size}`), and {text}",
            verb(access)
        );
        Some((access.span, message, made))
    }

    /// Whether the programs together reach each index below the parameter `size`.
    fn is_reached(&self, poly: &Poly, lanes: &[u32], size: &str) -> bool {
        let facts = self.known.facts;
        let [lane] = lanes else { return false };
        let Some(known) = facts.lanes.get(*lane as usize).filter(|known| known.start == Some(0)) else { return false };
        if let Some(axis) = tiled_by(facts, poly, *lane) {
            let block = Poly::of_dim(&known.size);
            return global(facts, axis, *lane).as_ref() == Some(poly)
                && block.is_some_and(|block| self.known.covers(axis, size, &block));
        }
        let from_loop = |atom: &Atom| match atom {
            Atom::Loop(id) => facts.loops.get(*id as usize),
            _ => None,
        };
        let [(first, 1), (second, 1)] = poly.terms.as_slice() else { return false };
        let Some(around) = first.iter().chain(second).find_map(from_loop).filter(|_| poly.constant == 0) else {
            return false;
        };
        first.len() == 1
            && second.len() == 1
            && around.start == Some(Poly::number(0))
            && around.end.as_ref().and_then(Poly::as_param) == Some(size)
            && around.step == Poly::of_dim(&known.size)
    }

    /// Whether the host code compares shapes, or a size that is part of `factor`.
    fn compares(&self, factor: &Poly) -> bool {
        let is_checked = |atom: &Atom| matches!(atom, Atom::Param(name) if self.known.run.is_checked(name));
        let Some(host) = self.known.launch.host.and_then(|host| self.known.module.hosts.get(host)) else { return true };
        let mut found = factor.any(is_checked);
        walk_expressions(&host.body, &mut |expr| {
            if let ExprKind::Compare { .. } = &expr.kind {
                // `x.shape == y.shape`, `x.ndim == 1`.
                found |= expr.mentions("shape") || expr.mentions("ndim");
            }
        });
        found
    }

    /// The findings where all numbers of the launch are known.
    fn by_numbers(&self) -> Vec<ShortAccess> {
        let (module, text, kernel) = (self.known.module, self.context.source.text(), self.known.kernel);
        let room = |param: &'c Param| {
            let (tensor, made) = self.made(&param.name)?;
            Some((param.name.as_str(), tensor.count().known()?, made))
        };
        let rooms: Vec<(&str, i128, Span)> = kernel.params.iter().filter_map(room).collect();
        if rooms.is_empty() {
            return Vec::new();
        }
        let comment = signature::of(module, kernel, text);
        let Some((launched, signature)) = launched(&self.known, comment.as_ref()) else { return Vec::new() };
        let facts = infer_as(module, text, self.context.target, self.known.at, &signature);
        let behind = |access: &MemoryAccess| {
            let index = index(access)?;
            let (base, room, made) = rooms.iter().find(|(base, ..)| index.base.as_deref() == Some(*base))?;
            let conditions = match &access.mask {
                Mask::None => Vec::new(),
                Mask::Unknown => return None,
                Mask::Tile(_) => conditions_on(&facts, index, guard(access)?)?,
            };
            let example = largest(&facts, &launched, &index.poly, &conditions, &index.narrow)?;
            let reached = example.value(&launched, &index.poly).filter(|reached| reached >= room)?;
            let message = format!(
                "this {} element {reached} of `{base}`, which has {room} in this launch: nothing keeps it before the end",
                verb(access)
            );
            Some((access.span, message, *made))
        };
        facts.accesses.iter().filter(|access| is_certain(access)).filter_map(behind).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;

    const KERNELS: &str = "import torch\nimport triton\nimport triton.language as tl\n\n@triton.jit\ndef tiles(x, y, n, BLOCK: tl.constexpr):\n    \
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)\n\n@triton.jit\n\
        def rows(x, y, n, BLOCK: tl.constexpr):\n    for start in range(0, n, BLOCK):\n        i = start + tl.arange(0, BLOCK)\n        \
        tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)\n\n";

    /// How many accesses are found when the host does this.
    fn found(host: &str) -> usize {
        let body: String = host.lines().map(|line| format!("    {line}\n")).collect();
        messages(&format!("{KERNELS}def run(x, z, count):\n{body}"), "M014").len()
    }

    const TILES: &str = "tiles[(triton.cdiv(n, 64),)](x, y, n, BLOCK=64)";

    #[test]
    fn tensors_that_are_certainly_shorter_are_found() {
        for host in [
            "rows, columns = x.shape\nn = rows * columns\ny = torch.empty(rows)",
            "m, k = x.size()\nn = x.numel()\ny = x.new_empty((k,))",
            "n = x.numel()\ny = torch.empty(x.numel() // 2)",
            "n = x.numel() * 2\ny = torch.zeros_like(x)",
            "n = 3 * count\ny = torch.empty(count)",
            "n = 1001\ny = torch.empty(10, 100)",
        ] {
            assert_eq!(found(&format!("{host}\n{TILES}")), 1, "{host}");
        }
        let looped = "rows_[(1,)](x, y, n, BLOCK=64)".replace("rows_", "rows");
        assert_eq!(found(&format!("n = 2 * count\ny = torch.empty(count)\n{looped}")), 1);
    }

    /// How many accesses are found when a test calls the host like this.
    fn found_in_test(host: &str, test: &str) -> usize {
        messages(&format!("{KERNELS}{host}\n\ndef test():\n    {}\n", test.replace('\n', "\n    ")), "M014").len()
    }

    #[test]
    fn the_calls_of_a_test_are_followed() {
        let host = "def run(x, y, n):\n    tiles[(triton.cdiv(n, 64),)](x, y, n, BLOCK=64)\n";
        for test in [
            "run(torch.zeros(100), torch.zeros(80), 100)",
            "run(torch.zeros(100), torch.tensor([1, 2, 3]), 100)",
            "x = torch.zeros(100)\nfor n in (100,):\n    run(x, torch.arange(80), n)",
        ] {
            assert_eq!(found_in_test(host, test), 1, "{test}");
        }
        for test in [
            "run(torch.zeros(100), torch.zeros(100), 100)",
            "run(torch.zeros(100), torch.tensor([1, 2, 3]), 3)",
            "run(torch.zeros(100), torch.zeros(200)[::2], 100)",
            "sizes = []\nsizes.append(100)\nrun(torch.zeros(100), torch.tensor(sizes), 100)",
        ] {
            assert_eq!(found_in_test(host, test), 0, "{test}");
        }
    }

    #[test]
    fn a_mask_of_its_own_lanes_keeps_those_of_the_access() {
        let kernel = "import torch\nimport triton\nimport triton.language as tl\n\n@triton.jit\ndef row(x, n, BLOCK: tl.constexpr):\n    \
                      p = x + tl.program_id(0) * n + tl.arange(0, BLOCK)\n    tl.store(p, 0, mask=tl.arange(0, BLOCK) < n)\n\n";
        let of = |mask: &str| {
            let text = format!("{kernel}def test():\n    x = torch.zeros(3, 3)\n    row[(3,)](x, 3, BLOCK=4)\n");
            messages(&text.replace("tl.arange(0, BLOCK) < n", mask), "M014").len()
        };
        assert_eq!(of("tl.arange(0, BLOCK) < n"), 0);
        assert_eq!(of("tl.arange(0, BLOCK) < n + 1"), 1);
        assert_eq!(of("tl.arange(1, BLOCK + 1) < n"), 0, "how these lanes belong to those of the access is not known");
    }

    #[test]
    fn tensors_that_may_be_long_enough_are_not_flagged() {
        for host in [
            "n = x.numel()\ny = torch.empty(x.shape[0])",
            "n = x.numel()\ny = torch.empty_like(x)",
            "n = x.numel()\ny = z",
            "n = x.numel()\ny = torch.empty(x.numel() // 2)\ny = torch.cat([y, y])",
            "rows, columns = x.shape\nassert columns == 1\nn = rows * columns\ny = torch.empty(rows)",
            "rows, columns = x.shape\nn = rows\ny = torch.empty(rows * columns)",
            "x = x.view(-1)\nrows, columns = x.shape\nn = rows * columns\ny = torch.empty(rows)",
            "n = 1000\ny = torch.empty(10, 100)",
        ] {
            assert_eq!(found(&format!("{host}\n{TILES}")), 0, "{host}");
        }
        let bytes = format!("n = 4 * count\ny = torch.empty(count)\n{TILES}");
        let cast = KERNELS.replace("y + i", "y.to(tl.pointer_type(tl.uint8)) + i");
        let body: String = bytes.lines().map(|line| format!("    {line}\n")).collect();
        assert_eq!(messages(&format!("{cast}def run(x, z, count):\n{body}"), "M014"), [""; 0], "bytes, not elements");
        let fewer = "n = 2 * count\ny = torch.empty(count)\ntiles[(triton.cdiv(count, 64),)](x, y, n, BLOCK=64)";
        assert_eq!(found(fewer), 0, "no program comes by the rest");
    }
}
