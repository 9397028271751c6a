//! The user's own learned rules, as texts by number, and the objections of the user and of Triton against rules.
//!
//! `learn::memory` parses the texts and decides which rules are active.

use std::collections::BTreeMap;

use rusqlite::{Transaction, params};

use base::clock::now_milliseconds;

use super::{Store, StoreError};

/// A learned rule of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRule {
    /// The number of its code: 501 for `S501`.
    pub number: u32,
    /// The unique name of the rule.
    pub name: String,
    /// The whole rule, as `rules::learned` writes it.
    pub body: String,
}

/// An objection against a rule: the user muted it, or Triton compiled a kernel that it flags.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RuleObjection {
    /// The code of the rule, such as `S501`.
    pub code: String,
    /// Whether the user has muted it.
    pub muted: bool,
    /// A kernel that the rule flags although it compiles.
    pub kernel: Option<String>,
    /// The version of Triton that compiled [`Self::kernel`].
    pub triton: Option<String>,
    /// The hash of the pattern that flagged the kernel.
    #[serde(skip)]
    pub pattern: Option<[u8; 32]>,
}

/// A kernel that a rule flags although it compiles, which disproves the rule.
#[derive(Clone, Copy, Debug)]
pub struct Disproof<'a> {
    /// The code of the rule.
    pub code: &'a str,
    /// The hash of the rule's pattern.
    pub pattern: [u8; 32],
    /// The kernel that disproves the rule.
    pub kernel: &'a str,
    /// The version of Triton that compiled it.
    pub triton: &'a str,
}

/// The user's learned rules inside of one transaction.
pub struct RuleTransaction<'a>(&'a Transaction<'a>);

impl RuleTransaction<'_> {
    /// The texts of all rules, by number.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn all(&self) -> rusqlite::Result<BTreeMap<u32, String>> {
        let mut statement = self.0.prepare_cached("SELECT number, body FROM learned_rules")?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }

    /// The greatest number in use; 0 without rules.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn last_number(&self) -> rusqlite::Result<u32> {
        self.0.query_row("SELECT coalesce(max(number), 0) FROM learned_rules", [], |row| row.get(0))
    }

    /// Adds a rule, or replaces the one with its number.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn save(&self, rule: &StoredRule) -> rusqlite::Result<()> {
        self.0
            .prepare_cached(
                "INSERT INTO learned_rules (number, name, body) VALUES (?1, ?2, ?3)
                 ON CONFLICT (number) DO UPDATE SET name = excluded.name, body = excluded.body",
            )?
            .execute(params![rule.number, rule.name, rule.body])?;
        Ok(())
    }

    /// Removes a rule and the objections against it. Returns whether it existed.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn forget(&self, code: &str, number: Option<u32>) -> rusqlite::Result<bool> {
        self.0.execute("DELETE FROM objections WHERE code = ?1", [code])?;
        Ok(self.0.execute("DELETE FROM learned_rules WHERE number = ?1", [number])? > 0)
    }

    /// Records that a kernel which a rule flags compiles.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn disprove(&self, disproof: Disproof<'_>) -> rusqlite::Result<()> {
        let Disproof { code, pattern, kernel, triton } = disproof;
        self.0.execute(
            "INSERT INTO objections (code, muted, pattern, kernel, triton, made) VALUES (?1, 0, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET pattern = excluded.pattern, kernel = excluded.kernel, triton = excluded.triton,
             made = excluded.made",
            params![code, pattern, kernel, triton, now_milliseconds()],
        )?;
        Ok(())
    }
}

impl Store {
    /// The texts of the user's own rules, in the order of their numbers.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn rule_bodies(&self) -> Result<Vec<String>, StoreError> {
        let query = || {
            let mut statement = self.connection.prepare("SELECT body FROM learned_rules ORDER BY number")?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        query().map_err(|error| self.error(error))
    }

    /// Changes the user's own rules in one transaction: other processes see all of the change or nothing.
    ///
    /// # Errors
    /// Returns an error when SQLite or `change` fails; the transaction is then rolled back.
    pub fn change_rules<T>(
        &mut self,
        change: impl FnOnce(&RuleTransaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.transaction(|transaction| change(&RuleTransaction(transaction)))
    }

    /// The objections against rules.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn objections(&self) -> Result<Vec<RuleObjection>, StoreError> {
        let query = || {
            let columns = "SELECT code, muted, pattern, kernel, triton FROM objections ORDER BY code";
            let mut statement = self.connection.prepare(columns)?;
            let rows = statement.query_map([], |row| {
                Ok(RuleObjection {
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

    /// Mutes a rule, or unmutes it.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
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

    /// Removes the objection against a rule. Returns whether there was one.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn drop_objection(&mut self, code: &str) -> Result<bool, StoreError> {
        self.transaction(|transaction| Ok(transaction.execute("DELETE FROM objections WHERE code = ?1", [code])? > 0))
    }
}
