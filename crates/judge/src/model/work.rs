//! The work of a program: its memory traffic, its operations and its waits.

use std::collections::HashMap;

use super::simulation::AccessSectors;

/// Bytes, operations and waits of one program, or of several together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Work {
    /// Loaded bytes, by the index of the pointer parameter.
    pub(super) loaded: HashMap<usize, f64>,
    /// The part of these bytes that the program had loaded before.
    pub(super) again: HashMap<usize, f64>,
    /// Stored bytes, by the index of the pointer parameter.
    pub(super) stored: HashMap<usize, f64>,
    /// How often the program waits for memory: loads that do not depend on each other count as one wait.
    pub(super) rounds: f64,
    /// Instructions of single lanes.
    pub(super) simple: f64,
    /// Instructions of the special function lanes, of which there are few.
    pub(super) special: f64,
    /// Floating-point operations, except those of matrix products.
    pub(super) floats: f64,
    /// Reductions and scans, for which warps wait for each other.
    pub(super) exchanges: f64,
    /// Multiply-adds of matrix products, by the bits of their factors; 0 bits mean fp32 without tensor cores.
    pub(super) multiplied: HashMap<u32, f64>,
    /// The shorter side of the largest matrix product.
    pub(super) rows_of_product: f64,
    is_waiting: bool,
    /// The first and the last loaded address, by the index of the pointer parameter.
    reach: HashMap<usize, (i64, i64)>,
}

impl Work {
    pub(super) fn load(&mut self, touched: &AccessSectors) {
        put(&mut self.loaded, &touched.bytes, 1.0);
        for (of, &(low, high)) in &touched.reach {
            let reach = self.reach.entry(*of).or_insert((low, high));
            *reach = (reach.0.min(low), reach.1.max(high));
        }
        if !std::mem::replace(&mut self.is_waiting, true) {
            self.rounds += 1.0;
        }
    }

    pub(super) fn store(&mut self, touched: &AccessSectors, times: f64) {
        put(&mut self.stored, &touched.bytes, times);
    }

    pub(super) fn multiply(&mut self, count: f64, bits: u32, is_exact: bool) {
        *self.multiplied.entry(if is_exact { 0 } else { bits }).or_default() += count;
    }

    /// Starts a new wait: the following loads depend on the earlier ones.
    pub(super) fn new_round(&mut self) {
        self.is_waiting = false;
    }

    /// The work that was added since `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        let mut out = self.clone();
        out.add(before, -1.0);
        out
    }

    /// Whether the work equals another one within a hundredth.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let sum = |of: &HashMap<usize, f64>| of.values().sum::<f64>();
        let all = |work: &Self| {
            [sum(&work.loaded), sum(&work.stored), work.multiplied.values().sum(), work.simple, work.special]
        };
        all(self).iter().zip(all(other)).all(|(one, other)| (one - other).abs() <= 0.01 * one.abs().max(other.abs()))
    }

    /// Ends the count of a program: bytes loaded beyond its address range were loaded repeatedly.
    pub(super) fn close(&mut self) {
        for (of, bytes) in &self.loaded {
            if let Some((low, high)) = self.reach.get(of) {
                self.again.insert(*of, (bytes - (high - low) as f64).max(0.0));
            }
        }
    }

    /// Adds `times` times another work.
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
