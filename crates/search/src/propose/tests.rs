use std::collections::VecDeque;

use transform::launch_params::knobs;

use config::SearchSettings;
use model::api::TritonTarget;
use protocol::Workload;

use super::*;

const TEXT: &str = "import triton\nimport triton.language as tl\n@triton.jit\ndef k(B: tl.constexpr, C: tl.constexpr):\n    for i in range(B):\n        pass\ndef run():\n    k[(1,)](B=64, C=64, num_warps=4)\n";

/// A kernel in which each program handles one row as a single tile, and which may be structured in many ways.
const ROWS: &str = "import torch\nimport triton\nimport triton.language as tl\n@triton.jit\n\
    def k(x_ptr, y_ptr, n, B: tl.constexpr = 64):\n    row = tl.program_id(0)\n    cols = tl.arange(0, B)\n\
    \x20   x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)\n\
    \x20   tl.store(y_ptr + row * n + cols, tl.exp(x), mask=cols < n)\n\
    def run(x):\n    y = torch.empty_like(x)\n    k[(x.shape[0],)](x, y, x.shape[1])\n    return y\n";

/// The parts of a search's problem that it borrows.
struct Setting {
    text: String,
    kernels: Vec<String>,
    workload: Workload,
    settings: SearchSettings,
    shared: BTreeMap<String, String>,
}

impl Setting {
    fn new(text: &str, kernels: &[&str]) -> Self {
        Self {
            text: text.to_owned(),
            kernels: kernels.iter().map(|&name| name.to_owned()).collect(),
            workload: Workload { entry: "run".to_owned(), ..Workload::default() },
            settings: SearchSettings::default(),
            shared: BTreeMap::new(),
        }
    }

    /// A setting in which the fastest candidate is polished as soon as it is faster than the original.
    fn that_polishes() -> Self {
        let mut setting = Self::new(TEXT, &["k"]);
        (setting.settings.polish, setting.settings.polish_large) = (1.0, 0.0);
        setting
    }

    fn field(&self) -> SearchSpace<'_> {
        SearchSpace {
            original: &self.text,
            kernels: &self.kernels,
            calls: std::slice::from_ref(&self.workload),
            settings: &self.settings,
            rewrites: true,
            target: TritonTarget::newest(),
            shared: &self.shared,
        }
    }
}

/// Makes the first candidate correct and faster than the original.
fn first_is_right(search: &mut SearchState<'_>) -> CandidateId {
    let PendingCandidate { id, .. } = search.propose().unwrap();
    search.finish(id, CandidateResult::Right(1.5));
    id
}

/// A simulated verdict: the farther the numbers are from the optimum (256, 128, 8 warps, 4 stages), the slower;
/// what takes too many resources does not run.
fn fate(candidate: &Candidate) -> CandidateResult {
    let numbers: Vec<i64> = knobs(&candidate.module, &candidate.text, &candidate.module.kernels[0], "run")
        .iter()
        .map(|knob| knob.current)
        .collect();
    if numbers[0] * numbers[1] * numbers[3] > 1 << 18 {
        return CandidateResult::Wrong;
    }
    let off: f64 = numbers.iter().zip([256, 128, 8, 4]).map(|(&a, b)| (a as f64 / f64::from(b)).log2().abs()).sum();
    CandidateResult::Right(1.0 / (0.25 + 0.15 * off))
}

/// Judges `count` candidates, `beside` of them at a time. Returns the best speedup after each, and all texts.
fn run(seed: u64, count: usize, beside: usize) -> (Vec<f64>, Vec<String>) {
    let setting = Setting::new(TEXT, &["k"]);
    let mut search = SearchState::new(setting.field(), seed, false).unwrap();
    let (mut flying, mut best, mut texts) = (VecDeque::new(), vec![1.0_f64], Vec::new());
    while best.len() <= count {
        while flying.len() < beside
            && let Some(PendingCandidate { id, text }) = search.propose()
        {
            texts.push(text);
            flying.push_back(id);
        }
        let Some(id) = flying.pop_front() else { break };
        let fate = fate(search.candidate(id));
        search.finish(id, fate);
        best.push(best[best.len() - 1].max(search.tree.node(id).speedup().unwrap_or(0.0)));
    }
    (best, texts)
}

#[test]
fn the_optimum_of_a_smooth_landscape_is_found_without_repetitions() {
    for beside in [1, 16] {
        let mut after = Vec::new();
        for seed in 0..9 {
            let (best, texts) = run(seed, 200, beside);
            let different: HashSet<&String> = texts.iter().collect();
            assert_eq!(different.len(), texts.len());
            after.push(best.iter().position(|&best| best > 3.99).unwrap_or(usize::MAX));
        }
        after.sort_unstable();
        assert!(after[4] < 90, "{beside} at once: {after:?}");
    }
}

