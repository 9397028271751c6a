//! Tests of the recorded accesses, on small kernels.

use super::access::{Mask, MemoryAccess};
use super::{KernelAnalysis, infer};
use crate::api::TritonTarget;
use crate::kernel::Module;
use crate::syntax::Source;

/// The facts of a kernel `k(x, n, m, BLOCK)` with this body.
fn facts(body: &str) -> KernelAnalysis {
    let text = format!(
        "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x, n, m, BLOCK: tl.constexpr):\n{}\n\
         def run(x, n, m, block):\n    k[(n,)](x, n, m, BLOCK=block)\n",
        body.lines().map(|line| format!("    {line}\n")).collect::<String>()
    );
    infer(&Module::build(&Source::parse(text.as_str())), &text, TritonTarget::newest(), 0, false)
}

fn offset(access: &MemoryAccess) -> Option<String> {
    access.pointer.about.index().map(|index| index.poly.to_string())
}

fn conditions(access: &MemoryAccess) -> Option<(Vec<String>, bool)> {
    let Mask::Tile(tile) = &access.mask else { return None };
    let guard = tile.about.guard()?;
    let shown =
        guard.conditions.iter().map(|condition| format!("{} {} {}", condition.left, condition.op, condition.right));
    Some((shown.collect(), guard.is_partial))
}

#[test]
fn a_minus_sign_negates_the_lane_coefficient() {
    let found = facts("o = tl.arange(0, BLOCK)\ntl.load(x + (-o) + n)");
    assert_eq!(offset(&found.accesses[0]).as_deref(), Some("n + -1*lane0"));
}

#[test]
fn the_opposite_of_a_mask_is_not_the_mask() {
    let found = facts("o = tl.arange(0, BLOCK)\nmask = o < n\ntl.load(x + o, mask=~mask)\ntl.load(x + o, mask=mask)");
    assert_eq!(conditions(&found.accesses[0]), Some((vec![], true)));
    assert_eq!(conditions(&found.accesses[1]), Some((vec!["lane0 < n".to_owned()], false)));
}

#[test]
fn one_arange_along_two_axes_has_no_single_lane_index() {
    let found = facts("o = tl.arange(0, BLOCK)\ntl.load(x + o[:, None] * n + o[None, :])\ntl.load(x + o[:, None] * n)");
    assert_eq!(offset(&found.accesses[0]), None);
    assert_eq!(offset(&found.accesses[1]).as_deref(), Some("n*lane0"));
}

#[test]
fn accesses_after_a_conditional_return_are_marked() {
    let found = facts("p = tl.program_id(0)\ntl.load(x + p)\nif p >= n:\n    return\ntl.load(x + p)");
    let after: Vec<bool> = found.accesses.iter().map(|access| access.is_after_return).collect();
    assert_eq!(after, [false, true]);
}

#[test]
fn rounded_up_quotients_become_atoms() {
    let found = facts("p = tl.program_id(0)\nt = tl.cdiv(n, BLOCK)\ntl.load(x + (p // t) * m + p % t)");
    let shown = offset(&found.accesses[0]).unwrap();
    assert!(
        shown.contains("(program_id(0) // (BLOCK + n + -1 // BLOCK))*m") && shown.contains("(program_id(0) % ("),
        "{shown}"
    );
}

#[test]
fn a_name_keeps_its_constant_value() {
    let found = facts("start = 16\ntl.load(x + start * n)");
    assert_eq!(offset(&found.accesses[0]).as_deref(), Some("16*n"));
}

#[test]
fn loop_variables_are_stale_behind_their_loop() {
    let stale = |body: &str| facts(body).stale.len();
    assert_eq!(stale("for i in range(n):\n    tl.load(x + i)\ntl.load(x + i)"), 1);
    assert_eq!(stale("for i in range(n):\n    tl.load(x + i)\ni = 0\ntl.load(x + i)"), 0);
    assert_eq!(stale("for i in tl.static_range(4):\n    tl.load(x + i)\ntl.load(x + i)"), 0);
    assert_eq!(stale("for i in range(n):\n    last = i\nfor i in range(n):\n    tl.load(x + i)"), 0);
    assert_eq!(
        stale("if BLOCK > m:\n    for i in range(n):\n        tl.load(x + i)\nelse:\n    i = 0\ntl.load(x + i)"),
        0
    );
}
