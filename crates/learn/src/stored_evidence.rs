//! The parts of a store that learning compares, with limits for large stores.

use std::collections::{BTreeMap, HashMap};

use model::api::TritonTarget;
use model::syntax::Span;
use rules::learned::{LearnedRule, LearnedRules, Pattern};
use store::{RefusedKernel, Store, StoreError};

use super::built_in_findings::flagged_by;
use super::failure::{CompileFailure, ErrorSignature};
use super::oracle::{Failing, Oracle};
use super::parsed_files::Parsed;
use super::program::KernelProgram;

/// The maximum number of signatures that are examined, the most frequent ones.
const SIGNATURES: usize = 500;
/// The maximum number of failures of each signature, the newest ones.
const EACH: usize = 20;
/// The maximum number of signatures that are learned from at once; the others are left for the next time.
const AT_ONCE: usize = 20;
/// The maximum number of compiling kernels that are compared at each step, the newest ones; in the end, a rule must
/// flag none of all kernels.
const SOUND: usize = 2_000;

/// The failures of a release, up to the limits.
///
/// # Errors
/// Returns an error when SQLite fails.
pub(crate) fn failures(store: &Store, release: &str) -> Result<Vec<CompileFailure>, StoreError> {
    let mut found = Vec::new();
    for (signature, _) in store.failure_signatures()?.into_iter().take(SIGNATURES) {
        let newest = store.newest_failures(&signature, release, EACH)?;
        found.extend(newest.into_iter().rev().map(taught));
    }
    Ok(found)
}

/// The kernels of a release that compile, up to the limit for one step.
///
/// # Errors
/// Returns an error when SQLite fails.
pub(crate) fn sound(store: &Store, release: &str) -> Result<Vec<Parsed>, StoreError> {
    let mut found = Vec::new();
    store.each_accepted(&mut |kernel| {
        if kernel.triton == release && found.len() < SOUND {
            found.push(Parsed::new(&kernel.text));
        }
    })?;
    Ok(found)
}

/// The failures to learn from.
pub(crate) struct UnexplainedFailures {
    /// The failures of the chosen signatures.
    pub(crate) failures: Vec<CompileFailure>,
    /// The chosen signatures, with the number of failures of each.
    pub(crate) signatures: Vec<(String, u64)>,
    /// The number of signatures that are left for the next time.
    pub(crate) left: usize,
    /// The number of failures that a built-in rule or a proven learned one flags.
    pub(crate) known: usize,
}

/// The failures that no built-in rule and no proven learned one flags, for the most frequent signatures. Signatures that were examined before, when
/// they had as many failures, come last.
pub(crate) fn unexplained(
    oracle: &Oracle,
    memory: &LearnedRules,
    failures: Vec<CompileFailure>,
    target: TritonTarget,
    looked_at: &HashMap<String, u64>,
) -> UnexplainedFailures {
    let is_explained = |failure: &CompileFailure| {
        Parsed::new(&failure.program.text).is_refused_by(memory, target) || !flagged_by(failure, target).is_empty()
    };
    let explained = oracle.parallel(&failures, |_, failure| is_explained(failure));
    let known = explained.iter().filter(|is_explained| **is_explained).count();
    let mut by_signature: BTreeMap<ErrorSignature, Vec<CompileFailure>> = BTreeMap::new();
    for (failure, _) in failures.into_iter().zip(explained).filter(|(_, is_explained)| !is_explained) {
        by_signature.entry(ErrorSignature::of(&failure.failing)).or_default().push(failure);
    }
    let groups = by_signature.into_iter().map(|(signature, group)| (named(&signature), group)).collect();
    let (taken, left) = turns(groups, looked_at, |group| group.len() as u64, AT_ONCE);
    let signatures = taken.iter().map(|(name, group)| (name.clone(), group.len() as u64)).collect();
    let failures = taken.into_iter().flat_map(|(_, group)| group).collect();
    UnexplainedFailures { failures, signatures, left, known }
}

/// The text of a signature in the store.
pub(crate) fn named(signature: &ErrorSignature) -> String {
    format!("{}: {}", signature.kind, signature.template)
}

/// The groups to examine now, the largest first, and the number of new ones that are left for the next time. Groups
/// that have not grown since they were examined come last.
fn turns<T>(
    groups: Vec<(String, T)>,
    looked_at: &HashMap<String, u64>,
    size: impl Fn(&T) -> u64,
    count: usize,
) -> (Vec<(String, T)>, usize) {
    let is_new = |(name, group): &(String, T)| looked_at.get(name).is_none_or(|then| *then < size(group));
    let (mut new, mut old): (Vec<_>, Vec<_>) = groups.into_iter().partition(is_new);
    let left = new.len().saturating_sub(count);
    for groups in [&mut new, &mut old] {
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(size(group)));
    }
    (new.into_iter().chain(old).take(count).collect(), left)
}

/// The rules that flag none of the kernels that compile.
///
/// # Errors
/// Returns an error when SQLite fails.
pub(crate) fn undisproved(
    store: &Store,
    release: &str,
    target: TritonTarget,
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

fn taught(failure: RefusedKernel) -> CompileFailure {
    CompileFailure {
        origin: format!("{} {}", failure.source, failure.kernel),
        passing: failure.nearest_passing.map(|text| KernelProgram::new(text, failure.kernel.clone())),
        program: KernelProgram::new(failure.text, failure.kernel),
        failing: Failing {
            kind: failure.error.kind,
            message: failure.error.message,
            span: failure.place.map(|(start, end)| Span::new(start, end)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::learned::TritonError;

    #[test]
    fn only_the_newest_failures_of_each_signature_are_compared() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::of_user(folder.path()).unwrap();
        let failure = |number: usize, message: &str| RefusedKernel {
            text: format!("# {number}\n"),
            kernel: "k".to_owned(),
            error: TritonError { kind: "NameError".to_owned(), message: message.to_owned() },
            triton: if number.is_multiple_of(2) { "3.6.0" } else { "3.5.1" }.to_owned(),
            ..RefusedKernel::default()
        };
        let many: Vec<RefusedKernel> = (0..4 * EACH).map(|number| failure(number, "x is not defined")).collect();
        store.keep_failures(&many).unwrap();
        store.keep_failures(&[failure(1000, "something else"), failure(1001, "something else")]).unwrap();
        let found = failures(&store, "3.6.0").unwrap();
        let texts: Vec<&str> = found.iter().map(|failure| failure.program.text.as_str()).collect();
        assert_eq!(texts.len(), EACH + 1);
        let newest = format!("# {}\n", 4 * EACH - 2);
        assert!(texts.contains(&newest.as_str()) && texts.contains(&"# 1000\n") && !texts.contains(&"# 0\n"));
    }

    #[test]
    fn examined_groups_come_last_unless_they_have_grown() {
        let groups = |counts: &[(&str, u64)]| -> Vec<(String, u64)> {
            counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let all = groups(&[("a", 9), ("b", 7), ("c", 5), ("d", 3)]);
        let none = HashMap::new();
        assert_eq!(turns(all.clone(), &none, |count| *count, 2), (groups(&[("a", 9), ("b", 7)]), 2));
        let before = HashMap::from([("a".to_owned(), 9), ("b".to_owned(), 7)]);
        assert_eq!(turns(all.clone(), &before, |count| *count, 3), (groups(&[("c", 5), ("d", 3), ("a", 9)]), 0));
        let fewer = HashMap::from([("a".to_owned(), 8), ("b".to_owned(), 7)]);
        assert_eq!(turns(all, &fewer, |count| *count, 1), (groups(&[("a", 9)]), 2));
    }
}
