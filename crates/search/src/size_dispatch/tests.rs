use std::collections::BTreeMap;

use config::SearchSettings;
use model::api::TritonTarget;
use protocol::{ArgumentValue, TensorSpec, Workload};

use super::*;
use crate::journal::CandidateMade;
use crate::search_space::SearchSpace;
use crate::tree::CandidateResult;

/// Candidates with these speedups on each call, on which the original always takes the same time.
fn known(ratios: &[&[f64]]) -> Vec<(CandidateId, CallMeasurements)> {
    let of = |ratios: &&[f64]| ratios.iter().map(|&ratio| (1.0, ratio)).collect();
    ratios.iter().enumerate().map(|(at, ratios)| (at + 1, of(ratios))).collect()
}

fn shown(pairs: &[Pair]) -> Vec<(CandidateId, CandidateId, usize, i64)> {
    pairs.iter().map(|pair| (pair.small, pair.large, pair.size, pair.at)).collect()
}

#[test]
fn thresholds_lie_in_the_middle_at_powers_of_two() {
    let cases = [(256, 65536, 4096), (256, 8192, 1024), (1000, 1001, 1000), (1000, 1024, 1011), (0, 5, 2), (3, 4, 3)];
    for (low, high, at) in cases {
        assert_eq!(between(low, high), at, "{low} {high}");
        assert!(low <= at && at < high);
    }
    let all = thresholds(&[512, 16, 512, 4096]);
    assert_eq!(all, [(64, vec![false, true, false, false]), (1024, vec![true, true, true, false])]);
    assert!(thresholds(&[7, 7]).is_empty());
}

#[test]
fn the_fastest_candidates_of_both_sides_make_a_pair() {
    let sizes: [&[i64]; 2] = [&[9, 9, 9], &[256, 512, 65536]];
    let all = known(&[&[1.0, 1.0, 1.0], &[2.0, 2.0, 0.5], &[0.5, 0.6, 3.0], &[1.2, 1.2, 1.2]]);
    let found = pairs(&all, &[], &[1.0; 3], &sizes);
    assert_eq!(shown(&found)[0], (2, 3, 1, 4096));
    assert!((found[0].speedup - 3.0 / (1.0 / 2.0 + 1.0 / 2.0 + 1.0 / 3.0)).abs() < 1e-12);
    // The original may be one of the two.
    let all = known(&[&[1.0, 1.0, 1.0], &[0.5, 0.6, 3.0]]);
    assert_eq!(shown(&pairs(&all, &[], &[1.0; 3], &sizes))[0], (1, 2, 1, 4096));
    // A candidate that is slower on one call of a side is not taken for that side.
    let all = known(&[&[1.0, 1.0, 1.0], &[4.0, 0.9, 0.9]]);
    assert_eq!(shown(&pairs(&all, &[], &[1.0; 3], &sizes)), [(2, 1, 1, 256)]);
}

#[test]
fn a_pair_needs_a_clear_gain_over_single_candidates() {
    let sizes: [&[i64]; 1] = [&[256, 65536]];
    let count = |ratios: &[&[f64]], choices: &[&[f64]], counts: &[f64]| {
        pairs(&known(ratios), &known(choices), counts, &sizes).len()
    };
    assert_eq!(count(&[&[2.0, 1.99], &[1.99, 2.0]], &[], &[1.0; 2]), 0);
    assert_eq!(count(&[&[2.2, 2.0], &[2.0, 2.2]], &[], &[1.0; 2]), 1);
    assert_eq!(count(&[&[2.2, 2.0], &[2.0, 2.2]], &[&[2.19, 2.19]], &[1.0; 2]), 0, "that is there already");
    assert_eq!(count(&[&[2.2, 2.0], &[2.0, 2.2]], &[], &[1.0, 50.0]), 0, "the first call hardly counts");
    assert_eq!(count(&[&[2.2, 0.5]], &[], &[1.0; 2]), 0, "one is no pair");
}

const TEXT: &str = "import triton
import triton.language as tl
@triton.jit
def k(x, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(x + at, 1.0, mask=at < n)
def run(x):
    n = x.shape[0]
    k[(triton.cdiv(n, 64),)](x, n, B=64)
";

fn call(size: i64) -> Workload {
    let spec = TensorSpec { shape: vec![size], ..TensorSpec::default() };
    Workload { entry: "run".to_owned(), args: vec![ArgumentValue::Tensor(spec)], count: 1, ..Workload::default() }
}

/// Adds a correct candidate with a text of its own.
fn add(search: &mut SearchState<'_>, to: i64, calls: CallMeasurements) {
    let change = Change::Number { name: "B".to_owned(), from: 64, to };
    let (id, text) = (search.tree.len(), TEXT.replace("B=64", &format!("B={to}")));
    let made = CandidateMade {
        id,
        parent: SearchState::FIRST,
        step: StepSize::Small,
        base: SearchState::FIRST,
        kind: "B up".to_owned(),
        changes: vec![change],
        text,
    };
    search.recreate(made).unwrap();
    search
        .finish(id, CandidateResult::Right(calls.iter().map(|(_, ratio)| ratio).fold(f64::INFINITY, |a, b| a.min(*b))));
    search.measured(id, calls, false);
}

#[test]
fn a_choice_between_measured_candidates_is_proposed_once() {
    let (kernels, settings, shared) = (["k".to_owned()], SearchSettings::default(), BTreeMap::new());
    let calls = [call(100), call(5000)];
    let field = |calls| SearchSpace {
        original: TEXT,
        kernels: &kernels,
        calls,
        settings: &settings,
        rewrites: true,
        target: TritonTarget::newest(),
        shared: &shared,
    };
    let mut search = SearchState::new(field(&calls), 1, false).unwrap();
    assert!(search.propose_choice().is_none());
    add(&mut search, 128, vec![(1.0, 2.0), (3.0, 0.5)]);
    add(&mut search, 1024, vec![(1.0, 0.5), (3.0, 2.0)]);
    let PendingCandidate { id, text } = search.propose_choice().unwrap();
    assert_eq!(text, TEXT.replace("B=64", "B=128 if n <= 512 else 1024"));
    assert_eq!(search.candidate(id).describe(), "choice by n (≤ 512: B 128; above: B 1024)");
    assert!((search.candidate(id).distance() - 9.0).abs() < 1e-12);
    let made = search.made_record(id);
    assert_eq!((made.parent, made.base, made.step, made.kind.as_str()), (2, 2, StepSize::Large, CHOICE));
    assert!(search.propose_choice().is_none(), "nothing new was measured");
    add(&mut search, 256, vec![(1.0, 0.9), (3.0, 0.9)]);
    assert!(search.propose_choice().is_none(), "it was tried");
    search.finish(id, CandidateResult::Right(2.0));
    search.measured(id, vec![(1.0, 2.0), (3.0, 2.0)], false);
    assert!(search.propose_choice().is_none());
    add(&mut search, 4096, vec![(1.0, 0.5), (3.0, 4.0)]);
    assert!(search.propose_choice().unwrap().text.contains("B=128 if n <= 512 else 4096"));

    // Calls of equal sizes leave nothing to choose by.
    let calls = [call(100), call(100)];
    let mut search = SearchState::new(field(&calls), 1, false).unwrap();
    add(&mut search, 128, vec![(1.0, 2.0), (3.0, 0.5)]);
    add(&mut search, 1024, vec![(1.0, 0.5), (3.0, 2.0)]);
    assert!(search.propose_choice().is_none());
}
