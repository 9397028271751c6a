//! Tests of the repository itself: layers, file sizes, leftovers and generated files.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

// The code that writes the generated files, so that a plain `cargo test` notices stale ones.
#[path = "../xtask/generate/src/files.rs"]
#[expect(dead_code, reason = "the chore also writes")]
mod files;
#[path = "../xtask/generate/src/picture.rs"]
mod picture;
#[path = "../xtask/generate/src/vscode.rs"]
mod vscode;

use std::path::{Path, PathBuf};

/// Files longer than the first number of lines are hard to read; files longer than the second are not accepted.
const LONG: usize = 400;
const TOO_LONG: usize = 500;

/// Libraries that only one half of the program may name: a word, and the folder that may contain it. The dependencies
/// of a crate are in its manifest.
const ONLY_IN: &[(&str, &str)] = &[("tower_lsp", "src/server"), ("tokio", "src/server"), ("clap", "src/cli")];

/// The crates that are pure functions of text.
const PURE: &[&str] = &["crates/model/src/", "crates/rules/src/", "crates/ide/src/"];
const IMPURE: &[&str] = &["std::fs", "std::process", "std::net", "std::env", "std::thread", "std::time"];

/// The crates from the bottom to the top; each may depend on those before it.
const LAYERS: &[&str] = &[
    "base",
    "protocol",
    "fence",
    "config",
    "model",
    "store",
    "rules",
    "ide",
    "runtime",
    "compiler",
    "workload",
    "judge",
    "transform",
    "llm",
    "learn",
    "search",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text files of the repository, without those that git ignores.
fn files() -> Vec<(String, String)> {
    let walk = ignore::WalkBuilder::new(root())
        .hidden(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_name(Ord::cmp)
        .build();
    walk.map(Result::unwrap)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter_map(|entry| {
            let path: PathBuf = entry.path().strip_prefix(root()).unwrap().into();
            Some((path.to_str()?.to_owned(), std::fs::read_to_string(entry.path()).ok()?))
        })
        .collect()
}

/// The code of the program and its crates, without comments and tests.
fn code() -> Vec<(String, String)> {
    let is_code = |path: &str| {
        let is_ours = path.starts_with("src/") || (path.starts_with("crates/") && path.contains("/src/"));
        is_ours && path.ends_with(".rs") && !path.contains("/tests")
    };
    let stripped = |text: &str| {
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    };
    files().into_iter().filter(|(path, _)| is_code(path)).map(|(path, text)| (path, stripped(&text))).collect()
}

fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// Whether `word` occurs in `text` as a whole word.
fn names(text: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(is_word)
            && !text[at + word.len()..].chars().next().is_some_and(is_word)
    })
}

#[test]
fn lsp_and_the_command_line_have_their_own_libraries() {
    let mut problems = Vec::new();
    for (path, text) in code().iter().filter(|(path, _)| path.starts_with("src/")) {
        for (word, place) in ONLY_IN {
            if names(text, word) && !path.starts_with(place) {
                problems.push(format!("{path}: names `{word}`, which belongs to {place}"));
            }
        }
    }
    assert_none(&problems);
}

/// Cargo refuses cycles; this also refuses a dependency on a higher crate that makes no cycle yet.
#[test]
fn crates_depend_on_lower_ones_alone() {
    let mut problems = Vec::new();
    for (at, layer) in LAYERS.iter().enumerate() {
        let manifest = std::fs::read_to_string(root().join("crates").join(layer).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        for name in manifest.get("dependencies").and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys)
        {
            if LAYERS[at..].contains(&name.as_str()) {
                problems.push(format!("crates/{layer} depends on `{name}`, which is not below it"));
            }
            if *layer == "config" && LAYERS.contains(&name.as_str()) {
                problems.push(format!("crates/config depends on `{name}`: settings are plain data"));
            }
        }
    }
    assert_none(&problems);
}

/// Findings are kept while the text above them grows, so a rule must get line numbers from its context.
#[test]
fn rules_ask_their_context_for_lines() {
    let own = ["context.rs", "cached_findings.rs", "suppression.rs"].map(|name| format!("crates/rules/src/{name}"));
    let is_other = |path: &str| path.starts_with("crates/rules/src/") && !own.iter().any(|own| own == path);
    let asks = code().into_iter().filter(|(path, text)| is_other(path) && text.contains(".lines().line_of("));
    let problems: Vec<String> = asks.map(|(path, _)| format!("{path}: `RuleContext::line_of` gives lines")).collect();
    assert_none(&problems);
}

