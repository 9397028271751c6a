//! Tests of `warpsmith/search`, the notifications for clients that draw searches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use search::{Observer, OptimizeError, Progress, Report, ReportChange, SearchOutcome, SearchRequest, TriedCandidate};
use serde_json::{Value, json};

use crate::harness::{BAD, Client, Setup};
use crate::optimize::{open, start, tools};

const METHOD: &str = "warpsmith/search";
const RUN: &str = "scale-7";

fn tried(id: usize, speedup: Option<f64>) -> TriedCandidate {
    TriedCandidate {
        id,
        parent: 1,
        large: false,
        kind: "BLOCK up".to_owned(),
        change: format!("BLOCK 64 → {id}"),
        result: if speedup.is_some() { "right" } else { "open" },
        speedup,
        seconds: speedup.map(|_| 1.0),
        reason: None,
        explanation: None,
        judged_on: None,
        stages: Vec::new(),
    }
}

/// A search that has begun.
fn begun(observer: &dyn Observer) -> Report {
    let mut report = Report::default();
    (report.run, report.environment) = (RUN.to_owned(), "Test GPU".to_owned());
    observer.progress(&Progress::before("starting Python"));
    observer.noted(&report, ReportChange::All);
    report
}

fn nothing(run: &str) -> SearchOutcome {
    let (kernel, summary, run) = ("scale".to_owned(), "nothing is faster".to_owned(), run.to_owned());
    SearchOutcome { kernel, evaluated: 3, remembered: 0, offer: None, summary, run }
}

fn client(
    search: impl Fn(&SearchRequest, &dyn Observer) -> Result<SearchOutcome, OptimizeError> + Send + Sync + 'static,
) -> Setup {
    let options = json!({ "settings": { "select": ["L002"] }, "search": true });
    Setup::new().full().options(options).tools(tools(Arc::new(search)))
}

/// All notifications about a search, up to the one that ends it.
fn told(client: &mut Client, job: &str) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let news = client.notification(METHOD);
        assert_eq!(news["job"], job);
        let is_last = !news["ended"].is_null();
        all.push(news);
        if is_last {
            return all;
        }
    }
}

/// The index of the first message for which `has` returns true.
fn place(all: &[Value], has: impl Fn(&Value) -> bool) -> usize {
    all.iter().position(has).unwrap_or_else(|| panic!("{all:#?}"))
}

#[test]
fn search_news_cover_a_search_from_start_to_end() {
    let search = |_: &SearchRequest, observer: &dyn Observer| {
        let mut report = begun(observer);
        for judged in [None, Some(1.5)] {
            report.candidates = vec![tried(2, judged)];
            observer.noted(&report, ReportChange::Candidate(0));
            std::thread::sleep(Duration::from_millis(500));
        }
        observer.noted(&report, ReportChange::Ended);
        Ok(nothing(RUN))
    };
    let mut client = client(search).start();
    let document = open(&mut client);
    let job = start(&mut client, &document);
    let all = told(&mut client, &job);
    let started = json!({ "uri": document.uri, "name": "scale", "subject": { "kernel": "scale" }, "budget": 60.0 });
    assert_eq!(all[0]["started"], started);
    let open = place(&all, |news| news["candidates"][0]["fate"] == "open");
    let right = place(&all, |news| news["candidates"][0]["fate"] == "right");
    assert!(place(&all, |news| news["begun"]["run"] == RUN) <= open && open < right && right < all.len(), "{all:#?}");
    assert_eq!(all[right]["candidates"], json!([tried(2, Some(1.5))]));
    let ended = json!({ "how": "over", "summary": "nothing is faster", "offer": false });
    assert_eq!(all[all.len() - 1]["ended"], ended);
    client.notification("window/showMessage");
    client.assert_silent();
}

#[test]
fn search_news_are_not_sent_to_a_client_that_did_not_ask() {
    let search = |_: &SearchRequest, observer: &dyn Observer| {
        let mut report = begun(observer);
        report.candidates.push(tried(2, None));
        observer.noted(&report, ReportChange::Candidate(0));
        Ok(nothing(RUN))
    };
    let mut client = Setup::new().full().tools(tools(Arc::new(search))).start();
    let document = open(&mut client);
    start(&mut client, &document);
    client.notification("window/showMessage");
    // This is long enough for a late notification to arrive.
    std::thread::sleep(Duration::from_millis(500));
    client.assert_silent();
}

