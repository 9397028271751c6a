//! Tests of `warpsmith memory`, and of the effect of learned rules on other commands.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

#[path = "common/folder.rs"]
mod folder;

use folder::Folder;
use learn::SkillMemory as _;
use serde_json::Value;
use store::Store;

/// A memory file with a correct rule.
const MEMORY: &str = r##"format = 1

[S007]
name = "no-never"
sentence = "You cannot pass `{here}` to `tl.load`."
state = "promoted"
origin = "synthesised with seed 1"
failures = 5
met = 9
first-seen = "2026-11-24"
last-seen = "2026-11-25"
exception = "TypeError"
message = "load() got an unexpected keyword argument '{here}'"
since = "3.1.0"
tried = ["3.1.0", "3.9.0"]
pattern = "(keyword_argument name: (identifier) @here (#eq? @here \"never\"))"
bad = "# bad"
good = "# good"
"##;

const KERNEL: &str = "import triton
import triton.language as tl


@triton.jit
def k(x):
    tl.load(x, never=1)
";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Proves the rule `S501`, in the same way as `warpsmith memory prove`.
fn promote(folder: &Folder) {
    let mut store = Store::of_user(&folder.path().join(".state/warpsmith")).unwrap();
    let rule = rules::learned::parse(MEMORY, &|_| None).unwrap().remove(0);
    let proven = |own: &mut rules::learned::LearnedRule| {
        own.state = rule.state;
        own.triton = rule.triton.clone();
    };
    assert!(store.change_rule("S501", proven).unwrap());
}