#[test]
fn equal_seeds_give_equal_searches() {
    assert_eq!(run(1, 60, 4).1, run(1, 60, 4).1);
    assert_ne!(run(1, 60, 4).1, run(2, 60, 4).1);
}

#[test]
fn proposals_for_several_kernels_name_their_kernel() {
    let text =
        TEXT.replace("def run():\n", "@triton.jit\ndef l(B: tl.constexpr):\n    pass\ndef run():\n    l[(1,)](B=32)\n");
    let setting = Setting::new(&text, &["k", "l"]);
    let mut search = SearchState::new(setting.field(), 1, false).unwrap();
    let mut described = HashSet::new();
    while described.len() < 40
        && let Some(PendingCandidate { id, .. }) = search.propose()
    {
        described.insert(search.candidate(id).describe());
        search.finish(id, CandidateResult::Right(1.0));
    }
    for words in ["k: B 64 → ", "l: B 32 → ", "l: num_warps 4 → "] {
        assert!(described.iter().any(|said| said.contains(words)), "{words}: {described:?}");
    }
}

#[test]
fn a_file_without_numbers_is_not_searched() {
    let text = TEXT.replace("B=64, C=64, num_warps=4", "**args");
    let known = |text: &str| SearchState::new(Setting::new(text, &["k"]).field(), 1, false).is_some();
    assert!(!known(&text) && known(TEXT));
}

/// A kernel that another file launches, too, may be compiled with other options but must keep its behaviour; its
/// own launch may be changed.
#[test]
fn a_kernel_with_other_users_keeps_its_contract() {
    let kinds = |shared: &[&str]| -> Vec<String> {
        let mut setting = Setting::new(ROWS, &["k"]);
        setting.shared = shared.iter().map(|&name| (name.to_owned(), "bench.py".to_owned())).collect();
        let mut search = SearchState::new(setting.field(), 1, false).unwrap();
        let mut kinds: Vec<String> = [StepSize::Small, StepSize::Large]
            .into_iter()
            .flat_map(|step| search.turns(SearchState::FIRST, step))
            .map(|turn| turn.kind)
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    };
    let (alone, shared) = (kinds(&[]), kinds(&["k"]));
    for kind in ["B up", "rows_per_program", "persistent"] {
        assert!(
            alone.iter().any(|it| it == kind) && !shared.iter().any(|it| it == kind),
            "{kind}: {alone:?} {shared:?}"
        );
    }
    for kind in ["num_warps up", "evict_first load"] {
        assert!(shared.iter().any(|it| it == kind), "{kind}: {shared:?}");
    }
}

#[test]
fn a_fused_kernel_gets_proposals_in_place_of_its_parts() {
    let head = "import torch\nimport triton\nimport triton.language as tl\n";
    let kernel = |name: &str, value: &str| {
        format!(
            "@triton.jit\ndef {name}(x_ptr, y_ptr, n, B: tl.constexpr):\n    offs = tl.program_id(0) * B + tl.arange(0, B)\n    \
             x = tl.load(x_ptr + offs, mask=offs < n)\n    tl.store(y_ptr + offs, {value}, mask=offs < n)\n"
        )
    };
    let host = "def run(x):\n    n = x.numel()\n    y = torch.empty_like(x)\n    first[(triton.cdiv(n, 64),)](x, y, n, B=64)\n    \
                z = torch.empty_like(x)\n    second[(triton.cdiv(n, 64),)](y, z, n, B=64)\n    return z\n";
    let text = format!("{head}{}{}{host}", kernel("first", "x + 1"), kernel("second", "x * 2"));
    let setting = Setting::new(&text, &["first", "second"]);
    let mut search = SearchState::new(setting.field(), 1, false).unwrap();
    let kinds = |turns: Vec<Proposal>| -> Vec<String> { turns.into_iter().map(|turn| turn.kind).collect() };
    let before = kinds(search.turns(SearchState::FIRST, StepSize::Small));
    assert!(before.contains(&"first: B up".to_owned()) && before.contains(&"second: B up".to_owned()), "{before:?}");
    let large = search.turns(SearchState::FIRST, StepSize::Large);
    let turn = large.iter().find(|turn| turn.kind == "first: fused_launches").unwrap();
    let made = search.candidates[&SearchState::FIRST].with(&turn.edits, &turn.changes);
    let PendingCandidate { id, .. } = search.put((ROOT, StepSize::Large), SearchState::FIRST, turn.kind.clone(), made);
    let after = kinds(search.turns(id, StepSize::Small));
    assert!(after.contains(&"first_second_fused: B up".to_owned()), "{after:?}");
    assert!(after.iter().all(|kind| kind.starts_with("first_second_fused: ")), "{after:?}");
}

