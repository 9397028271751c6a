//! Tests of the command line, which is run in the same way as by users.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

#[path = "common/folder.rs"]
mod folder;

use std::path::Path;
use std::process::Stdio;

use folder::Folder;
use serde_json::Value;

/// A mistake that is an error in every Triton version, after text that is not ASCII.
const BAD: &str = "import triton
import triton.language as tl


@triton.jit
def k(x_ptr, n):
    é: tl.constexpr = \"😀\"; b = tl.float32(n)
";

/// The same with two mistakes in a launch-free file of its own; suppressed as the comments say.
const SUPPRESSED: &str = "import triton
import triton.language as tl


@triton.jit
def k(x_ptr, n):
    a = tl.float32(n)  # warpsmith: ignore[L002]
    # warpsmith: ignore[dtype-called]
    b = tl.float32(n)
    c = tl.float32(n)  # warpsmith: ignore[M001]
";

const CLEAN: &str = "import triton
import triton.language as tl


@triton.jit
def k(x_ptr, n):
    a = tl.cast(n, tl.float32)
";

#[test]
fn text_output_shows_excerpts_and_a_summary() {
    let ran = Folder::new(&[("a.py", BAD), ("b.py", "print()")]).run(&["check"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    for piece in [
        "error[L002]: ",
        " --> a.py:7:32\n",
        "tl.float32(n)",
        "^^^^",
        "dtype-called",
        "help: ",
        "+     é: tl.constexpr =",
    ] {
        assert!(ran.out.contains(piece), "{piece}\n{}", ran.out);
    }
    assert!(ran.out.ends_with("\nFound 1 error in 1 of 2 files; --fix fixes 1.\n"), "{}", ran.out);
    assert!(!ran.out.contains('\u{1b}'), "no colours into a pipe");
    let clean = Folder::new(&[("a.py", CLEAN)]).run(&["check", "a.py"]);
    assert_eq!((clean.code, clean.out.as_str()), (0, "Found nothing in 1 file.\n"));
}

#[test]
fn the_color_option_decides_on_escape_sequences() {
    let folder = Folder::new(&[("a.py", BAD)]);
    assert!(folder.run(&["check", "--color", "always"]).out.contains("\u{1b}["));
    assert!(!folder.run(&["check", "--color", "never"]).out.contains("\u{1b}["));
}

#[test]
fn json_counts_code_points() {
    let ran = Folder::new(&[("a.py", BAD)]).run(&["check", "--format", "json"]);
    let all: Value = serde_json::from_str(&ran.out).unwrap();
    let it = &all[0];
    let keys: Vec<_> = it.as_object().unwrap().keys().map(String::as_str).collect();
    let wanted =
        ["path", "line", "column", "end_line", "end_column", "code", "name", "severity", "message", "url", "fix"];
    assert_eq!(keys, wanted);
    let line = BAD.lines().nth(6).unwrap();
    let column = line[..line.find("tl.float32(n)").unwrap()].chars().count() + 1;
    let place =
        |value: &Value| [&value["line"], &value["column"], &value["end_line"], &value["end_column"]].map(Value::as_u64);
    assert_eq!(place(it), [7, column, 7, column + "tl.float32(n)".len()].map(|number| Some(number as u64)));
    let edits = it["fix"]["edits"].as_array().unwrap();
    assert!(edits.iter().all(|edit| edit["line"] == 7 && edit["text"].is_string()), "{}", it["fix"]);
    assert_eq!((&it["path"], &it["code"], &it["severity"]), (&"a.py".into(), &"L002".into(), &"error".into()));
}

#[test]
fn github_and_sarif_name_the_same_place() {
    let folder = Folder::new(&[("a b.py", BAD)]);
    let github = folder.run(&["check", "--format", "github"]);
    assert!(github.out.starts_with("::error file=a b.py,line=7,col="), "{}", github.out);
    let sarif = folder.run(&["check", "--format", "sarif"]);
    assert_eq!((github.code, sarif.code), (1, 1));
    let log: Value = serde_json::from_str(&sarif.out).unwrap();
    let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!((&place["artifactLocation"]["uri"], &place["region"]["startLine"]), (&"a%20b.py".into(), &7.into()));
    let empty = Folder::new(&[("a.py", CLEAN)]);
    assert_eq!(empty.run(&["check", "--format", "github"]).out, "");
    assert_eq!(empty.run(&["check", "--format", "json"]).out, "[]\n");
}

#[test]
fn folders_are_searched_as_git_sees_them() {
    let folder = Folder::new(&[
        (".gitignore", "build/\n*_gen.py\n"),
        ("pkg/.ignore", "local.py\n"),
        ("pkg/kernel.py", BAD),
        ("pkg/local.py", BAD),
        ("pkg/notes.txt", BAD),
        ("pkg/x_gen.py", BAD),
        ("build/kernel.py", BAD),
        (".hidden/kernel.py", BAD),
        ("env/pyvenv.cfg", ""),
        ("env/lib/kernel.py", BAD),
        ("a.py", BAD),
    ]);
    assert_eq!(folder.found(&[]), ["a.py:7", "pkg/kernel.py:7"]);
    assert_eq!(folder.found(&["./pkg", "a.py", "pkg/kernel.py"]), ["a.py:7", "pkg/kernel.py:7"]);
    assert_eq!(folder.found(&["pkg/x_gen.py", "pkg/notes.txt"]), ["pkg/notes.txt:7", "pkg/x_gen.py:7"]);
    assert_eq!(folder.found(&[".hidden", "env/lib"]), [".hidden/kernel.py:7", "env/lib/kernel.py:7"]);
}

#[test]
fn settings_files_apply_to_the_files_below_them() {
    let folder = Folder::new(&[
        ("a/warpsmith.toml", "ignore = ['dtype-called']\n"),
        ("a/k.py", BAD),
        ("b/pyproject.toml", "[tool.warpsmith]\nexclude = ['gen']\n"),
        ("b/gen/k.py", BAD),
        ("b/k.py", BAD),
        ("b/named/gen/k.py", BAD),
    ]);
    assert_eq!(folder.found(&["."]), ["b/k.py:7"]);
    assert_eq!(folder.found(&["b/gen/k.py"]), ["b/gen/k.py:7"], "named: checked");
    assert_eq!(folder.found(&["--ignore", "L"]), [""; 0]);
    assert_eq!(folder.found(&["--select", "M,N", "b"]), [""; 0]);
    assert_eq!(folder.found(&["--select", "L002", "b"]), ["b/k.py:7"]);
}

#[test]
fn suppression_comments_hide_findings() {
    let folder = Folder::new(&[("a.py", SUPPRESSED), ("b.py", &format!("# warpsmith: ignore-file\n{BAD}"))]);
    assert_eq!(folder.found(&["."]), ["a.py:10"]);
}

#[test]
fn mistakes_in_settings_stop_the_check() {
    let folder = Folder::new(&[("warpsmith.toml", "\nselcet = []\n"), ("a.py", CLEAN)]);
    let ran = folder.run(&["check"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.ends_with("warpsmith.toml:2:1: unknown key `selcet`; did you mean `select`?\n"), "{}", ran.err);
    folder.write("warpsmith.toml", b"ignore = ['dtype-caled']");
    let ran = folder.run(&["check"]);
    assert!(ran.err.contains("warpsmith.toml:1:11: unknown rule `dtype-caled`; did you mean `dtype-called`?"));
    folder.write("warpsmith.toml", b"");
    for arguments in ["--select L999", "--triton-version new", "nowhere.py", "--format=xml"] {
        let arguments: Vec<_> = std::iter::once("check").chain(arguments.split(' ')).collect();
        let ran = folder.run(&arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}: {}", ran.err);
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
    }
}

#[test]
fn unreadable_files_are_skipped_with_a_warning() {
    let folder = Folder::new(&[("a.py", BAD)]);
    folder.write("latin.py", b"import triton  # \xe9\n");
    folder.write("binary.py", b"\xff\xfe\x00");
    let ran = folder.run(&["check"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.err, "warning: latin.py: is not UTF-8; skipped\n");
    let ran = Folder::new(&[]).run(&["check"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "warning: no Python files to check\n"));
}

#[test]
fn standard_input_is_checked_like_a_file() {
    let folder = Folder::new(&[("pkg/warpsmith.toml", "ignore = ['L']"), ("bad.py", BAD)]);
    let stdin = |arguments: &[&str]| {
        let file = std::fs::File::open(folder.path().join("bad.py")).unwrap();
        folder.run_with(&[&["check", "-"], arguments].concat(), |command| {
            command.stdin(file);
        })
    };
    let plain = stdin(&[]);
    assert!(plain.code == 1 && plain.out.contains(" --> <stdin>:7:"), "{}", plain.out);
    assert!(stdin(&["--stdin-filename", "x/y.py"]).out.contains(" --> x/y.py:7:"));
    assert_eq!(stdin(&["--stdin-filename", "pkg/y.py"]).code, 0, "its settings count");
    assert_eq!(stdin(&["--fix"]).code, 2);
    assert_eq!(stdin(&["bad.py"]).code, 2);
}

#[test]
fn the_fix_option_applies_safe_fixes() {
    let folder = Folder::new(&[("a.py", BAD), ("b.py", CLEAN), ("c.py", SUPPRESSED)]);
    let ran = folder.run(&["check", "--fix"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Made 2 fixes. Found nothing in 3 files.\n"), "{}", ran.err);
    assert_eq!(
        std::fs::read_to_string(folder.path().join("a.py")).unwrap(),
        BAD.replace("tl.float32(n)", "tl.cast(n, tl.float32)")
    );
    assert_eq!(std::fs::read_to_string(folder.path().join("b.py")).unwrap(), CLEAN);
    assert_eq!(
        std::fs::read_to_string(folder.path().join("c.py")).unwrap().matches("tl.float32(n)").count(),
        2,
        "what is suppressed stays"
    );
}

#[test]
fn the_rules_are_listed_and_explained() {
    let folder = Folder::new(&[]);
    let listed: Value = serde_json::from_str(&folder.run(&["rules", "--format", "json"]).out).unwrap();
    let text = folder.run(&["rules"]).out;
    assert_eq!(text.lines().count(), listed.as_array().unwrap().len());
    for rule in listed.as_array().unwrap() {
        let (code, name) = (rule["code"].as_str().unwrap(), rule["name"].as_str().unwrap());
        assert!(text.contains(code) && text.contains(name));
        let page = folder.run(&["explain", code]);
        assert!(page.code == 0 && page.out.starts_with(&format!("# {code} {name}\n")), "{}", page.out);
        assert_eq!(page.out, folder.run(&["explain", name]).out);
    }
    let unknown = folder.run(&["explain", "dtype-caled"]);
    assert_eq!(unknown.code, 2);
    assert_eq!(unknown.err, "error: there is no rule `dtype-caled`; did you mean `dtype-called`?\n");
}

#[test]
fn the_doctor_says_what_is_missing() {
    let folder = Folder::new(&[
        (".venv/bin/python", ""),
        (".venv/pyvenv.cfg", "version = 3.12.1"),
        (".venv/lib/python3.12/site-packages/triton-3.6.0.dist-info/METADATA", ""),
    ]);
    let ran = folder.run(&["doctor"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for piece in ["Triton          3.6.0\n", "works: against Triton 3.6.0, as installed", "-m pip install torch"] {
        assert!(ran.out.contains(piece), "{piece}\n{}", ran.out);
    }
    let fake = folder.run_with(&["doctor", "--json"], |command| {
        command.env("WARPSMITH_FAKE_DEVICE", "Toy");
    });
    let facts: Value = serde_json::from_str(&fake.out).unwrap();
    assert_eq!(facts["devices"][0]["name"], "Toy (simulated)");
    assert_eq!(facts["promises"][0]["state"], "works");
    let optimizing = &facts["promises"][1];
    assert_eq!(optimizing["state"], "works", "for kernels by themselves");
    assert!(optimizing["detail"].as_str().unwrap().starts_with("kernels that a comment launches"), "{optimizing}");
    assert!(optimizing["remedies"][0].as_str().unwrap().contains("functions"), "{optimizing}");
    assert_eq!(facts["promises"][2]["state"], "off");
    let compiling = &facts["promises"][3];
    assert_eq!((&compiling["name"], &compiling["state"]), (&"Compiling".into(), &"missing".into()));
    assert!(compiling["detail"].as_str().unwrap().contains("cannot start"), "{compiling}");
    assert_eq!(folder.run(&["doctor", "--model"]).code, 1, "asked for, and there is none");
    folder.write(".venv/lib/python3.12/site-packages/torch/__init__.py", b"");
    let fake = folder.run_with(&["doctor"], |command| {
        command.env("WARPSMITH_FAKE_DEVICE", "Toy");
    });
    assert!(fake.out.contains("Optimizing      works: on Toy") && !fake.out.contains("install torch"), "{}", fake.out);
    folder.write("warpsmith.toml", b"colour = 1");
    let ran = folder.run(&["doctor"]);
    assert!(ran.code == 0 && ran.out.contains("unknown key `colour`"), "{}", ran.out);
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let many = BAD.to_owned() + &"    b = tl.float32(n)\n".repeat(20_000);
    let folder = Folder::new(&[("a.py", &many)]);
    let mut child = folder.command(&["check"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}

#[test]
fn files_are_checked_with_what_they_import() {
    let helper = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef half(x, AXIS: tl.constexpr):\n    return \
        tl.zeros([32], tl.float32)\n";
    let kernel = "import triton\nimport triton.language as tl\nfrom pkg.helpers import half\n\n@triton.jit\ndef k(x):\n    i = \
        tl.arange(0, 64)\n    tl.store(x + i, half(i, 0) + i)\n    half(i)\n";
    let files = [("pkg/__init__.py", ""), ("pkg/helpers.py", helper), ("pkg/k.py", kernel)];
    let folder = Folder::new(&files);
    let found = ["pkg/k.py:8", "pkg/k.py:9"];
    assert_eq!(folder.found(&["pkg", "--select", "L"]), found);
    assert_eq!(folder.found(&["pkg/k.py", "--select", "L"]), found);
    let alone = Folder::new(&[("k.py", kernel)]);
    assert_eq!(alone.found(&["k.py", "--select", "L"]), [""; 0]);
}

/// A recording in the format that `warpsmith record` writes.
fn recording(file: &Path, programs: u32) -> String {
    let arguments =
        serde_json::json!([["x", { "pointer": "float32" }], ["stride", { "int": 65536 }], ["B", { "int": 64 }]]);
    let launch = serde_json::json!({ "kernel": "k", "grid": [programs], "keywords": [], "arguments": arguments });
    let environment = serde_json::json!({ "python": "", "torch": "", "triton": "", "device": "", "driver": "" });
    serde_json::json!({
        "file": file, "entry": "run", "args": [], "kwargs": [], "mutated": [], "launches": [launch], "count": 1,
        "environment": environment,
    })
    .to_string()
}

#[test]
fn files_are_checked_with_what_was_recorded() {
    let kernel = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, stride, B: tl.constexpr):\n    \
        tl.store(x + tl.program_id(0) * stride + tl.arange(0, B), 1.0)\n\ndef run(x, n):\n    k[(n,)](x, x.stride(0), B=64)\n";
    let folder = Folder::new(&[("k.py", kernel)]);
    let file = folder.path().canonicalize().unwrap().join("k.py");
    assert_eq!(folder.found(&["--select", "M002"]), [""; 0]);
    folder.write(".warpsmith/workloads/1/run-0.json", recording(&file, 40_000).as_bytes());
    assert_eq!(folder.found(&["--select", "M002"]), ["k.py:6"]);
    // The newest recording applies.
    folder.write(".warpsmith/workloads/2/run-0.json", recording(&file, 4).as_bytes());
    assert_eq!(folder.found(&["--select", "M002"]), [""; 0]);
}
