//! The rules: one file each, with declaration, documentation, check, fix and tests together (a long documentation stands
//! in a Markdown file of the same name beside it).
//!
//! Adding a rule: write its file, add its name to [`rules!`] below. Everything else (registry, `explain`, hover, pages,
//! schema, SARIF) reads [`all`].
//!
//! A rule that looks at one kernel after the other asks `Context::in_kernels`: what it finds is kept through edits elsewhere.

mod declaration;
mod diagnostic;
mod engine;
mod kept;
mod language;
pub mod learned;
mod memory;
mod page;
mod reader;
mod reconcile;
mod rewrite;
mod scope;
mod suppression;
#[cfg(test)]
mod tests;

pub use declaration::{Declaration, Family, Rule, Severity};
pub use diagnostic::{Diagnostic, Edit, Fix, Related, apply_edits};
pub use engine::{Context, Findings, Selection, check};
pub use reconcile::is_disproved;

macro_rules! rules {
    ($($module:ident,)*) => {
        $(mod $module;)*

        /// Every rule, in the order of the codes.
        static RULES: &[&Rule] = &[$(&$module::RULE,)*];
    };
}

rules! {
    compile_error,
    out_of_resources,
    launch_arguments,
    tuned_update,
    tuner_names,
    launch_grid,
    tuned_grid,
    undecorated_helper,
    plain_call,
    host_tensor,
    varying_constexpr,
    borrowed_stride,
    unchecked_assert,
    pointer_cache,
    changed_global,
    tuned_coverage,
    oversized_stages,
    loop_argument,
    unit_argument,
    unknown_member,
    dtype_called,
    loop_exit,
    arange_bounds,
    incompatible_shapes,
    undefined_name,
    global_not_constexpr,
    unknown_attribute,
    mismatched_arguments,
    invalid_argument,
    invalid_operands,
    loop_type_change,
    branch_type_mismatch,
    invalid_return,
    invalid_condition,
    invalid_subscript,
    invalid_tile_size,
    invalid_reshape,
    invalid_memory_access,
    invalid_dot,
    invalid_reduction,
    invalid_conversion,
    invalid_loop_bounds,
    unsupported_syntax,
    unpacking_mismatch,
    unfilled_reduction,
    offset_overflow,
    unused_mask,
    local_mask,
    negative_offset,
    stale_counter,
    negative_division,
    unordered_exchange,
    program_race,
    unchecked_block,
    truncated_row,
    unguarded_tail,
    short_tensor,
    descriptor_strides,
    unreleased_lock,
    padded_reduction,
    implicit_tf32,
    half_accumulator,
    overflowing_exponential,
    masked_row,
    ignored_nan,
    cancelling_variance,
    half_sum,
    untuned_launch,
    strided_lanes,
    repeated_pass,
    unswizzled_tiles,
    widened_dot,
    narrow_row,
}

/// The pages of all rules, one after the other.
#[doc = include_str!("pages.md")]
pub mod pages {}

/// Every rule, in the order of the codes.
#[must_use]
pub fn all() -> &'static [&'static Rule] {
    RULES
}

/// Where the page of the rule with this code is on the web: of a built-in one, or a learned one that is shipped.
#[must_use]
pub fn url(code: &str) -> Option<String> {
    let learned = || learned::Memory::shipped().find(code).and_then(learned::LearnedRule::url);
    find(code).map(|rule| rule.declaration.url()).or_else(learned)
}

/// The rule with this code (`L001`) or name (`unknown-member`).
#[must_use]
pub fn find(code_or_name: &str) -> Option<&'static Rule> {
    let wanted = |rule: &&&Rule| {
        rule.declaration.code.eq_ignore_ascii_case(code_or_name) || rule.declaration.name == code_or_name
    };
    RULES.iter().find(wanted).copied()
}
