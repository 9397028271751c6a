//! Selects the learned rules that are most relevant for a person or a language model that edits a kernel.

use std::collections::BTreeSet;

use model::api::TritonTarget;

use super::{LearnedRule, LearnedRules, RuleState};

/// The approximate number of bytes per token of English and code. Estimates with it are no lower than vendors' counts.
const BYTES_OF_TOKEN: usize = 3;

/// How relevant a rule is to a text; the most relevant is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Relevance {
    /// The rule is about a function whose name occurs in the text.
    Called,
    /// The rule is about no function in particular.
    General,
    /// The rule is about functions whose names do not occur in the text.
    Other,
}

impl LearnedRules {
    /// The promoted rules that are most relevant for a change of `text`: first those about functions that it names,
    /// then those about no function, then the rest, each group ordered by how often its failures have occurred. Their
    /// sentences, without duplicates, take at most `tokens` tokens together (estimated).
    #[must_use]
    pub fn advice(&self, text: &str, target: TritonTarget, tokens: usize) -> Vec<&LearnedRule> {
        let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let is_meant = |rule: &&LearnedRule| {
            rule.state == RuleState::Promoted && !self.hidden.contains(&rule.code) && rule.triton.hold_for(target)
        };
        let mut rules: Vec<(Relevance, &LearnedRule)> =
            self.rules().filter(is_meant).map(|rule| (relevance(rule, &words), rule)).collect();
        rules.sort_by(|(near, one), (far, other)| {
            near.cmp(far).then(other.met.cmp(&one.met)).then_with(|| one.code.cmp(&other.code))
        });
        let (mut left, mut said) = (tokens * BYTES_OF_TOKEN, BTreeSet::new());
        let mut chosen = Vec::new();
        for (_, rule) in rules {
            let sentence = rule.plain_sentence();
            // A line of a list also has a dash, a space and a line break.
            let cost = sentence.len() + 3;
            if cost <= left && said.insert(sentence) {
                left -= cost;
                chosen.push(rule);
            }
        }
        chosen
    }
}

fn relevance(rule: &LearnedRule, words: &BTreeSet<&str>) -> Relevance {
    let named: Vec<&str> = functions(&rule.pattern).collect();
    if named.iter().any(|name| words.contains(name)) {
        Relevance::Called
    } else if named.is_empty() {
        Relevance::General
    } else {
        Relevance::Other
    }
}

/// The unqualified names of the functions in a pattern: `load` of `(#api? @f "tl.load")`.
fn functions(pattern: &str) -> impl Iterator<Item = &str> {
    let inside = pattern.split("(#api? ").skip(1).filter_map(|rest| rest.split_once(')'));
    let quoted = inside.flat_map(|(words, _)| words.split('"').skip(1).step_by(2));
    quoted.filter_map(|path| path.rsplit('.').next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learned::{Releases, RuleOrigin, TritonError};

    fn rule(number: u32, sentence: &str, pattern: &str, met: u64) -> LearnedRule {
        LearnedRule {
            code: format!("S{number:03}"),
            name: format!("rule-{number}"),
            sentence: sentence.to_owned(),
            state: RuleState::Promoted,
            origin: RuleOrigin::Synthesised(1),
            covered_by: Vec::new(),
            failures: 3,
            met,
            first_seen: "2026-11-25".to_owned(),
            last_seen: "2026-11-25".to_owned(),
            error: TritonError::default(),
            triton: Releases { since: "3.4.0".parse().ok(), until: None, tried: vec!["3.4.0".parse().unwrap()] },
            pattern: pattern.to_owned(),
            bad: String::new(),
            good: String::new(),
        }
    }

    #[test]
    fn advice_ranks_called_functions_first_and_fits_the_budget() {
        let about = |name: &str| format!("((call function: (_) @f) @here (#api? @f \"tl.{name}\"))");
        let memory = LearnedRules::new([
            rule(1, "You cannot sort.", &about("sort"), 99),
            rule(2, "You cannot load so.", &about("load"), 3),
            rule(3, "You cannot use `lambda`.", "((lambda) @here)", 50),
            rule(4, "You cannot store so.", &about("store"), 7),
            rule(5, "You cannot store so.", &about("store"), 5),
            LearnedRule { state: RuleState::Candidate, ..rule(6, "You cannot be sure.", &about("load"), 99) },
        ]);
        let text = "x = tl.load(p)\ntl.store(p, x)\n";
        let codes = |target: &str, tokens: usize| -> Vec<&str> {
            let target = TritonTarget::of(target.parse().unwrap());
            memory.advice(text, target, tokens).iter().map(|rule| rule.code.as_str()).collect()
        };
        assert_eq!(codes("3.4.0", 1000), ["S004", "S002", "S003", "S001"]);
        // A rule that does not fit leaves room for one that does.
        let tokens = "You cannot store so.You cannot sort.".len().div_ceil(BYTES_OF_TOKEN) + 2;
        assert_eq!(codes("3.4.0", tokens), ["S004", "S001"]);
        assert_eq!(codes("3.4.0", 0), [""; 0]);
        assert_eq!(codes("3.1.0", 1000), [""; 0], "nobody has tried that release");
        assert_eq!(memory.muting("S004").advice(text, TritonTarget::of("3.4.0".parse().unwrap()), 9)[0].code, "S005");
    }
}
