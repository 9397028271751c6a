//! The lint rules. Each file holds one rule: its declaration, documentation, check, fix and tests. A long documentation
//! is in a Markdown file of the same name.
//!
//! To add a rule, write its file, declare the module here and add the rule to [`RULES`]. Everything else (registry,
//! `explain`, hover, pages, schema, SARIF) reads [`all`].
//!
//! A rule that examines each kernel by itself calls `RuleContext::in_kernels`, which caches its findings across edits
//! elsewhere in the file.

mod address_argument;
mod arange_bounds;
mod backward_loop;
mod borrowed_stride;
mod branch_type_mismatch;
mod cached_findings;
mod cancelling_variance;
mod changed_global;
mod check;
mod coarse_scale;
mod compile_error;
mod compounding_scale;
mod context;
mod counted_padding;
mod declaration;
mod descriptor_strides;
mod diagnostic;
mod dtype_called;
mod early_flag;
mod expanded_gradient;
mod false_assumption;
mod findings;
mod fix_edits;
mod formula_reader;
mod global_not_constexpr;
mod half_accumulator;
mod half_sum;
mod host_tensor;
mod ignored_nan;
mod implicit_tf32;
mod incompatible_shapes;
mod integer_quotient;
mod invalid_argument;
mod invalid_condition;
mod invalid_conversion;
mod invalid_dot;
mod invalid_loop_bounds;
mod invalid_memory_access;
mod invalid_operands;
mod invalid_reduction;
mod invalid_reshape;
mod invalid_return;
mod invalid_subscript;
mod invalid_tile_size;
mod known_launch;
mod language;
mod launch_arguments;
mod launch_grid;
pub mod learned;
mod local_mask;
mod loop_argument;
mod loop_exit;
mod loop_type_change;
mod lost_copy;
mod lost_update;
mod mask_precedence;
mod masked_row;
mod memory_accesses;
mod merged_rows;
mod mismatched_arguments;
mod misplaced_reduction;
mod missing_allocator;
mod narrow_index;
mod narrow_row;
mod narrow_store;
mod negative_division;
mod negative_offset;
mod offset_overflow;
mod out_of_resources;
mod overflowing_exponential;
mod overflowing_softplus;
mod oversized_stages;
mod padded_minimum;
mod padded_reduction;
mod page;
mod plain_call;
mod pointer_cache;
mod program_race;
mod reconcile;
mod repeated_pass;
mod repeated_store;
mod rule;
mod same_work;
mod scope;
mod selection;
mod settled_alignment;
mod short_grid;
mod short_tensor;
mod sliced_rows;
mod stale_counter;
mod strided_lanes;
mod suppression;
#[cfg(test)]
mod tests;
mod tile_boolean;
mod transposed_mask;
mod truncated_row;
mod tuned_coverage;
mod tuned_grid;
mod tuned_update;
mod tuner_names;
mod uncalled_method;
mod unchecked_assert;
mod unchecked_block;
mod undecorated_helper;
mod undefined_name;
mod uneven_block;
mod unfilled_index;
mod unfilled_reduction;
mod unguarded_tail;
mod unit_argument;
mod unknown_attribute;
mod unknown_member;
mod unmasked_tile;
mod unordered_exchange;
mod unpacking_mismatch;
mod unreleased_lock;
mod unscaled_offset;
mod unset_sum;
mod unsigned_difference;
mod unsupported_syntax;
mod unswizzled_tiles;
mod untuned_launch;
mod unused_exemption;
mod unused_flag;
mod unused_mask;
mod varying_constexpr;
mod widened_dot;
mod wrapping_cast;
mod zero_scale;

pub use check::{check, check_with};
pub use context::RuleContext;
pub use declaration::{Declaration, RuleFamily, Severity, Tag};
pub use diagnostic::{Diagnostic, Edit, Fix, Related, apply_edits};
pub use findings::Findings;
pub use reconcile::is_disproved;
pub use rule::Rule;
pub use selection::Selection;

