//! "Did you mean …".

/// The candidate that is spelled almost like `word`, if there is one.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    nearest_as(word, candidates.iter().copied(), str::to_owned)
}

/// The same where words count as what `form` makes of them, such as lower case.
#[must_use]
pub fn nearest_as<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    form: fn(&str) -> String,
) -> Option<&'a str> {
    let word = form(word);
    let distance = |candidate: &str| strsim::damerau_levenshtein(&word, &form(candidate));
    let (distance, best) = candidates.into_iter().map(|candidate| (distance(candidate), candidate)).min()?;
    // A third of the letters may be wrong; two wrong letters of three are another word.
    (distance <= word.chars().count().max(best.chars().count()) / 3).then_some(best)
}