/// Changes of the cache hints are tried after the others, not in their place.
#[test]
fn cache_hints_are_tried_after_other_changes() {
    let text = TEXT.replace("        pass\n", "        tl.store(C + i, tl.load(B + i))\n");
    let setting = Setting::new(&text, &["k"]);
    let mut search = SearchState::new(setting.field(), 1, false).unwrap();
    let turns = search.turns(SearchState::FIRST, StepSize::Small);
    let (fine, usual): (Vec<Proposal>, Vec<Proposal>) =
        turns.into_iter().partition(|turn| search.low_gain_kinds.contains(&turn.kind));
    assert!(fine.len() > 4 && usual.iter().any(|turn| turn.kind == "num_warps up"), "{fine:?}");
    let mut when = Vec::new();
    for number in 0..200 {
        let PendingCandidate { id, .. } = search.propose().unwrap();
        if search.low_gain_kinds.contains(&search.made[&id].1) {
            when.push(number);
        }
        let fate = fate(search.candidate(id));
        search.finish(id, fate);
    }
    let early = when.iter().filter(|&&number| number < 40).count();
    assert!(early < 4 && (8..40).contains(&when.len()), "{when:?}");
}

#[test]
fn the_fastest_is_polished_however_many_small_steps_it_has_made() {
    let setting = Setting::that_polishes();
    let mut search = SearchState::new(setting.field(), 1, false).unwrap();
    assert!(search.polish().is_none(), "nothing is faster than the file as it is yet");
    let first = first_is_right(&mut search);
    let polished: Vec<CandidateId> = (0..4).map(|_| search.propose().unwrap().id).collect();
    let of = |id: &CandidateId| (search.tree.node(*id).parent, search.tree.node(*id).step);
    assert!(polished.iter().all(|id| of(id) == (first, StepSize::Small)), "{polished:?}");
    assert!(polished.len() > setting.settings.small_steps);
}

#[test]
fn only_one_of_several_twins_is_polished() {
    let setting = Setting::that_polishes();
    let mut search = SearchState::new(setting.field(), 1, false).unwrap();
    let first = first_is_right(&mut search);
    let PendingCandidate { id: twin, .. } = search.propose().unwrap();
    search.finish(twin, CandidateResult::Right(1.5));
    search.measured(twin, CallMeasurements::default(), true);
    while let Some(PendingCandidate { id, .. }) = search.polish() {
        assert_eq!(search.tree.node(id).parent, first);
    }
}

/// A structure that was three percent slower had one more number to change, but only the fastest candidate was
/// polished to the end.
#[test]
fn the_best_of_another_structure_is_polished_too() {
    let setting = Setting::that_polishes();
    let mut search = SearchState::new(setting.field(), 1, false).unwrap();
    let built = |search: &mut SearchState<'_>, numbers: &str, ways: &[&str], speed: f64| {
        let text = TEXT.replace("B=64, C=64", numbers).replace("pass\n", &format!("pass  # warpsmith: {ways:?}\n"));
        let changes = ways.iter().map(|&way| Change::Structure(way.to_owned())).collect();
        let candidate = Candidate::changed(&text, changes);
        let id = search.put((ROOT, StepSize::Large), SearchState::FIRST, "large".to_owned(), candidate).id;
        search.finish(id, CandidateResult::Right(speed));
        id
    };
    let fastest = built(&mut search, "B=128, C=64", &["tiles"], 2.0);
    let more = built(&mut search, "B=128, C=32", &["tiles", "groups"], 1.99);
    let other = built(&mut search, "B=256, C=64", &["rows"], 1.95);
    built(&mut search, "B=256, C=32", &["loops"], 1.7);
    assert_eq!(search.fastest_by_structure(), [vec![fastest, more], vec![other]]);
    let polished: Vec<CandidateId> = (0..6).map(|_| search.polish().unwrap().id).collect();
    let of = |at: CandidateId| polished.iter().filter(|&&id| search.tree.node(id).parent == at).count();
    assert!(of(fastest) > of(other) && of(other) > 0, "{} and {}", of(fastest), of(other));
    // Small steps make no structure of their own, unless they exclude another one.
    let of_way = |search: &SearchState<'_>, kind: &str| {
        let with = Candidate::changed(TEXT, ["tiles", "new"].map(|way| Change::Structure(way.to_owned())).to_vec());
        search.structure_of(StepSize::Small, fastest, kind, &with).len()
    };
    search.structural_kinds.insert("widened bits".to_owned());
    assert_eq!((of_way(&search, "even_sizes"), of_way(&search, "widened bits")), (1, 2));
}

