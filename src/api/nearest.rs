//! "Did you mean …".

/// The candidate that is spelled almost like `word`, if there is one.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let distance = |candidate: &str| strsim::damerau_levenshtein(word, candidate);
    let (distance, best) = candidates.iter().map(|candidate| (distance(candidate), *candidate)).min()?;
    (distance <= word.chars().count().max(best.chars().count()) / 3).then_some(best)
}
