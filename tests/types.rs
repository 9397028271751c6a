//! Tests of the type analysis against Triton's own front end: where both give an expression a type, the types are
//! equal.
//!
//! `tests/oracle/expr_types.py` compiles published kernels with guessed signatures and writes the type of each
//! expression. The analysis gets the same signatures as comments. CI compares liger-kernel; `WARPSMITH_TYPES=FILE`
//! compares the output of the script for other packages, whose folder `WARPSMITH_TYPES_ROOT` names.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

#[path = "common/packages.rs"]
mod packages;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use model::analysis::types::dtype::Dtype;
use model::analysis::types::{self, AbstractValue, Const, LaneType, RuntimeValue};
use model::api::TritonTarget;
use model::kernel::Module;
use model::syntax::Source;
use serde_json::Value as Json;
use warpsmith::workspace::Workspace;

/// The least number of run-time values per 100 whose type the analysis must know in liger-kernel.
const SPOKEN: usize = 80;

/// The output of the script, and the folder to which its paths are relative.
fn oracle() -> (String, PathBuf) {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    if let Some(file) = named("WARPSMITH_TYPES") {
        let root = named("WARPSMITH_TYPES_ROOT").expect("WARPSMITH_TYPES_ROOT names the folder of the packages");
        return (std::fs::read_to_string(file).unwrap(), root);
    }
    let root = packages::package("liger-kernel", "0.8.5");
    let python = named("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("types.jsonl");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/expr_types.py");
    let status = Command::new(python).arg(script).arg("--out").arg(&out).arg(root.join("liger_kernel")).status();
    assert!(status.unwrap().success(), "Triton's front end was not asked");
    // Its paths start above the folder of the package.
    (std::fs::read_to_string(out).unwrap(), root.parent().unwrap().to_path_buf())
}

/// A type as the script writes it; `None` when it is not completely known.
fn text(value: &AbstractValue<'_>) -> Option<String> {
    match value {
        AbstractValue::Tile(tile) => tile_text(tile),
        AbstractValue::BlockPointer(tile) => Some(format!("ptr<{}>[]", tile_text(tile)?)),
        AbstractValue::Descriptor(tile) => Some(format!("desc<{}>", tile_text(tile)?)),
        AbstractValue::Const(Const::Int(value)) => Some(format!("constexpr:{value}")),
        AbstractValue::Const(Const::Bool(value)) => {
            Some(format!("constexpr:{}", if *value { "True" } else { "False" }))
        }
        AbstractValue::Const(Const::Type(LaneType::Number(number))) => {
            Some(format!("constexpr:dtype:{}", number_text(*number)))
        }
        _ => None,
    }
}

fn tile_text(tile: &RuntimeValue) -> Option<String> {
    let sizes: Option<Vec<String>> =
        tile.shape.as_ref()?.iter().map(|size| size.known().map(|size| size.to_string())).collect();
    let element = match tile.element {
        LaneType::Number(number) => number_text(number),
        LaneType::Pointer(Some(number)) => format!("ptr<{}>", number_text(number)),
        _ => return None,
    };
    Some(format!("{element}[{}]", sizes?.join(",")))
}

fn number_text(number: Dtype) -> String {
    let name = number.name();
    match (name.strip_prefix("uint"), name.strip_prefix("int")) {
        (Some(bits), _) => format!("u{bits}"),
        (_, Some(bits)) => format!("i{bits}"),
        _ => name.to_owned(),
    }
}

/// Whether a type of the script is one of a run-time value.
fn is_run_time(text: &str) -> bool {
    text.ends_with(']') && !text.starts_with("void") && !text.starts_with("tuple") && !text.starts_with("list")
}

#[derive(Default)]
struct Tally {
    run_time: usize,
    known: usize,
    compared: usize,
    wrong: Vec<String>,
}

/// Compares one kernel.
fn compare(row: &Json, root: &Path, workspace: &Workspace, tally: &mut Tally) {
    let (file, name) = (row["file"].as_str().unwrap(), row["kernel"].as_str().unwrap());
    let original = std::fs::read_to_string(root.join(file)).unwrap();
    let params = row["comment"].as_str().unwrap().trim_start_matches("# warpsmith: signature ");
    let text_of_file = format!("{original}\n# warpsmith: signature {name}: {params}\n");
    let source = Source::parse(text_of_file.as_str());
    let mut module = Module::build(&source);
    workspace.complete(&mut module, &root.join(file));
    let line = |offset: usize| source.lines().line_of(offset) as u64 + 1;
    let is_it = |kernel: &model::kernel::Kernel| {
        let wanted = row["line"].as_u64().unwrap();
        kernel.name == name && [kernel.def_span.start, kernel.span.start].map(line).contains(&wanted)
    };
    let Some(index) = module.kernels.iter().position(is_it) else { return };
    let facts = types::infer(&module, &text_of_file, TritonTarget::of("3.6.0".parse().unwrap()), index, true);
    for problem in &facts.problems {
        tally.wrong.push(format!("{file}:{} {name}: Triton accepts it: {}", line(problem.span.start), problem.message));
    }
    let mut ours: HashMap<(usize, usize), Vec<String>> = HashMap::new();
    for (span, value) in &facts.types {
        ours.entry((span.start, span.end)).or_default().extend(text(value));
    }
    let starts: Vec<usize> =
        std::iter::once(0).chain(text_of_file.match_indices('\n').map(|(newline, _)| newline + 1)).collect();
    let body = module.kernels[index].body.first().unwrap().span.start;
    for expr in row["exprs"].as_array().unwrap() {
        let number = |at: usize| usize::try_from(expr[at].as_u64().unwrap()).unwrap();
        let span = (starts[number(0) - 1] + number(1), starts[number(2) - 1] + number(3));
        let theirs: Vec<&str> = match &expr[4] {
            Json::Array(several) => several.iter().map(|one| one.as_str().unwrap()).collect(),
            one => vec![one.as_str().unwrap()],
        };
        if span.0 < body {
            continue;
        }
        let mine = ours.get(&span).map_or(&[][..], Vec::as_slice);
        if theirs.iter().any(|text| is_run_time(text)) {
            tally.run_time += 1;
            tally.known += usize::from(!mine.is_empty());
        }
        let judged = theirs.iter().any(|text| is_run_time(text) || text.starts_with("constexpr:"));
        tally.compared += usize::from(judged && !mine.is_empty());
        if let Some(other) = mine.iter().find(|mine| judged && !theirs.contains(&mine.as_str())) {
            let code: String = text_of_file[span.0..span.1].chars().take(60).collect();
            tally.wrong.push(format!("{file}:{} {name}: `{code}` is {theirs:?}, not {other}", expr[0]));
        }
    }
}

#[test]
fn types_are_those_of_triton() {
    let (rows, root) = oracle();
    let (mut tally, workspace) = (Tally::default(), Workspace::default());
    for row in rows.lines() {
        compare(&serde_json::from_str(row).unwrap(), &root, &workspace, &mut tally);
    }
    let Tally { run_time, known, compared, wrong } = tally;
    println!("{known} of {run_time} run-time values are known; {compared} types were compared, {} differ", wrong.len());
    assert!(compared > 1000, "the script wrote types");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if std::env::var_os("WARPSMITH_TYPES").is_none() {
        assert!(known * 100 >= run_time * SPOKEN, "the analysis knows {known} of {run_time} run-time values");
    }
}