/// A persistent loop was tried with the tiles of the file, where it brought nothing, and never with those of the
/// fastest candidate.
#[test]
fn each_large_step_is_tried_once_from_the_fastest() {
    let mut setting = Setting::new(ROWS, &["k"]);
    (setting.settings.polish, setting.settings.polish_large) = (1.0, 1.0);
    let mut search = SearchState::new(setting.field(), 1, false).unwrap();
    let large = search.turns(SearchState::FIRST, StepSize::Large);
    let mut kinds: Vec<String> = large.into_iter().map(|turn| turn.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert!(kinds.iter().any(|kind| kind == "configuration"), "{kinds:?}");
    // These change numbers alone.
    kinds.retain(|kind| kind != "configuration");
    assert!(kinds.len() > 2 && kinds.iter().any(|kind| kind == "persistent"), "{kinds:?}");
    let with_tile = |search: &mut SearchState<'_>, tile: i64, speed: f64| {
        let change = Change::Number { name: "B".to_owned(), from: 64, to: tile };
        let candidate = Candidate::changed(&ROWS.replace("= 64", &format!("= {tile}")), vec![change]);
        let id = search.put((SearchState::FIRST, StepSize::Small), SearchState::FIRST, "B up".to_owned(), candidate).id;
        search.finish(id, CandidateResult::Right(speed));
        id
    };
    let built = |search: &mut SearchState<'_>, from: CandidateId| -> Vec<String> {
        let mut built = Vec::new();
        while let Some(PendingCandidate { id, .. }) = search.polish() {
            search.finish(id, CandidateResult::Right(1.0));
            let made = search.made_record(id);
            if made.step == StepSize::Small {
                break;
            }
            assert_eq!(made.base, from);
            built.push(made.kind);
        }
        built.sort_unstable();
        built
    };
    let fast = with_tile(&mut search, 128, 1.5);
    assert_eq!(built(&mut search, fast), kinds);
    let faster = with_tile(&mut search, 256, 1.6);
    assert!(built(&mut search, faster).is_empty(), "it is hardly faster");
    let fastest = with_tile(&mut search, 512, 1.7);
    assert_eq!(built(&mut search, fastest), kinds);
}

/// From `num_stages` = 4 only 2 was tried, which was worse; 3 was the best of all.
#[test]
fn polishing_changes_numbers_by_single_steps() {
    let setting = Setting::that_polishes();
    let mut search = SearchState::new(setting.field(), 1, false).unwrap();
    let first = first_is_right(&mut search);
    let numbers = |search: &SearchState<'_>, id: CandidateId| -> HashMap<String, i64> {
        search.numbers(id).into_iter().collect()
    };
    let from = numbers(&search, first);
    let mut farthest: HashMap<String, (i64, i64)> = HashMap::new();
    while let Some(PendingCandidate { id, .. }) = search.polish() {
        if search.tree.node(id).parent != first {
            break;
        }
        search.finish(id, CandidateResult::Right(1.0));
        for (name, to) in numbers(&search, id).into_iter().filter(|(name, to)| from[name] != *to) {
            let (low, high) = farthest.entry(name.clone()).or_insert((from[&name], from[&name]));
            // Stages change by one, the other numbers by a factor of two.
            let step =
                |near: i64, far: i64| if name.contains("stages") { far.abs_diff(near) == 1 } else { far == near * 2 };
            assert!(step(*high, to) || step(to, *low), "{name}: {to} after {low} to {high}");
            (*low, *high) = ((*low).min(to), (*high).max(to));
        }
    }
    assert!(farthest.values().any(|(low, high)| *high >= *low * 4), "{farthest:?}");
}

