use judge::{Counted, Reason};
use transform::candidate::Change;

use super::*;
use crate::tree::CandidateId;

fn made(id: CandidateId, parent: CandidateId, step: StepSize) -> JournalEntry {
    let changes = vec![Change::Number { name: "B<1>".to_owned(), from: 64, to: 128 }];
    let (kind, text) = ("B up".to_owned(), String::new());
    JournalEntry::Made(CandidateMade { id, parent, step, base: 1, kind, changes, text })
}

fn came(id: CandidateId, seconds: f64, result: CandidateResult, refused: Option<(Reason, String)>) -> JournalEntry {
    JournalEntry::Judged(CandidateJudged::unmeasured(id, seconds, result, refused))
}

/// Counts of a kernel that moves `bytes` bytes with 1e8 operations, on a device on which the memory bounds it.
fn does(bytes: f64) -> Counted {
    Counted { bytes, operations: 1e8, peak: 6e13, bandwidth: 4e12 }
}

fn entries() -> Vec<JournalEntry> {
    let text = "a = 64\nb = 1\n".to_owned();
    let begun = RunStarted {
        form: RunStarted::FORM,
        at: 1_795_400_000_000,
        file: PathBuf::from("/project/k.py"),
        subject: crate::OptimizeScope::File,
        name: "k".to_owned(),
        text: text.clone(),
        calls: vec!["f(float32[8])".to_owned()],
        calls_hash: String::new(),
        budget: 60.0,
        seed: 1,
        environment: "Test GPU".to_owned(),
    };
    let call = crate::CallSpeedup {
        call: "f(float32[8])".to_owned(),
        count: 3,
        ratio: 1.5,
        interval: [1.4, 1.6],
        before_ms: 0.3,
        after_ms: 0.2,
        floor_share: Some((0.5, 0.75)),
        counted: Some((does(3e8), does(2e8))),
    };
    let speedup = Speedup {
        ratio: 1.5,
        low: 1.4,
        high: 1.6,
        before_ms: 0.3,
        after_ms: 0.2,
        calls: vec![call],
        ..Speedup::default()
    };
    let ended = RunEnded {
        seconds: 42.0,
        summary: "`k` is 1.50× faster".to_owned(),
        text: Some(text.replace("64", "128")),
        change: Some("B 64 → 128".to_owned()),
        speedup: Some(speedup.clone()),
    };
    let checks = vec![("inputs".to_owned(), "unchanged".to_owned())];
    let change = "B 64 → 128".to_owned();
    let unsure = ConfirmationMade {
        seconds: 35.0,
        change: "B 64 → 256".to_owned(),
        speedup: None,
        refused: None,
        checks: Vec::new(),
        notes: vec!["not offered: its times moved".to_owned()],
        stages: Vec::new(),
    };
    vec![
        JournalEntry::Begun(begun),
        made(2, 1, StepSize::Small),
        made(3, 0, StepSize::Large),
        made(4, 3, StepSize::Small),
        made(5, 3, StepSize::Small),
        came(2, 1.0, CandidateResult::Right(1.2), None),
        came(3, 2.0, CandidateResult::Wrong, Some((Reason::Output, "differs by <3>".to_owned()))),
        came(4, 3.0, CandidateResult::Right(1.5), None),
        JournalEntry::Confirmed(unsure),
        JournalEntry::Confirmed(ConfirmationMade {
            seconds: 40.0,
            change,
            speedup: Some(speedup),
            refused: None,
            checks,
            notes: vec!["no <checker> on this machine".to_owned()],
            stages: vec![("load".to_owned(), 0.5)],
        }),
        JournalEntry::Ended(ended),
    ]
}

