//! Tests of device memory that runs out, which other processes may be using.

use crate::judging::{Edit, Project, SCALE};

/// How often each candidate was loaded, by the log.
fn loads(log: &str) -> usize {
    log.lines().filter(|line| line.contains("a stage ended") && line.contains("load")).count()
}

fn judged(original: &str, edit: Edit<'_>) -> (String, String, usize) {
    let project = Project::new(original, &[("one", edit)]);
    let ran = project.verify_with(&[("WARPSMITH_LOG", "warpsmith=debug")], &["candidates/one.py", "--quick", "--json"]);
    let report = crate::judging::Report(serde_json::from_slice(&ran.stdout).unwrap());
    let log = crate::judging::text(&ran.stderr);
    (report.said().to_owned(), report.0["evidence"].to_string() + &report.0.to_string(), loads(&log))
}

const LAUNCH: &str = "    scale_kernel[grid]";
const RAISES: &str = "    raise torch.OutOfMemoryError('CUDA out of memory')\n    scale_kernel[grid]";

#[test]
fn a_candidate_out_of_device_memory_is_judged_again_alone() {
    assert_eq!(judged(SCALE, ("* 2.0", "* 2.0")).2, 1);
    assert_eq!(judged(SCALE, ("* 2.0", "* 2.5")).2, 1, "a wrong one is wrong without others, too");
    // The driver has another message.
    for error in
        ["torch.OutOfMemoryError('CUDA out of memory')", "RuntimeError('CUDA error: CUDA_ERROR_OUT_OF_MEMORY')"]
    {
        let raises = RAISES.replace("torch.OutOfMemoryError('CUDA out of memory')", error);
        let (said, told, loads) = judged(SCALE, (LAUNCH, &raises));
        assert_eq!((&*said, loads), ("device-memory", 2), "{told}");
    }
}

#[test]
fn a_trial_is_repeated_if_the_original_is_out_of_device_memory() {
    // The original fails at other sizes even when it runs alone, so these trials are skipped.
    let original = SCALE.replace(LAUNCH, &format!("    if rows != 5:\n        {}", RAISES.trim_start()));
    let project = Project::new(&original, &[("one", ("* 2.0", "* 2.0"))]);
    let ran = project.verify_with(&[("WARPSMITH_LOG", "warpsmith=debug")], &["candidates/one.py", "--json"]);
    let report = crate::judging::Report(serde_json::from_slice(&ran.stdout).unwrap());
    assert_eq!(report.said(), "accepted", "{}", report.0);
    assert_eq!(loads(&crate::judging::text(&ran.stderr)), 2);
}
