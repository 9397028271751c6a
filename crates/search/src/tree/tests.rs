use super::*;

fn tree() -> Tree {
    Tree::new(&SearchSettings::default())
}

fn add(tree: &mut Tree, parent: CandidateId, step: StepSize, fate: CandidateResult) -> CandidateId {
    let id = tree.begin(parent, step);
    tree.finish(id, fate);
    id
}

#[test]
fn rewards_are_those_of_the_paper() {
    let reward = |fate| reward(fate, &SearchSettings::default());
    assert_eq!((reward(CandidateResult::Uncompiled), reward(CandidateResult::Wrong)), (0.0, 0.05));
    assert_eq!((reward(CandidateResult::Right(0.01)), reward(CandidateResult::Right(0.1))), (0.4, 0.4));
    assert!(
        (reward(CandidateResult::Right(10.0)) - 1.6).abs() < 1e-12
            && (reward(CandidateResult::Right(50.0)) - 1.6).abs() < 1e-12
    );
    assert!((reward(CandidateResult::Right(1.0)) - (0.4 + 1.2 * 0.9 / 9.9)).abs() < 1e-12);
}

#[test]
fn the_root_takes_large_steps_and_other_nodes_small_ones_until_spent() {
    let (mut tree, mut chance) = (tree(), Rng::new(1));
    assert_eq!(tree.select(Proposer::Skills, &mut chance), Some((ROOT, StepSize::Large)));
    let first = add(&mut tree, ROOT, StepSize::Large, CandidateResult::Right(1.0));
    let large = (0..1000).filter(|_| tree.step(first, Proposer::Skills, &mut chance) == Some(StepSize::Large)).count();
    assert!((150..250).contains(&large), "a fifth: {large}");
    for _ in 0..2 {
        assert!(tree.is_open(first, StepSize::Small, Proposer::Skills));
        tree.begin(first, StepSize::Small);
    }
    assert!(!tree.is_open(first, StepSize::Small, Proposer::Skills), "pending ones count");
    assert_eq!(tree.step(first, Proposer::Skills, &mut chance), Some(StepSize::Large));
}

#[test]
fn selection_stops_where_expanding_scores_above_the_best_child() {
    let (mut tree, mut chance) = (tree(), Rng::new(1));
    let good = add(&mut tree, ROOT, StepSize::Large, CandidateResult::Right(8.0));
    let wrong = add(&mut tree, ROOT, StepSize::Large, CandidateResult::Wrong);
    // Expanding the root: 1.36 + 0.3 sqrt(ln 2 / 4); the better child: 1.36 + 0.3 sqrt(ln 2 / 1).
    let (score, child) = tree.best_child(ROOT, Proposer::Skills).unwrap();
    let value = 0.4 + 1.2 * 7.9 / 9.9;
    assert_eq!(child, good);
    assert!((score - (value + 0.3 * 2.0_f64.ln().sqrt())).abs() < 1e-12);
    assert!(
        (tree.expansion(ROOT, Proposer::Skills).unwrap() - (value + 0.3 * (2.0_f64.ln() / 4.0).sqrt())).abs() < 1e-12
    );
    assert_eq!(tree.select(Proposer::Skills, &mut chance).unwrap().0, good, "which has no child: it is expanded");
    // Its children are worse and lower its mean, so another beginning is better once the other node is spent.
    for _ in 0..6 {
        add(&mut tree, good, StepSize::Small, CandidateResult::Wrong);
    }
    assert_eq!(tree.select(Proposer::Skills, &mut chance).unwrap().0, wrong, "it was seldom visited");
    tree.spend(wrong, StepSize::Small);
    tree.spend(wrong, StepSize::Large);
    assert_eq!(tree.select(Proposer::Skills, &mut chance), Some((ROOT, StepSize::Large)));
}

#[test]
fn parallel_selections_spread_over_the_tree() {
    let (mut tree, mut chance) = (tree(), Rng::new(4));
    let nodes: Vec<CandidateId> =
        (0..4).map(|_| add(&mut tree, ROOT, StepSize::Large, CandidateResult::Right(1.0))).collect();
    tree.spend(ROOT, StepSize::Large);
    let mut chosen = Vec::new();
    for _ in 0..4 {
        let (at, step) = tree.select(Proposer::Skills, &mut chance).unwrap();
        chosen.push(at);
        tree.begin(at, step);
    }
    chosen.sort_unstable();
    assert_eq!(chosen, nodes, "each once, though nothing has come of any of them");
}