/// A candidate writes some of the messages: what they say must not decide how it is judged.
#[test]
fn the_judge_and_the_search_look_for_nothing_in_messages() {
    const MESSAGES: [&str; 7] = ["why", "evidence", "error", "message", "failure", "said", "stderr"];
    const SEARCHES: [&str; 5] = ["contains", "starts_with", "lines", "find", "matches"];
    let is_judged = |path: &str| path.starts_with("crates/judge/src/") || path.starts_with("crates/search/src/");
    // The texts that these read are source code.
    let reads_code = |path: &str| path.ends_with("/external_uses.rs") || path.ends_with("/arithmetic.rs");
    let mut problems = Vec::new();
    for (path, text) in code().iter().filter(|(path, _)| is_judged(path) && !reads_code(path)) {
        for (message, search) in MESSAGES.iter().flat_map(|message| SEARCHES.map(|search| (message, search))) {
            let words = [".", "()."].map(|call| format!("{message}{call}{search}("));
            let texts = [".to_string().", ".as_str().", ".text."].map(|call| format!("{message}{call}{search}("));
            if let Some(found) = words.iter().chain(&texts).find(|words| text.contains(*words)) {
                problems.push(format!("{path}: `{found}` decides by a message; give the failure a cause"));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn the_model_the_rules_and_the_ide_are_pure() {
    let mut problems = Vec::new();
    for (path, text) in code() {
        for word in IMPURE.iter().filter(|word| PURE.iter().any(|place| path.starts_with(place)) && names(&text, word))
        {
            problems.push(format!("{path}: names `{word}`; the model does no input or output"));
        }
    }
    assert_none(&problems);
}

/// In `tests/`, Cargo would take `common.rs` for a test program.
#[test]
fn a_module_with_parts_is_a_file_beside_its_folder() {
    let is_ours = |path: &str| path.starts_with("src/") || path.starts_with("crates/");
    let others = files().into_iter().filter(|(path, _)| is_ours(path) && path.ends_with("/mod.rs"));
    let problems: Vec<String> = others.map(|(path, _)| format!("{path}: call it as its folder, beside that")).collect();
    assert_none(&problems);
}

#[test]
fn files_are_short_enough_to_read() {
    let mut problems = Vec::new();
    for (path, text) in files().iter().filter(|(path, _)| path.ends_with(".rs")) {
        let lines = text.lines().count();
        if lines > TOO_LONG {
            problems.push(format!("{path}: {lines} lines, at most {TOO_LONG}: where is the seam?"));
        } else if lines > LONG {
            println!("warning: {path} has {lines} lines: think of a seam");
        }
    }
    assert_none(&problems);
}

#[test]
fn nothing_is_left_unfinished() {
    // Written such that this file does not contain them.
    let leftovers = [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("dbg", "!("), concat!("FIX", "ME")];
    let mut problems = Vec::new();
    for (path, text) in files().iter().filter(|(path, _)| path.ends_with(".rs")) {
        for word in leftovers.iter().filter(|word| text.contains(**word)) {
            problems.push(format!("{path}: contains `{word}`"));
        }
    }
    assert_none(&problems);
}

#[test]
fn no_file_names_a_place_of_one_machine() {
    let places = [concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/"), concat!("/", "Users/")];
    // In these forms the path is an example for readers.
    let allowed = ["/home/you/", "/home/me/"];
    let mut problems = Vec::new();
    for (path, text) in files() {
        for (number, line) in text.lines().enumerate() {
            let line = allowed.iter().fold(line.to_owned(), |line, example| line.replace(example, ""));
            if places.iter().any(|place| line.contains(place)) {
                problems.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn links_in_the_manual_lead_somewhere() {
    let mut problems = Vec::new();
    for (path, text) in
        files().iter().filter(|(path, _)| path.ends_with(".md") && !path.starts_with("crates/rules/src/"))
    {
        let folder = root().join(path).parent().unwrap().to_path_buf();
        // In code, `kernel[grid](x)` is not a link, so text between backticks, in a block or a line, is skipped.
        let prose: String = text.split("```").step_by(2).flat_map(|part| part.split('`').step_by(2)).collect();
        for (_, rest) in prose.match_indices("](").map(|(at, _)| prose.split_at(at + 2)) {
            let target = rest.split([')', '#']).next().unwrap();
            if !target.is_empty() && !target.contains("://") && !folder.join(target).exists() {
                problems.push(format!("{path}: links to `{target}`, which does not exist"));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn generated_files_are_fresh() {
    // Cargo runs tests in the package's folder, as the picture's command needs.
    if let Err(error) = files::run(root(), files::FileMode::Check) {
        panic!("{error:#}");
    }
}