/// However fast a search is, the number and size of its messages are limited, and no candidate is missing.
#[test]
fn search_news_are_limited_in_size_and_rate() {
    const COUNT: usize = 200;
    let search = |_: &SearchRequest, observer: &dyn Observer| {
        let mut report = begun(observer);
        for place in 0..COUNT {
            let (change, reason) = ("é".repeat(5000), Some("x".repeat(100_000)));
            report.candidates.push(TriedCandidate { change, reason, ..tried(place + 2, None) });
            observer.noted(&report, ReportChange::Candidate(place));
            report.candidates[place].result = "wrong";
            observer.noted(&report, ReportChange::Candidate(place));
        }
        Err(OptimizeError::Failed("y".repeat(10_000)))
    };
    let mut client = client(search).start();
    let document = open(&mut client);
    let began = Instant::now();
    let job = start(&mut client, &document);
    let all = told(&mut client, &job);
    let most = 2 + began.elapsed().as_millis() / 200;
    assert!(all.len() as u128 <= most, "{} messages, at most {most}", all.len());
    let mut last = vec![Value::Null; COUNT];
    for news in &all {
        let candidates = news["candidates"].as_array().cloned().unwrap_or_default();
        assert!(candidates.len() <= 40 && news.to_string().len() < 64 << 10, "{} bytes", news.to_string().len());
        for one in candidates {
            let id = one["id"].as_u64().unwrap() as usize;
            assert!(one["change"].as_str().unwrap().chars().count() <= 301);
            last[id - 2] = one["fate"].clone();
        }
    }
    assert_eq!(last, vec![json!("wrong"); COUNT]);
    assert_eq!(all[all.len() - 1]["ended"]["how"], "failed");
    assert!(all[all.len() - 1]["ended"]["summary"].as_str().unwrap().len() < 400);
    client.notification("window/showMessage");
}

/// A search that crashes and one that the user stops also send their end.
#[test]
fn search_news_end_for_crashed_and_stopped_searches() {
    let search = |request: &SearchRequest, observer: &dyn Observer| {
        begun(observer);
        assert!(!request.text.contains("# crash"), "on purpose");
        while !observer.cancelled() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(OptimizeError::Cancelled)
    };
    let mut client = client(search).start();
    let mut document = open(&mut client);
    let job = start(&mut client, &document);
    let command = json!({ "command": "warpsmith.cancel", "arguments": [{ "job": job }] });
    assert_eq!(client.request("workspace/executeCommand", command), json!({ "cancelled": true }));
    assert_eq!(told(&mut client, &job).last().unwrap()["ended"]["how"], "stopped");
    client.replace(&mut document, "import triton\n", "# crash\nimport triton\n");
    client.published(&document);
    // The owner receives the end of the job later.
    let argument = json!({ "uri": document.uri, "kernel": "scale" });
    let command = json!({ "command": "warpsmith.optimize", "arguments": [argument] });
    let deadline = Instant::now() + Duration::from_secs(30);
    let job = loop {
        let id = client.send_request("workspace/executeCommand", command.clone());
        match client.answer(id) {
            Ok(answer) => break answer["job"].as_str().unwrap().to_owned(),
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    };
    let ended = told(&mut client, &job).last().unwrap()["ended"].clone();
    assert!(ended["how"] == "failed" && ended["summary"].as_str().unwrap().contains("crashed"), "{ended}");
    client.notification("window/showMessage");
}

#[test]
fn a_stored_run_and_its_candidates_can_be_requested() {
    let mut client = client(|_, _| Err(OptimizeError::Cancelled)).start();
    let uri = client.uri("a.py");
    let faster = BAD.replace("BLOCK=64", "BLOCK=128");
    let lines = [
        json!({
            "what": "begun", "form": 2, "at": 0, "file": client.path("a.py"), "subject": { "kernel": "scale" }, "name": "scale",
            "text": BAD, "calls": ["run(f32[8])"], "calls_hash": "", "budget": 60.0, "seed": 1, "environment": "Test GPU",
        }),
        json!({
            "what": "made", "id": 2, "parent": 1, "step": "small", "base": 1, "kind": "BLOCK up", "text": faster,
            "changes": [{ "number": { "name": "BLOCK", "from": 64, "to": 128 } }],
        }),
        json!({ "what": "came", "id": 2, "seconds": 3.5, "fate": { "right": 1.5 }, "times": [0.3, 0.2], "calls": [[0.3, 1.5]] }),
    ];
    let runs = client.path(".warpsmith/runs");
    std::fs::create_dir_all(&runs).unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(runs.join("scale-1.jsonl"), text).unwrap();

    // The file need not be open.
    let answer = client.request(METHOD, json!({ "uri": uri, "run": "scale-1" }));
    let report = &answer["report"];
    assert_eq!((&report["subject"], &report["summary"]), (&json!({ "kernel": "scale" }), &Value::Null));
    assert_eq!(report["candidates"][0]["change"], "BLOCK 64 → 128");
    assert!(answer["page"].as_str().unwrap().contains("warpsmith report scale-1"), "{answer}");

    let detail = client.request(METHOD, json!({ "uri": uri, "run": "scale-1", "candidate": 2 }));
    assert_eq!((&detail["fate"], &detail["times"]), (&json!("right"), &json!([0.3, 0.2])));
    assert_eq!(detail["calls"], json!([{ "call": "run(f32[8])", "before_ms": 0.3, "ratio": 1.5 }]));
    let diff = detail["diff"].as_str().unwrap();
    assert!(diff.contains("\n-    scale[") && diff.contains("BLOCK=128"), "{diff}");

    for (params, why) in [
        (json!({ "uri": uri, "run": "scale-2" }), "there is no run `scale-2`; the latest is `scale-1`"),
        (json!({ "uri": uri, "run": "scale-1", "candidate": 9 }), "there is no candidate 9"),
    ] {
        assert_eq!(client.request_error(METHOD, params), (-32803, why.to_owned()));
    }
    assert_eq!(client.request_error(METHOD, json!({ "run": "scale-1" })).0, -32602);
    client.assert_silent();
}
