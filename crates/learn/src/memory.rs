//! The skill memory of one user: shipped rules, the user's own rules, and the objections against any of them.

use std::collections::BTreeMap;
use std::path::Path;

use rules::learned::{FIRST_OWN, LearnedRule, LearnedRules, Patterns, RuleState, number, parse, write};
use store::{Disproof, RuleObjection, RuleTransaction, Store, StoreError, StoredRule};

/// Access to the learned rules in a user's store.
pub trait SkillMemory: Sized {
    /// All rules that apply to the user whose store is in `folder`. Without a store these are the shipped rules.
    ///
    /// # Errors
    /// Returns an error when the store exists and cannot be opened, see [`Store::of_user`], or cannot be read.
    fn memory_in(folder: &Path) -> Result<LearnedRules, StoreError>;

    /// As [`Self::memory_in`]. Where the store cannot be read, that is logged and only the shipped rules apply.
    #[must_use]
    fn memory_or_shipped(folder: &Path) -> LearnedRules {
        Self::memory_in(folder).unwrap_or_else(|error| {
            tracing::warn!(%error, "the skill memory cannot be read; only the shipped rules are used");
            LearnedRules::shipped().clone()
        })
    }

    /// All rules that apply to this user: the shipped ones and the user's own. A rule that was disproved in this store
    /// is demoted, and a muted rule is hidden.
    ///
    /// # Errors
    /// Returns an error when SQLite cannot read the store.
    fn memory(&self) -> Result<LearnedRules, StoreError>;

    /// The user's own rules, in the order of their codes. A rule that cannot be parsed is left out and logged.
    ///
    /// # Errors
    /// Returns an error when SQLite cannot read the store.
    fn own_rules(&self) -> Result<Vec<LearnedRule>, StoreError>;

    /// Adds rules to the user's own. Each new rule gets a code. A rule whose pattern is already known (or whose
    /// sentence, if one of the two has no pattern) adds its counts to the known rule instead. Returns the codes.
    ///
    /// # Errors
    /// Returns an error when SQLite fails; then no rule is added.
    fn add_rules(&mut self, rules: &[LearnedRule]) -> Result<Vec<String>, StoreError>;

    /// Changes one of the user's own rules inside a transaction, because another process may have changed it since it
    /// was read. Returns whether the rule exists.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    fn change_rule(&mut self, code: &str, change: impl FnOnce(&mut LearnedRule)) -> Result<bool, StoreError>;

    /// Removes one of the user's own rules together with the objections against it. Returns whether the rule existed.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    fn forget_rule(&mut self, code: &str) -> Result<bool, StoreError>;

    /// Records that a kernel flagged by a rule compiles, with the version of Triton that compiled it. One of the user's
    /// own rules is demoted.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    fn disprove(&mut self, rule: &LearnedRule, kernel: &str, triton: &str) -> Result<(), StoreError>;
}

/// Whether an objection disproves the current version of a rule. An objection against an earlier pattern of the rule
/// does not count.
#[must_use]
pub fn disproves(objection: &RuleObjection, rule: &LearnedRule) -> bool {
    objection.code == rule.code && objection.pattern == Some(hash(rule))
}

impl SkillMemory for Store {
    fn memory_in(folder: &Path) -> Result<LearnedRules, StoreError> {
        if !folder.join("store.db").exists() {
            return Ok(LearnedRules::shipped().clone());
        }
        Self::of_user(folder)?.memory()
    }

    fn memory(&self) -> Result<LearnedRules, StoreError> {
        let objections = self.objections()?;
        let all = LearnedRules::shipped().rules().cloned().chain(self.own_rules()?).map(|mut rule| {
            if rule.state == RuleState::Promoted && objections.iter().any(|one| disproves(one, &rule)) {
                rule.state = RuleState::Demoted;
            }
            rule
        });
        let memory = LearnedRules::of_sound(all);
        Ok(memory.hiding(objections.into_iter().filter(|one| one.muted).map(|one| one.code)))
    }

    fn own_rules(&self) -> Result<Vec<LearnedRule>, StoreError> {
        Ok(self.rule_bodies()?.iter().filter_map(|body| read(body)).collect())
    }

