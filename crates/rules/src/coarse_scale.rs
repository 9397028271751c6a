//! M022: one scale for a tile that spans several groups.

use model::analysis::launches::settings;
use model::analysis::types::index::{Atom, Poly};
use model::syntax::Span;

use super::memory_accesses::kernels;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M022",
        name: "coarse-scale",
        severity: Severity::Warning,
        summary: "the number of a group that is computed for the start of a tile which spans several groups",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds `start // GROUP` in a loop over tiles, where `start` is the first element of the tile and a launch or configuration passes a tile
that is larger than the group.

## Why is this bad?
The scale, or whatever belongs to a group, is loaded for the first group of the tile and used for all of them.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def dequantize(w, scale, out, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        factor = tl.load(scale + start // GROUP)
        #                        ^^^^^^^^^^^^^^
        tl.store(out + offsets, tl.load(w + offsets, mask=mask) * factor, mask=mask)


def run(w, scale, out):
    dequantize[(1,)](w, scale, out, w.numel(), GROUP=32, BLOCK=128)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def dequantize(w, scale, out, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        factor = tl.load(scale + offsets // GROUP, mask=mask)
        tl.store(out + offsets, tl.load(w + offsets, mask=mask) * factor, mask=mask)


def run(w, scale, out):
    dequantize[(1,)](w, scale, out, w.numel(), GROUP=32, BLOCK=128)
```

## When it is silent
When the sizes are not known, when the tile is no multiple of the group (it is then aligned in another way), and when the quotient is that of a lane.

## Sources
[vllm#39705](https://github.com/vllm-project/vllm/issues/39705), [sglang#39626](https://github.com/sgl-project/sglang/issues/39626).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for (kernel, facts) in kernels(context) {
        for division in facts.divisions.iter().filter(|division| division.op == "//") {
            let [(atoms, 1)] = division.left.poly.terms.as_slice() else { continue };
            let ([Atom::Loop(id)], 0) = (atoms.as_slice(), division.left.poly.constant) else { continue };
            let Some(around) = facts.loops.get(*id as usize) else { continue };
            let (Some(step), Some(group)) = (&around.step, &division.right) else { continue };
            // Lanes of the tile go along the loop.
            let spans_tile = facts.accesses.iter().any(|access| {
                access.pointer.about.index().is_some_and(|index| {
                    index.poly.has(&Atom::Loop(*id))
                        && facts.lanes.iter().enumerate().any(|(at, lane)| {
                            let lane_atom = u32::try_from(at).map(Atom::Lane);
                            Poly::of_dim(&lane.size).as_ref() == Some(step)
                                && lane_atom.is_ok_and(|atom| index.poly.has(&atom))
                        })
                })
            });
            if !spans_tile || seen.contains(&division.span) {
                continue;
            }
            let sizes = settings(context.module, kernel).into_iter().find_map(|setting| {
                let value =
                    |poly: &Poly| poly.as_number().or_else(|| setting.value(poly.as_param()?).map(|(value, _)| value));
                let (tile, group) = (value(step)?, value(group)?);
                (group > 1 && tile > group && tile % group == 0).then_some((tile, group))
            });
            if let Some((tile, group)) = sizes
                && !context.is_for_other_compiler()
            {
                seen.push(division.span);
                let message = format!(
                    "a tile of {tile} spans {} groups of {group}, and this is the number of the first: the others get what belongs to it",
                    tile / group
                );
                findings.push(
                    Diagnostic::new(&RULE.declaration, division.span, message)
                        .with_related(around.span, "the loop goes on by a tile"),
                );
            }
        }
    }
}