#[test]
fn what_is_imported_is_a_candidate_until_it_is_proven() {
    let folder = Folder::new(&[("m.toml", MEMORY), ("k.py", KERNEL)]);
    let ran = folder.run(&["memory", "import", "m.toml"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(ran.out, "1 candidates, S501 to S501: `warpsmith memory prove` tries them\n");
    assert_eq!(folder.found(&["--select", "S"]), [""; 0]);
    let listed = json(&folder.run(&["memory", "list", "--format", "json"]).out);
    let own = listed["rules"].as_array().unwrap().iter().find(|rule| rule["code"] == "S501").unwrap().clone();
    assert_eq!((&own["state"], &own["shown"], &own["failures"]), (&"candidate".into(), &false.into(), &0.into()));
    assert_eq!(own["origin"], "imported from m.toml");
    promote(&folder);
    let ran = folder.run(&["check", "--select", "S"]);
    assert_eq!(ran.code, 1);
    let message = "warning[S501]: You cannot pass `never` to `tl.load`. Triton refuses it with TypeError: load() got an unexpected keyword \
                   argument 'never'";
    assert!(ran.out.contains(message) && ran.out.contains("no-never: `warpsmith explain S501`"), "{}", ran.out);
    assert_eq!(folder.found(&["--select", "S501"]), ["k.py:7"]);
    assert_eq!(folder.found(&["--select", "S", "--ignore", "S501"]), [""; 0]);
    let ignored = KERNEL.replace("never=1)", "never=1)  # warpsmith: ignore[S501]");
    folder.write("k.py", ignored.as_bytes());
    assert_eq!(folder.found(&["--select", "S"]), [""; 0]);
    folder.write("k.py", KERNEL.as_bytes());
    folder.write("warpsmith.toml", b"memory.enabled = false\n");
    assert_eq!(folder.found(&["--select", "S"]), [""; 0]);
}

#[test]
fn rules_are_shown_explained_exported_and_forgotten() {
    let folder = Folder::new(&[("m.toml", MEMORY)]);
    folder.run(&["memory", "import", "m.toml"]);
    promote(&folder);
    for words in [["memory", "show", "S501"], ["memory", "show", "no-never"], ["explain", "s501", "--color=never"]] {
        let ran = folder.run(&words);
        assert_eq!(ran.code, 0, "{}", ran.err);
        for piece in [
            "# S501 no-never\n",
            "You cannot pass `…` to `tl.load`.",
            "Triton 3.1 to 3.9",
            "# bad",
            "# good",
            "(#eq? @here",
        ] {
            assert!(ran.out.contains(piece), "{piece}: {}", ran.out);
        }
    }
    let rules = json(&folder.run(&["rules", "--format", "json"]).out);
    let own = rules.as_array().unwrap().last().unwrap().clone();
    assert_eq!((&own["code"], &own["family"]), (&"S501".into(), &"learned skills".into()));
    assert_eq!(folder.run(&["memory", "export", "--out", "o.toml"]).out, "wrote 1 rules into o.toml\n");
    let exported = std::fs::read_to_string(folder.path().join("o.toml")).unwrap();
    assert_eq!(folder.run(&["memory", "export"]).out, exported);
    // Another user imports the rule.
    let other = Folder::new(&[("o.toml", &exported)]);
    other.run(&["memory", "import", "o.toml"]);
    let again = other.run(&["memory", "export"]).out;
    assert!(again.contains("state = \"candidate\"") && again.contains("origin = \"imported from o.toml\""), "{again}");
    let ran = folder.run(&["memory", "show", "no-nver"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("did you mean `no-never`?"), "{}", ran.err);
    assert_eq!(folder.run(&["memory", "forget", "no-never"]).out, "forgot S501\n");
    assert_eq!(folder.run(&["memory", "show", "S501"]).code, 2);
}

#[test]
fn other_memories_are_read_line_by_line() {
    let lines = "You cannot use `break` in a loop||12\nnonsense\nYou cannot use `break` in a loop.||3\n";
    let folder = Folder::new(&[("lines.txt", lines)]);
    let ran = folder.run(&["memory", "import", "lines.txt"]);
    assert_eq!(ran.code, 0);
    assert_eq!(ran.err, "warning: lines.txt: line 2 does not have the form `You cannot …||count`\n");
    let shown = json(&folder.run(&["memory", "show", "S501", "--format", "json"]).out);
    assert_eq!((&shown[0]["met"], &shown[0]["state"]), (&15.into(), &"candidate".into()));
    let ran = folder.run(&["memory", "list"]);
    assert!(
        ran.out.contains("S501  candidate") && ran.out.contains("You cannot use `break` in a loop."),
        "{}",
        ran.out
    );
    folder.write("bad.toml", b"format = 1\n[S001]\nname = 1\n");
    let ran = folder.run(&["memory", "import", "bad.toml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("bad.toml: S001: "), "{}", ran.err);
}

#[test]
fn a_damaged_store_does_not_prevent_a_check() {
    let folder = Folder::new(&[("k.py", KERNEL), (".state/warpsmith/store.db", &"nonsense ".repeat(1000))]);
    let ran = folder.run(&["check", "--select", "L009"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains("error[L009]"), "{}", ran.out);
}

/// Uses the real Triton of `WARPSMITH_TEST_PYTHON`.
#[test]
fn a_learned_rule_is_demoted_if_triton_compiles_the_kernel() {
    let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let wrong =
        MEMORY.replace("(keyword_argument name: (identifier) @here (#eq? @here \\\"never\\\"))", "(attribute) @here");
    assert_ne!(wrong, MEMORY);
    let good = KERNEL.replace(", never=1", "").replace("@triton.jit", "# warpsmith: signature x=*fp32\n@triton.jit");
    let settings = format!("python = {python:?}\n");
    let folder = Folder::new(&[("m.toml", &wrong), ("k.py", &good), ("warpsmith.toml", &settings)]);
    folder.run(&["memory", "import", "m.toml"]);
    promote(&folder);
    assert_eq!(folder.found(&["--select", "S"]), ["k.py:8"]);
    let ran = folder.run(&["check", "--compile", "--select", "S"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "warning: Triton compiles `k`, which S501 forbids: demoted\n"));
    assert_eq!(folder.found(&["--select", "S"]), [""; 0]);
    assert!(folder.run(&["memory", "show", "S501"]).out.contains("## What disproves it"));
}
