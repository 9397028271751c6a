//! The budget for language models: what a run and a day may spend.
//!
//! Before a request, the most that it can cost is reserved, in this process for the run and in the user's store for the
//! day. Afterwards its actual cost replaces the reservation. So neither threads nor processes spend the same remainder
//! twice.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use base::clock;
use config::ModelBudget;
use store::{Reserved, Spending, Store};

use super::error::{Amount, Overrun};
use super::{GLANCE, ModelError, Money, ReplyObserver, TokenUsage};

/// The budget of a run and of its day. Several models may share it.
#[derive(Debug)]
pub struct Account {
    run_limit: Reserved,
    day_limit: Reserved,
    run: Mutex<Run>,
    settled: Condvar,
    store: Mutex<Store>,
}

#[derive(Debug, Default)]
struct Run {
    /// Per model, by its name.
    spent: BTreeMap<String, RunSpending>,
    aside: Reserved,
    /// The number of requests with an open reservation.
    flying: usize,
}

/// What a run has spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunSpending {
    /// The number of requests that were, or may have been, answered.
    pub requests: u64,
    /// The tokens of these requests.
    pub usage: TokenUsage,
    /// The cost of these requests.
    pub cost: Money,
}

impl AddAssign for RunSpending {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.usage += other.usage;
        self.cost += other.cost;
    }
}

impl Run {
    fn total(&self) -> RunSpending {
        self.spent.values().fold(RunSpending::default(), |mut sum, spent| {
            sum += *spent;
            sum
        })
    }

    fn reserved(&self) -> Reserved {
        let total = self.total();
        Reserved { tokens: total.usage.tokens(), cost: total.cost.parts() }
    }
}

impl Account {
    /// Opens the account of a run. The user's store is in `folder`.
    ///
    /// # Errors
    /// Returns an error when the store cannot be opened: a budget that cannot be recorded would not be a limit.
    pub fn open(budget: &ModelBudget, folder: &Path) -> Result<Self, ModelError> {
        // A positive amount is rounded up to at least one part, because 0 means no limit.
        let parts = |dollars: f64| Money::dollars(dollars).parts().max(u64::from(dollars > 0.0));
        let limit = |tokens, dollars| Reserved { tokens, cost: parts(dollars) };
        Ok(Self {
            run_limit: limit(budget.run_tokens, budget.run_dollars),
            day_limit: limit(budget.day_tokens, budget.day_dollars),
            run: Mutex::default(),
            settled: Condvar::new(),
            store: Mutex::new(Store::of_user(folder)?),
        })
    }

    /// What the run has spent so far, over all models.
    #[must_use]
    pub fn spent(&self) -> RunSpending {
        self.run().total()
    }

    /// What the run has spent so far, by model.
    #[must_use]
    pub fn spent_on(&self) -> BTreeMap<String, RunSpending> {
        self.run().spent.clone()
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves the most that a request can cost. Waits for open requests if it would fit once they cost less than
    /// reserved.
    pub(super) fn reserve<'a>(
        &'a self,
        model: &'a str,
        most: Reserved,
        watcher: &dyn ReplyObserver,
    ) -> Result<Reservation<'a>, ModelError> {
        loop {
            if watcher.cancelled() {
                return Err(ModelError::Cancelled);
            }
            let overrun = match self.try_set_aside(model, most)? {
                Ok(reservation) => return Ok(reservation),
                Err(overrun) => overrun,
            };
            let run = self.run();
            let is_hopeless = !run.reserved().plus(most).is_within(self.run_limit);
            if run.flying == 0 || is_hopeless {
                return Err(ModelError::Budget(overrun));
            }
            drop(self.settled.wait_timeout(run, GLANCE));
        }
    }

    fn try_set_aside<'a>(
        &'a self,
        model: &'a str,
        most: Reserved,
    ) -> Result<Result<Reservation<'a>, Overrun>, ModelError> {
        let mut run = self.run();
        let taken = run.reserved().plus(run.aside);
        if !taken.plus(most).is_within(self.run_limit) {
            return Ok(Err(overrun(["run-tokens", "run-dollars"], self.run_limit, taken, most)));
        }
        // The lock is held until the store has answered, so that a thread that finds no open request can rely on it.
        let day = clock::day(clock::now().as_secs());
        match self.store().reserve(&day, most, self.day_limit)? {
            Ok(id) => {
                run.aside = run.aside.plus(most);
                run.flying += 1;
                Ok(Ok(Reservation { account: self, model, most, id, day, is_open: true }))
            }
            Err(taken) => Ok(Err(overrun(["day-tokens", "day-dollars"], self.day_limit, taken, most))),
        }
    }
}

/// Which of two limits, for tokens and for money, is exceeded.
fn overrun([tokens, dollars]: [&'static str; 2], limit: Reserved, taken: Reserved, most: Reserved) -> Overrun {
    let is_tokens = limit.tokens != 0 && taken.tokens.saturating_add(most.tokens) > limit.tokens;
    let amount = |of: Reserved| match is_tokens {
        true => Amount::Tokens(of.tokens),
        false => Amount::Money(Money::from_parts(of.cost)),
    };
    let setting = if is_tokens { tokens } else { dollars };
    Overrun { setting, limit: amount(limit), spent: amount(taken), needed: amount(most) }
}

/// The amount reserved for a request. If it is dropped without being closed, as in a panic, all of it counts as spent.
#[derive(Debug)]
pub(super) struct Reservation<'a> {
    account: &'a Account,
    model: &'a str,
    most: Reserved,
    id: i64,
    day: String,
    is_open: bool,
}

impl Reservation<'_> {
    /// Closes the reservation with the actual cost.
    pub(super) fn settle(mut self, usage: TokenUsage, cost: Money) {
        self.close(Some((usage, cost)));
    }

    /// Closes the reservation of a request that cost nothing.
    pub(super) fn release(mut self) {
        self.close(None);
    }

    /// If the store cannot be written, the full amount stays reserved there, which is the safe side.
    fn close(&mut self, spent: Option<(TokenUsage, Money)>) {
        self.is_open = false;
        let row = spent.map(|(usage, cost)| Spending {
            requests: 1,
            estimated: u64::from(usage.estimated),
            input: usage.input,
            cached: usage.cached,
            output: usage.output,
            cost: cost.parts(),
        });
        let mut run = self.account.run();
        run.aside = run.aside.minus(self.most);
        run.flying -= 1;
        if let Some((usage, cost)) = spent {
            *run.spent.entry(self.model.to_owned()).or_default() += RunSpending { requests: 1, usage, cost };
        }
        let settled = self.account.store().settle(self.id, &self.day, self.model, row.as_ref());
        drop(run);
        self.account.settled.notify_all();
        if let Err(error) = settled {
            tracing::warn!(%error, "the cost of a model request cannot be stored");
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let usage = TokenUsage { input: self.most.tokens, estimated: true, ..TokenUsage::default() };
            self.close(Some((usage, Money::from_parts(self.most.cost))));
        }
    }
}
