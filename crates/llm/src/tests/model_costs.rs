//! Tests of budgets and costs, exact to the token.

use std::sync::atomic::AtomicUsize;

use base::clock;
use store::Store;

use super::*;

/// The costs of today in the store, and of yesterday if the day has just changed.
fn stored(bench: &Bench) -> Vec<(String, store::Spending)> {
    let store = Store::of_user(bench.folder.path()).unwrap();
    let now = clock::now().as_secs();
    [now, now - 60]
        .map(clock::day)
        .iter()
        .map(|day| store.spending(day).unwrap())
        .find(|found| !found.is_empty())
        .unwrap()
}

/// The outcome of a request, which determines its cost.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    /// An error response, which costs nothing.
    Refused(u16),
    /// A failure that costs the reserved amount.
    Lost(Loss),
    Answered,
}

#[derive(Clone, Copy, PartialEq)]
enum Loss {
    Page,
    Nonsense,
    Cut,
    Closed,
    Endless,
    Dripping,
}

impl Fate {
    fn of(number: usize) -> Self {
        match number % 20 {
            0 => Self::Refused(503),
            1 => Self::Refused(400),
            2 => Self::Refused(429),
            3 => Self::Lost(Loss::Page),
            4 => Self::Lost(Loss::Nonsense),
            5 => Self::Lost(Loss::Cut),
            6 => Self::Lost(Loss::Closed),
            _ if number % 100 == 7 => Self::Lost(Loss::Endless),
            _ if number % 100 == 8 => Self::Lost(Loss::Dripping),
            _ => Self::Answered,
        }
    }

    fn acts(self, speech: Speech, number: usize) -> Vec<Act> {
        let text = "x".repeat(number % 50);
        match self {
            Self::Refused(status) => server::answer_with(status, "text/plain", "retry-after: 0\r\n", "no"),
            Self::Lost(Loss::Page) => answer(200, "text/html", "<html>"),
            Self::Lost(Loss::Nonsense) => vec![stream(), piece("data: {\n\n"), end()],
            Self::Lost(Loss::Cut) => vec![stream(), piece(&speech.start(3)), piece(&speech.delta("x")), Act::Close],
            Self::Lost(Loss::Closed) => vec![Act::Close],
            Self::Lost(Loss::Endless) => speech.streamed(&[&"x".repeat(10 << 20)], 1, 1),
            // After some time it stops.
            Self::Lost(Loss::Dripping) => {
                let drip = || [piece(": \n"), Act::Wait(Duration::from_millis(10))];
                [stream()].into_iter().chain((0..50).flat_map(|_| drip())).chain([end()]).collect()
            }
            Self::Answered if number.is_multiple_of(2) => speech.whole(&text, input(number), 3),
            Self::Answered => speech.streamed(&["a ", &text], input(number), 3),
        }
    }
}

fn input(number: usize) -> u64 {
    10 + number as u64 % 7
}

/// A thousand requests in both protocols, with every kind of failure, from several threads.
#[test]
fn the_costs_of_a_thousand_requests_are_exact_to_the_token() {
    const EACH: usize = 500;
    for speech in BOTH {
        let server = Server::start(move |number, _| Fate::of(number).acts(speech, number));
        let limits = config::ModelLimits { parallel: 16, ..Default::default() };
        let settings = ModelSettings { limits, retries: 0, max_tokens: 64, ..speech.settings(&server) };
        let bench = Bench::new(&settings);
        let (next, ends) = (AtomicUsize::new(0), std::sync::Mutex::new((0, 0, TokenUsage::default())));
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    while next.fetch_add(1, Ordering::SeqCst) < EACH {
                        let result = bench.ask();
                        let (refused, lost, good) = &mut *ends.lock().unwrap();
                        match result {
                            Ok(reply) => *good += reply.usage,
                            Err(ModelError::Refused { .. }) => *refused += 1,
                            Err(ModelError::Cancelled | ModelError::Budget(_) | ModelError::Unreachable(_)) => panic!(),
                            Err(_) => *lost += 1,
                        }
                    }
                });
            }
        });
        let (refused, lost, good) = ends.into_inner().unwrap();
        assert_eq!(server.received().len(), EACH);
        assert_eq!((refused, lost), (75, 110), "{speech:?}");
        let answered: Vec<usize> = (0..EACH).filter(|number| Fate::of(*number) == Fate::Answered).collect();
        let expected: u64 = answered.iter().copied().map(input).sum();
        let output = 3 * answered.len() as u64;
        assert_eq!((good.input, good.output, good.estimated), (expected, output, false));
        let spent = bench.account.spent();
        let usage = TokenUsage {
            input: expected + lost * price::most_input(&question()),
            cached: 0,
            output: output + lost * 64,
            estimated: true,
        };
        assert_eq!((spent.requests, spent.usage), (answered.len() as u64 + lost, usage));
        assert_eq!(spent.cost.parts(), usage.input * 1_000_000 + usage.output * 10_000_000);
        assert_eq!(bench.account.spent_on()["m"], spent);
        let (model, row) = &stored(&bench)[0];
        assert_eq!((model.as_str(), row.requests, row.estimated), ("m", spent.requests, lost));
        assert_eq!((row.input, row.output, row.cost), (usage.input, usage.output, spent.cost.parts()));
    }
}

