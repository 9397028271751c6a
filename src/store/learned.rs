//! The user's part of the skill memory: rules of their own, and what they hold against rules.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, params};

use super::{Store, StoreError};
use crate::clock::now_milliseconds;
use crate::rules::learned::{FIRST_OWN, LearnedRule, Memory, Patterns, State, number, parse, write};

/// What the user of this machine, or Triton on it, holds against a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Objection {
    /// The rule.
    pub code: String,
    /// Whether the user has muted it.
    pub muted: bool,
    /// A kernel that it flagged and that compiles.
    pub kernel: Option<String>,
    /// The version of Triton that has compiled it.
    pub triton: Option<String>,
    #[serde(skip)]
    pattern: Option<[u8; 32]>,
}

impl Objection {
    /// Whether a kernel that the rule flags as it is now compiles: what was said of another pattern does not count.
    #[must_use]
    pub fn disproves(&self, rule: &LearnedRule) -> bool {
        self.code == rule.code && self.pattern == Some(hash(rule))
    }
}

fn hash(rule: &LearnedRule) -> [u8; 32] {
    *blake3::hash(rule.pattern.as_bytes()).as_bytes()
}

impl Store {
    /// All that holds for the user whose store is in this folder; without a store, what is shipped.
    ///
    /// # Errors
    /// As for [`Self::of_user`].
    pub fn memory_in(folder: &Path) -> Result<Memory, StoreError> {
        if !folder.join("store.db").exists() {
            return Ok(Memory::shipped().clone());
        }
        Self::of_user(folder)?.memory()
    }

    /// All that holds for this user: the shipped rules and their own. Those that were disproved here are demoted, those that are muted
    /// are not shown.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn memory(&self) -> Result<Memory, StoreError> {
        let objections = self.objections()?;
        let all = Memory::shipped().rules().cloned().chain(self.own_rules()?).map(|mut rule| {
            if rule.state == State::Promoted && objections.iter().any(|one| one.disproves(&rule)) {
                rule.state = State::Demoted;
            }
            rule
        });
        let memory = Memory::of_sound(all);
        Ok(memory.hiding(objections.into_iter().filter(|one| one.muted).map(|one| one.code)))
    }

    /// The user's own rules, in the order of their codes. One that cannot be read is left out, with a line in the log.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn own_rules(&self) -> Result<Vec<LearnedRule>, StoreError> {
        let query = || {
            let mut statement = self.connection.prepare("SELECT body FROM learned_rules ORDER BY number")?;
            let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let bodies = query().map_err(|error| self.error(error))?;
        let rules = bodies.iter().filter_map(|body| read(body));
        Ok(rules.collect())
    }

    /// Adds rules to the user's own. Each gets a code; one whose pattern or, without a pattern, whose sentence is known adds its counts to
    /// the known one instead. Returns the codes.
    ///
    /// # Errors
    /// What SQLite says; then none is added.
    pub fn add_rules(&mut self, rules: &[LearnedRule]) -> Result<Vec<String>, StoreError> {
        self.transaction(|transaction| {
            let mut own = load(transaction)?;
            // Of those, too, that cannot be read.
            let last: u32 =
                transaction.query_row("SELECT coalesce(max(number), 0) FROM learned_rules", [], |row| row.get(0))?;
            let mut next = (last + 1).max(FIRST_OWN);
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
                save(transaction, number, &own[&number])?;
                codes.push(own[&number].code.clone());
            }
            Ok(codes)
        })
    }

    /// Changes one of the user's own rules, as it is now: another process may have changed it since it was read. Returns whether it exists.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn change_rule(&mut self, code: &str, change: impl FnOnce(&mut LearnedRule)) -> Result<bool, StoreError> {
        let Some(number) = number(code) else { return Ok(false) };
        self.transaction(|transaction| {
            let Some(mut rule) = load(transaction)?.remove(&number) else { return Ok(false) };
            change(&mut rule);
            code.clone_into(&mut rule.code);
            save(transaction, number, &rule)?;
            Ok(true)
        })
    }

    /// Forgets one of the user's own rules, and what stands against it. Returns whether it was there.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn forget_rule(&mut self, code: &str) -> Result<bool, StoreError> {
        self.transaction(|transaction| {
            transaction.execute("DELETE FROM objections WHERE code = ?1", [code])?;
            Ok(transaction.execute("DELETE FROM learned_rules WHERE number = ?1", [number(code)])? > 0)
        })
    }

    /// What stands against rules.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn objections(&self) -> Result<Vec<Objection>, StoreError> {
        let query = || {
            let columns = "SELECT code, muted, pattern, kernel, triton FROM objections ORDER BY code";
            let mut statement = self.connection.prepare(columns)?;
            let rows = statement.query_map([], |row| {
                Ok(Objection {
                    code: row.get(0)?,
                    muted: row.get(1)?,
                    pattern: row.get(2)?,
                    kernel: row.get(3)?,
                    triton: row.get(4)?,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        query().map_err(|error| self.error(error))
    }

    /// Mutes a rule, or takes that back.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn mute(&mut self, code: &str, muted: bool) -> Result<(), StoreError> {
        self.transaction(|transaction| {
            transaction.execute(
                "INSERT INTO objections (code, muted, made) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET muted = excluded.muted, made = excluded.made",
                params![code, muted, now_milliseconds()],
            )?;
            Ok(())
        })
    }

    /// Notes that a kernel that a rule flags compiles. One of the user's own is demoted.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn disprove(&mut self, rule: &LearnedRule, kernel: &str, triton: &str) -> Result<(), StoreError> {
        self.transaction(|transaction| {
            transaction.execute(
                "INSERT INTO objections (code, muted, pattern, kernel, triton, made) VALUES (?1, 0, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET pattern = excluded.pattern, kernel = excluded.kernel, triton = excluded.triton,
                 made = excluded.made",
                params![rule.code, hash(rule), kernel, triton, now_milliseconds()],
            )?;
            if let Some(number) = number(&rule.code)
                && let Some(mut own) = load(transaction)?.remove(&number).filter(|own| own.pattern == rule.pattern)
            {
                own.state = State::Demoted;
                save(transaction, number, &own)?;
            }
            Ok(())
        })
    }

    /// Forgets what stands against a rule. Returns whether something did.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn drop_objection(&mut self, code: &str) -> Result<bool, StoreError> {
        self.transaction(|transaction| Ok(transaction.execute("DELETE FROM objections WHERE code = ?1", [code])? > 0))
    }
}