/// Cache hints were estimated like structures of which nothing is known, so twenty were tried before any number.
#[test]
fn low_gain_changes_are_estimated_like_their_base() {
    let text = TEXT.replace("        pass\n", "        tl.store(C + i, tl.load(B + i))\n");
    let setting = Setting::new(&text, &["k"]);
    let mut search = SearchState::new(setting.field(), 1, false).unwrap();
    let turns = search.turns(SearchState::FIRST, StepSize::Small);
    let fine = turns.iter().find(|turn| search.low_gain_kinds.contains(&turn.kind)).unwrap();
    let made = search.candidates[&SearchState::FIRST].with(&fine.edits, &fine.changes);
    let id = search.put((SearchState::FIRST, StepSize::Small), SearchState::FIRST, fine.kind.clone(), made).id;
    assert_eq!(search.points[&id], search.points[&SearchState::FIRST]);
    let usual = turns.iter().find(|turn| turn.kind == "num_warps up").unwrap();
    let made = search.candidates[&SearchState::FIRST].with(&usual.edits, &usual.changes);
    let id = search.put((SearchState::FIRST, StepSize::Small), SearchState::FIRST, usual.kind.clone(), made).id;
    assert_ne!(search.points[&id], search.points[&SearchState::FIRST]);
}

/// A new structure with slow numbers is tried with those of the fastest candidate, once for each candidate that is
/// much faster.
#[test]
fn a_new_structure_is_tried_with_the_fastest_numbers() {
    let setting = Setting::new(TEXT, &["k"]);
    let mut search = SearchState::new(setting.field(), 1, false).unwrap();
    let changed = |search: &mut SearchState<'_>, from: &str, to: &str, change: Change, fate: CandidateResult| {
        let candidate = Candidate::changed(&TEXT.replace(from, to), vec![change]);
        let id = search.put((ROOT, StepSize::Large), SearchState::FIRST, "large".to_owned(), candidate).id;
        search.finish(id, fate);
        id
    };
    let structure = |what: &str| Change::Structure(what.to_owned());
    let number = Change::Number { name: "B".to_owned(), from: 64, to: 256 };
    let direct = changed(&mut search, "range(B)", "range(0, B)", structure("direct"), CandidateResult::Right(0.95));
    changed(&mut search, "range(B)", "range(1, B)", structure("worse"), CandidateResult::Right(0.5));
    assert!(search.propose_crossed().is_none(), "nothing is faster yet");
    changed(&mut search, "B=64, C=64", "B=256, C=32", number, CandidateResult::Right(1.8));
    let PendingCandidate { id, text } = search.propose_crossed().unwrap();
    assert!(text.contains("range(0, B)") && text.contains("B=256, C=32"), "{text}");
    assert_eq!((search.made_record(id).parent, search.made_record(id).kind), (direct, CROSSED.to_owned()));
    assert!(search.propose_crossed().is_none(), "once");
    search.finish(id, CandidateResult::Right(3.0));
    assert!(search.propose_crossed().is_none(), "the fastest is built like it");
}

/// With many GPUs, more candidates are judged at once than the original alone gives.
#[test]
fn idle_places_get_steps_from_pending_candidates() {
    let text = TEXT.replace("    for i in range(B):\n        pass\n", "    pass\n");
    let setting = Setting::new(&text, &["k"]);
    let mut search = SearchState::new(setting.field(), 1, false).unwrap();
    let first: Vec<PendingCandidate> = std::iter::from_fn(|| search.propose()).collect();
    let of_first = |search: &SearchState<'_>, id: CandidateId| search.made[&id].0 == SearchState::FIRST;
    assert!(first.iter().all(|one| of_first(&search, one.id)));
    let ahead: Vec<PendingCandidate> = std::iter::from_fn(|| search.propose_ahead()).collect();
    assert!(ahead.len() > first.len(), "{} and {}", first.len(), ahead.len());
    let is_of_first = |id: CandidateId| first.iter().any(|one| one.id == id);
    assert!(ahead.iter().all(|one| is_of_first(search.made[&one.id].0)));
    // One candidate is judged before its base: its gain becomes known with the base's verdict.
    let PendingCandidate { id, .. } = ahead[0];
    let base = search.made[&id].0;
    search.finish(id, CandidateResult::Right(4.0));
    assert_eq!(search.gain(id), None);
    search.finish(base, CandidateResult::Right(2.0));
    assert_eq!(search.gain(id).unwrap().1, 2.0_f64.ln());
    assert!(search.tree.pending_descendants(base).is_empty());
}

/// Each proposal once rebuilt all changes of the fastest candidate that were tried already; at the thousandth this
/// took a tenth of a second, for which four GPUs waited.
#[test]
fn tried_changes_are_not_applied_again() {
    let setting = Setting::new(TEXT, &["k"]);
    let mut search = SearchState::new(setting.field(), 1, false).unwrap();
    let mut count = 0;
    while count < 300
        && let Some(PendingCandidate { id, .. }) = search.propose()
    {
        search.finish(id, fate(search.candidate(id)));
        count += 1;
    }
    let built: usize = search.made_of.values().map(HashSet::len).sum();
    assert!(count == 300 && built < 3 * count, "{built} for {count}");
}
