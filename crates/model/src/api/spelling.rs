//! Spelling suggestions: the "did you mean …" of messages.

/// The candidate with the smallest edit distance to `word`. `None` when more than a third of the letters differ.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let distance = |candidate: &&'a str| (strsim::damerau_levenshtein(word, candidate), *candidate);
    let (distance, best) = candidates.iter().map(distance).min()?;
    // With a larger share of wrong letters (two of three) it is another word.
    (distance <= word.chars().count().max(best.chars().count()) / 3).then_some(best)
}
