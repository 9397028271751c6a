//! The rule for operators of torch that a candidate may use in addition to those of the original.

use protocol::runner::ExportedResults;

/// Operators that move or fill memory and compute nothing.
const FREE: &[&str] = &[
    "_local_scalar_dense",
    "_to_copy",
    "alias",
    "arange",
    "clone",
    "contiguous",
    "copy",
    "copy_",
    "detach",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "eye",
    "fill",
    "fill_",
    "full",
    "full_like",
    "item",
    "lift_fresh",
    "new_empty",
    "new_empty_strided",
    "new_full",
    "new_ones",
    "new_zeros",
    "ones",
    "ones_like",
    "resize_",
    "scalar_tensor",
    "set_",
    "zero_",
    "zeros",
    "zeros_like",
];

/// A new operator counts as bookkeeping if it works on fewer elements than the greatest result or argument divided by
/// this.
const SMALL_SHARE: u64 = 16;
/// A new operator on this many elements or fewer counts as bookkeeping, too.
const SMALL: u64 = 256;

/// Whether an operator only moves or fills memory.
pub(super) fn is_free(name: &str) -> bool {
    FREE.contains(&name.rsplit("::").next().unwrap_or(name))
}

/// The number of elements of the greatest result.
pub(super) fn elements(results: &ExportedResults) -> u64 {
    results.leaves.iter().map(|leaf| leaf.value.elements()).max().unwrap_or(0)
}

/// A note on the operators that the original does not use, or an error when they do real work. Each operator comes with
/// the greatest number of elements that it worked on at once.
pub(super) fn added(
    original: &[(String, u64)],
    candidate: &[(String, u64)],
    greatest: u64,
) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    for (name, count) in candidate {
        let is_used = original.iter().any(|(used, most)| used == name && *count <= most.saturating_mul(2).max(1024));
        if is_used || is_free(name) {
            continue;
        }
        if *count > (greatest / SMALL_SHARE).max(SMALL) {
            return Err(format!("`{name}` of torch works on {count} elements; the original does not use it so"));
        }
        notes.push(format!("uses `{name}` of torch on {count} elements; the original does not"));
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computing_operators_are_distinguished_from_bookkeeping() {
        let used =
            |names: &[(&str, u64)]| names.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<Vec<_>>();
        let original = used(&[("aten::empty_like", 1 << 20), ("aten::sum", 1 << 20)]);
        let judged = |names: &[(&str, u64)]| added(&original, &used(names), 1 << 20);
        assert_eq!(judged(&[("aten::zeros", 1 << 20), ("aten::sum", 1 << 20)]), Ok(Vec::new()));
        assert!(judged(&[("aten::mm", 1 << 20)]).unwrap_err().contains("aten::mm"));
        assert_eq!(judged(&[("aten::max", 64)]).unwrap().len(), 1);
    }
}
