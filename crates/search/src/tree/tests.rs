use super::*;

fn tree() -> Tree {
    Tree::new(&SearchSettings::default())
}

fn add(tree: &mut Tree, parent: Id, step: Step, fate: Fate) -> Id {
    let id = tree.begin(parent, step);
    tree.finish(id, fate);
    id
}

#[test]
fn rewards_are_those_of_the_paper() {
    let reward = |fate| reward(fate, &SearchSettings::default());
    assert_eq!((reward(Fate::Uncompiled), reward(Fate::Wrong)), (0.0, 0.05));
    assert_eq!((reward(Fate::Right(0.01)), reward(Fate::Right(0.1))), (0.4, 0.4));
    assert!((reward(Fate::Right(10.0)) - 1.6).abs() < 1e-12 && (reward(Fate::Right(50.0)) - 1.6).abs() < 1e-12);
    assert!((reward(Fate::Right(1.0)) - (0.4 + 1.2 * 0.9 / 9.9)).abs() < 1e-12);
}

#[test]
fn the_root_begins_anew_and_others_take_small_steps_until_they_are_spent() {
    let (mut tree, mut chance) = (tree(), Chance::new(1));
    assert_eq!(tree.select(By::Skills, &mut chance), Some((ROOT, Step::Large)));
    let first = add(&mut tree, ROOT, Step::Large, Fate::Right(1.0));
    let large = (0..1000).filter(|_| tree.step(first, By::Skills, &mut chance) == Some(Step::Large)).count();
    assert!((150..250).contains(&large), "a fifth: {large}");
    for _ in 0..2 {
        assert!(tree.is_open(first, Step::Small, By::Skills));
        tree.begin(first, Step::Small);
    }
    assert!(!tree.is_open(first, Step::Small, By::Skills), "pending ones count");
    assert_eq!(tree.step(first, By::Skills, &mut chance), Some(Step::Large));
}

#[test]
fn the_selected_node_is_the_first_that_is_better_expanded_than_its_best_child() {
    let (mut tree, mut chance) = (tree(), Chance::new(1));
    let good = add(&mut tree, ROOT, Step::Large, Fate::Right(8.0));
    let wrong = add(&mut tree, ROOT, Step::Large, Fate::Wrong);
    // Expanding the root: 1.36 + 0.3 sqrt(ln 2 / 4); the better child: 1.36 + 0.3 sqrt(ln 2 / 1).
    let (score, child) = tree.best_child(ROOT, By::Skills).unwrap();
    let value = 0.4 + 1.2 * 7.9 / 9.9;
    assert_eq!(child, good);
    assert!((score - (value + 0.3 * 2.0_f64.ln().sqrt())).abs() < 1e-12);
    assert!((tree.expansion(ROOT, By::Skills).unwrap() - (value + 0.3 * (2.0_f64.ln() / 4.0).sqrt())).abs() < 1e-12);
    assert_eq!(tree.select(By::Skills, &mut chance).unwrap().0, good, "which has no child: it is expanded");
    // Its children are worse and lower its mean, so another beginning is worth more once the other node is spent.
    for _ in 0..6 {
        add(&mut tree, good, Step::Small, Fate::Wrong);
    }
    assert_eq!(tree.select(By::Skills, &mut chance).unwrap().0, wrong, "it was seldom visited");
    tree.spend(wrong, Step::Small);
    tree.spend(wrong, Step::Large);
    assert_eq!(tree.select(By::Skills, &mut chance), Some((ROOT, Step::Large)));
}

#[test]
fn who_chooses_beside_others_chooses_elsewhere() {
    let (mut tree, mut chance) = (tree(), Chance::new(4));
    let nodes: Vec<Id> = (0..4).map(|_| add(&mut tree, ROOT, Step::Large, Fate::Right(1.0))).collect();
    tree.spend(ROOT, Step::Large);
    let mut chosen = Vec::new();
    for _ in 0..4 {
        let (at, step) = tree.select(By::Skills, &mut chance).unwrap();
        chosen.push(at);
        tree.begin(at, step);
    }
    chosen.sort_unstable();
    assert_eq!(chosen, nodes, "each once, though nothing has come of any of them");
}

