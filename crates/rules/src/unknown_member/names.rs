//! Suggestions for names that Triton does not have.

use model::api::{MemberKind, Table, TritonTarget, VersionCertainty};

/// Functions that all described releases have in `triton.language.extra.libdevice`, for both CUDA and ROCm.
const LIBDEVICE: &str = "acos acosh asin asinh atan atan2 atanh copysign cosh erfc erfinv expm1 fmod hypot isinf isnan log10 log1p \
    nearbyint pow signbit sinh tan tanh trunc";

/// Replacements for names of other libraries.
const INSTEAD: &[(&str, &str)] = &[
    ("all", "`tl.min(mask.to(tl.int32), axis) > 0`"),
    ("any", "`tl.max(mask.to(tl.int32), axis) > 0`"),
    ("bool", "`tl.int1`"),
    ("clip", "`tl.clamp(x, low, high)`"),
    ("full_like", "`tl.full(x.shape, value, x.dtype)`"),
    ("matmul", "`tl.dot(a, b)`"),
    ("mean", "`tl.sum(x, axis) / n`"),
    ("mm", "`tl.dot(a, b)`"),
    ("ones", "`tl.full(shape, 1, dtype)`"),
    ("ones_like", "`tl.full(x.shape, 1, x.dtype)`"),
    ("relu", "`tl.maximum(x, 0)`"),
    ("square", "`x * x`"),
    ("transpose", "`tl.trans(x)`"),
];

/// Short names of dtypes.
const DTYPES: &[(&str, &str)] =
    &[("bf16", "bfloat16"), ("fp16", "float16"), ("fp32", "float32"), ("fp64", "float64"), ("bfloat", "bfloat16")];

/// Names of other libraries that are not misspellings, however close they are to a name of Triton.
const NO_TYPOS: &str = "absolute add amax amin arccos arcsin arctan argwhere bincount cbrt cosine cospi cross cummax cummin diag div \
    divide dump equal erfcx erfinv eye fabs float floor_div fmax fmin frexp gcd ge gt half hash index int \
    isfinite le len lgamma linspace logb logsumexp long lt max2 maxi mini mod mul ne neg norm not_equal outer \
    prod rand_like remainder rint roll rot90 round rsqrt scan scatter select sgn shape short sign sinc sinpi \
    size slice sqr stack std sub take tile tril triu uint unique var view_as zero";

/// Whether a list of words contains a word.
pub(super) fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// The advice in words for a name of another library.
pub(super) fn instead(path: &str) -> Option<String> {
    let (module, name) = path.rsplit_once('.')?;
    if !matches!(module, "triton.language" | "triton.language.math") {
        return None;
    }
    let known = INSTEAD.iter().find(|(known, _)| *known == name).map(|(_, instead)| (*instead).to_owned());
    known.or_else(|| {
        let instead = format!("`libdevice.{name}` of `triton.language.extra`, which takes 32-bit and 64-bit floats");
        has(LIBDEVICE, name).then_some(instead)
    })
}

/// The only name of the module whose spelling is close to this one and that contains the same numbers.
pub(super) fn nearest(path: &str, target: TritonTarget) -> Option<&'static str> {
    let (module, name) = path.rsplit_once('.')?;
    if has(NO_TYPOS, name) || has(LIBDEVICE, name) {
        return None;
    }
    if module == "triton.language"
        && let Some((_, dtype)) = DTYPES.iter().find(|(short, _)| *short == name)
    {
        return Some(dtype);
    }
    let digits = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
    let limit = if name.len() > 4 { 2 } else { 1 };
    let mut close: Vec<(usize, &'static str)> = target
        .table
        .modules
        .get(module)?
        .iter()
        .filter(|(known, member)| {
            !known.starts_with('_') && !matches!(member.kind, MemberKind::Module | MemberKind::Value)
        })
        .map(|(known, _)| (strsim::osa_distance(known, name), known.as_str()))
        .filter(|(distance, known)| *distance <= limit && digits(known) == digits(name))
        .collect();
    close.sort_unstable();
    let found = match close.as_slice() {
        [(_, found)] => *found,
        [(best, found), (next, _), ..] if best < next => *found,
        _ => return None,
    };
    let in_every_version =
        || TritonTarget::versions_with(&format!("{module}.{found}")).len() == Table::versions().len();
    (target.certainty == VersionCertainty::Known || in_every_version()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recommended_members_exist_in_every_version() {
        for (name, instead) in INSTEAD {
            let found = TritonTarget::versions_with(&format!("triton.language.{name}"));
            assert!(found.is_empty(), "{name} is in {found:?}");
            for recommended in instead.split("tl.").skip(1) {
                let end = recommended.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(recommended.len());
                let versions = TritonTarget::versions_with(&format!("triton.language.{}", &recommended[..end]));
                assert_eq!(versions, Table::versions(), "{instead}");
            }
        }
        for (_, dtype) in DTYPES {
            assert_eq!(TritonTarget::versions_with(&format!("triton.language.{dtype}")), Table::versions(), "{dtype}");
        }
        for name in LIBDEVICE.split(' ') {
            assert!(TritonTarget::versions_with(&format!("triton.language.{name}")).is_empty(), "{name}");
        }
    }
}