#[test]
fn a_report_tells_what_was_tried_and_what_came_of_it() {
    let report = Report::from_entries("k-1".to_owned(), &entries());
    assert_eq!(report.best, [(0.0, 1.0), (1.0, 1.2), (3.0, 1.5)]);
    assert_eq!([report.count("right"), report.count("wrong"), report.count("open")], [2, 1, 1]);
    assert_eq!((report.refusals[0].reason.as_str(), report.refusals[0].count), ("Output", 1));
    assert_eq!((report.seconds, report.date.as_str()), (42.0, "2026-11-23"));
    assert!(report.diff.as_ref().unwrap().contains("-a = 64\n+a = 128\n"));

    let text = report.markdown();
    for words in [
        "# `k`: run `k-1`",
        "| `f(float32[8])` | 3× | 0.3000 ms | 0.2000 ms | 1.50× | 1.40–1.60 |",
        "+a = 128",
        "- Output (1): differs",
        "- Of what is offered: no <checker> on this machine",
        "- Of B 64 → 256: not offered: its times moved",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

#[test]
fn the_page_has_everything_in_it_and_escapes_what_it_shows() {
    let report = Report::from_entries("k-1".to_owned(), &entries());
    let page = report.html();
    for words in [
        "1.50× faster: 300 → 200 µs",
        "differs by &lt;3&gt;",
        "B&lt;1&gt; 64 → 128",
        "inputs",
        "no &lt;checker&gt; on",
        "not offered: its times moved",
        "50 → 75 %",
    ] {
        assert!(page.contains(words), "{words}\n{page}");
    }
    // The least time that the memory allows is half of 0.3 ms.
    assert!(page.contains("0.1500 ms"));
    // One circle for each candidate, the root and the original; the page loads nothing.
    let tree = page.split("tree of candidates").nth(1).unwrap().split("</svg>").next().unwrap();
    assert_eq!(tree.matches("<circle").count(), 6);
    assert!(!page.contains("http") && !page.contains("<script"));
}

#[test]
fn a_report_shows_pool_machines_and_stage_times() {
    let mut entries = entries();
    for (at, number) in [(5, "0"), (6, "1"), (7, "0")] {
        let JournalEntry::Judged(came) = &mut entries[at] else { panic!() };
        let (gpu, node, number) = ("Test GPU".to_owned(), "box (10.0.0.5)".to_owned(), number.to_owned());
        came.judged_on = Some(JudgedOn { gpu, node, number });
        came.stages = vec![("compile".to_owned(), at as f64), ("time".to_owned(), 0.25)];
    }
    let report = Report::from_entries("k-1".to_owned(), &entries);
    let text = report.markdown();
    assert!(text.contains("- Judging one took at the median: compile 6.00 s, time 0.25 s."), "{text}");
    assert!(text.contains("- 2 were judged on Test GPU, GPU 0 of box (10.0.0.5).\n- 1 were judged on"), "{text}");
    assert!(report.html().contains("1.20×: B&lt;1&gt; 64 → 128; judged on GPU 0 of box (10.0.0.5)"));
    assert_eq!(serde_json::to_value(&report).unwrap()["candidates"][1]["judged_on"]["number"], "1");
    assert_eq!(report.candidates[3].judged_on, None, "it was not judged");
}

#[test]
fn a_run_that_was_stopped_says_how_to_go_on() {
    let mut entries = entries();
    entries.truncate(7);
    let report = Report::from_entries("k-1".to_owned(), &entries);
    assert!(report.html().contains("warpsmith optimize --resume k-1"));
    assert!(report.markdown().contains("--resume"));
    assert_eq!((report.seconds, report.count("open")), (2.0, 2));
}

/// A report that was updated step by step equals the one read from the journal at the end.
#[test]
fn a_report_that_grows_says_what_has_changed() {
    let mut report = Report::new("k-1".to_owned());
    let changed: Vec<_> = entries().iter().map(|entry| report.note(entry)).collect();
    let candidate = |place| Some(ReportChange::Candidate(place));
    let made = [candidate(0), candidate(1), candidate(2), candidate(3)];
    let told = [candidate(0), candidate(1), candidate(2)];
    let ends = [Some(ReportChange::Confirmed), Some(ReportChange::Confirmed), Some(ReportChange::Ended)];
    assert_eq!(changed, [&[Some(ReportChange::All)], &made[..], &told, &ends].concat());
    assert_eq!(report, Report::from_entries("k-1".to_owned(), &entries()));
    assert_eq!(report.note(&JournalEntry::GivenUp { id: 5 }), None);
    assert_eq!(report.note(&came(99, 1.0, CandidateResult::Wrong, None)), None);
}

#[test]
fn a_candidate_has_its_diff_and_its_times() {
    let mut entries = entries();
    let JournalEntry::Made(made) = &mut entries[1] else { panic!() };
    made.text = "a = 128\nb = 1\n".to_owned();
    let JournalEntry::Judged(came) = &mut entries[5] else { panic!() };
    (came.times, came.calls) = (Some((0.3, 0.25)), vec![(0.3, 1.2)]);
    let detail = |id| Detail::from_entries("k-1".to_owned(), &entries, id);
    let first = detail(2).unwrap();
    assert_eq!((first.tried.result, first.tried.speedup, first.times), ("right", Some(1.2), Some((0.3, 0.25))));
    assert_eq!(first.calls, [CallTimes { call: "f(float32[8])".to_owned(), before_ms: 0.3, ratio: 1.2 }]);
    assert!(first.diff.ends_with("-a = 64\n+a = 128\n b = 1\n"), "{}", first.diff);
    assert_eq!(detail(5).unwrap().tried.result, "open");
    assert_eq!(detail(1), None);

    let JournalEntry::Made(made) = &mut entries[1] else { panic!() };
    made.text = "é = 1\n".repeat(20_000);
    let long = Detail::from_entries("k-1".to_owned(), &entries, 2).unwrap().diff;
    assert!(long.len() < 70_000 && long.ends_with("+é = 1\n… the rest is not shown\n"));
}