#[test]
fn a_run_ends_before_its_budget_is_exceeded() {
    let speech = BOTH[0];
    let server = Server::start(move |_, _| speech.streamed(&["ok"], 90, 10));
    let most = price::most_input(&question()) + 100;
    let budget = |run_tokens, run_dollars| ModelBudget { run_tokens, run_dollars, day_tokens: 0, day_dollars: 0.0 };
    // The budget has room for three replies, and then not for the highest cost of a fourth.
    let settings = ModelSettings { max_tokens: 100, budget: budget(200 + most, 0.0), ..speech.settings(&server) };
    let bench = Bench::new(&settings);
    for _ in 0..3 {
        bench.ask().unwrap();
    }
    let error = bench.ask().unwrap_err().to_string();
    let expected =
        format!("the budget `model.budget.run-tokens` is used up: 300 tokens of {} tokens are spent", 200 + most);
    assert!(error.starts_with(&expected) && error.contains(&format!("may cost {most} tokens")), "{error}");
    assert_eq!((server.received().len(), bench.account.spent().usage.tokens()), (3, 300));
    for dollars in [0.000_001, 1e-30] {
        let bench = Bench::new(&ModelSettings { budget: budget(0, dollars), ..settings.clone() });
        let error = bench.ask().unwrap_err().to_string();
        assert!(error.contains("`model.budget.run-dollars`"), "{error}");
    }
    assert_eq!(server.received().len(), 3, "nothing was sent");
}

/// A running request reserves more than it may need, so others wait for the rest.
#[test]
fn requests_wait_for_reserved_tokens_to_be_released() {
    let speech = BOTH[0];
    let server = Server::start(move |_, _| {
        let mut acts = speech.streamed(&["ok"], 1, 1);
        acts.insert(0, Act::Wait(Duration::from_millis(20)));
        acts
    });
    let most = price::most_input(&question()) + 100;
    let budget = ModelBudget { run_tokens: most + 20, run_dollars: 0.0, day_tokens: 0, day_dollars: 0.0 };
    let bench = Bench::new(&ModelSettings { max_tokens: 100, budget, ..speech.settings(&server) });
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| bench.ask().unwrap());
        }
    });
    assert_eq!(bench.account.spent().usage.tokens(), 16);
}

/// Two processes share a store; here they are accounts with separate connections.
#[test]
fn the_day_has_one_budget_for_all_processes() {
    let speech = BOTH[0];
    let server = Server::start(move |_, _| speech.streamed(&["ok"], 50, 50));
    let most = price::most_input(&question()) + 100;
    let budget = ModelBudget { run_tokens: 0, run_dollars: 0.0, day_tokens: 1000 + most, day_dollars: 0.0 };
    let settings = ModelSettings { max_tokens: 100, budget, ..speech.settings(&server) };
    let bench = Bench::new(&settings);
    let other = || {
        let account = Arc::new(Account::open(&settings.budget, bench.folder.path()).unwrap());
        let client = ModelClient::open(&settings, ApiKey::new(KEY.to_owned()), Arc::clone(&account)).unwrap();
        (client, account)
    };
    let others = [other(), other(), other()];
    std::thread::scope(|scope| {
        for (client, _) in &others {
            scope.spawn(move || while client.complete(&question(), &mut ()).is_ok() {});
        }
    });
    let spent: u64 = others.iter().map(|(_, account)| account.spent().usage.tokens()).sum();
    assert!(spent <= 1000 + most && spent > 0, "{spent}");
    assert_eq!(stored(&bench)[0].1.input + stored(&bench)[0].1.output, spent);
    // A single request gets the rest of the budget, down to the minimum cost of a request.
    while bench.ask().is_ok() {}
    let error = bench.ask().unwrap_err().to_string();
    assert!(error.contains("`model.budget.day-tokens`"), "{error}");
    let row = stored(&bench)[0].1.clone();
    assert!((1001..=1000 + most).contains(&(row.input + row.output)), "{row:?}");
}

/// A reservation that is never settled counts as spent: a panic in the observer loses the reply.
#[test]
fn a_panic_costs_the_reserved_amount() {
    struct Panics;
    impl ReplyObserver for Panics {
        fn delta(&mut self, _: &str) {
            panic!("as it was meant to");
        }
    }
    let speech = BOTH[0];
    let server = Server::start(move |_, _| speech.streamed(&["ok"], 1, 1));
    let bench = Bench::new(&speech.settings(&server));
    let ask = || bench.client.complete(&question(), &mut Panics);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(ask)).is_err());
    let spent = bench.account.spent();
    assert_eq!((spent.requests, spent.usage.tokens()), (1, price::most_input(&question()) + 1000));
    assert_eq!(bench.ask().unwrap().text, "ok");
}
