//! Tests of `warpsmith verify` from its arguments to its verdicts, on a simulated device: everything but the times is
//! real. Needs the interpreter that `cargo xtask test` prepares (`WARPSMITH_TEST_PYTHON`).

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

#[path = "verify/argument_variants.rs"]
mod argument_variants;
#[path = "verify/grades.rs"]
mod grades;
#[path = "common/judging.rs"]
mod judging;
#[path = "verify/large_speedups.rs"]
mod large_speedups;
#[path = "verify/launch_variants.rs"]
mod launch_variants;
#[path = "verify/launches.rs"]
mod launches;
#[path = "verify/memory.rs"]
mod memory;
#[path = "verify/messages.rs"]
mod messages;
#[path = "verify/models.rs"]
mod models;
#[path = "verify/nonfinite.rs"]
mod nonfinite;
#[path = "verify/objects.rs"]
mod objects;
#[path = "verify/precision.rs"]
mod precision;
#[path = "verify/precompile.rs"]
mod precompile;
#[path = "verify/prefetch.rs"]
mod prefetch;
#[path = "verify/randomness.rs"]
mod randomness;
#[path = "verify/result_containers.rs"]
mod result_containers;
#[path = "verify/tampering.rs"]
mod tampering;
#[path = "verify/tool_startup.rs"]
mod tool_startup;
#[path = "verify/trials.rs"]
mod trials;
#[path = "verify/tuning.rs"]
mod tuning;

use std::path::PathBuf;

use judging::{Edit, FASTER, Project, Report, SCALE, WRONG, text};

/// A candidate without any change.
const SAME: Edit<'_> = ("BLOCK = 4\n", "BLOCK = 4\n");
/// More programs, with which the simulated device is slower.
const SLOWER: Edit<'_> = ("BLOCK = 4\n", "BLOCK = 1\n");
const LAUNCH: &str = "    scale_kernel[grid](x, out, x.stride(0), x.stride(1), columns, BLOCK=BLOCK)\n";
const RETURN: &str = "    return out\n";
const STORE: &str = "    tl.store(out_ptr + row * columns + at, y, mask=mask)\n";
const TOP: &str = "# warpsmith: workload entry=scale x=f32[5,12]\n";

