//! Tests of providers that refuse, break off, send invalid data or do not answer.

use super::*;
use server::answer_with;

/// The actions of a server on each connection.
type Case = Box<dyn Fn() -> Vec<Act> + Send + Sync>;

/// An error response after which the request is retried.
fn overloaded(speech: Speech) -> Vec<Act> {
    let mut acts = vec![stream(), piece(&speech.start(3))];
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    acts.push(piece(&format!("event: error\ndata: {error}\n\n")));
    acts.push(end());
    acts
}

#[test]
fn temporary_errors_are_retried() {
    for speech in BOTH {
        let server = Server::start(move |number, _| match number {
            0 => answer(503, "text/plain", "busy"),
            1 => answer(529, "application/json", r#"{"type":"error","error":{"type":"overloaded_error"}}"#),
            2 => vec![Act::Close],
            3 => vec![stream(), piece(&speech.start(3)), Act::Close],
            4 => overloaded(speech),
            _ => speech.streamed(&["ok"], 10, 1),
        });
        let bench = Bench::new(&ModelSettings { retries: 5, ..speech.settings(&server) });
        assert_eq!(bench.ask().unwrap().text, "ok", "{speech:?}");
        assert_eq!(server.received().len(), 6);
        // An error response costs nothing; the cost of a broken reply is estimated.
        let spent = bench.account.spent();
        assert!(spent.requests == 4 && spent.usage.estimated, "{spent:?}");
    }
}

#[test]
fn retries_end_at_the_configured_number() {
    let server = Server::start(|_, _| answer(500, "text/plain", "oops"));
    let bench = Bench::new(&ModelSettings { retries: 2, ..BOTH[0].settings(&server) });
    let error = bench.ask().unwrap_err().to_string();
    assert_eq!(error, "the model's provider answered 500: oops; try again later");
    assert_eq!((server.received().len(), bench.account.spent()), (3, RunSpending::default()));
}

#[test]
fn permanent_errors_are_not_retried() {
    for (status, body, expected) in [
        (400, r#"{"error":{"message":"context length exceeded"}}"#, "answered 400: context length exceeded"),
        (401, "", "answered 401; is the key of"),
        (404, r#"{"error":"model 'm' not found"}"#, "answered 404: model 'm' not found; are `model.base-url`"),
        (
            429,
            r#"{"error":{"message":"no credit","code":"insufficient_quota"}}"#,
            "no credit; the account has no credit",
        ),
        (307, "", "answered 307; set `model.base-url` to where that leads"),
    ] {
        let elsewhere = Server::start(|_, _| Vec::new());
        let heads = format!("location: {}/chat/completions\r\n", elsewhere.address);
        let server = Server::start(move |_, _| answer_with(status, "application/json", &heads, body));
        let error = Bench::new(&BOTH[0].settings(&server)).ask().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(server.received().len(), 1, "{status}");
        assert!(elsewhere.received().is_empty(), "keys do not go elsewhere");
    }
}

#[test]
fn retry_after_headers_are_respected() {
    let speech = BOTH[1];
    let server = Server::start(move |number, _| match number {
        0 => answer_with(429, "text/plain", "retry-after: 1\r\n", "slow down"),
        1 => {
            let date = httpdate::fmt_http_date(std::time::SystemTime::now() + Duration::from_secs(2));
            answer_with(429, "text/plain", &format!("retry-after: {date}\r\n"), "slow down")
        }
        _ => speech.streamed(&["ok"], 1, 1),
    });
    let bench = Bench::new(&speech.settings(&server));
    let start = Instant::now();
    bench.ask().unwrap();
    // A date has whole seconds, so the wait for a date two seconds ahead takes more than one second.
    assert!(start.elapsed() >= Duration::from_secs(2), "{:?}", start.elapsed());
    let server = Server::start(|_, _| answer_with(429, "text/plain", "retry-after: 3600\r\n", "tomorrow"));
    let start = Instant::now();
    let error = Bench::new(&speech.settings(&server)).ask().unwrap_err().to_string();
    assert!(error.contains("tomorrow; lower `model.limits`") && start.elapsed() < Duration::from_secs(1), "{error}");
}

#[test]
fn a_reply_that_breaks_off_is_not_asked_for_again() {
    for speech in BOTH {
        let server =
            Server::start(move |_, _| vec![stream(), piece(&speech.start(3)), piece(&speech.delta("Hel")), Act::Close]);
        let bench = Bench::new(&speech.settings(&server));
        let mut notes = Notes::default();
        let error = bench.client.complete(&question(), &mut notes).unwrap_err();
        assert!(matches!(error, ModelError::Broken(_)), "{error}");
        assert_eq!((notes.deltas.concat().as_str(), server.received().len()), ("Hel", 1));
        let spent = bench.account.spent();
        assert!(spent.usage.estimated && spent.usage.output == 1000, "all that it may have cost: {spent:?}");
    }
}

#[test]
fn invalid_responses_are_errors() {
    let html = || answer(200, "text/html; charset=utf-8", "<html>Please log in</html>");
    let stream_of = |text: &str| vec![stream(), piece(text), end()];
    for speech in BOTH {
        let cases: Vec<Case> = vec![
            Box::new(html),
            Box::new(move || stream_of("data: {\"choices\": [\n\n")),
            Box::new(move || stream_of("data: 7\n\n")),
            Box::new(move || stream_of("data: {\"a\": {\"b\": null}}\n\n")),
            Box::new(|| answer(200, "application/json", "[1, 2]")),
            Box::new(|| answer(200, "application/json", "\u{0}\u{1b}[2J")),
        ];
        for case in cases {
            let server = Server::start(move |_, _| case());
            let error = Bench::new(&speech.settings(&server)).ask().unwrap_err();
            assert!(matches!(error, ModelError::Garbage(_)), "{error:?}");
            assert!(!error.to_string().contains('\u{1b}'), "{error:?}");
            assert_eq!(server.received().len(), 1);
        }
    }
    // Data that is not HTTP, or a response that ends at once.
    for bytes in [
        &b"\x16\x03\x01 what?\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 0\r\n\r\n",
    ] {
        let server = Server::start(move |_, _| vec![Act::Send(bytes.to_vec()), Act::Close]);
        let error = Bench::new(&ModelSettings { retries: 1, ..BOTH[0].settings(&server) }).ask().unwrap_err();
        assert!(matches!(error, ModelError::Broken(_)), "{error:?}");
    }
}

#[test]
fn endless_replies_are_cut_off() {
    let ten = "x".repeat(10 << 20);
    for speech in BOTH {
        let large = ten.clone();
        let server = Server::start(move |number, _| match number {
            0 => speech.whole(&large, 1, 1),
            1 => speech.streamed(&[&large], 1, 1),
            _ => vec![stream(), Act::Drip(chunk(&speech.delta(&large[..1 << 16])), Duration::ZERO)],
        });
        let bench = Bench::new(&speech.settings(&server));
        for _ in 0..3 {
            let error = bench.ask().unwrap_err();
            assert!(matches!(error, ModelError::TooLong(_)), "{error:?}");
        }
    }
}

#[test]
fn silent_providers_hit_the_time_limits() {
    let speech = BOTH[0];
    let quick = ModelTimeouts { connect: 5.0, first: 0.3, between: 0.3, whole: 0.9 };
    let hour = Duration::from_secs(3600);
    let cases: [(&str, Case); 4] = [
        ("first", Box::new(move || vec![Act::Wait(hour)])),
        ("first", Box::new(move || vec![stream(), Act::Wait(hour)])),
        ("between", Box::new(move || vec![stream(), piece(&speech.delta("a")), Act::Wait(hour)])),
        ("whole", Box::new(move || vec![stream(), Act::Drip(chunk(": \n"), Duration::from_millis(50))])),
    ];
    for (expected, case) in cases {
        let server = Server::start(move |_, _| case());
        let bench = Bench::new(&ModelSettings { timeouts: quick.clone(), ..speech.settings(&server) });
        let start = Instant::now();
        let error = bench.ask().unwrap_err().to_string();
        assert!(error.contains(&format!("`model.timeouts.{expected}`")), "{error}");
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
        assert_eq!(server.received().len(), 1, "it is not asked again");
    }
}

#[test]
fn a_machine_that_does_not_answer_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let server = Server::start(|_, _| Vec::new());
    let settings = ModelSettings { base_url: Some(address), retries: 1, ..BOTH[0].settings(&server) };
    let bench = Bench::new(&settings);
    let error = bench.ask().unwrap_err().to_string();
    assert!(error.contains("cannot be reached") && error.contains("refused"), "{error}");
    assert_eq!(bench.account.spent(), RunSpending::default(), "nothing was sent");
}

#[test]
fn cancelled_requests_return_at_once() {
    let speech = BOTH[0];
    let hour = Duration::from_secs(3600);
    let silent = Server::start(move |_, _| vec![Act::Wait(hour)]);
    let dripping = Server::start(move |_, _| vec![stream(), Act::Drip(chunk(": \n"), Duration::from_millis(5))]);
    let busy = Server::start(|_, _| answer_with(429, "text/plain", "retry-after: 60\r\n", ""));
    let patient = ModelTimeouts { connect: 60.0, first: 60.0, between: 60.0, whole: 60.0 };
    for server in [&silent, &dripping, &busy] {
        let bench = Bench::new(&ModelSettings { timeouts: patient.clone(), ..speech.settings(server) });
        let until = Instant::now() + Duration::from_millis(200);
        let error = bench.client.complete(&question(), &mut Notes { until: Some(until), ..Notes::default() });
        assert!(matches!(error, Err(ModelError::Cancelled)), "{error:?}");
        assert!(until.elapsed() < Duration::from_secs(1), "{:?}", until.elapsed());
    }
    // A request that waits for its turn can be cancelled, too.
    let limits = config::ModelLimits { parallel: 1, ..Default::default() };
    let bench = Bench::new(&ModelSettings { timeouts: patient, limits, ..speech.settings(&silent) });
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut watcher = Flag(&stopped);
                assert!(matches!(bench.client.complete(&question(), &mut watcher), Err(ModelError::Cancelled)));
            });
        }
        std::thread::sleep(Duration::from_millis(100));
        stopped.store(true, Ordering::SeqCst);
        let start = Instant::now();
        scope.spawn(move || start).join().unwrap()
    });
}

struct Flag<'a>(&'a AtomicBool);

impl ReplyObserver for Flag<'_> {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
