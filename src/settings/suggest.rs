//! "Did you mean …".

use crate::api::nearest_as;

/// The candidate nearest to `word`, if one is near enough to be what was meant.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_as(word, candidates, str::to_lowercase)
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
