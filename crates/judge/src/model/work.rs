//! How much a program does.

use std::collections::HashMap;

use super::run::Touched;

/// Bytes, operations and waits of one program, or of several together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Work {
    /// Bytes that are loaded, by the number of the parameter that leads there.
    pub(super) loaded: HashMap<usize, f64>,
    /// Of these, the bytes that the program has loaded before.
    pub(super) again: HashMap<usize, f64>,
    /// Bytes that are stored.
    pub(super) stored: HashMap<usize, f64>,
    /// Times that it waits for the memory: loads that do not wait for each other count as one.
    pub(super) rounds: f64,
    /// Instructions of single lanes.
    pub(super) simple: f64,
    /// Those for functions, of which there are few units.
    pub(super) special: f64,
    /// Operations on floats, but for products.
    pub(super) floats: f64,
    /// Reductions and scans, for which warps wait for each other.
    pub(super) exchanges: f64,
    /// Multiplications of products, by the bits of their factors; 0 where these are taken as they are, in fp32.
    pub(super) multiplied: HashMap<u32, f64>,
    /// The shorter side of the largest product.
    pub(super) rows_of_product: f64,
    is_waiting: bool,
    /// The first and the last address that was loaded from, by the number of the parameter.
    reach: HashMap<usize, (i64, i64)>,
}

impl Work {
    pub(super) fn load(&mut self, touched: &Touched) {
        put(&mut self.loaded, &touched.bytes, 1.0);
        for (of, &(low, high)) in &touched.reach {
            let reach = self.reach.entry(*of).or_insert((low, high));
            *reach = (reach.0.min(low), reach.1.max(high));
        }
        if !std::mem::replace(&mut self.is_waiting, true) {
            self.rounds += 1.0;
        }
    }

    pub(super) fn store(&mut self, touched: &Touched, times: f64) {
        put(&mut self.stored, &touched.bytes, times);
    }

    pub(super) fn multiply(&mut self, count: f64, bits: u32, is_exact: bool) {
        *self.multiplied.entry(if is_exact { 0 } else { bits }).or_default() += count;
    }

    /// What is loaded from now on waits for what was loaded before.
    pub(super) fn new_round(&mut self) {
        self.is_waiting = false;
    }

    /// What was done since.
    pub(super) fn since(&self, before: &Self) -> Self {
        let mut out = self.clone();
        out.add(before, -1.0);
        out
    }

    /// Whether it does about as much as another, within a hundredth.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let sum = |of: &HashMap<usize, f64>| of.values().sum::<f64>();
        let all = |work: &Self| {
            [sum(&work.loaded), sum(&work.stored), work.multiplied.values().sum(), work.simple, work.special]
        };
        all(self).iter().zip(all(other)).all(|(one, other)| (one - other).abs() <= 0.01 * one.abs().max(other.abs()))
    }

    /// Closes the account of a program: what it has loaded beyond what it reaches, it has loaded again.
    pub(super) fn close(&mut self) {
        for (of, bytes) in &self.loaded {
            if let Some((low, high)) = self.reach.get(of) {
                self.again.insert(*of, (bytes - (high - low) as f64).max(0.0));
            }
        }
    }

    /// So many times what another does.
    pub(super) fn add(&mut self, other: &Self, times: f64) {
        put(&mut self.loaded, &other.loaded, times);
        put(&mut self.again, &other.again, times);
        put(&mut self.stored, &other.stored, times);
        put(&mut self.multiplied, &other.multiplied, times);
        self.rounds += other.rounds * times;
        self.simple += other.simple * times;
        self.special += other.special * times;
        self.floats += other.floats * times;
        self.exchanges += other.exchanges * times;
        self.rows_of_product = self.rows_of_product.max(other.rows_of_product);
    }
}

fn put<K: Copy + Eq + std::hash::Hash>(all: &mut HashMap<K, f64>, more: &HashMap<K, f64>, times: f64) {
    more.iter().for_each(|(&of, count)| *all.entry(of).or_default() += count * times);
}
