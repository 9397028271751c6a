//! Tests of processes that remain after all judging processes were killed, including those that should have ended them.
#![cfg(target_os = "linux")]

use std::process::{Command, Stdio};

use crate::runs::judged;
use crate::{Project, SCALE, marked, soon, text};

/// A process started by a judging process, which normally ends it.
const STARTS: &str = "\
import os
import subprocess
if 'WARPSMITH_FORKER' in os.environ:
    subprocess.Popen(['sleep', '1000'], start_new_session=True)
";

/// A process of `compute-sanitizer` once remained and waited for its parent forever, which cost a processor core.
#[test]
fn orphans_of_killed_judges_are_ended() {
    let mark = format!("WARPSMITH_TEST_STRAYS={}", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let settings = "[optimize]\nparallel = 2\ncandidates = 8\n";
    let project = Project::new(&[("scale.py", &(STARTS.to_owned() + SCALE)), ("warpsmith.toml", settings)]);
    let mut command = project.command(&["optimize", "scale.py", "--budget", "300s"]);
    let running = command.env(name, value).stdout(Stdio::piped()).spawn().unwrap();
    judged(&project, 2);
    // Some may have ended by then.
    let send = |signal: &str, to: &[String]| {
        let _ = Command::new("kill").arg(signal).args(to).stderr(Stdio::null()).status().unwrap();
    };
    let others = || {
        let all = marked(&mark).into_iter().filter(|(number, _)| *number != running.id());
        all.partition::<Vec<_>, _>(|(_, name)| name == "sleep")
    };
    // No process may end its children before it is killed itself.
    let (_, judges) = others();
    let numbers: Vec<String> = judges.iter().map(|(number, _)| number.to_string()).collect();
    send("-STOP", &numbers);
    let (strays, _) = others();
    assert!(!strays.is_empty() && numbers.len() > 2, "{strays:?} {judges:?}");
    send("-KILL", &numbers);
    let (left, _) = others();
    assert!(strays.iter().all(|stray| left.contains(stray)), "{strays:?} {left:?}");
    let ran = running.wait_with_output().unwrap();
    assert!(ran.status.code().is_some_and(|code| code < 2), "{}", text(&ran.stdout));
    soon("a process is left", || marked(&mark).is_empty());
}
