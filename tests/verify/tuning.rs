//! Tests of autotuned kernels: they are tuned in the recorded call only, and every configuration is checked.

use crate::judging::{Edit, Project, Report};
use crate::program;

/// Three configurations, of which the first is the fastest. Measuring them more than once fails.
const TUNED: &str = r#"
import torch
import triton
import triton.language as tl

# warpsmith: workload entry=scale x=f32[5,12]

MEASURED = []

def measure(kernel_call, quantiles):
    kernel_call()
    MEASURED.append(1)
    if len(MEASURED) > 3:
        raise RuntimeError("measured again")
    return float(len(MEASURED))

@triton.autotune([triton.Config({"BLOCK": block}) for block in (4, 8, 16)], key=["columns"], do_bench=measure)
@triton.jit
def scale_kernel(x_ptr, out_ptr, stride, step, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = at < columns
    y = tl.load(x_ptr + row * stride + at * step, mask=mask) * 2.0
    tl.store(out_ptr + row * columns + at, y, mask=mask)

def scale(x):
    rows, columns = x.shape
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    grid = lambda meta: (rows, triton.cdiv(columns, meta["BLOCK"]))
    scale_kernel[grid](x, out, x.stride(0), x.stride(1), columns)
    return out
"#;

const STORE: &str = "    tl.store(out_ptr";
/// Wrong with the configuration that is measured last.
const SLOWEST_WRONG: &str = "    y = y + (1.0 if BLOCK == 16 else 0.0)\n    tl.store(out_ptr";

fn judged(original: &str, candidates: &[(&str, Edit<'_>)]) -> Vec<Report> {
    let (reports, _) = Project::new(original, candidates).batch(&["--jobs", "2"]);
    assert_eq!(reports.len(), candidates.len());
    reports
}

#[test]
fn tuners_measure_once_and_each_of_their_configurations_is_tried() {
    let candidates: &[(&str, Edit<'_>)] = &[
        ("same", (STORE, STORE)),
        ("slowest_wrong", (STORE, SLOWEST_WRONG)),
        ("sizes", ("columns, meta[\"BLOCK\"]", "12, meta[\"BLOCK\"]")),
    ];
    for report in judged(TUNED, candidates) {
        let evidence = report.0["evidence"].as_str().unwrap_or_default();
        let (expected, words) = match report.name().as_str() {
            "same" => ("accepted", ""),
            "slowest_wrong" => ("output", "scale_kernel with BLOCK: 16"),
            _ => ("sizes", "12 → 13"),
        };
        assert_eq!(report.said(), expected, "{}", report.0);
        assert!(evidence.contains(words), "{}", report.0);
    }
}

#[test]
fn a_wrong_configuration_shared_with_the_original_is_only_noted() {
    let original = TUNED.replace(STORE, SLOWEST_WRONG);
    let reports = judged(&original, &[("same", ("* 2.0", "* 2.0"))]);
    assert_eq!(reports[0].said(), "accepted", "{}", reports[0].0);
    let notes = reports[0].0["notes"].to_string();
    assert!(notes.contains("BLOCK: 16") && notes.contains("so does the original's"), "{notes}");
}

const TUNER: &str =
    r#"@triton.autotune([triton.Config({"BLOCK": block}) for block in (4, 8, 16)], key=["columns"], do_bench=measure)"#;
/// The launch with one configuration, which the tuner could have chosen.
const FIXED: &str = r#"@triton.heuristics({"BLOCK": lambda given: 16})"#;
const FAR: &str = "return float(len(MEASURED))";
const NEAR: &str = "return 1.0 + 0.01 * len(MEASURED)";

#[test]
fn a_configuration_nearly_chosen_by_the_originals_tuner_is_not_offered() {
    let of = |original: &str| judged(original, &[("fixed", (TUNER, FIXED))]).remove(0);
    // The tuner measures the other configurations as much slower, so a candidate that is faster than its choice is an
    // improvement.
    let report = of(TUNED);
    assert_eq!((report.said(), &report.0["offer"]), ("accepted", &true.into()), "{}", report.0);
    let report = of(&TUNED.replace(FAR, NEAR));
    assert_eq!((report.said(), &report.0["offer"]), ("accepted", &false.into()), "{}", report.0);
    assert!(report.0["notes"].to_string().contains("scale_kernel with BLOCK: 16"), "{}", report.0);
    assert!(report.checks().contains(&("other choices".to_owned(), true)), "{}", report.0);
}

#[test]
fn a_reordered_tuner_that_chooses_a_configuration_of_the_original_is_not_offered() {
    // In both files the simulated device measures the first configuration as the fastest.
    let report = judged(TUNED, &[("other", ("(4, 8, 16)", "(16, 8, 4)"))]).remove(0);
    assert_eq!((report.said(), &report.0["offer"]), ("accepted", &false.into()), "{}", report.0);
    assert!(report.0["notes"].to_string().contains("scale_kernel with BLOCK: 16"), "{}", report.0);
}

#[test]
fn the_speedup_is_relative_to_the_best_configuration_of_the_original() {
    // The candidate is so much faster than the original's choice that this would hold it back, although it is only
    // another choice of the original's own tuner.
    let of = |text: &str| text.replace("(4, 8, 16)", "(4, 8, 512)");
    let original = of(&TUNED.replace("x=f32[5,12]", "x=f32[1,512]")).replace(FAR, NEAR);
    let report = judged(&original, &[("fixed", (&of(TUNER), &FIXED.replace("16", "512")))]).remove(0);
    assert!(report.0["offer"] == false && report.0["speedup"].as_f64() < Some(1.02), "{}", report.0);
    assert!(report.0["notes"].to_string().contains("scale_kernel with BLOCK: 512"), "{}", report.0);
}

/// Runs the call. It reports a result only if each configuration was launched once before the chosen one, between the
/// tuner's hooks, and nothing was measured.
const CHECKER: &str = r#"#!/usr/bin/env python3
import subprocess, sys
args = sys.argv[1:]
tool, log = (args[args.index(name) + 1] for name in ("--tool", "--log-file"))
ran = subprocess.run(args[args.index("-c") - 1:], capture_output=True, text=True)
words = ("measured", "before", "reset", "launched")
said = [line for line in ran.stdout.split("\n") if line.startswith(words)]
expected = [word for block in (16, 8, 4) for word in (f"launched {block}", "before")]
expected += ["reset", "launched 16", "launched 16"]
end = {"memcheck": "ERROR SUMMARY: 0 errors", "racecheck": "RACECHECK SUMMARY: 0 hazards displayed"}[tool]
with open(log, "w") as file:
    file.write(f"========= {end}\n" if said == expected else "")
print(said, ran.stdout, ran.stderr)
sys.exit(ran.returncode)
"#;

/// A tuner that reports its actions, with configurations that are created anew on each access.
const TELLING: &str = r#"
def tell(given):
    print("launched", given["BLOCK"])

def made(block):
    return triton.Config({"BLOCK": block}, pre_hook=tell)

def hook(given, reset_only=False):
    print("reset" if reset_only else "before")

@triton.autotune(
    [made(4), made(8), made(16)], key=["columns"], do_bench=measure, pre_hook=hook,
    prune_configs_by={"early_config_prune": lambda *_, **__: [made(16), made(8), made(4)]},
)
"#;

#[test]
fn under_the_checker_of_memory_each_configuration_is_launched_once() {
    let original = TUNED.replace(TUNER, &FIXED.replace("16", "4"));
    let (from, measured) = ("    kernel_call()\n", "    print('measured')\n    kernel_call()\n");
    let launch = "    scale_kernel[grid](x, out, x.stride(0), x.stride(1), columns)\n";
    let [original, tuned] = [original.as_str(), &TUNED.replace(TUNER, TELLING.trim()).replace(from, measured)]
        .map(|text| text.replace(launch, &launch.repeat(2)));
    let project = Project::new(&original, &[]);
    project.write("candidates/tuned.py", &tuned);
    let checker = program(&project, "checker", CHECKER);
    let variables = [("WARPSMITH_FAKE_SANITIZER", checker.to_str().unwrap())];
    let ran = project.verify_with(&variables, &["candidates/tuned.py", "--json"]);
    let report = Report(serde_json::from_slice(&ran.stdout).unwrap());
    let checks: Vec<_> =
        report.checks().into_iter().filter(|(name, _)| name.starts_with("compute-sanitizer")).collect();
    assert_eq!((report.said(), checks.len()), ("accepted", 2), "{}", report.0);
}
