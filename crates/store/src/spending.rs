//! The daily cost of language models over all processes of a user, and the reservations of requests in progress.

use rusqlite::{Transaction, params};

use super::{Store, StoreError};

/// The greatest sum that is stored; a column holds signed 64-bit integers.
const MOST: u64 = (1 << 62) - 1;

/// The tokens and the cost of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Spending {
    /// The number of requests.
    pub requests: u64,
    /// The number of requests whose token counts are estimates.
    pub estimated: u64,
    /// Input tokens, cached ones included.
    pub input: u64,
    /// Input tokens that the provider had cached.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
    /// The cost, in units of 10⁻¹² dollars.
    pub cost: u64,
}

/// An amount of tokens and of cost that is reserved or spent; also a limit of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// Input and output tokens.
    pub tokens: u64,
    /// The cost, in units of 10⁻¹² dollars.
    pub cost: u64,
}

impl Reserved {
    /// The sum of both amounts, saturating.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(other.tokens), cost: self.cost.saturating_add(other.cost) }
    }

    /// The difference of both amounts, saturating at 0.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_sub(other.tokens), cost: self.cost.saturating_sub(other.cost) }
    }

    /// Whether both amounts are within `limit`; a limit of 0 allows any amount.
    #[must_use]
    pub fn is_within(self, limit: Self) -> bool {
        let is_within = |amount, limit| limit == 0 || amount <= limit;
        is_within(self.tokens, limit.tokens) && is_within(self.cost, limit.cost)
    }
}

impl Store {
    /// Reserves `most`, the greatest cost of a request, unless the day's total would exceed `limit`. Returns the id of
    /// the reservation, or else what is spent and reserved so far. The check and the reservation are one transaction.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn reserve(&mut self, day: &str, most: Reserved, limit: Reserved) -> Result<Result<i64, Reserved>, StoreError> {
        self.transaction(|transaction| {
            transaction.execute("DELETE FROM reservations WHERE day < date(?1, '-2 days')", [day])?;
            let taken = taken(transaction, day)?;
            if !taken.plus(most).is_within(limit) {
                return Ok(Err(taken));
            }
            transaction
                .prepare_cached("INSERT INTO reservations (day, tokens, cost) VALUES (?1, ?2, ?3)")?
                .execute(params![day, most.tokens.min(MOST), most.cost.min(MOST)])?;
            Ok(Ok(transaction.last_insert_rowid()))
        })
    }

    /// Replaces a reservation by the actual cost of its request; `None` means that it cost nothing.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn settle(
        &mut self,
        reservation: i64,
        day: &str,
        model: &str,
        spent: Option<&Spending>,
    ) -> Result<(), StoreError> {
        self.transaction(|transaction| {
            transaction.prepare_cached("DELETE FROM reservations WHERE id = ?1")?.execute([reservation])?;
            let Some(spent) = spent else { return Ok(()) };
            let [requests, estimated, input, cached, output, cost] =
                [spent.requests, spent.estimated, spent.input, spent.cached, spent.output, spent.cost]
                    .map(|amount| amount.min(MOST));
            transaction
                .prepare_cached(
                    "INSERT INTO spending (day, model, requests, estimated, input, cached, output, cost)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                     ON CONFLICT DO UPDATE SET requests = requests + excluded.requests,
                     estimated = estimated + excluded.estimated, input = min(input + excluded.input, ?9),
                     cached = min(cached + excluded.cached, ?9), output = min(output + excluded.output, ?9),
                     cost = min(cost + excluded.cost, ?9)",
                )?
                .execute(params![day, model, requests, estimated, input, cached, output, cost, MOST])?;
            Ok(())
        })
    }

    /// The spending of each model on a day, by name.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn spending(&self, day: &str) -> Result<Vec<(String, Spending)>, StoreError> {
        let query = || -> rusqlite::Result<Vec<(String, Spending)>> {
            let mut statement = self.connection.prepare_cached(
                "SELECT model, requests, estimated, input, cached, output, cost FROM spending WHERE day = ?1 ORDER BY model",
            )?;
            let rows = statement.query_map([day], |row| {
                let spending = Spending {
                    requests: row.get(1)?,
                    estimated: row.get(2)?,
                    input: row.get(3)?,
                    cached: row.get(4)?,
                    output: row.get(5)?,
                    cost: row.get(6)?,
                };
                Ok((row.get(0)?, spending))
            })?;
            rows.collect()
        };
        query().map_err(|error| self.error(error))
    }
}

/// The sum of what is spent and reserved on a day.
fn taken(transaction: &Transaction<'_>, day: &str) -> rusqlite::Result<Reserved> {
    let mut statement = transaction.prepare_cached(
        "SELECT input + output, cost FROM spending WHERE day = ?1
         UNION ALL SELECT tokens, cost FROM reservations WHERE day = ?1",
    )?;
    let rows = statement.query_map([day], |row| Ok(Reserved { tokens: row.get(0)?, cost: row.get(1)? }))?;
    rows.into_iter().try_fold(Reserved::default(), |sum, row| Ok(sum.plus(row?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: &str = "2026-11-26";

    fn spent(input: u64, output: u64, cost: u64) -> Spending {
        Spending { requests: 1, estimated: 0, input, cached: 0, output, cost }
    }

    #[test]
    fn reservations_count_until_they_are_settled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let (mut one, mut other) = (Store::open(&path).unwrap(), Store::open(&path).unwrap());
        let limit = Reserved { tokens: 100, cost: 0 };
        let aside = |store: &mut Store, tokens| store.reserve(DAY, Reserved { tokens, cost: 7 }, limit).unwrap();
        let first = aside(&mut one, 60).unwrap();
        assert_eq!(aside(&mut other, 41), Err(Reserved { tokens: 60, cost: 7 }));
        one.settle(first, DAY, "m", Some(&spent(20, 5, 3))).unwrap();
        let second = aside(&mut other, 75).unwrap();
        assert_eq!(aside(&mut one, 1), Err(Reserved { tokens: 100, cost: 10 }));
        other.settle(second, DAY, "m", None).unwrap();
        assert_eq!(one.spending(DAY).unwrap(), [("m".to_owned(), spent(20, 5, 3))]);
        // Another day starts at zero.
        assert!(one.reserve("2026-11-27", Reserved { tokens: 100, cost: 0 }, limit).unwrap().is_ok());
    }

    #[test]
    fn unsettled_reservations_are_removed_after_their_day() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("store.db")).unwrap();
        let limit = Reserved { tokens: 10, cost: 0 };
        store.reserve(DAY, limit, limit).unwrap().unwrap();
        store.reserve("2026-12-01", limit, limit).unwrap().unwrap();
        let left: u64 = store.connection.query_row("SELECT count(*) FROM reservations", [], |row| row.get(0)).unwrap();
        assert_eq!(left, 1);
    }

    #[test]
    fn costs_saturate_at_the_columns_maximum() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("store.db")).unwrap();
        for _ in 0..3 {
            let limit = Reserved::default();
            let id = store.reserve(DAY, Reserved { tokens: u64::MAX, cost: u64::MAX }, limit).unwrap().unwrap();
            store.settle(id, DAY, "m", Some(&spent(u64::MAX, 0, u64::MAX))).unwrap();
        }
        assert_eq!(store.spending(DAY).unwrap()[0].1.cost, MOST);
        let limit = Reserved { tokens: 0, cost: 1 };
        assert!(store.reserve(DAY, Reserved::default(), limit).unwrap().is_err());
    }
}