/// Every rule, in the order of the codes.
static RULES: &[&Rule] = &[
    &compile_error::RULE,
    &out_of_resources::RULE,
    &launch_arguments::RULE,
    &tuned_update::RULE,
    &tuner_names::RULE,
    &launch_grid::RULE,
    &tuned_grid::RULE,
    &undecorated_helper::RULE,
    &plain_call::RULE,
    &host_tensor::RULE,
    &varying_constexpr::RULE,
    &borrowed_stride::RULE,
    &unchecked_assert::RULE,
    &pointer_cache::RULE,
    &changed_global::RULE,
    &tuned_coverage::RULE,
    &oversized_stages::RULE,
    &loop_argument::RULE,
    &unset_sum::RULE,
    &uncalled_method::RULE,
    &settled_alignment::RULE,
    &unused_exemption::RULE,
    &expanded_gradient::RULE,
    &sliced_rows::RULE,
    &uneven_block::RULE,
    &backward_loop::RULE,
    &merged_rows::RULE,
    &lost_copy::RULE,
    &unused_flag::RULE,
    &address_argument::RULE,
    &missing_allocator::RULE,
    &unit_argument::RULE,
    &unknown_member::RULE,
    &dtype_called::RULE,
    &loop_exit::RULE,
    &arange_bounds::RULE,
    &incompatible_shapes::RULE,
    &undefined_name::RULE,
    &global_not_constexpr::RULE,
    &unknown_attribute::RULE,
    &mismatched_arguments::RULE,
    &invalid_argument::RULE,
    &invalid_operands::RULE,
    &loop_type_change::RULE,
    &branch_type_mismatch::RULE,
    &invalid_return::RULE,
    &invalid_condition::RULE,
    &invalid_subscript::RULE,
    &invalid_tile_size::RULE,
    &invalid_reshape::RULE,
    &invalid_memory_access::RULE,
    &invalid_dot::RULE,
    &invalid_reduction::RULE,
    &invalid_conversion::RULE,
    &invalid_loop_bounds::RULE,
    &unsupported_syntax::RULE,
    &unpacking_mismatch::RULE,
    &tile_boolean::RULE,
    &misplaced_reduction::RULE,
    &unfilled_reduction::RULE,
    &offset_overflow::RULE,
    &unused_mask::RULE,
    &local_mask::RULE,
    &negative_offset::RULE,
    &stale_counter::RULE,
    &negative_division::RULE,
    &unordered_exchange::RULE,
    &program_race::RULE,
    &unchecked_block::RULE,
    &truncated_row::RULE,
    &unguarded_tail::RULE,
    &short_tensor::RULE,
    &descriptor_strides::RULE,
    &unreleased_lock::RULE,
    &short_grid::RULE,
    &same_work::RULE,
    &lost_update::RULE,
    &padded_reduction::RULE,
    &early_flag::RULE,
    &coarse_scale::RULE,
    &counted_padding::RULE,
    &mask_precedence::RULE,
    &false_assumption::RULE,
    &unscaled_offset::RULE,
    &transposed_mask::RULE,
    &unmasked_tile::RULE,
    &unfilled_index::RULE,
    &compounding_scale::RULE,
    &padded_minimum::RULE,
    &repeated_store::RULE,
    &implicit_tf32::RULE,
    &half_accumulator::RULE,
    &overflowing_exponential::RULE,
    &masked_row::RULE,
    &ignored_nan::RULE,
    &cancelling_variance::RULE,
    &half_sum::RULE,
    &wrapping_cast::RULE,
    &integer_quotient::RULE,
    &narrow_index::RULE,
    &overflowing_softplus::RULE,
    &unsigned_difference::RULE,
    &zero_scale::RULE,
    &narrow_store::RULE,
    &untuned_launch::RULE,
    &strided_lanes::RULE,
    &repeated_pass::RULE,
    &unswizzled_tiles::RULE,
    &widened_dot::RULE,
    &narrow_row::RULE,
];

/// The documentation pages of all rules.
#[doc = include_str!("pages.md")]
pub mod pages {}

/// Every rule, in the order of the codes.
#[must_use]
pub fn all() -> &'static [&'static Rule] {
    RULES
}

/// The web address of the page of the rule with this code, which may be built-in or a learned rule that ships with
/// Warpsmith.
#[must_use]
pub fn url(code: &str) -> Option<String> {
    let learned = || learned::LearnedRules::shipped().find(code).and_then(learned::LearnedRule::url);
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
