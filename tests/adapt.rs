//! Tests of the shipped skill memory against the verdicts of nine Triton releases, and of learning on a small scale.
//!
//! Learning runs with the Triton of `WARPSMITH_TEST_PYTHON`.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

#[path = "common/snippets.rs"]
mod data;

use std::collections::BTreeMap;
use std::path::PathBuf;

use data::{program, snippets, verdicts};
use learn::{
    CompilingPrograms, Evidence, Oracle, Parsed, ProofContext, Suspect, UncheckedProgram, gather, judged, keep_refused,
    learn, merged, spelled, sweep,
};
use model::api::TritonTarget;
use model::kernel::Module;
use model::syntax::Source;
use rules::RuleContext;
use rules::learned::{LearnedRule, LearnedRules, Patterns, Releases, RuleOrigin, RuleState, TritonError, write};
use serde_json::Value;
use store::{RefusedKernel, Store};

/// The least share of the programs rejected by a release that the shipped memory alone flags, in percent.
const PERCENT: usize = 30;

fn python() -> PathBuf {
    std::env::var_os("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`").into()
}

/// The codes of the proven rules, shown or hidden, that flag a program on a release.
fn flagging(memory: &LearnedRules, source: &Source, target: TritonTarget) -> Vec<String> {
    let module = Module::build(source);
    let context = RuleContext::new(source, &module, target);
    let all = (0..module.kernels.len()).flat_map(|at| memory.proven_in(&context, at));
    all.map(|(rule, _)| rule.code.clone()).collect()
}

/// By release, the number of rejected programs and how many of them are flagged; and the accepted programs that are
/// flagged.
fn judge(memory: &LearnedRules, snippets: &[Value]) -> (BTreeMap<String, (usize, usize)>, Vec<String>) {
    let (mut by_release, mut wrong) = (BTreeMap::new(), Vec::new());
    for snippet in snippets {
        let source = Source::parse(program(snippet));
        for (release, verdict) in verdicts(snippet) {
            let codes = flagging(memory, &source, TritonTarget::of(release.parse().unwrap()));
            if verdict["ok"] == Value::Bool(true) {
                wrong.extend(codes.iter().map(|code| format!("{} on {release}: {code}", snippet["id"])));
            } else {
                let sum: &mut (usize, usize) = by_release.entry(release.to_owned()).or_default();
                *sum = (sum.0 + 1, sum.1 + usize::from(!codes.is_empty()));
            }
        }
    }
    (by_release, wrong)
}

#[test]
fn the_shipped_memory_agrees_with_nine_releases() {
    for (set, percent) in [("frontend_snippets", PERCENT), ("frontend_more", 0)] {
        let (by_release, wrong) = judge(LearnedRules::shipped(), &snippets(set));
        for (release, (rejected, flagged)) in &by_release {
            println!("{set}, {release}: {flagged} of {rejected} rejected programs are flagged by learned rules alone");
        }
        assert_eq!(wrong, [""; 0], "Triton accepts these programs");
        assert_eq!(by_release.len(), 9, "nine releases were asked");
        let newest_proven = &by_release["3.6.0"];
        // An empty memory flags nothing.
        let percent = if LearnedRules::shipped().rules().next().is_none() { 0 } else { percent };
        assert!(newest_proven.1 * 100 >= newest_proven.0 * percent, "{set}: {newest_proven:?}");
    }
}

/// Triton rejects every program of a sweep over everything it offers that the shipped memory flags. `WARPSMITH_SWEEP`
/// sets the number of programs of each kind and `WARPSMITH_SWEEP_SEED` the seed, which must differ from the seed of
/// learning.
#[test]
fn shipped_memory_flags_only_programs_of_a_sweep_that_triton_rejects() {
    let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |number| number.parse().unwrap());
    let oracle = Oracle::start(python(), 2).unwrap();
    let target = TritonTarget::of(oracle.release().parse().unwrap());
    let programs = sweep(target.table, number("WARPSMITH_SWEEP", 6) as usize, number("WARPSMITH_SWEEP_SEED", 1001));
    let verdicts = oracle.parallel(&programs, |asker, program| {
        let codes = flagging(LearnedRules::shipped(), &Source::parse(program.text.as_str()), target);
        (!codes.is_empty()).then(|| (codes, asker.verdict(program)))
    });
    let flagged = verdicts.iter().flatten().count();
    println!("{}: {flagged} of {} programs are flagged by learned rules", oracle.release(), programs.len());
    assert!(flagged * 20 > programs.len() || LearnedRules::shipped().rules().next().is_none(), "{flagged} are few");
    let wrong: Vec<String> = programs
        .iter()
        .zip(&verdicts)
        .filter_map(|(program, found)| {
            let (codes, verdict) = found.as_ref()?;
            let line = program.text.split("axis=0)\n    ").last().unwrap_or_default();
            verdict.is_accepted().then(|| format!("{} by {codes:?}", line.trim_end()))
        })
        .collect();
    assert_eq!(wrong, [""; 0], "{} of {flagged} compile", wrong.len());
}