fn read(body: &str) -> Option<LearnedRule> {
    let read = parse(body, &|_| None);
    let rules = read.inspect_err(|error| tracing::warn!(%error, "a learned rule in the store cannot be used")).ok()?;
    rules.into_iter().next()
}

fn load(connection: &Connection) -> rusqlite::Result<BTreeMap<u32, LearnedRule>> {
    let mut statement = connection.prepare_cached("SELECT number, body FROM learned_rules")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
    let mut rules = BTreeMap::new();
    for row in rows {
        let (number, body) = row?;
        rules.extend(read(&body).map(|rule| (number, rule)));
    }
    Ok(rules)
}

fn save(connection: &Connection, number: u32, rule: &LearnedRule) -> rusqlite::Result<()> {
    let body = write(std::slice::from_ref(rule), Patterns::Inside);
    connection
        .prepare_cached(
            "INSERT INTO learned_rules (number, name, body) VALUES (?1, ?2, ?3)
             ON CONFLICT (number) DO UPDATE SET name = excluded.name, body = excluded.body",
        )?
        .execute(params![number, rule.name, body])?;
    Ok(())
}

/// Whether two rules say the same: they have one pattern, or one of them has none and they have one sentence.
fn is_same(one: &LearnedRule, other: &LearnedRule) -> bool {
    if one.pattern.is_empty() || other.pattern.is_empty() {
        return one.sentence == other.sentence;
    }
    one.pattern == other.pattern
}

/// The name, or the next one with a number that no rule has.
fn free_name(name: &str, own: &BTreeMap<u32, LearnedRule>) -> String {
    let is_free = |name: &String| Memory::shipped().find(name).is_none() && own.values().all(|rule| rule.name != *name);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::learned::{Origin, Predicted, Releases};

    pub(super) fn rule(name: &str, pattern: &str) -> LearnedRule {
        LearnedRule {
            code: "S501".to_owned(),
            name: name.to_owned(),
            sentence: "You cannot use `break`.".to_owned(),
            state: State::Promoted,
            origin: Origin::Learned("editor".to_owned()),
            covered_by: Vec::new(),
            failures: 3,
            met: 3,
            first_seen: "2026-11-24".to_owned(),
            last_seen: "2026-11-24".to_owned(),
            error: Predicted { kind: "UnsupportedLanguageConstruct".to_owned(), message: String::new() },
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
    fn rules_get_codes_of_their_own_and_near_duplicates_are_one() {
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
        assert!(store.change_rule("S502", |rule| rule.state = State::Expired).unwrap());
        assert!(!store.change_rule("S999", |_| {}).unwrap());
        assert_eq!(store.memory().unwrap().find("S502").unwrap().state, State::Expired);
        assert!(store.forget_rule("S501").unwrap() && !store.forget_rule("S501").unwrap());
        assert_eq!(
            store.add_rules(&[rule("c", BREAK)]).unwrap(),
            ["S503"],
            "codes are not used twice while later ones live"
        );
    }

    #[test]
    fn what_stands_against_a_rule_holds_for_its_pattern() {
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
        assert_eq!(store.own_rules().unwrap()[1].state, State::Demoted);
        // Mended, it is another rule.
        let mend = |rule: &mut LearnedRule| {
            rule.state = State::Promoted;
            rule.pattern = "(return_statement) @here\n".to_owned();
        };
        assert!(store.change_rule("S502", mend).unwrap());
        assert_eq!(shown(&store), ["S501", "S502"]);
        assert!(store.drop_objection("S502").unwrap() && !store.drop_objection("S502").unwrap());
    }

    /// Several servers of one user learn at a time; here they are threads with connections of their own.
    #[test]
    fn several_may_learn_at_a_time_and_nothing_is_lost() {
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
                        let failure = super::super::Failure { text: format!("{writer} {round}"), ..Default::default() };
                        let shared = super::super::Failure::default();
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
    fn one_bad_rule_does_not_cost_the_others() {
        let (_folder, mut store) = store();
        store.add_rules(&[rule("a", BREAK), rule("b", PASS)]).unwrap();
        store.connection.execute("UPDATE learned_rules SET body = 'nonsense' WHERE number = 501", []).unwrap();
        assert_eq!(store.own_rules().unwrap().iter().map(|rule| rule.code.as_str()).collect::<Vec<_>>(), ["S502"]);
    }
}
