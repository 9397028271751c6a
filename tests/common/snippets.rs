//! Short programs with the verdicts of nine Triton releases.

use serde_json::Value;

/// The programs in a file.
pub(crate) fn snippets(name: &str) -> Vec<Value> {
    let path = format!("{}/tests/data/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let mut data: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    match data["snippets"].take() {
        Value::Array(snippets) => snippets,
        other => panic!("no list: {other}"),
    }
}

/// The text of a program, with the types and values that it was compiled for in a signature comment.
pub(crate) fn program(snippet: &Value) -> String {
    let mut comment = "# warpsmith: signature k:".to_owned();
    let parameters = |kind: &str| snippet[kind].as_object().unwrap().clone();
    for (name, ty) in parameters("signature") {
        comment += &format!(" {name}={}", ty.as_str().unwrap());
    }
    for (name, value) in parameters("constexprs") {
        comment += &format!(" {name}={}", literal(&value));
    }
    format!("{}\n{comment}\n", snippet["source"].as_str().unwrap())
}

/// A value as a Python literal.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => match text.strip_prefix("__tl.") {
            Some(dtype) => format!("tl.{dtype}"),
            None => format!("\"{text}\""),
        },
        other => other.to_string(),
    }
}

/// The verdict of each release.
pub(crate) fn verdicts(snippet: &Value) -> impl Iterator<Item = (&str, &Value)> {
    // A key may list several releases that have the same verdict.
    let verdicts = snippet["results"].as_object().unwrap().iter();
    verdicts.flat_map(|(versions, verdict)| versions.split(' ').map(move |one| (one, verdict)))
}
