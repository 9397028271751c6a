//! Which candidate next: single turns first, then combinations near the best.

use std::collections::{HashMap, HashSet, VecDeque};

use super::knobs::{Knob, Setting};

/// Share of the search that starts from one of the best, and how many those are.
const ELITE: usize = 4;
/// How often a random neighbour is drawn before the neighbourhood counts as exhausted.
const ATTEMPTS: usize = 200;

/// The proposer of launch options and tile sizes. Deterministic for a seed and an order of results.
pub(super) struct Search<'a> {
    knobs: &'a [Knob],
    proposed: HashSet<Setting>,
    first: VecDeque<Setting>,
    results: HashMap<Setting, f64>,
    random: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(knobs: &'a [Knob], seed: u64) -> Self {
        let start: Setting = knobs.iter().map(|knob| knob.current).collect();
        let mut search = Self {
            knobs,
            proposed: HashSet::from([start.clone()]),
            first: VecDeque::new(),
            results: HashMap::from([(start.clone(), 1.0)]),
            random: seed,
        };
        search.first = search.single_turns(&start);
        search
    }

    /// All settings one step away (two for tile sizes), the nearest first.
    fn single_turns(&self, from: &Setting) -> VecDeque<Setting> {
        let mut turns = Vec::new();
        for distance in [1, -1, 2, -2] {
            for (at, knob) in self.knobs.iter().enumerate() {
                turns.extend(step(knob, from[at], distance).map(|value| with(from, at, value)));
            }
        }
        turns.into()
    }

    /// The next candidate; `None` when the neighbourhood of the best is exhausted.
    pub(super) fn propose(&mut self) -> Option<Setting> {
        while let Some(setting) = self.first.pop_front() {
            if self.proposed.insert(setting.clone()) {
                return Some(setting);
            }
        }
        for _ in 0..ATTEMPTS {
            let setting = self.neighbour();
            if self.proposed.insert(setting.clone()) {
                return Some(setting);
            }
        }
        None
    }

    /// One to three random turns of one of the best settings so far.
    fn neighbour(&mut self) -> Setting {
        let best = self.ranked();
        // The square favours the front of the ranking.
        let draw = self.uniform();
        let at = (draw * draw * best.len().min(ELITE) as f64) as usize;
        let mut setting = best[at].0.clone();
        let turns = match self.uniform() {
            draw if draw < 0.4 => 1,
            draw if draw < 0.8 => 2,
            _ => 3,
        };
        for _ in 0..turns {
            let at = (self.uniform() * self.knobs.len() as f64) as usize;
            let distance = [1, 1, 1, -1, -1, 2, -2][(self.uniform() * 7.0) as usize];
            if let Some(value) = step(&self.knobs[at], setting[at], distance) {
                setting[at] = value;
            }
        }
        setting
    }

    /// Notes the measured speedup of a verified candidate.
    pub(super) fn verified(&mut self, setting: Setting, speedup: f64) {
        self.results.insert(setting, speedup);
    }

    /// Verified settings with their speedup, the original's 1.0 among them, best first.
    pub(super) fn ranked(&self) -> Vec<(Setting, f64)> {
        let mut all: Vec<(Setting, f64)> =
            self.results.iter().map(|(setting, ratio)| (setting.clone(), *ratio)).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all
    }

    /// Uniform in 0..1 (splitmix64).
    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn step(knob: &Knob, from: i64, distance: isize) -> Option<i64> {
    let at = knob.choices.iter().position(|&choice| choice >= from)?;
    knob.choices.get(at.checked_add_signed(distance)?).copied()
}

fn with(setting: &Setting, at: usize, value: i64) -> Setting {
    let mut setting = setting.clone();
    setting[at] = value;
    setting
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Module;
    use crate::syntax::Source;

    fn knobs() -> Vec<Knob> {
        let text = "import triton\nimport triton.language as tl\n@triton.jit\ndef k(B: tl.constexpr, C: tl.constexpr):\n    pass\ndef run():\n    k[(1,)](B=64, C=64, num_warps=4)\n";
        let module = Module::build(&Source::parse(text));
        super::super::knobs::knobs(&module, &module.kernels[0], "run")
    }

    /// Distance of a setting from the one that is best here.
    fn speed(setting: &Setting) -> f64 {
        let off: f64 = setting.iter().zip([256, 128, 8, 4]).map(|(&a, b)| (a as f64 / f64::from(b)).log2().abs()).sum();
        4.0 / (1.0 + off)
    }

    #[test]
    fn finds_the_best_of_a_smooth_landscape_and_never_repeats() {
        let knobs = knobs();
        let mut search = Search::new(&knobs, 3);
        let mut seen = HashSet::new();
        for _ in 0..120 {
            let setting = search.propose().unwrap();
            assert!(seen.insert(setting.clone()));
            let speedup = speed(&setting);
            search.verified(setting, speedup);
        }
        assert_eq!(search.ranked()[0].0, [256, 128, 8, 4]);
    }

    #[test]
    fn equal_seeds_give_equal_searches() {
        let knobs = knobs();
        let run = |seed| {
            let mut search = Search::new(&knobs, seed);
            (0..60)
                .map(|_| {
                    let setting = search.propose().unwrap();
                    search.verified(setting.clone(), speed(&setting));
                    setting
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}
