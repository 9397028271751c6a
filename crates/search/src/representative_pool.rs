//! The pool of base candidates for a large step: the best of each structure on the path to the root, and some
//! others.

use base::rng::Rng;
use config::SearchSettings;
use transform::StepSize;

use super::tree::{CandidateId, Tree};

/// The pool for a large step from a node, the fastest first. For each large step on the path to the root it has the
/// fastest candidate that small steps made from it; a few more come from elsewhere, the faster ones with higher
/// probability.
pub(super) fn pool(tree: &Tree, from: CandidateId, settings: &SearchSettings, chance: &mut Rng) -> Vec<CandidateId> {
    let all = tree.best_of_components();
    let path = tree.path(from);
    let is_on_path =
        |component: &CandidateId| path.contains(component) && tree.node(*component).step == StepSize::Large;
    let (mut taken, mut others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(component, ..)| is_on_path(component));
    while taken.len() > settings.pool {
        taken.remove(chance.below(taken.len() as u64) as usize);
    }
    let room = settings.pool - taken.len();
    for _ in 0..extra(settings, room.min(others.len()), chance) {
        let weights: Vec<f64> = others.iter().map(|(_, _, speedup)| (speedup / settings.temperature).exp()).collect();
        taken.push(others.remove(chance.weighted(&weights)));
    }
    taken.sort_by(|one, other| other.2.total_cmp(&one.2).then(one.1.cmp(&other.1)));
    taken.into_iter().map(|(_, id, _)| id).collect()
}

/// How many candidates come from elsewhere: drawn from a truncated geometric distribution.
fn extra(settings: &SearchSettings, room: usize, chance: &mut Rng) -> usize {
    let weights = (0..=settings.pool_extra.min(room)).map(|count| (1.0 - settings.pool_stop).powi(count as i32));
    chance.weighted(&weights.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::tree::{CandidateResult, ROOT};
    use super::*;

    fn add(tree: &mut Tree, parent: CandidateId, step: StepSize, speedup: f64) -> CandidateId {
        let id = tree.begin(parent, step);
        tree.finish(id, if speedup > 0.0 { CandidateResult::Right(speedup) } else { CandidateResult::Wrong });
        id
    }

    #[test]
    fn each_structure_on_the_branch_is_represented_by_its_fastest() {
        let settings = SearchSettings { pool_extra: 0, ..SearchSettings::default() };
        let mut tree = Tree::new(&settings);
        let first = add(&mut tree, ROOT, StepSize::Large, 1.0);
        let faster = add(&mut tree, first, StepSize::Small, 1.5);
        let wrong = add(&mut tree, first, StepSize::Small, 0.0);
        let second = add(&mut tree, wrong, StepSize::Large, 1.2);
        let nothing = add(&mut tree, second, StepSize::Large, 0.0);
        add(&mut tree, ROOT, StepSize::Large, 9.0);
        let pool = |from| pool(&tree, from, &settings, &mut Rng::new(1));
        assert_eq!(pool(nothing), [faster, second], "not what is elsewhere, nor what is wrong");
        assert_eq!(pool(wrong), [faster]);
        assert_eq!(pool(ROOT), Vec::<CandidateId>::new());
    }

    #[test]
    fn the_pool_has_a_size_limit_and_draws_others_by_speed() {
        let settings = SearchSettings { pool: 3, ..SearchSettings::default() };
        let mut tree = Tree::new(&settings);
        let mut at = ROOT;
        for speedup in [1.0, 1.1, 1.2, 1.3, 1.4] {
            at = add(&mut tree, at, StepSize::Large, speedup);
        }
        let slow = add(&mut tree, ROOT, StepSize::Large, 1.0);
        let fast = add(&mut tree, ROOT, StepSize::Large, 4.0);
        let mut chance = Rng::new(5);
        let (mut seen, mut counts) = (std::collections::BTreeSet::new(), [0_i32; 4]);
        let mut times = [0, 0];
        for _ in 0..2000 {
            let one = pool(&tree, at, &settings, &mut chance);
            assert!(one.len() == 3 && !one.contains(&fast));
            seen.insert(one);
            let other = pool(&tree, ROOT, &settings, &mut chance);
            counts[other.len()] += 1;
            times[0] += usize::from(other.contains(&fast));
            times[1] += usize::from(other.contains(&slow));
        }
        assert_eq!(seen.len(), 10, "three of five");
        // The expected ratios are 1 : 0.4 : 0.16 : 0.064, which sum to 1.624.
        for (count, expected) in counts.iter().zip([1232_i32, 493, 197, 79]) {
            assert!(count.abs_diff(expected) < 80, "{counts:?}");
        }
        assert!(times[0] > 3 * times[1] / 2, "{times:?}");
    }
}
