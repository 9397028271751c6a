//! "Did you mean …".

/// The candidate nearest to `word`, if one is near enough to be what was meant.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let distance = |candidate: &str| strsim::damerau_levenshtein(&word, &candidate.to_lowercase());
    let (distance, best) = candidates.into_iter().map(|candidate| (distance(candidate), candidate)).min()?;
    // A third of the letters may be wrong; two wrong letters of three are another word.
    (distance <= word.chars().count().max(best.chars().count()) / 3).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_words_are_suggested() {
        let keys = ["select", "ignore", "exclude"];
        assert_eq!(nearest("selct", keys), Some("select"));
        assert_eq!(nearest("Exclud", keys), Some("exclude"));
        assert_eq!(nearest("banana", keys), None);
        assert_eq!(nearest("x", []), None);
    }
}