    fn add_rules(&mut self, rules: &[LearnedRule]) -> Result<Vec<String>, StoreError> {
        self.change_rules(|stored| {
            let mut own = load(stored.all()?);
            // This includes the numbers of rules that cannot be parsed.
            let mut next = (stored.last_number()? + 1).max(FIRST_OWN);
            let mut codes = Vec::new();
            for rule in rules {
                let number = match own.iter().find(|(_, known)| is_same(known, rule)) {
                    Some((number, known)) => {
                        let (number, mut merged) = (*number, known.clone());
                        merged.merge(rule);
                        own.insert(number, merged);
                        number
                    }
                    None => {
                        let number = next;
                        next += 1;
                        let name = free_name(&rule.name, &own);
                        own.insert(number, LearnedRule { code: format!("S{number:03}"), name, ..rule.clone() });
                        number
                    }
                };
                stored.save(&text_of(number, &own[&number]))?;
                codes.push(own[&number].code.clone());
            }
            Ok(codes)
        })
    }

    fn change_rule(&mut self, code: &str, change: impl FnOnce(&mut LearnedRule)) -> Result<bool, StoreError> {
        let Some(number) = number(code) else { return Ok(false) };
        self.change_rules(|stored| {
            let Some(mut rule) = load(stored.all()?).remove(&number) else { return Ok(false) };
            change(&mut rule);
            code.clone_into(&mut rule.code);
            stored.save(&text_of(number, &rule))?;
            Ok(true)
        })
    }

    fn forget_rule(&mut self, code: &str) -> Result<bool, StoreError> {
        self.change_rules(|stored| stored.forget(code, number(code)))
    }

    fn disprove(&mut self, rule: &LearnedRule, kernel: &str, triton: &str) -> Result<(), StoreError> {
        self.change_rules(|stored: &RuleTransaction<'_>| {
            stored.disprove(Disproof { code: &rule.code, pattern: hash(rule), kernel, triton })?;
            if let Some(number) = number(&rule.code)
                && let Some(mut own) = load(stored.all()?).remove(&number).filter(|own| own.pattern == rule.pattern)
            {
                own.state = RuleState::Demoted;
                stored.save(&text_of(number, &own))?;
            }
            Ok(())
        })
    }
}

fn hash(rule: &LearnedRule) -> [u8; 32] {
    *blake3::hash(rule.pattern.as_bytes()).as_bytes()
}

fn read(body: &str) -> Option<LearnedRule> {
    let read = parse(body, &|_| None);
    let rules = read.inspect_err(|error| tracing::warn!(%error, "a learned rule in the store cannot be used")).ok()?;
    rules.into_iter().next()
}

fn load(bodies: BTreeMap<u32, String>) -> BTreeMap<u32, LearnedRule> {
    bodies.into_iter().filter_map(|(number, body)| Some((number, read(&body)?))).collect()
}

fn text_of(number: u32, rule: &LearnedRule) -> StoredRule {
    StoredRule { number, name: rule.name.clone(), body: write(std::slice::from_ref(rule), Patterns::Inside) }
}

/// Whether two rules are the same: they have the same pattern or, if one of them has no pattern, the same sentence.
fn is_same(one: &LearnedRule, other: &LearnedRule) -> bool {
    if one.pattern.is_empty() || other.pattern.is_empty() {
        return one.sentence == other.sentence;
    }
    one.pattern == other.pattern
}

