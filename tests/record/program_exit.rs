//! Tests of how a program ends under the recorder.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use store::Store;

use super::{HEAD, Project, entries, test_python, text};

const WAITS: &str = "
import signal, sys, time

def double(x):
    double_kernel[(1,)](x, x, x.numel(), BLOCK=64)

def stop(*_):
    print('saved', flush=True)
    sys.exit(7)

signal.signal(signal.SIGTERM, stop)
double(torch.ones(50))
print('ready', flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    # What comes a second time would end it here.
    time.sleep(1)
    print('saved', flush=True)
    raise
";

/// The output and exit status of the program when it gets a signal.
fn ended_by(signal: i32) -> (String, Option<i32>) {
    let project = Project::new(&[("main.py", &format!("{HEAD}{WAITS}"))]);
    let command = project.command(&["record", "--", test_python().to_str().unwrap(), "main.py"]);
    let mut running = { command }.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.by_ref().any(|line| line == "ready"));
    let sent = Command::new("kill").args([format!("-{signal}"), running.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let rest = lines.collect::<Vec<_>>().join("\n");
    assert_eq!(entries(&project.workloads()), ["double"]);
    (rest, running.wait().unwrap().code())
}

#[test]
fn signals_to_the_recorder_reach_the_program() {
    let said = "saved\nrecorded double in main.py: 1 call, launches double_kernel";
    assert_eq!(ended_by(15), (said.to_owned(), Some(7)));
    assert_eq!(ended_by(2), (said.to_owned(), Some(130)));
}

/// On a terminal both processes get the signal, the program only once.
#[test]
fn the_program_is_waited_for_after_control_c() {
    let project = Project::new(&[("main.py", &format!("{HEAD}{WAITS}"))]);
    let terminal = "
import os, pty, sys
child, master = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen = b''
while True:
    try:
        part = os.read(master, 1024)
    except OSError:
        break
    if b'ready' in part:
        os.write(master, b'\\x03')
    seen += part
print(seen.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";
    let inner = project.command(&["record", "--", test_python().to_str().unwrap(), "main.py"]);
    let mut outer = Command::new(test_python());
    outer.arg("-c").arg(terminal).arg(inner.get_program()).args(inner.get_args()).current_dir(project.0.path());
    outer.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let seen = text(&outer.output().unwrap().stdout);
    let said = seen.split_once("saved").map_or(seen.as_str(), |(_, rest)| rest);
    assert!(said.contains("recorded double in main.py") && said.trim_end().ends_with(" 130"), "{seen}");
}

#[test]
fn calls_that_are_too_large_are_not_reported_as_recorded() {
    let main = "
def double(x, index):
    double_kernel[(1,)](x, x, 50, BLOCK=64)

def small(x):
    double_kernel[(1,)](x, x, 50, BLOCK=32)

small(torch.ones(50))
double(torch.ones(50), torch.arange(300_000))
";
    let project =
        Project::new(&[("main.py", &format!("{HEAD}{main}")), ("warpsmith.toml", "workloads.max-size = 1\n")]);
    let ran = project.run(&["record", "--", test_python().to_str().unwrap(), "main.py"]);
    let expected = "recorded small in main.py: 1 call, launches double_kernel
not kept: double in main.py: 1 call, launches double_kernel; it takes 1.9 MiB of the 1 that are kept: raise `workloads.max-size`
";
    assert_eq!(text(&ran.stdout), expected);
    assert_eq!(entries(&project.workloads()), ["small"]);
}

/// A launch that raises is stored: the kernel that Triton refuses, with the arguments of the launch.
#[test]
fn a_launch_that_triton_refuses_is_stored_as_a_failure() {
    let fails = "
@triton.jit
def mean_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK), mask=tl.arange(0, BLOCK) < n)
    tl.store(out_ptr, tl.mean(x))

def mean(x):
    mean_kernel[(1,)](x, x, x.numel(), BLOCK=64)

def double(x):
    double_kernel[(1,)](x, x, x.numel(), BLOCK=64)

double(torch.ones(50))
mean(torch.ones(50))
";
    let project = Project::new(&[("main.py", &format!("{HEAD}{fails}"))]);
    let ran = project.command(&["record", "--", test_python().to_str().unwrap(), "main.py"]).output().unwrap();
    assert!(!ran.status.success(), "{}", text(&ran.stderr));
    let store = Store::of_user(&project.state().join("warpsmith")).unwrap();
    let mut kept = Vec::new();
    store.each_failure(&mut |one| kept.push(one.failure)).unwrap();
    let [failure] = kept.as_slice() else { panic!("{kept:?}") };
    assert_eq!((failure.kernel.as_str(), failure.source.as_str()), ("mean_kernel", "recording"));
    assert!(failure.error.message.contains("mean"), "{failure:?}");
    assert!(failure.text.contains("x_ptr=*fp32") && failure.text.contains("BLOCK=64"), "{}", failure.text);
    assert!(!failure.text.contains("double_kernel"), "{}", failure.text);
}