#[test]
fn pending_nodes_allow_few_steps_and_take_their_descendants_along() {
    let mut tree = tree();
    let (first, other) = (tree.begin(ROOT, StepSize::Large), tree.begin(ROOT, StepSize::Large));
    assert_eq!(tree.open_ahead(), [first, other]);
    let small = [tree.begin(first, StepSize::Small), tree.begin(first, StepSize::Small)];
    assert_eq!(tree.open_ahead(), [other], "two small steps each, and none of what was made so");
    tree.finish(small[0], CandidateResult::Right(2.0));
    tree.finish(first, CandidateResult::Wrong);
    assert_eq!((tree.pending_descendants(first), tree.pending_descendants(small[0])), (vec![small[1]], vec![]));
    assert_eq!(tree.open_ahead(), [other, small[1]], "its parent is known by now");
    tree.forget(small[1]);
    assert!(tree.pending_descendants(first).is_empty());
    // A candidate that could not be judged gives no information about itself or its children.
    let right = tree.begin(other, StepSize::Small);
    tree.finish(right, CandidateResult::Right(2.0));
    let open = tree.begin(other, StepSize::Small);
    assert!(tree.pending_descendants(other).is_empty());
    tree.forget(other);
    assert_eq!((tree.node(right).parent, tree.component(right)), (ROOT, right));
    tree.finish(open, CandidateResult::Right(3.0));
    assert_eq!(tree.node(ROOT).children, [first, right, open]);
    assert_eq!((tree.node(ROOT).pending, tree.open_ahead()), (0, vec![]));
}

#[test]
fn forgotten_nodes_leave_no_trace_and_spent_ones_are_skipped() {
    let (mut tree, mut chance) = (tree(), Rng::new(1));
    let first = add(&mut tree, ROOT, StepSize::Large, CandidateResult::Right(1.0));
    let before = tree.value(ROOT);
    let id = tree.begin(first, StepSize::Small);
    assert!(tree.value(ROOT) < before, "it may bring nothing");
    tree.forget(id);
    assert!((tree.value(ROOT) - before).abs() < 1e-12 && tree.node(first).children.is_empty());
    for (at, step) in [(ROOT, StepSize::Large), (first, StepSize::Small), (first, StepSize::Large)] {
        assert!(tree.select(Proposer::Skills, &mut chance).is_some());
        tree.spend(at, step);
    }
    assert_eq!(tree.select(Proposer::Skills, &mut chance), None);
    // A node that is spent may have children that can be expanded.
    let child = tree.begin(first, StepSize::Small);
    assert_eq!(tree.select(Proposer::Skills, &mut chance), None, "nobody goes on from what is still judged");
    tree.finish(child, CandidateResult::Right(2.0));
    assert_eq!(tree.select(Proposer::Skills, &mut chance).unwrap().0, child);
}

#[test]
fn models_may_step_from_spent_nodes_and_their_requests_are_pending() {
    let (mut tree, mut chance) = (tree(), Rng::new(1));
    let first = add(&mut tree, ROOT, StepSize::Large, CandidateResult::Right(1.0));
    for (at, step) in [(ROOT, StepSize::Large), (first, StepSize::Small), (first, StepSize::Large)] {
        tree.spend(at, step);
    }
    assert_eq!(tree.select(Proposer::Skills, &mut chance), None);
    assert!(tree.select(Proposer::Model, &mut chance).is_some());
    let before = tree.value(first);
    tree.ask(first, StepSize::Small);
    tree.ask(first, StepSize::Small);
    assert!(tree.value(first) < before, "it may bring nothing");
    assert!(!tree.is_open(first, StepSize::Small, Proposer::Model), "two small steps are asked for");
    assert!(tree.is_open(first, StepSize::Large, Proposer::Model));
    tree.finish_model_step(first, StepSize::Small);
    tree.finish_model_step(first, StepSize::Small);
    assert!((tree.value(first) - before).abs() < 1e-12 && tree.is_open(first, StepSize::Small, Proposer::Model));
    let screened = add(&mut tree, first, StepSize::Small, CandidateResult::Uncompiled);
    assert!(tree.is_alive(screened, Proposer::Model));
    tree.close(screened);
    assert!(!tree.is_alive(screened, Proposer::Model), "nobody builds upon what was screened out");
}

#[test]
fn a_branch_begins_with_the_last_large_step() {
    let mut tree = tree();
    let first = add(&mut tree, ROOT, StepSize::Large, CandidateResult::Right(1.0));
    let small = add(&mut tree, first, StepSize::Small, CandidateResult::Right(1.1));
    let large = add(&mut tree, small, StepSize::Large, CandidateResult::Wrong);
    let mut at = large;
    let steps: Vec<CandidateId> = (0..6)
        .map(|_| {
            at = add(&mut tree, at, StepSize::Small, CandidateResult::Right(1.2));
            at
        })
        .collect();
    assert_eq!(tree.branch(small), [first, small]);
    assert_eq!(tree.branch(large), [large]);
    assert_eq!(tree.branch(steps[1]), [large, steps[0], steps[1]]);
    assert_eq!(tree.branch(steps[5]), steps[1..], "five at the most");
    assert_eq!((tree.component(small), tree.component(steps[5])), (first, large));
}