/// The name itself or, if a rule already has it, the name with the next free number.
fn free_name(name: &str, own: &BTreeMap<u32, LearnedRule>) -> String {
    let is_free =
        |name: &String| LearnedRules::shipped().find(name).is_none() && own.values().all(|rule| rule.name != *name);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::learned::{Releases, RuleOrigin, TritonError};

    fn rule(name: &str, pattern: &str) -> LearnedRule {
        LearnedRule {
            code: "S501".to_owned(),
            name: name.to_owned(),
            sentence: "You cannot use `break`.".to_owned(),
            state: RuleState::Promoted,
            origin: RuleOrigin::Learned("editor".to_owned()),
            covered_by: Vec::new(),
            failures: 3,
            met: 3,
            first_seen: "2026-11-24".to_owned(),
            last_seen: "2026-11-24".to_owned(),
            error: TritonError { kind: "UnsupportedLanguageConstruct".to_owned(), message: String::new() },
            triton: Releases {
                since: Some("3.1.0".parse().unwrap()),
                until: None,
                tried: vec!["3.6.0".parse().unwrap()],
            },
            pattern: pattern.to_owned(),
            bad: String::new(),
            good: String::new(),
        }
    }

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store.db")).unwrap();
        (folder, store)
    }

    const BREAK: &str = "(break_statement) @here\n";
    const PASS: &str = "(pass_statement) @here\n";

    #[test]
    fn rules_get_unique_codes_and_duplicates_are_merged() {
        let (_folder, mut store) = store();
        assert_eq!(store.add_rules(&[rule("a", BREAK), rule("a", PASS)]).unwrap(), ["S501", "S502"]);
        let mut again = rule("b", BREAK);
        again.first_seen = "2026-11-20".to_owned();
        again.last_seen = "2026-11-26".to_owned();
        assert_eq!(store.add_rules(&[again]).unwrap(), ["S501"]);
        let own = store.own_rules().unwrap();
        assert_eq!(own.iter().map(|rule| rule.name.as_str()).collect::<Vec<_>>(), ["a", "a-2"]);
        assert_eq!((own[0].met, own[0].failures), (6, 6));
        assert_eq!((own[0].first_seen.as_str(), own[0].last_seen.as_str()), ("2026-11-20", "2026-11-26"));
        assert!(store.change_rule("S502", |rule| rule.state = RuleState::Expired).unwrap());
        assert!(!store.change_rule("S999", |_| {}).unwrap());
        assert_eq!(store.memory().unwrap().find("S502").unwrap().state, RuleState::Expired);
        assert!(store.forget_rule("S501").unwrap() && !store.forget_rule("S501").unwrap());
        assert_eq!(
            store.add_rules(&[rule("c", BREAK)]).unwrap(),
            ["S503"],
            "codes are not used twice while later ones live"
        );
    }

    #[test]
    fn objections_apply_only_to_the_pattern_they_were_made_against() {
        let (_folder, mut store) = store();
        store.add_rules(&[rule("a", BREAK), rule("b", PASS)]).unwrap();
        let shown = |store: &Store| {
            let memory = store.memory().unwrap();
            memory
                .rules()
                .filter(|rule| rule.is_own() && memory.shows(rule))
                .map(|rule| rule.code.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(&store), ["S501", "S502"]);
        store.mute("S501", true).unwrap();
        assert_eq!(shown(&store), ["S502"]);
        store.mute("S501", false).unwrap();
        let second = store.own_rules().unwrap().remove(1);
        store.disprove(&second, "def k(): pass", "3.6.0").unwrap();
        assert_eq!(shown(&store), ["S501"]);
        assert_eq!(store.own_rules().unwrap()[1].state, RuleState::Demoted);
        // A rule whose pattern has changed is a different rule.
        let mend = |rule: &mut LearnedRule| {
            rule.state = RuleState::Promoted;
            rule.pattern = "(return_statement) @here\n".to_owned();
        };
        assert!(store.change_rule("S502", mend).unwrap());
        assert_eq!(shown(&store), ["S501", "S502"]);
        assert!(store.drop_objection("S502").unwrap() && !store.drop_objection("S502").unwrap());
    }

    /// Several servers of one user may learn at the same time. Here they are threads, each with a connection of its
    /// own.
    #[test]
    fn concurrent_learners_lose_no_rules_or_counts() {
        let (folder, first) = store();
        drop(first);
        let path = folder.path().join("store.db");
        std::thread::scope(|scope| {
            for writer in 0..4_u32 {
                let path = &path;
                scope.spawn(move || {
                    for round in 0..10_u32 {
                        let mut store = Store::open(path).unwrap();
                        let own = format!("((identifier) @here (#eq? @here \"a{writer}x{round}\"))\n");
                        let codes = store.add_rules(&[rule("shared", BREAK), rule("own", &own)]).unwrap();
                        store.change_rule(&codes[0], |rule| rule.failures += 1).unwrap();
                        store.mute(&codes[1], true).unwrap();
                        let failure = store::RefusedKernel { text: format!("{writer} {round}"), ..Default::default() };
                        let shared = store::RefusedKernel::default();
                        store.keep_failures([&failure, &shared]).unwrap();
                    }
                });
            }
        });
        let store = Store::open(&path).unwrap();
        let own = store.own_rules().unwrap();
        assert_eq!(own.len(), 41);
        let shared = own.iter().find(|rule| rule.name == "shared").unwrap();
        assert_eq!((shared.met, shared.failures), (120, 160));
        assert_eq!(store.objections().unwrap().len(), 40);
        let mut met = Vec::new();
        store.each_failure(&mut |one| met.push(one.met)).unwrap();
        assert_eq!((met.len(), met.iter().sum::<u64>()), (41, 80));
    }

    #[test]
    fn an_unreadable_rule_does_not_affect_the_others() {
        let (_folder, mut store) = store();
        store.add_rules(&[rule("a", BREAK), rule("b", PASS)]).unwrap();
        let nonsense = StoredRule { number: 501, name: "a".to_owned(), body: "nonsense".to_owned() };
        store.change_rules(|stored| stored.save(&nonsense)).unwrap();
        assert_eq!(store.own_rules().unwrap().iter().map(|rule| rule.code.as_str()).collect::<Vec<_>>(), ["S502"]);
    }
}
