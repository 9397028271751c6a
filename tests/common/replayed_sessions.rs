//! Editor sessions recorded on a GPU, replayed by a fake server: `tests/gpu/standin.py`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::recording::write_program;

/// The contents of a recorded session.
pub(crate) struct Played {
    kept: PathBuf,
    /// The text of the file when it was opened.
    pub(crate) before: String,
    /// The text of the file after the edit.
    pub(crate) after: String,
    /// The title of the edit, with the measured speedup.
    pub(crate) title: String,
}

impl Played {
    /// Reads one of the sessions in `tests/gpu/sessions/`.
    pub(crate) fn new(name: &str) -> Self {
        let kept = gpu().join("sessions").join(name);
        let said: Vec<Value> = fs::read_to_string(&kept)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["message"].take())
            .collect();
        let params =
            |method: &str| &said.iter().find(|message| message["method"] == method).expect("was said")["params"];
        let before = params("textDocument/didOpen")["textDocument"]["text"].as_str().unwrap().to_owned();
        let offer = params("workspace/applyEdit");
        Self {
            after: edited(&before, offer["edit"]["documentChanges"][0]["edits"].as_array().unwrap()),
            title: offer["label"].as_str().unwrap().to_owned(),
            before,
            kept,
        }
    }

    /// Writes a program that an editor starts instead of the server.
    pub(crate) fn stand_in(&self, program: &Path, speed: u32) {
        let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
        let (script, kept) = (gpu().join("standin.py"), self.kept.display());
        let start =
            format!("#!/bin/sh\nexec '{python}' '{}' serve '{kept}' --speed {speed} \"$@\"\n", script.display());
        write_program(program, &start);
    }
}

fn gpu() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu")
}

/// A text with edits applied. All texts of the sessions are ASCII, so a byte is a UTF-16 code unit.
fn edited(before: &str, edits: &[Value]) -> String {
    let starts: Vec<usize> =
        std::iter::once(0).chain(before.match_indices('\n').map(|(newline, _)| newline + 1)).collect();
    let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    let offset = |position: &Value| starts[number(&position["line"])] + number(&position["character"]);
    let mut spans: Vec<_> = edits
        .iter()
        .map(|edit| (offset(&edit["range"]["start"])..offset(&edit["range"]["end"]), edit["newText"].as_str().unwrap()))
        .collect();
    spans.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    spans.into_iter().fold(before.to_owned(), |mut text, (span, new)| {
        text.replace_range(span, new);
        text
    })
}
