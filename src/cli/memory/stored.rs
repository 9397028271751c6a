//! What the store holds for learning: so much of it as is compared, however much there is.

use std::collections::{BTreeMap, VecDeque};

use crate::adapt::{self, Oracle, Parsed, Program, Signature};
use crate::api::Target;
use crate::rules::learned::{LearnedRule, Memory, Pattern};
use crate::store::{Failure, Store, StoreError};
use crate::syntax::Span;

/// So many of the most frequent signatures are looked at.
const SIGNATURES: usize = 500;
/// Of each of them so many failures, the newest.
const EACH: usize = 20;
/// At once so many signatures are learned from; the others have their turn once these are known.
const AT_ONCE: usize = 40;
/// So many kernels that compile are compared at each step, the newest; a rule must let all of them pass in the end.
const SOUND: usize = 2_000;

/// The failures of a release, not more than are compared.
///
/// # Errors
/// What SQLite says.
pub(super) fn failures(store: &Store, release: &str) -> Result<Vec<adapt::Failure>, StoreError> {
    let mut found = Vec::new();
    for (signature, _) in store.failure_signatures()?.into_iter().take(SIGNATURES) {
        let mut newest: VecDeque<adapt::Failure> = VecDeque::new();
        store.each_failure(Some(&signature), &mut |kept| {
            if kept.failure.triton == release {
                newest.push_back(taught(kept.failure));
                if newest.len() > EACH {
                    newest.pop_front();
                }
            }
        })?;
        found.extend(newest);
    }
    Ok(found)
}

/// The kernels of a release that compile, not more than are compared at each step.
///
/// # Errors
/// What SQLite says.
pub(super) fn sound(store: &Store, release: &str) -> Result<Vec<Parsed>, StoreError> {
    let mut found = Vec::new();
    store.each_accepted(&mut |kernel| {
        if kernel.triton == release && found.len() < SOUND {
            found.push(Parsed::new(&kernel.text));
        }
    })?;
    Ok(found)
}

/// The failures that no proven rule flags, of the signatures of which there are most, and how many some rule flags.
pub(super) fn unexplained(
    oracle: &Oracle,
    memory: &Memory,
    failures: Vec<adapt::Failure>,
    target: Target,
) -> (Vec<adapt::Failure>, usize) {
    let explained =
        oracle.share(&failures, |_, failure| Parsed::new(&failure.program.text).is_refused_by(memory, target));
    let count = explained.iter().filter(|is_explained| **is_explained).count();
    let mut by_signature: BTreeMap<Signature, Vec<adapt::Failure>> = BTreeMap::new();
    for (failure, _) in failures.into_iter().zip(explained).filter(|(_, is_explained)| !is_explained) {
        by_signature.entry(Signature::of(&failure.failing)).or_default().push(failure);
    }
    let mut groups: Vec<Vec<adapt::Failure>> = by_signature.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    (groups.into_iter().take(AT_ONCE).flatten().collect(), count)
}

/// The rules that flag none of all the kernels that compile.
///
/// # Errors
/// What SQLite says.
pub(super) fn undisproved(
    store: &Store,
    release: &str,
    target: Target,
    rules: Vec<LearnedRule>,
) -> Result<Vec<LearnedRule>, StoreError> {
    let mut left: Vec<(LearnedRule, Pattern)> = rules
        .into_iter()
        .filter_map(|rule| Pattern::compile(&rule.pattern).ok().map(|pattern| (rule, pattern)))
        .collect();
    store.each_accepted(&mut |kernel| {
        if kernel.triton == release && !left.is_empty() {
            let parsed = Parsed::new(&kernel.text);
            let context = parsed.context(target);
            left.retain(|(_, pattern)| pattern.matches(&context).is_empty());
        }
    })?;
    Ok(left.into_iter().map(|(rule, _)| rule).collect())
}

fn taught(failure: Failure) -> adapt::Failure {
    adapt::Failure {
        origin: format!("{} {}", failure.source, failure.kernel),
        passing: failure.relative.map(|text| Program::new(text, failure.kernel.clone())),
        program: Program::new(failure.text, failure.kernel),
        failing: adapt::Failing {
            kind: failure.error.kind,
            message: failure.error.message,
            span: failure.place.map(|(start, end)| Span::new(start, end)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::learned::Predicted;

    #[test]
    fn of_many_failures_the_newest_of_each_signature_are_compared() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::of_user(folder.path()).unwrap();
        let failure = |number: usize, message: &str| Failure {
            text: format!("# {number}\n"),
            kernel: "k".to_owned(),
            error: Predicted { kind: "NameError".to_owned(), message: message.to_owned() },
            triton: if number.is_multiple_of(2) { "3.6.0" } else { "3.5.1" }.to_owned(),
            ..Failure::default()
        };
        let many: Vec<Failure> = (0..4 * EACH).map(|number| failure(number, "x is not defined")).collect();
        store.keep_failures(&many).unwrap();
        store.keep_failures(&[failure(1000, "something else"), failure(1001, "something else")]).unwrap();
        let found = failures(&store, "3.6.0").unwrap();
        let texts: Vec<&str> = found.iter().map(|failure| failure.program.text.as_str()).collect();
        assert_eq!(texts.len(), EACH + 1);
        let newest = format!("# {}\n", 4 * EACH - 2);
        assert!(texts.contains(&newest.as_str()) && texts.contains(&"# 1000\n") && !texts.contains(&"# 0\n"));
    }
}
