//! The compiler tier against Triton itself: the verdicts that nine releases gave, and processes that die.
//!
//! Runs with the Triton of `WARPSMITH_TEST_PYTHON`; `WARPSMITH_TRITONS=DIR` (with `VERSION/sp`, an unpacked Triton each)
//! runs all of them.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value as Json, json};
use warpsmith::compiler::protocol::{Answer, Request, SourceFile};
use warpsmith::compiler::{Session, Status};

fn python() -> PathBuf {
    std::env::var_os("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`").into()
}

/// A constant as `worker.py` takes it, from one of the data.
fn constant(value: &Json) -> Json {
    match value {
        Json::String(text) if text.starts_with("__tl.") => json!({ "dtype": &text[5..] }),
        Json::Array(items) => json!({ "tuple": items.iter().map(constant).collect::<Vec<_>>() }),
        Json::Object(entries) => json!({ "dict": entries.iter().map(|(k, v)| (k, constant(v))).collect::<Vec<_>>() }),
        other => other.clone(),
    }
}

fn request(text: &str, signature: &Json, constexprs: &Json) -> Request {
    let texts = |(name, value): (&String, &Json)| (name.clone(), value.as_str().unwrap().to_owned());
    Request {
        id: 0,
        files: vec![SourceFile { name: "program".to_owned(), text: text.to_owned(), imports: Vec::new() }],
        kernel: "k".to_owned(),
        signature: signature.as_object().unwrap().iter().map(texts).collect(),
        constexprs: constexprs.as_object().unwrap().iter().map(|(k, v)| (k.clone(), constant(v))).collect(),
        aligned: Vec::new(),
        target: ("cuda".to_owned(), json!(90), 32),
        options: BTreeMap::new(),
        types: true,
        seconds: 30.0,
    }
}

fn version(session: &mut Session) -> String {
    session.answer(add(1)).unwrap();
    let Status::Ready { triton } = session.status() else { panic!("{:?}", session.status()) };
    triton.clone()
}

/// A kernel that compiles, each number another one.
fn add(number: usize) -> Request {
    let text = format!(
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, B: tl.constexpr):\n    i = tl.arange(0, B)\n    \
         tl.store(x + i, tl.load(x + i) + {number})\n"
    );
    request(&text, &json!({ "x": "*fp32" }), &json!({ "B": 64 }))
}

/// The verdict: whether it is accepted, and the line and column of the error.
fn verdict(answer: &Answer) -> (bool, Option<(u32, u32)>) {
    let place = answer.error.as_ref().and_then(|error| error.places.last()).map(|place| (place.1, place.2));
    (answer.accepted, place)
}

#[test]
fn verdicts_are_those_of_the_table() {
    let mut session = Session::new(python());
    let version = version(&mut session);
    let (mut asked, mut wrong) = (0, Vec::new());
    for data in [include_str!("data/frontend_snippets.json"), include_str!("data/frontend_more.json")] {
        let data: Json = serde_json::from_str(data).unwrap();
        for snippet in data["snippets"].as_array().unwrap() {
            let of_version = |(versions, _): &(&String, &Json)| versions.split(' ').any(|one| one == version);
            let results = snippet["results"].as_object().unwrap();
            let Some((_, expected)) = results.iter().find(of_version) else { continue };
            if expected["error_type"] == "Crash" {
                continue;
            }
            let text = snippet["source"].as_str().unwrap();
            let answer = session.answer(request(text, &snippet["signature"], &snippet["constexprs"])).unwrap();
            let number = |name: &str| expected[name].as_u64().map(|number| u32::try_from(number).unwrap());
            let place = number("line").zip(number("col"));
            asked += 1;
            let got = verdict(&answer);
            let is_answered = answer.unable.is_none() && answer.crashed.is_none();
            // What fails when the file is loaded has no place in the table.
            let is_load = answer.error.as_ref().is_some_and(|error| error.kind == "load");
            let got = if is_load { (got.0, None) } else { got };
            if !is_answered || got != (expected["ok"] == true, place) {
                wrong.push(format!("{}: {got:?}, not {expected}: {answer:?}", snippet["id"]));
            }
        }
    }
    println!("{asked} programs, Triton {version}");
    assert!(asked > 1000, "{asked}");
    assert!(wrong.is_empty(), "{} of {asked}\n{}", wrong.len(), wrong.join("\n"));
}
