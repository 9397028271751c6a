//! Conventions for the names of parameters, from which their types and values are guessed.

/// Whether a name contains one of these parts, ignoring case; `^` and `$` match its start and end.
fn like(name: &str, parts: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    parts.iter().any(|part| {
        let inner = part.trim_start_matches('^').trim_end_matches('$');
        match (part.starts_with('^'), part.ends_with('$')) {
            (true, true) => name == inner,
            (true, false) => name.starts_with(inner),
            (false, true) => name.ends_with(inner),
            (false, false) => name.contains(inner),
        }
    })
}

/// A pointer to integers.
pub(super) fn is_index(name: &str) -> bool {
    const PARTS: &[&str] = &[
        "seqlen",
        "indices",
        "index",
        "idx",
        "offset",
        "_len$",
        "_lens$",
        "^len$",
        "^lens$",
        "table",
        "position",
        "_id$",
        "_ids$",
        "_id_",
        "^id",
        "target",
        "label",
        "slot",
        "count",
        "^y_ptr$",
        "block_mask",
        "expert",
        "num_",
        "cursor",
        "order",
        "mapping",
        "perm",
        "split",
    ];
    like(name, PARTS)
}

/// A pointer to integers of 64 bits.
pub(super) fn is_wide_index(name: &str) -> bool {
    like(name, &["target", "label", "ids", "^y_ptr$", "^y$"])
}

/// A pointer to values that are computed in full precision.
pub(super) fn is_precise(name: &str) -> bool {
    const PARTS: &[&str] = &[
        "^dg",
        "^h$",
        "^h0$",
        "^ht$",
        "^dh",
        "lse",
        "^m$",
        "^l$",
        "delta",
        "mean",
        "rstd",
        "rms",
        "scale",
        "beta",
        "loss",
        "stat",
        "acc",
        "^aw",
        "^da",
        "_m$",
        "_l$",
        "initial_state",
        "final_state",
    ];
    let is_gate = name.starts_with(['g', 'G']) && name.len() <= 2;
    is_gate || name == "A" || like(name, PARTS)
}

/// A pointer to truth values.
pub(super) fn is_mask(name: &str) -> bool {
    like(name, &["mask"])
}

/// A number that may be fractional.
pub(super) fn is_fraction(name: &str) -> bool {
    const PARTS: &[&str] = &[
        "eps",
        "scale",
        "alpha",
        "beta",
        "gamma",
        "^lr",
        "^p$",
        "dropout",
        "momentum",
        "decay",
        "temperature",
        "softcap",
        "thres",
        "smoothing",
        "coef",
        "weight",
        "^inv",
        "_inv",
        "factor",
        "limit",
        "lower_bound",
        "theta",
        "lambda",
        "value$",
        "ratio",
        "_max$",
        "_min$",
    ];
    !is_count(name) && like(name, PARTS)
}

/// An integer.
pub(super) fn is_count(name: &str) -> bool {
    like(name, &["stride", "num", "^n_", "size", "len", "iter", "step"]) || name.starts_with('N')
}

/// A dtype.
pub(super) fn is_dtype(name: &str) -> bool {
    like(name, &["dtype", "_ty$", "_type$"]) && !like(name, &["_min$", "_max$"]) || name == "DT"
}

/// A flag.
pub(super) fn is_flag(name: &str) -> bool {
    const PARTS: &[&str] = &[
        "^use_",
        "^is_",
        "^has_",
        "^store_",
        "^output_",
        "^with_",
        "^enable_",
        "^do_",
        "^no_",
        "^need_",
        "^return_",
        "^save_",
        "^apply_",
        "^compute_",
        "^init_",
        "^allow_",
        "reverse",
        "causal",
        "_first$",
        "^logsumexp",
        "^even",
    ];
    like(name, PARTS)
}

/// A count that is known at compile time.
pub(super) fn is_small(name: &str) -> bool {
    let is_upper = |c: &u8| c.is_ascii_uppercase();
    name.contains("stage")
        || name.starts_with("num_")
        || name.starts_with("n_")
        || name.starts_with('N') && name.as_bytes().get(1).is_some_and(is_upper)
}

/// The size of a tile.
pub(super) fn is_block(name: &str) -> bool {
    let is_upper = |c: &u8| c.is_ascii_uppercase();
    like(name, &["block", "tile", "chunk"]) || name.starts_with('B') && name.as_bytes().get(1).is_some_and(is_upper)
}

/// The usual value of a size with a usual name.
pub(super) fn size(name: &str) -> Option<i64> {
    Some(match name {
        "BT" | "BK" | "BV" | "BD" | "BN" | "BM" | "M" | "N" | "S" | "C" => 64,
        "BC" | "NT" | "L" => 16,
        "BS" => 32,
        "NC" | "H" | "HV" | "HK" | "W" | "R" | "NB" => 4,
        "K" | "V" | "D" => 128,
        "T" => 1024,
        "HQ" => 8,
        "G" | "NK" | "NV" | "B" | "NS" => 2,
        "LOG_BT" => 6,
        _ => return None,
    })
}

/// Another value of a size; tiles cover the dimension that they are named after.
pub(super) fn other_size(name: &str) -> i64 {
    match name {
        "K" | "V" | "D" | "BK" | "BV" | "BD" => 64,
        "T" => 1024,
        _ if is_block(name) => 32,
        "S" => 16,
        _ => 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_kinds_are_guessed_from_parts_of_names() {
        assert!(is_index("cu_seqlens") && is_index("seq_len") && is_index("token_ids") && !is_index("lenient"));
        assert!(is_precise("g") && is_precise("gk") && is_precise("LSE") && !is_precise("grad"));
        assert!(is_flag("USE_G") && is_flag("is_causal") && !is_flag("REUSE"));
        assert!(is_block("BT") && is_block("BLOCK_SIZE") && !is_block("B") && !is_block("Bias"));
        assert!(
            is_fraction("eps") && is_fraction("ratio") && !is_fraction("max_iterations") && !is_fraction("stride_inv")
        );
        assert!(is_count("stride_xm") && is_count("N") && !is_count("n"));
        assert!(is_dtype("DT") && is_dtype("out_dtype") && !is_dtype("WIDTH") && !is_dtype("dtype_max"));
    }
}