#[test]
fn what_is_being_judged_is_gone_on_from_once_and_what_was_made_of_it_falls_with_it() {
    let mut tree = tree();
    let (first, other) = (tree.begin(ROOT, Step::Large), tree.begin(ROOT, Step::Large));
    assert_eq!(tree.open_ahead(), [first, other]);
    let small = [tree.begin(first, Step::Small), tree.begin(first, Step::Small)];
    assert_eq!(tree.open_ahead(), [other], "two small steps each, and none of what was made so");
    tree.finish(small[0], Fate::Right(2.0));
    tree.finish(first, Fate::Wrong);
    assert_eq!((tree.lost(first), tree.lost(small[0])), (vec![small[1]], vec![]));
    assert_eq!(tree.open_ahead(), [other, small[1]], "its parent is known by now");
    tree.forget(small[1]);
    assert!(tree.lost(first).is_empty());
    // A candidate that could not be judged tells nothing about itself or its children.
    let right = tree.begin(other, Step::Small);
    tree.finish(right, Fate::Right(2.0));
    let open = tree.begin(other, Step::Small);
    assert!(tree.lost(other).is_empty());
    tree.forget(other);
    assert_eq!((tree.node(right).parent, tree.component(right)), (ROOT, right));
    tree.finish(open, Fate::Right(3.0));
    assert_eq!(tree.node(ROOT).children, [first, right, open]);
    assert_eq!((tree.node(ROOT).pending, tree.open_ahead()), (0, vec![]));
}

#[test]
fn what_is_forgotten_leaves_nothing_and_what_is_spent_is_left() {
    let (mut tree, mut chance) = (tree(), Chance::new(1));
    let first = add(&mut tree, ROOT, Step::Large, Fate::Right(1.0));
    let before = tree.value(ROOT);
    let id = tree.begin(first, Step::Small);
    assert!(tree.value(ROOT) < before, "it may bring nothing");
    tree.forget(id);
    assert!((tree.value(ROOT) - before).abs() < 1e-12 && tree.node(first).children.is_empty());
    for (at, step) in [(ROOT, Step::Large), (first, Step::Small), (first, Step::Large)] {
        assert!(tree.select(By::Skills, &mut chance).is_some());
        tree.spend(at, step);
    }
    assert_eq!(tree.select(By::Skills, &mut chance), None);
    // A node that is spent may have children that can be expanded.
    let child = tree.begin(first, Step::Small);
    assert_eq!(tree.select(By::Skills, &mut chance), None, "nobody goes on from what is still judged");
    tree.finish(child, Fate::Right(2.0));
    assert_eq!(tree.select(By::Skills, &mut chance).unwrap().0, child);
}

#[test]
fn models_are_never_out_of_ideas_and_the_place_that_they_think_of_is_taken() {
    let (mut tree, mut chance) = (tree(), Chance::new(1));
    let first = add(&mut tree, ROOT, Step::Large, Fate::Right(1.0));
    for (at, step) in [(ROOT, Step::Large), (first, Step::Small), (first, Step::Large)] {
        tree.spend(at, step);
    }
    assert_eq!(tree.select(By::Skills, &mut chance), None);
    assert!(tree.select(By::Model, &mut chance).is_some());
    let before = tree.value(first);
    tree.ask(first, Step::Small);
    tree.ask(first, Step::Small);
    assert!(tree.value(first) < before, "it may bring nothing");
    assert!(!tree.is_open(first, Step::Small, By::Model), "two small steps are asked for");
    assert!(tree.is_open(first, Step::Large, By::Model));
    tree.answered(first, Step::Small);
    tree.answered(first, Step::Small);
    assert!((tree.value(first) - before).abs() < 1e-12 && tree.is_open(first, Step::Small, By::Model));
    let screened = add(&mut tree, first, Step::Small, Fate::Uncompiled);
    assert!(tree.is_alive(screened, By::Model));
    tree.close(screened);
    assert!(!tree.is_alive(screened, By::Model), "nobody builds upon what was screened out");
}

#[test]
fn a_branch_begins_with_the_last_large_step() {
    let mut tree = tree();
    let first = add(&mut tree, ROOT, Step::Large, Fate::Right(1.0));
    let small = add(&mut tree, first, Step::Small, Fate::Right(1.1));
    let large = add(&mut tree, small, Step::Large, Fate::Wrong);
    let mut at = large;
    let steps: Vec<Id> = (0..6)
        .map(|_| {
            at = add(&mut tree, at, Step::Small, Fate::Right(1.2));
            at
        })
        .collect();
    assert_eq!(tree.branch(small), [first, small]);
    assert_eq!(tree.branch(large), [large]);
    assert_eq!(tree.branch(steps[1]), [large, steps[0], steps[1]]);
    assert_eq!(tree.branch(steps[5]), steps[1..], "five at the most");
    assert_eq!((tree.component(small), tree.component(steps[5])), (first, large));
}
