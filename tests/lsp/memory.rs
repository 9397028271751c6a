//! Tests of learned rules: shown, disputed, muted and demoted, with the real Triton of `WARPSMITH_TEST_PYTHON`.

use learn::{KernelProgram, Oracle, SkillMemory as _};
use std::path::Path;

use model::api::Table;
use rules::learned::{LearnedRule, Releases, RuleOrigin, RuleState, TritonError};
use serde_json::{Value, json};
use store::{Accepted, RefusedKernel, Store, StoredFailure};

use crate::harness::{Client, Document, Setup, codes};

const KERNEL: &str = "import triton
import triton.language as tl


# warpsmith: signature x=*fp32 n=i32 B=64
@triton.jit
def k(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.abs(tl.load(x + i, mask=i < n))
    tl.store(x + i, v, mask=i < n)
";
const TRUE: &str = "mask=i < n)";
const FALSE: &str = "mask=i < n, never=1)";

/// A promoted rule that flags the matches of this pattern.
fn rule(name: &str, pattern: &str) -> LearnedRule {
    LearnedRule {
        code: "S501".to_owned(),
        name: name.to_owned(),
        sentence: "You cannot use `{here}`.".to_owned(),
        state: RuleState::Promoted,
        origin: RuleOrigin::Learned("test".to_owned()),
        covered_by: Vec::new(),
        failures: 3,
        met: 3,
        first_seen: "2026-11-24".to_owned(),
        last_seen: "2026-11-24".to_owned(),
        error: TritonError { kind: "TypeError".to_owned(), message: "no `{here}`".to_owned() },
        triton: Releases { since: Some("3.1.0".parse().unwrap()), until: None, tried: Table::versions().to_vec() },
        pattern: pattern.to_owned(),
        bad: "# bad\n".to_owned(),
        good: "# good\n".to_owned(),
    }
}

/// A wrong rule: every release accepts what it flags.
fn wrong() -> LearnedRule {
    rule("no-abs", "((attribute) @here (#api? @here \"tl.abs\"))\n")
}

/// A correct rule: no release accepts what it flags.
fn right() -> LearnedRule {
    rule("no-never", "(keyword_argument name: (identifier) @here (#eq? @here \"never\") (#unknown-keyword? @here))\n")
}

fn state(rules: &[LearnedRule]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(store(folder.path()).add_rules(rules).unwrap().len(), rules.len());
    folder
}

fn store(state: &Path) -> Store {
    Store::of_user(&state.join("warpsmith")).unwrap()
}

fn failures(state: &Path) -> Vec<StoredFailure> {
    let mut all = Vec::new();
    store(state).each_failure(&mut |one| all.push(one)).unwrap();
    all
}

fn accepted(state: &Path) -> Vec<Accepted> {
    let mut all = Vec::new();
    store(state).each_accepted(&mut |one| all.push(one)).unwrap();
    all
}

/// A server whose compiler tier waits for this delay, in milliseconds.
fn start(state: &Path, delay: u64, select: &[&str], more: &Value) -> Client {
    let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let mut settings = json!({ "select": select, "python": python, "compiler": { "delay": delay } });
    for (key, value) in more.as_object().unwrap() {
        settings[key] = value.clone();
    }
    let mut client = Setup::new().full().state(state).options(json!({ "settings": settings })).start();
    // The server knows the delay only after it has checked a file.
    let first = client.open("first.py", "");
    client.published(&first);
    client.close(&first);
    // The published diagnostics are cleared.
    client.notification("textDocument/publishDiagnostics");
    client
}

fn command(client: &mut Client, command: &str, argument: &Value) -> Value {
    client.request("workspace/executeCommand", json!({ "command": command, "arguments": [argument] }))
}

/// The command argument of the action whose title begins with this text.
fn argument(actions: &[Value], title: &str) -> (String, Value) {
    let titles: Vec<&str> = actions.iter().map(|action| action["title"].as_str().unwrap()).collect();
    let at = titles.iter().position(|known| known.starts_with(title)).unwrap_or_else(|| panic!("{titles:?}"));
    let command = &actions[at]["command"];
    (command["command"].as_str().unwrap().to_owned(), command["arguments"][0].clone())
}

/// The actions on the only finding.
fn actions(client: &mut Client, document: &Document, found: &[Value]) -> Vec<Value> {
    let range = found[0]["range"].clone();
    client.actions(document, &range, found)
}

const SLOW: u64 = 3_600_000;

#[test]
fn a_rule_is_shown_until_triton_disproves_it() {
    let state = state(&[wrong(), right()]);
    let mut client = start(state.path(), 5, &["S"], &json!({}));
    let document = client.open("k.py", KERNEL);
    let found = client.published(&document);
    assert_eq!(codes(&found), ["S501"]);
    assert_eq!(found[0]["range"], document.range_of("tl.abs"));
    assert_eq!(found[0]["severity"], 2);
    assert_eq!(found[0]["message"], "You cannot use `tl.abs`. Triton refuses it with TypeError: no `tl.abs`");
    client.wait_for_log("Triton compiles what a learned rule forbids: it is demoted code=\"S501\"");
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    assert!(client.stop());
    let own = store(state.path()).own_rules().unwrap();
    assert_eq!(own.iter().map(|rule| rule.state).collect::<Vec<_>>(), [RuleState::Demoted, RuleState::Promoted]);
    let objection = store(state.path()).objections().unwrap().remove(0);
    assert_eq!(objection.code, "S501");
    assert!(KERNEL.contains(objection.kernel.unwrap().trim_end()));
    // The rule stays demoted in a new server.
    let mut client = start(state.path(), SLOW, &["S"], &json!({}));
    let document = client.open("k.py", KERNEL);
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    client.assert_silent();
}

#[test]
fn compile_errors_are_stored_with_the_passing_version_before_or_after() {
    let state = state(&[]);
    let mut client = start(state.path(), 5, &["C"], &json!({}));
    // The accepted version comes second: the file begins with the mistake.
    let mut document = client.open("k.py", &KERNEL.replacen(TRUE, FALSE, 1));
    while codes(&client.published(&document)) != ["C001"] {}
    client.replace(&mut document, FALSE, TRUE);
    client.wait_for_log("about `k` verdict=\"accepted\"");
    while !client.published(&document).is_empty() {}
    // The accepted version comes first.
    client.replace(&mut document, "tl.abs(", "tl.abs(oops + ");
    while codes(&client.published(&document)) != ["C001"] {}
    // The same mistake with another name is not stored again.
    client.replace(&mut document, "oops + ", "oops2 + ");
    client.wait_for_log("oops2");
    client.stop_ignoring("textDocument/publishDiagnostics");
    let stored = failures(state.path());
    assert_eq!(stored.len(), 2, "{stored:#?}");
    for (one, (place, message)) in stored.iter().zip([
        ("tl.load(x + i, mask=i < n, never=1)", "load() got an unexpected keyword argument 'never'"),
        ("oops", "oops is not defined"),
    ]) {
        let failure = &one.failure;
        let (start, end) = failure.place.unwrap();
        assert_eq!(&failure.text[start..end], place);
        assert!(failure.error.message.contains(message), "{failure:?}");
        assert_eq!((failure.kernel.as_str(), failure.source.as_str(), one.met), ("k", "editor", 1));
        assert!(
            failure.triton.starts_with('3')
                && failure.text.starts_with("# warpsmith: signature k: n=i32 x=*fp32 B=64\n")
        );
        assert!(
            failure.nearest_passing.as_ref().unwrap().contains("v = tl.abs(tl.load(x + i, mask=i < n))"),
            "{failure:?}"
        );
    }
    let accepted = accepted(state.path());
    assert_eq!(accepted.len(), 1);
    assert_eq!(Some(&accepted[0].text), stored[0].failure.nearest_passing.as_ref());
}

/// Kernels that Triton rejects for one cause, which no built-in rule knows, as if they had been edited before.
fn refused_for_one_cause() -> Vec<RefusedKernel> {
    let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let oracle = Oracle::start(python.into(), 1).unwrap();
    let calls = ["tl.join(i, v)", "tl.join(v, i)", "tl.join(i, v * 2)", "tl.join(i + 1, v)", "tl.join(n, v)"];
    let refused = |(number, call): (usize, &&str)| {
        let name = format!("k{number}");
        let kernel = KERNEL.replace("def k(", &format!("def {name}("));
        let text = kernel.replace("    tl.store", &format!("    low = {call}\n    tl.store"));
        let verdicts = oracle.verdicts(&[KernelProgram::new(text.clone(), &name)]);
        let failing = verdicts[0].failing().unwrap();
        RefusedKernel {
            place: failing.span.map(|span| (span.start, span.end)),
            text,
            kernel: name,
            nearest_passing: Some(kernel),
            error: TritonError { kind: failing.kind.clone(), message: failing.message.clone() },
            triton: oracle.release().to_owned(),
            source: "editor".to_owned(),
        }
    };
    calls.iter().enumerate().map(refused).collect()
}

#[test]
fn rules_are_learned_when_nothing_is_edited_for_a_while() {
    let state = state(&[]);
    store(state.path()).keep_failures(&refused_for_one_cause()).unwrap();
    let mut client = start(state.path(), 5, &["C", "S"], &json!({ "memory": { "learn-after": 1 } }));
    let mut document = client.open("k.py", KERNEL);
    client.wait_for_log("about `k` verdict=\"accepted\"");
    client.replace(&mut document, "    tl.store", "    low = tl.join(i, v + 1)\n    tl.store");
    while codes(&client.published(&document)) != ["C001"] {}
    let message = client.notification("window/logMessage")["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("Learned from kernels that Triton has rejected") && message.contains("tl.join"),
        "{message}"
    );
    assert!(store(state.path()).memory().unwrap().rules().any(|rule| rule.pattern.contains("tl.join")));
    client.stop_ignoring("textDocument/publishDiagnostics");
}

#[test]
fn closing_a_file_stores_its_compile_error() {
    let state = state(&[]);
    let mut client = start(state.path(), 5, &["C"], &json!({}));
    let document = client.open("k.py", &KERNEL.replacen(TRUE, FALSE, 1));
    while codes(&client.published(&document)) != ["C001"] {}
    client.close(&document);
    client.stop_ignoring("textDocument/publishDiagnostics");
    let stored = failures(state.path());
    assert_eq!((stored.len(), &stored[0].failure.nearest_passing), (1, &None));
}

#[test]
fn disabled_memory_shows_and_stores_nothing() {
    let state = state(&[wrong()]);
    for (memory, shown) in [(json!({ "enabled": false }), 0), (json!({ "learn": false }), 1)] {
        let mut client = start(state.path(), SLOW, &["S"], &json!({ "memory": memory }));
        let document = client.open("k.py", KERNEL);
        assert_eq!(client.published(&document).len(), shown, "{memory}");
        let mut client = start(state.path(), 5, &["C"], &json!({ "memory": memory }));
        let document = client.open("k.py", &KERNEL.replacen("tl.abs(", "oops(", 1));
        while codes(&client.published(&document)) != ["C001"] {}
        client.stop_ignoring("textDocument/publishDiagnostics");
        assert!(failures(state.path()).is_empty());
    }
}

#[test]
fn a_learned_rule_is_dropped_if_triton_accepts_the_kernel() {
    let state = state(&[wrong(), right()]);
    let mut client = start(state.path(), SLOW, &["S"], &json!({}));
    let document = client.open("k.py", KERNEL);
    let found = client.published(&document);
    let actions_of_wrong = actions(&mut client, &document, &found);
    let (name, about) = argument(&actions_of_wrong, "This is wrong");
    command(&mut client, &name, &about);
    let said = client.notification("window/showMessage");
    assert_eq!(said["message"], "Triton accepts `k`: S501 is wrong and is no longer shown");
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    let other = client.open("b.py", &KERNEL.replacen(TRUE, FALSE, 1));
    let found = client.published(&other);
    assert_eq!(codes(&found), ["S502"]);
    let actions_of_right = actions(&mut client, &other, &found);
    let (name, about) = argument(&actions_of_right, "This is wrong");
    for _ in 0..2 {
        command(&mut client, &name, &about);
        let said = client.notification("window/showMessage");
        let said = said["message"].as_str().unwrap();
        assert!(said.starts_with("Triton refuses `k` (") && said.ends_with("), so S502 stays"), "{said}");
    }
    client.stop_ignoring("textDocument/publishDiagnostics");
    let own = store(state.path()).own_rules().unwrap();
    assert_eq!(own.iter().map(|rule| rule.state).collect::<Vec<_>>(), [RuleState::Demoted, RuleState::Promoted]);
}

#[test]
fn a_rule_can_be_muted_and_its_reproducer_shown() {
    let state = state(&[right()]);
    let mut client = start(state.path(), SLOW, &["S"], &json!({}));
    let document = client.open("k.py", &KERNEL.replacen(TRUE, FALSE, 1));
    let found = client.published(&document);
    let offered = actions(&mut client, &document, &found);
    let (text, _) = client.hover(&document, "never").unwrap();
    assert!(text.contains("# S501 no-never") && text.contains("# bad"), "{text}");
    let (name, about) = argument(&offered, "Show what S501 was learned from");
    let shown = command(&mut client, &name, &about);
    let page = std::fs::read_to_string(shown["path"].as_str().unwrap()).unwrap();
    assert!(page.contains("# bad") && page.contains("# good"), "{page}");
    let said = client.notification("window/showMessage");
    assert!(said["message"].as_str().unwrap().starts_with("the reproducer is in "));
    let (name, about) = argument(&offered, "Mute S501 everywhere");
    assert_eq!(command(&mut client, &name, &about), json!({ "muted": "S501" }));
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    let unknown = json!({ "command": name, "arguments": [{ "code": "S999" }] });
    assert!(client.request_error("workspace/executeCommand", unknown).1.contains("no learned rule `S999`"));
    assert!(client.stop());
    let mut client = start(state.path(), SLOW, &["S"], &json!({}));
    let document = client.open("k.py", &KERNEL.replacen(TRUE, FALSE, 1));
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    client.assert_silent();
}

#[test]
fn a_learned_rule_does_not_repeat_the_finding_of_a_built_in_one() {
    let state = state(&[right()]);
    let mut client = start(state.path(), 5, &["S", "C"], &json!({}));
    let document = client.open("k.py", &KERNEL.replacen(TRUE, FALSE, 1));
    while codes(&client.published(&document)) != ["C001"] {}
    let mut client = start(state.path(), SLOW, &["S", "L"], &json!({}));
    let document = client.open("k.py", &KERNEL.replacen(TRUE, FALSE, 1));
    assert_eq!(codes(&client.published(&document)), ["L009"]);
}

#[test]
fn two_servers_at_a_time_lose_nothing() {
    let state = state(&[wrong(), right()]);
    let mut clients = ["a", "b"].map(|name| {
        let client = start(state.path(), 5, &["C"], &json!({}));
        (name, client)
    });
    let mut documents: Vec<Document> = Vec::new();
    for (name, client) in &mut clients {
        documents.push(client.open("k.py", &KERNEL.replace("def k", &format!("def k{name}"))));
    }
    for round in 0..4 {
        for ((name, client), document) in clients.iter_mut().zip(&mut documents) {
            // In each round both clients make another mistake at the same time.
            let (good, bad) = ("i = tl.arange(0, B)", format!("i = tl.arange(0, B, {name}{round}=1)"));
            client.replace(document, good, &bad);
        }
        for ((name, client), document) in clients.iter_mut().zip(&mut documents) {
            client.wait_for_log(&format!("{name}{round}'"));
            let bad = format!("i = tl.arange(0, B, {name}{round}=1)");
            client.replace(document, &bad, "i = tl.arange(0, B)");
        }
        for ((_, client), _) in clients.iter_mut().zip(&documents) {
            let accepted = |client: &Client| client.log().matches("verdict=\"accepted\"").count();
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
            while accepted(client) < round + 1 {
                assert!(std::time::Instant::now() < deadline, "{}", client.log());
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
    }
    for (_, mut client) in clients {
        client.stop_ignoring("textDocument/publishDiagnostics");
    }
    let stored = failures(state.path());
    let mut messages: Vec<&str> = stored.iter().map(|one| one.failure.error.message.as_str()).collect();
    messages.sort_unstable();
    assert_eq!(stored.len(), 8, "{messages:#?}");
    assert_eq!(accepted(state.path()).len(), 2);
    let own = store(state.path()).own_rules().unwrap();
    assert_eq!(own.iter().map(|rule| rule.state).collect::<Vec<_>>(), [RuleState::Demoted, RuleState::Promoted]);
}

#[test]
fn a_damaged_store_is_set_aside_and_the_server_runs_on() {
    let state = state(&[wrong()]);
    let folder = state.path().join("warpsmith");
    for left in ["store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(folder.join(left));
    }
    std::fs::write(folder.join("store.db"), "nonsense ".repeat(1000)).unwrap();
    let mut client = start(state.path(), 5, &["C"], &json!({}));
    let document = client.open("k.py", KERNEL);
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    client.wait_for_log("a damaged store is set aside");
    client.wait_for_log("about `k` verdict=\"accepted\"");
    client.stop_ignoring("textDocument/publishDiagnostics");
    assert_eq!(accepted(state.path()).len(), 1);
    let aside = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    assert_eq!(aside.filter(|name| name.contains(".damaged-")).count(), 1);
}
