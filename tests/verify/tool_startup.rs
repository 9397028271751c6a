//! Tests that a process under a tool starts Python before it takes the device, so that others are timed meanwhile.

use crate::FASTER;
use crate::judging::{Project, Report, SCALE};
use crate::program;

/// Takes the device exclusively while the given command starts, until that waits for the device; nothing may be printed
/// before. Then it releases the device, and checks whether the process closes its own lock on the device last, whatever
/// it opens later: a device is in use until all handles are closed.
const CHECKER: &str = r#"#!/usr/bin/env python3
import fcntl, json, os, re, subprocess, sys, time
args = sys.argv[1:]
tool, log = (args[args.index(name) + 1] for name in ("--tool", "--log-file"))
command = args[args.index("-c") - 1:]
with open(re.search(r'checked\("(.*?)"\)', command[2])[1]) as file:
    device = open(json.load(file)["device"], "r+")
fcntl.flock(device, fcntl.LOCK_EX)
ran = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
waits = re.compile(rf"-> FLOCK +ADVISORY +READ +{ran.pid} ")
while ran.poll() is None and not waits.search(open("/proc/locks").read()):
    time.sleep(0.02)
began_early = ran.poll() is not None
fcntl.flock(device, fcntl.LOCK_UN)
def has_it_behind_all_others():
    try:
        numbers = sorted(int(name) for name in os.listdir(f"/proc/{ran.pid}/fd"))
        its = os.stat(f"/proc/{ran.pid}/fd/{numbers[-1]}")
        return numbers[-1] > 512 and os.path.samestat(its, os.fstat(device.fileno()))
    except (OSError, IndexError):
        return False
is_last = False
while ran.poll() is None and not is_last:
    is_last = has_it_behind_all_others()
said = ran.communicate()[0]
end = {"memcheck": "ERROR SUMMARY: 0 errors", "racecheck": "RACECHECK SUMMARY: 0 hazards displayed"}[tool]
with open(log, "w") as file:
    file.write("" if began_early or not is_last else f"========= {end}\n")
print(said)
sys.exit(ran.returncode)
"#;

/// The judge used to hold the device for all of that time: this checker would then wait for it until its time limit.
#[test]
fn a_process_under_a_tool_locks_the_device_only_on_first_use() {
    let project = Project::new(SCALE, &[("faster", FASTER)]);
    let checker = program(&project, "checker", CHECKER);
    let variables = [("WARPSMITH_FAKE_SANITIZER", checker.to_str().unwrap())];
    let ran = project.verify_with(&variables, &["candidates/faster.py", "--quick", "--json"]);
    let report = Report(serde_json::from_slice(&ran.stdout).unwrap());
    let checks: Vec<_> =
        report.checks().into_iter().filter(|(name, _)| name.starts_with("compute-sanitizer")).collect();
    assert_eq!((report.said(), checks.len()), ("accepted", 2), "{}", report.0);
}