/// The string arguments that functions accept, which few synthetic kernels use.
#[test]
fn shipped_memory_accepts_every_valid_string_argument() {
    let oracle = Oracle::start(python(), 2).unwrap();
    let target = TritonTarget::of(oracle.release().parse().unwrap());
    let programs = spelled();
    let verdicts = oracle.verdicts(&programs);
    let mut wrong = Vec::new();
    for (program, verdict) in programs.iter().zip(&verdicts) {
        let codes = flagging(LearnedRules::shipped(), &Source::parse(program.text.as_str()), target);
        if !verdict.is_accepted() || !codes.is_empty() {
            wrong.push((program.text.lines().last(), codes, verdict));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Learning from a few tasks is deterministic, and none of its rules flags a kernel of the tasks. The verdicts of these
/// kernels may be known beforehand or requested on demand, which takes fewer compilations.
#[test]
fn learning_is_deterministic() {
    let python = python();
    let oracle = || Oracle::start(python.clone(), 2).unwrap();
    let gathered = gather(&oracle(), 6, 25, 3);
    let known: Vec<Parsed> = gathered.passing.iter().map(|program| Parsed::new(&program.text)).collect();
    let unasked: Vec<UncheckedProgram> = gathered.passing.iter().cloned().map(UncheckedProgram::new).collect();
    let sound = CompilingPrograms { known: &known, unasked: &[] };
    let results = [sound, sound, CompilingPrograms { known: &[], unasked: &unasked }].map(|sound| {
        let oracle = oracle();
        let rules = learned(&oracle, &gathered.failures, sound);
        (write(&rules, Patterns::Inside), oracle.asked())
    });
    let [(text, asked), (again, _), (lazy, asked_lazily)] = results;
    assert!(text.contains("state = \"promoted\""), "something is learned: {text}");
    assert_eq!(text, again);
    assert_eq!(text, lazy);
    let (all, of_them) = (gathered.passing.len(), asked_lazily.saturating_sub(asked));
    println!("{asked} questions, {of_them} more of {all} programs that compile");
    assert!(of_them < all, "{of_them} of {all}");
}

/// A planted rule: its example fails, but some programs that it flags compile.
#[test]
fn a_wrong_rule_is_never_promoted() {
    let python = python();
    let oracle = Oracle::start(python, 2).unwrap();
    let gathered = gather(&oracle, 8, 25, 5);
    let sound: Vec<Parsed> = gathered.passing.iter().map(|program| Parsed::new(&program.text)).collect();
    let target = TritonTarget::of(oracle.release().parse().unwrap());
    let evidence = Evidence { failures: &gathered.failures, sound: &sound, target };
    let head = "import triton\nimport triton.language as tl\n\n\n# warpsmith: signature x=*fp32 n=i32\n@triton.jit\ndef k(x, n):\n    ";
    let rule = |pattern: &str, statement: &str| LearnedRule {
        code: "S501".to_owned(),
        name: "planted".to_owned(),
        sentence: "You cannot do this.".to_owned(),
        state: RuleState::Candidate,
        origin: RuleOrigin::Imported("somebody.toml".to_owned()),
        covered_by: Vec::new(),
        failures: 99,
        met: 99,
        first_seen: "2026-11-25".to_owned(),
        last_seen: "2026-11-25".to_owned(),
        error: TritonError::default(),
        triton: Releases::default(),
        pattern: pattern.to_owned(),
        bad: format!("{head}{statement}\n"),
        good: format!("{head}pass\n"),
    };
    let masks = "(call function: (_) @f arguments: (argument_list (keyword_argument name: (identifier) @k)) (#api? @f \"tl.load\") (#eq? @k \"mask\")) @here";
    let wrong = rule(masks, "y = tl.load(x + oops, mask=n > 0)");
    let right = rule("((attribute) @here (#unknown-member? @here))", "y = tl.mean(x)");
    let rare = rule("((lambda) @here)", "y = x + 1");
    let judgements = oracle.parallel(&[wrong, right, rare], |asker, rule| judged(asker, rule, evidence));
    assert_eq!(judgements[0].state, RuleState::Demoted, "{:?}", judgements[0]);
    assert_eq!(judgements[1].state, RuleState::Promoted, "{:?}", judgements[1]);
    assert_eq!(judgements[2].state, RuleState::Candidate, "its example compiles: {:?}", judgements[2]);
}

/// A candidate of a search that does not compile is stored with its parent. Unchanged kernels are not compiled again.
#[test]
fn a_search_candidate_that_does_not_compile_is_stored_with_its_parent() {
    let python = python();
    let kernel = |name: &str, statement: &str| {
        format!("# warpsmith: signature x=*fp32 n=i32\n@triton.jit\ndef {name}(x, n):\n    {statement}\n\n\n")
    };
    let head = "import triton\nimport triton.language as tl\n\n\n";
    let (right, wrong) = (kernel("k", "y = tl.load(x + n)"), kernel("k", "y = tl.load(x + n, axis=0)"));
    let other = kernel("other", "y = tl.load(nothing)");
    let suspect = Suspect {
        text: format!("{head}{wrong}{other}"),
        parent: Some(format!("{head}{right}{other}")),
        launches: Vec::new(),
    };
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(keep_refused(&python, &[suspect.clone(), suspect], "search", folder.path()).unwrap(), 1);
    let mut kept = Vec::new();
    Store::of_user(folder.path()).unwrap().each_failure(&mut |one| kept.push(one.failure)).unwrap();
    assert_eq!((kept[0].kernel.as_str(), kept[0].source.as_str()), ("k", "search"));
    assert!(kept[0].text.contains("axis=0") && kept[0].error.message.contains("axis"), "{:?}", kept[0]);
    assert!(kept[0].nearest_passing.as_ref().is_some_and(|text| text.contains("tl.load(x + n)")), "{:?}", kept[0]);
}

/// `WARPSMITH_FAILURES` sets the number of failures, and `WARPSMITH_BINARY` names a release build. The figures are in
/// `docs/results/learning.md`.
#[test]
fn memory_learn_learns_from_many_stored_failures() {
    let python = python();
    let count: Option<usize> = std::env::var("WARPSMITH_FAILURES").ok().and_then(|count| count.parse().ok());
    let folder = tempfile::tempdir().unwrap();
    let oracle = Oracle::start(python.clone(), 2).unwrap();
    let gathered = if count.is_some() { gather(&oracle, 200, 60, 5) } else { gather(&oracle, 4, 20, 5) };
    let (release, some) = (oracle.release().to_owned(), gathered.failures);
    drop(oracle);
    let count = count.unwrap_or(300);
    let numbers: Vec<usize> = (0..count).collect();
    let started = std::time::Instant::now();
    for batch in numbers.chunks(500) {
        let failures: Vec<RefusedKernel> =
            batch.iter().map(|at| renamed(&some[at % some.len()], *at, &release)).collect();
        Store::of_user(&folder.path().join("warpsmith")).unwrap().keep_failures(&failures).unwrap();
    }
    let size = std::fs::metadata(folder.path().join("warpsmith/store.db")).unwrap().len();
    println!("{count} failures written in {:?}, {size} bytes", started.elapsed());

    let binary = std::env::var_os("WARPSMITH_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_warpsmith").into());
    if count == 300 {
        // With a time limit of zero one signature is still processed, and the rest is left.
        let mut command = std::process::Command::new(&binary);
        command.args(["memory", "learn", "--seconds", "0", "--python"]).arg(&python);
        let output = command.env("XDG_STATE_HOME", folder.path()).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("have their turn when it is run again"), "{said}");
    }
    let started = std::time::Instant::now();
    let mut command = std::process::Command::new(binary);
    command.args(["memory", "learn", "--python"]).arg(python).env("XDG_STATE_HOME", folder.path());
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        peak = peak.max(line.and_then(|line| line.parse::<u64>().ok()).unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    println!("distilled in {:?}, at most {peak} kB:\n{said}", started.elapsed());
    assert!(output.status.success() && said.contains("0 kernels are refused"), "{said}");
    // The cause is in the loop header, which patterns do not describe.
    assert!(!said.contains("write `for "), "{said}");
}

/// The same failure in a kernel with another name.
fn renamed(failure: &learn::CompileFailure, number: usize, release: &str) -> RefusedKernel {
    let (kernel, name) = (&failure.program.kernel, format!("{}_{number}", failure.program.kernel));
    let other = |text: &str| text.replace(&format!("def {kernel}("), &format!("def {name}("));
    let longer = name.len() - kernel.len();
    let at = failure.program.text.find(&format!("def {kernel}(")).unwrap_or(usize::MAX);
    let moved = |place: usize| if place > at { place + longer } else { place };
    RefusedKernel {
        text: other(&failure.program.text),
        kernel: name.clone(),
        nearest_passing: failure.passing.as_ref().map(|passing| other(&passing.text)),
        error: TritonError { kind: failure.failing.kind.clone(), message: failure.failing.message.clone() },
        place: failure.failing.span.map(|span| (moved(span.start), moved(span.end))),
        triton: release.to_owned(),
        source: "test".to_owned(),
    }
}

fn learned(oracle: &Oracle, failures: &[learn::CompileFailure], sound: CompilingPrograms<'_>) -> Vec<LearnedRule> {
    let target = TritonTarget::of(oracle.release().parse().unwrap());
    let lessons = learn(oracle, failures, sound, target, 3, &|| true);
    let found = merged(oracle, lessons.learned, failures, target);
    let court = ProofContext {
        oracle,
        others: &[],
        sound,
        programs: &[],
        published: &[],
        today: "2026-11-25".to_owned(),
        origin: RuleOrigin::Synthesised(3),
    };
    court.rules(&found, failures, 1)
}
