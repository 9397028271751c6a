//! "Did you mean …".

/// The candidate that is spelled almost like `word`, if there is one.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let distance = |candidate: &&'a str| (strsim::damerau_levenshtein(word, candidate), *candidate);
    let (distance, best) = candidates.iter().map(distance).min()?;
    // A third of the letters may be wrong; two wrong letters of three are another word.
    (distance <= word.chars().count().max(best.chars().count()) / 3).then_some(best)
}