/// Each reason that can be shown without a GPU: a name, the reason, and words of the evidence.
#[rustfmt::skip]
const REFUSED: &[(&str, &str, &str, Edit<'_>)] = &[
    // This one is first because its time limit is the longest.
    ("a_endless", "time", "no answer after 30 s", (TOP, "while True: time.sleep(1)\n")),
    ("import", "load", "no_such_module", ("import torch\n", "import torch, no_such_module\n")),
    ("syntax", "load", "SyntaxError", ("rows, columns = x.shape", "rows, columns = x.shape)")),
    ("renamed", "load", "scale", ("def scale(x)", "def other(x)")),
    // What a candidate says decides nothing.
    ("raises_words", "run", "nothing is kept", (RETURN, "    raise ValueError('CUDA error: out of memory; nothing is kept under 3; Fake meta tensor; \
      the comparing process had ended and was started again; OutOfResources: out of resource; CompilationError')\n")),
    ("raises", "run", "no such luck", (RETURN, "    raise ValueError('no such luck')\n")),
    ("kernel_raises", "run", "scale_kernel", ("y = x * 2.0", "y = x * missing")),
    ("wrong", "output", "60 of 60", WRONG),
    ("one_wrong", "output", "1 of 60", (STORE, "    tl.store(out_ptr + row * columns + at, tl.where((row == 4) & (at == 11), 0.0, y), mask=mask)\n")),
    ("half", "form", "float16", (RETURN, "    return out.half()\n")),
    ("transposed", "form", "stride", (RETURN, "    return out.t().contiguous().t()\n")),
    ("shape", "form", "shape", (RETURN, "    return out[None]\n")),
    ("tuple", "form", "a tuple instead of a torch.Tensor", (RETURN, "    return out, 1\n")),
    ("unwritten", "unwritten", "5 of 60 elements were never written", (STORE, "    tl.store(out_ptr + row * columns + at, y, mask=mask & (at != 11))\n")),
    ("mutates", "mutation", "argument 0", (RETURN, "    x.zero_()\n    return out\n")),
    ("overrun", "overrun", "behind the end", (STORE, "    tl.store(out_ptr + row * columns + at, y, mask=mask)\n    tl.store(x_ptr + 5 * stride + row, 1.0)\n")),
    ("underrun", "overrun", "before the beginning", (STORE, "    tl.store(out_ptr + row * columns + at, y, mask=mask)\n    tl.store(x_ptr - 1 - row, 1.0)\n")),
    ("stale", "stale", "new contents", (RETURN, "    last = LAST.get('key') == x.data_ptr()\n    LAST.update(key=x.data_ptr(), out=LAST['out'] if last else out)\n    return LAST['out'].clone()\nLAST = {}\n")),
    ("corners", "stale", "middle", (RETURN, "    key = (x.data_ptr(), x[0, 0].item(), x[-1, -1].item())\n    out = LAST.get(key, out)\n    LAST.clear()\n    LAST[key] = out\n    return out.clone()\nLAST = {}\n")),
    ("second_time", "race", "a repeated call", (RETURN, "    total = out.sum().item()\n    if total in SEEN:\n        out += 1\n    SEEN.add(total)\n    return out\nSEEN = set()\n")),
    ("sizes", "sizes", "12 → 13", ("triton.cdiv(columns, BLOCK))", "3)")),
    ("layout", "layout", "", ("x.stride(0), x.stride(1)", "columns, 1")),
    ("values", "values", "a few NaN", ("y = x * 2.0", "y = tl.where(x == x, x * 2.0, 0.0)")),
    ("integers", "values", "small integers", ("y = x * 2.0", "odd = tl.sum(tl.where(mask & (x != tl.floor(x)), 1, 0))\n    most = tl.max(tl.where(mask, tl.abs(x), 0.0))\n    y = tl.where((odd == 0) & (most > 0.5) & (most < 100.0), x * 3.0, x * 2.0)")),
    ("torch_alone", "no-kernel", "no kernel", (LAUNCH, "    out = x + x\n")),
    ("decoy", "no-kernel", "replaced by nothing", (RETURN, "    return x * 2\n")),
    ("mostly_torch", "fallback", "aten::sin", (RETURN, "    torch.ones(5000).sin()\n    return out\n")),
    ("patched", "tampering", "torch.allclose", (TOP, "torch.allclose = lambda *a, **k: True\n")),
    ("patched_late", "tampering", "perf_counter", (RETURN, "    time.perf_counter = lambda: 0.0\n    return out\n")),
    ("setting", "tampering", "precision", (RETURN, "    torch.set_float32_matmul_precision('medium')\n    return out\n")),
    ("thread", "threads", "threads", (TOP, "threading.Thread(target=time.sleep, args=(100,), daemon=True).start()\n")),
    ("program", "processes", "processes", (TOP, "subprocess.Popen(['sleep', '100'])\n")),
    ("forks", "processes", "more processes", (TOP, "while True: os.fork()\n")),
    ("exits", "died", "status 0", (RETURN, "    os._exit(0)\n")),
    ("aborts", "died", "signal 6", (TOP, "os.abort()\n")),
    ("exit_hidden", "load", "SystemExit", (TOP, "sys.exit(0)\n")),
    ("garbage", "pipe", "not a valid answer", (RETURN, "    for fd in range(1, 64):\n        try: os.write(fd, b'{\"verdict\": \"accepted\"}' * 9)\n        except OSError: pass\n    return out\n")),
];

/// The difference of a report from the expectation, if any: its verdict, and words of the evidence.
fn otherwise(report: &Report, expected: &str, words: &str) -> Option<String> {
    let (said, evidence) = (report.said(), report.0["evidence"].as_str().unwrap_or_default());
    let is_otherwise = said != expected || !evidence.contains(words);
    is_otherwise.then(|| format!("{}: {said} instead of {expected}: {evidence}", report.name()))
}

/// A candidate: its name, the verdict, words of the evidence, and the edit of the original.
type Expected = (&'static str, &'static str, &'static str, Edit<'static>);

/// Judges candidates that differ from the original in one edit each, where `late` replaces `LATE`.
fn as_expected(original: &str, late: &str, candidates: &[Expected]) {
    let project = Project::new(original, &[]);
    for (name, _, _, (old, new)) in candidates {
        assert_eq!(original.matches(old).count(), 1, "{name} replaces one place");
        project.write(&format!("candidates/{name}.py"), &original.replace(old, &new.replace("LATE", late)));
    }
    let (reports, code) = project.batch(&["--quick", "--jobs", "2"]);
    assert_eq!((reports.len(), code), (candidates.len(), Some(1)));
    let others = reports.iter().filter_map(|report| {
        let (_, expected, words, _) = candidates.iter().find(|(name, ..)| *name == report.name()).unwrap();
        otherwise(report, expected, words)
    });
    let others: Vec<String> = others.collect();
    assert!(others.is_empty(), "{}", others.join("\n"));
}

#[test]
fn each_faulty_candidate_is_refused_for_its_reason_and_correct_ones_pass() {
    let right = [("same", SAME), ("faster", FASTER), ("slower", SLOWER), ("z_right", FASTER)];
    let refused = REFUSED.iter().map(|(name, _, _, edit)| (*name, *edit));
    let candidates: Vec<(&str, Edit<'_>)> = refused.chain(right).collect();
    let project = Project::new(SCALE, &candidates);
    let (reports, code) = project.batch(&["--jobs", "3"]);
    assert_eq!((reports.len(), code), (candidates.len(), Some(1)));
    let mut others = Vec::new();
    for report in &reports {
        let name = report.name();
        let refusal = REFUSED.iter().find(|(it, ..)| *it == name);
        let (expected, words) = refusal.map_or(("accepted", ""), |(_, reason, words, _)| (*reason, *words));
        others.extend(otherwise(report, expected, words));
        // All checks before the refusal passed, and the failed one has the reason.
        let checks = report.checks();
        let failed: Vec<_> = checks.iter().filter(|(_, passed)| !passed).collect();
        let last = (report.said().to_owned(), false);
        assert_eq!(failed, if expected == "accepted" { vec![] } else { vec![&last] }, "{name}");
        assert!(!checks.is_empty());
        let claims = report.0["speedup"].is_number() && report.0["interval"].as_array().is_some_and(|it| it.len() == 2);
        assert_eq!(claims, expected == "accepted", "{name}");
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
    let field = |name: &str, field: &str| reports.iter().find(|report| report.name() == name).unwrap().0[field].clone();
    assert_eq!(field("faster", "offer"), true);
    assert!(field("faster", "speedup").as_f64().unwrap() > 1.2);
    assert_eq!(field("faster", "objection"), serde_json::Value::Null);
    for name in ["same", "slower"] {
        assert_eq!(field(name, "offer"), false, "{name}");
        assert_eq!(field(name, "objection"), "it is not certainly faster", "{name}");
    }
    assert!(field("slower", "speedup").as_f64().unwrap() < 0.8);
    assert_eq!(field("raises", "line"), 1 + SCALE.lines().position(|line| line == "    return out").unwrap());
}

/// An entry with a gradient, with correct results that are NaN, and with an argument that it changes.
const ROOT: &str = "
import torch
import triton
import triton.language as tl

# warpsmith: workload entry=root gradients=True x=f32[60] calls=i32[1]

@triton.jit
def root_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    mask = at < n
    tl.store(out_ptr + at, tl.sqrt(x), mask=mask)

@triton.jit
def slope_kernel(grad_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(grad_ptr + at, mask=at < n) * 0.5, mask=at < n)

class Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        root_kernel[(triton.cdiv(x.numel(), 16),)](x.contiguous(), out, x.numel(), BLOCK=16)
        return out

    @staticmethod
    def backward(ctx, grad):
        out = torch.empty(grad.shape, dtype=grad.dtype, device=grad.device)
        slope_kernel[(triton.cdiv(grad.numel(), 16),)](grad.contiguous(), out, grad.numel(), BLOCK=16)
        return out

def root(x, calls):
    calls += 1
    return Root.apply(x)
";

#[test]
fn wrong_gradients_unwritten_memory_and_missing_changes_are_refused() {
    let candidates = [
        (
            "accepted",
            (
                "(x.numel(), 16),)](x.contiguous(), out, x.numel(), BLOCK=16",
                "(x.numel(), 64),)](x.contiguous(), out, x.numel(), BLOCK=64",
            ),
        ),
        ("gradient", (" * 0.5", " * 0.75")),
        ("unwritten", ("    mask = at < n\n", "    mask = (at < n) & (x >= 0)\n")),
        ("mutation", ("    calls += 1\n", "")),
        ("output", ("tl.sqrt(x)", "tl.sqrt(x) * 1.5")),
    ];
    let (reports, code) = Project::new(ROOT, &candidates).batch(&["--quick"]);
    assert_eq!(code, Some(1));
    let said: Vec<(String, &str)> = reports.iter().map(|report| (report.name(), report.said())).collect();
    let names = ["accepted", "gradient", "mutation", "output", "unwritten"];
    assert_eq!(
        said,
        names.map(|name| (name.to_owned(), name)),
        "{:?}",
        reports.iter().map(|it| &it.0["evidence"]).collect::<Vec<_>>()
    );
}

#[test]
fn reports_for_people_and_programs_and_the_exit_status() {
    let project = Project::new(SCALE, &[("faster", FASTER), ("wrong", WRONG)]);
    let accepted = project.verify(&["candidates/faster.py", "--quick"]);
    let shown = text(&accepted.stdout);
    assert_eq!(accepted.status.code(), Some(0), "{shown}{}", text(&accepted.stderr));
    let first = format!("{}: accepted\n", project.path("candidates/faster.py").display());
    for part in [
        &*first,
        "  ok the recorded call: ",
        "× (95 % ",
        "  an offer\n",
        " ms warm, ",
        "32 pairs",
        "toy (simulated), Triton 3",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let accepted = project.verify(&["candidates/faster.py", "--quick", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&accepted.stdout).unwrap();
    let figures = &report["measured"][0];
    // One of five rows of twelve elements is read and written.
    let floor = &figures["floor"];
    assert_eq!((&floor["read"], &floor["written"], &floor["hard"]), (&240.0.into(), &240.0.into(), &().into()));
    assert_eq!((&figures["n"], &figures["interval"]), (&32.into(), &report["interval"]));
    let refused = project.verify(&["candidates/wrong.py", "--quick", "--json"]);
    assert_eq!(refused.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!((&report["verdict"], &report["reason"]), (&"refused".into(), &"output".into()));
    assert_eq!((&report["speedup"], &report["interval"], &report["offer"]), (&().into(), &().into(), &false.into()));
    let check = report["checks"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&check["name"], &check["passed"], &check["evidence"]),
        (&"output".into(), &false.into(), &report["evidence"])
    );
    let refused = text(&project.verify(&["candidates/wrong.py", "--quick"]).stdout);
    assert!(refused.contains("wrong.py: refused (output)\n") && refused.contains("  NO output\n"), "{refused}");
    assert_eq!(refused.matches("60 of 60 elements").count(), 1, "{refused}");
}

/// Where the original has no result, the candidate gets no verdict.
#[test]
fn undecided_candidates_exit_with_status_2() {
    let undecided = |original: &str, words: &str| {
        let project = Project::new(SCALE, &[("same", SAME)]);
        project.write("original.py", original);
        let ran = project.verify(&["candidates/same.py", "--quick"]);
        let shown = text(&[ran.stdout, ran.stderr].concat());
        assert_eq!(ran.status.code(), Some(2), "{shown}");
        assert!(shown.contains(words) && !shown.contains("accepted") && !shown.contains("refused ("), "{shown}");
    };
    undecided(&SCALE.replace("def scale(x)", "def other(x)"), "scale");
    undecided(&SCALE.replace("import torch\n", "import torch, no_such_module\n"), "no_such_module");
    undecided(&SCALE.replace(RETURN, "    raise ValueError('broken here')\n"), "broken here");
    undecided(&SCALE.replace(TOP, ""), "launches a kernel");
    undecided(&SCALE.replace("x=f32[5,12]", "x=f99[5,12]"), "f99");
    let project = Project::new(SCALE, &[("same", SAME)]);
    for (args, words) in [
        (&["missing.py", "--quick"][..], "missing.py cannot be read"),
        (&["candidates/same.py", "--entry", "other"][..], "no such function"),
        (&["missing", "--batch"][..], "cannot be read"),
    ] {
        let ran = project.verify(args);
        assert_eq!(ran.status.code(), Some(2), "{args:?}: {}", text(&ran.stdout));
        assert!(text(&[ran.stdout, ran.stderr].concat()).contains(words), "{args:?}");
    }
}

/// A candidate that is faster, but wrong from the 300th row on.
const NARROW: Edit<'_> = (
    "BLOCK = 4\n    rows, columns = x.shape\n",
    "BLOCK = 16\n    rows, columns = x.shape\n    rows = min(rows, 300)\n",
);
const WHOLE: &str = "torch.empty((rows, columns)";
const ALL_ROWS: &str = "torch.empty((len(x), columns)";

/// On a simulated device the limit of 32-bit offsets is another number of elements: 4,000.
#[test]
fn offsets_that_overflow_are_seen_where_the_original_is_right() {
    let judge = |original: &str, candidates: &[(&str, Edit<'_>)]| {
        let variables = [("WARPSMITH_FAKE_COUNTABLE", "4000")];
        let project = Project::new(original, candidates);
        let told = |report: &Report| {
            let mut checks = report.0["checks"].as_array().unwrap().iter();
            let last =
                checks.rfind(|check| ["beyond 2³¹ elements", "sizes"].contains(&check["name"].as_str().unwrap()));
            (report.said().to_owned(), last.unwrap()["evidence"].to_string())
        };
        project.batch_with(&variables, &[]).0.iter().map(told).collect::<Vec<_>>()
    };
    let right = SCALE.replace(WHOLE, ALL_ROWS);
    let told = judge(&right, &[("faster", FASTER), ("narrow", NARROW)]);
    let [(accepted, agrees), (refused, evidence)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((&**accepted, &**refused), ("accepted", "sizes"), "{told:?}");
    assert!(
        agrees.contains("agrees") && evidence.contains("5 → 339, beyond") && evidence.contains("60 of 60"),
        "{told:?}"
    );
    // Where the original itself is wrong, the check is skipped.
    let told = judge(&right.replace(NARROW.0, NARROW.1).replace("BLOCK = 16", "BLOCK = 4"), &[("faster", FASTER)]);
    assert!(told[0].0 == "accepted" && told[0].1.contains("not credible"), "{told:?}");
}

/// Runs the given command, and reports what the program has printed: `<memcheck>`, `<racecheck>`, `<broken>`.
const CHECKER: &str = r#"#!/usr/bin/env python3
import subprocess, sys
args = sys.argv[1:]
tool, log = (args[args.index(name) + 1] for name in ("--tool", "--log-file"))
ran = subprocess.run(args[args.index("-c") - 1:], capture_output=True, text=True)
found = f"<{tool}>" in ran.stdout
lines = ["COMPUTE-SANITIZER"]
if tool == "memcheck":
    lines += ["Invalid __global__ read of size 4 bytes", "    at scale_kernel+0x70 in candidate.py:17"] * found
    lines += [f"ERROR SUMMARY: {int(found)} errors"]
else:
    lines += ["Error: Race reported between Write access at a", "    and Write access at b [8 hazards]"] * found
    lines += [f"RACECHECK SUMMARY: {int(found)} hazards displayed"]
if "<broken>" not in ran.stdout:
    with open(log, "w") as file:
        file.writelines(f"========= {line}\n" for line in lines)
print(ran.stdout, ran.stderr)
sys.exit(77 if found else ran.returncode)
"#;

/// Writes an executable file into the project's folder.
fn program(project: &Project, name: &str, text: &str) -> PathBuf {
    project.write(name, text);
    let path = project.path(name);
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path
}

#[test]
fn winners_run_under_the_checker_of_memory() {
    const MEMORY: Edit<'_> = ("BLOCK = 4\n", "BLOCK = 16\n    print('<memcheck>')\n");
    const RACES: Edit<'_> = ("BLOCK = 4\n", "BLOCK = 16\n    print('<racecheck>')\n");
    const BROKEN: Edit<'_> = ("BLOCK = 4\n", "BLOCK = 16\n    print('<broken>')\n");
    let project = Project::new(
        SCALE,
        &[("same", SAME), ("faster", FASTER), ("memory", MEMORY), ("races", RACES), ("broken", BROKEN)],
    );
    let checker = program(&project, "checker", CHECKER);
    let judge = |variables: &[(&str, &str)], name: &str| {
        let ran = project.verify_with(variables, &[&format!("candidates/{name}.py"), "--quick", "--json"]);
        let report = Report(serde_json::from_slice(&ran.stdout).unwrap());
        let checks = report.checks().into_iter().filter(|(name, _)| name.starts_with("compute-sanitizer")).count();
        let notes: Vec<String> = serde_json::from_value(report.0["notes"].clone()).unwrap();
        let notes = notes.into_iter().filter(|note| note.contains("compute-sanitizer")).collect::<Vec<_>>().join("; ");
        (report.said().to_owned(), checks, notes, report.0["evidence"].to_string())
    };
    let variables = [("WARPSMITH_FAKE_SANITIZER", checker.to_str().unwrap())];
    let (said, checks, notes, evidence) = judge(&variables, "faster");
    assert_eq!((&*said, checks, &*notes), ("accepted", 2, ""), "{evidence}");
    let (said, _, _, evidence) = judge(&variables, "memory");
    assert_eq!(said, "overrun", "{evidence}");
    assert!(evidence.contains("Invalid __global__ read of size 4 bytes at scale_kernel"), "{evidence}");
    // Some of Triton's own reductions contain harmless hazards, and an incomplete run proves nothing.
    let (said, checks, notes, _) = judge(&variables, "races");
    assert!((&*said, checks) == ("accepted", 1) && notes.contains("8 hazards"), "{said} {checks} {notes}");
    let (said, checks, notes, _) = judge(&variables, "broken");
    assert!((&*said, checks) == ("accepted", 0) && notes.contains("cannot say"), "{said} {checks} {notes}");
    // A candidate that is no offer is not run under the checker; a missing checker is noted.
    let (said, checks, notes, _) = judge(&variables, "same");
    assert_eq!((&*said, checks, &*notes), ("accepted", 0, ""));
    let (said, checks, notes, _) = judge(&[], "faster");
    assert!((&*said, checks) == ("accepted", 0) && notes.contains("not on this machine"), "{said} {notes}");
}

/// Sums of rows, in single precision only.
const TOTAL: &str = "
import torch
import triton
import triton.language as tl

# warpsmith: workload entry=total x=f32[6,64]

@triton.jit
def total_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
        x = x + 0.0
        total += tl.sum(x, axis=0)
    tl.store(out_ptr + row, total)

def total(x):
    assert x.is_contiguous() and x.dtype == torch.float32
    rows, columns = x.shape
    out = torch.empty((rows,), dtype=x.dtype, device=x.device)
    total_kernel[(rows,)](x, out, columns, BLOCK=4)
    return out
";
const AS_IT_IS: &str = "x = x + 0.0";
const LOADED: &str = "other=0.0)\n";
/// Edits that truncate a 32-bit number to tf32, and to bfloat16.
const COARSE: &str = "x = (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)";
const COARSER: &str = "x = (x.to(tl.int32, bitcast=True) & -65536).to(tl.float32, bitcast=True)";

/// Another order of summation is accepted where the error of the original cannot be determined by a run at a higher
/// precision; so is a higher precision than the original's.
#[test]
fn other_summation_orders_pass_if_the_error_of_the_original_is_unknown() {
    let judge = |original: &str, candidates: &[(&str, Edit<'_>)]| {
        let (reports, _) = Project::new(original, candidates).batch(&["--quick"]);
        let told = |report: &Report| (report.name(), report.said().to_owned(), report.0["evidence"].to_string());
        reports.iter().map(told).collect::<Vec<_>>()
    };
    let expect = |told: Vec<(String, String, String)>, expected: &[(&str, &str)]| {
        let said: Vec<(&str, &str)> = told.iter().map(|(name, said, _)| (&**name, &**said)).collect();
        assert_eq!(said, expected, "{told:?}");
    };
    let order = ("order", ("BLOCK=4", "BLOCK=64"));
    let coarse = ("coarse", (AS_IT_IS, COARSE));
    let coarser = ("coarser", (AS_IT_IS, COARSER));
    // The original accepts no other type; and it calculates in this one, whatever its inputs are.
    expect(judge(TOTAL, &[order, coarse]), &[("coarse", "output"), ("order", "accepted")]);
    let cast = TOTAL.replace(" and x.dtype == torch.float32", "").replace(LOADED, "other=0.0).to(tl.float32)\n");
    expect(judge(&cast, &[order, coarse]), &[("coarse", "output"), ("order", "accepted")]);
    // The original accepts tf32 values.
    let precise = ("precise", (COARSE, AS_IT_IS));
    let coarser_yet = ("coarser", (COARSE, coarser.1.1));
    let original = TOTAL.replace(AS_IT_IS, COARSE);
    expect(
        judge(&original, &[order, precise, coarser_yet]),
        &[("coarser", "output"), ("order", "accepted"), ("precise", "accepted")],
    );
    // Doubling a number is exact in every type.
    let inexact = ("inexact", ("y = x * 2.0", "y = x * 2.0000002"));
    expect(judge(SCALE, &[("faster", FASTER), inexact]), &[("faster", "accepted"), ("inexact", "output")]);
}

#[test]
fn limits_come_from_the_settings() {
    let candidates: &[(&str, Edit<'_>)] = &[
        ("calls", (RETURN, "    time.sleep(100)\n    return out\n")),
        ("loads", (TOP, "time.sleep(100)\n")),
        ("prints", (TOP, "print('x' * (3 << 20))\n")),
    ];
    let project = Project::new(SCALE, candidates);
    project.write("warpsmith.toml", "[evaluator.limits]\nload = 8\ncompile = 9\ncall = 9\noutput = 1\n");
    let (reports, _) = project.batch(&["--quick"]);
    let said: Vec<(String, &str, &str)> = reports
        .iter()
        .map(|report| (report.name(), report.said(), report.0["evidence"].as_str().unwrap_or_default()))
        .collect();
    let [calls, loads, prints] = said.as_slice() else { panic!("{said:?}") };
    assert!(calls.1 == "time" && calls.2.contains("no answer after 9 s"), "{calls:?}");
    assert!(loads.1 == "time" && loads.2.contains("no answer after 8 s"), "{loads:?}");
    // Printing beyond the limit raises, and the supervisor ends the process as well; the first of the two is reported.
    assert!(prints.1 == "writing" || prints.2.contains("File too large"), "{}", prints.1);
}
