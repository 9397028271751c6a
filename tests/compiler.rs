//! Tests of the compiler tier against Triton itself: the verdicts of nine releases, and processes that die.
//!
//! They run with the Triton of `WARPSMITH_TEST_PYTHON`, and with the releases in the folder `WARPSMITH_TEST_TRITONS`,
//! each in a subfolder that is named after its version.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use compiler::protocol::{FullCompilation, LoweringReply, LoweringRequest, SourceFile};
use compiler::{CompileQuestion, CompileTarget, CompilerSession, ServiceStatus};
use model::kernel::Module;
use model::syntax::Source;
use serde_json::{Value as Json, json};

fn python() -> PathBuf {
    std::env::var_os("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`").into()
}

/// A constant in the form that `worker.py` takes, from a value of the data.
fn constant(value: &Json) -> Json {
    match value {
        Json::String(text) if text.starts_with("__tl.") => json!({ "dtype": &text[5..] }),
        Json::Array(items) => json!({ "tuple": items.iter().map(constant).collect::<Vec<_>>() }),
        Json::Object(entries) => json!({ "dict": entries.iter().map(|(k, v)| (k, constant(v))).collect::<Vec<_>>() }),
        other => other.clone(),
    }
}

fn request(text: &str, signature: &Json, constexprs: &Json) -> LoweringRequest {
    let texts = |(name, value): (&String, &Json)| (name.clone(), value.as_str().unwrap().to_owned());
    LoweringRequest {
        id: 0,
        files: vec![SourceFile { name: "program".to_owned(), text: text.to_owned(), ..SourceFile::default() }],
        kernel: "k".to_owned(),
        signature: signature.as_object().unwrap().iter().map(texts).collect(),
        constexprs: constexprs.as_object().unwrap().iter().map(|(k, v)| (k.clone(), constant(v))).collect(),
        aligned: Vec::new(),
        target: ("cuda".to_owned(), json!(90), 32),
        options: BTreeMap::new(),
        types: true,
        full: None,
        seconds: 30.0,
        in_series: false,
    }
}

fn version(session: &mut CompilerSession) -> String {
    session.answer(add(1)).unwrap();
    let ServiceStatus::Ready { triton } = session.status() else { panic!("{:?}", session.status()) };
    triton.clone()
}

/// A kernel that compiles; different numbers give different kernels.
fn add(number: usize) -> LoweringRequest {
    let text = format!(
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, B: tl.constexpr):\n    i = tl.arange(0, B)\n    \
         tl.store(x + i, tl.load(x + i) + {number})\n"
    );
    request(&text, &json!({ "x": "*fp32" }), &json!({ "B": 64 }))
}

/// The verdict: whether the kernel is accepted, and the line and column of the error.
fn verdict(answer: &LoweringReply) -> (bool, Option<(u32, u32)>) {
    let place = answer.error.as_ref().and_then(|error| error.places.last()).map(|place| (place.1, place.2));
    (answer.accepted, place)
}

/// Programs with the verdicts of nine releases.
const GIVEN: &str = include_str!("data/frontend_snippets.json");
const MORE: &str = include_str!("data/frontend_more.json");

/// A request that may run in a process that has answered other requests before.
fn in_series(request: LoweringRequest) -> LoweringRequest {
    LoweringRequest { types: false, in_series: true, ..request }
}

/// Asks about the programs whose verdict the table has for the Triton of this session, in a given way. Returns the
/// number of programs, and those that are answered differently.
fn compare(
    session: &mut CompilerSession,
    version: &str,
    sets: &[&str],
    way: impl Fn(LoweringRequest) -> LoweringRequest,
) -> (usize, Vec<String>) {
    let (mut asked, mut wrong) = (0, Vec::new());
    for data in sets {
        let data: Json = serde_json::from_str(data).unwrap();
        for snippet in data["snippets"].as_array().unwrap() {
            let of_version = |(versions, _): &(&String, &Json)| versions.split(' ').any(|one| one == version);
            let results = snippet["results"].as_object().unwrap();
            let Some((_, expected)) = results.iter().find(of_version) else { continue };
            let text = snippet["source"].as_str().unwrap();
            let answer = session.answer(way(request(text, &snippet["signature"], &snippet["constexprs"]))).unwrap();
            if expected["error_type"] == "Crash" {
                continue;
            }
            let number = |name: &str| expected[name].as_u64().map(|number| u32::try_from(number).unwrap());
            let place = number("line").zip(number("col"));
            asked += 1;
            let got = verdict(&answer);
            // A file that cannot be loaded has no verdict, but the reason must be that of the table.
            let message = expected["message"].as_str().unwrap_or_default();
            let is_known = |unable: &String| place.is_none() && !message.is_empty() && unable.contains(message);
            let is_answered = answer.not_lowerable.as_ref().is_none_or(is_known) && answer.crashed.is_none();
            // A failure to load the file has no place in the table.
            let is_load = answer.error.as_ref().is_some_and(|error| error.kind == "load");
            let got = if is_load { (got.0, None) } else { got };
            if !is_answered || got != (expected["ok"] == true, place) {
                wrong.push(format!("Triton {version}, {}: {got:?}, not {expected}: {answer:?}", snippet["id"]));
            }
        }
    }
    (asked, wrong)
}

#[test]
fn verdicts_agree_with_the_recorded_table() {
    let mut session = CompilerSession::new(python());
    let version = version(&mut session);
    let (asked, wrong) = compare(&mut session, &version, &[GIVEN, MORE], |request| request);
    println!("{asked} programs, Triton {version}");
    assert!(asked > 1000, "{asked}");
    assert!(wrong.is_empty(), "{} of {asked}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn verdicts_of_a_series_agree_with_the_recorded_table() {
    let mut session = CompilerSession::new(python());
    let version = version(&mut session);
    let (asked, wrong) = compare(&mut session, &version, &[GIVEN, MORE], in_series);
    assert!(asked > 1000 && wrong.is_empty(), "{} of {asked}\n{}", wrong.len(), wrong.join("\n"));
}

/// A program does not influence the verdict on the next one.
#[test]
fn a_program_that_crashes_in_a_series_is_retried_in_a_new_process() {
    let mut session = CompilerSession::new(python());
    let mut with = |code: &str| {
        let mut request = in_series(add(1));
        request.files[0].text.insert_str(0, code);
        session.answer(request).unwrap()
    };
    let dies_second = "import os\nimport sys\nif hasattr(sys, 'seen'):\n    os._exit(3)\nsys.seen = True\n";
    assert!(with(dies_second).accepted);
    assert!(with(dies_second).accepted, "by a new process");
    let died = with("import os\nos._exit(3)\n");
    assert!(died.crashed.is_some_and(|how| how.contains("status 3")));
    let hangs = LoweringRequest { seconds: 0.5, ..in_series(add(2)) };
    let hung = LoweringRequest {
        files: vec![SourceFile { text: "while True:\n    pass\n".to_owned(), ..hangs.files[0].clone() }],
        ..hangs
    };
    assert!(session.answer(hung).unwrap().not_lowerable.is_some_and(|why| why.contains("no answer within")));
    for number in 0..200 {
        let answer = session.answer(in_series(if number % 2 == 0 { add(number) } else { broken(number) })).unwrap();
        assert_eq!(
            (answer.accepted, answer.error.is_some()),
            (number % 2 == 0, number % 2 == 1),
            "{number}: {answer:?}"
        );
    }
}

/// Fresh environments that contain only Triton, one for each release that is available.
#[test]
fn verdicts_of_other_releases_agree_with_the_table_without_torch() {
    let releases = std::env::var_os("WARPSMITH_TEST_TRITONS").expect("run the tests by `cargo xtask test`");
    let releases = std::fs::read_dir(&releases).unwrap().map(|entry| entry.unwrap().path());
    let asking: Vec<_> = releases.map(|packages| std::thread::spawn(move || compare_release(&packages))).collect();
    let found: Vec<String> = asking.into_iter().map(|release| release.join().unwrap()).collect();
    assert!(["3.4.0", "3.9.0"].iter().all(|release| found.iter().any(|one| one == release)), "{found:?}");
}

/// Compares the verdicts of the release in a folder. Returns its version.
fn compare_release(packages: &Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    let python = environment(folder.path(), packages);
    let torch = Command::new(&python).args(["-c", "import torch"]).output().unwrap();
    assert!(String::from_utf8_lossy(&torch.stderr).contains("No module named 'torch'"), "{torch:?}");
    let start = std::time::Instant::now();
    let mut session = CompilerSession::new(python);
    let version = version(&mut session);
    assert_eq!(packages.file_name().unwrap(), version.as_str());
    // The other programs take 40 s for each release, so they are only included with `WARPSMITH_TEST_ALL=1`.
    let sets: &[&str] = if std::env::var_os("WARPSMITH_TEST_ALL").is_some() { &[GIVEN, MORE] } else { &[GIVEN] };
    let (asked, mut wrong) = compare(&mut session, &version, sets, |request| request);
    wrong.extend(compare(&mut session, &version, &[GIVEN], in_series).1);
    eprintln!("{asked} programs, Triton {version}, {:.1} s", start.elapsed().as_secs_f64());
    assert!(asked > 300, "{asked}");
    assert!(wrong.is_empty(), "{} of {asked}\n{}", wrong.len(), wrong.join("\n"));
    version
}

/// The interpreter of a new environment that sees the packages of a folder.
fn environment(folder: &Path, packages: &Path) -> PathBuf {
    let made = Command::new(python()).args(["-m", "venv", "--without-pip"]).arg(folder).status();
    assert!(made.unwrap().success());
    let python = folder.join("bin/python");
    let code = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let output = Command::new(&python).args(["-c", code]).output().unwrap();
    let own = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    std::fs::write(own.join("triton.pth"), format!("{}\n", packages.display())).unwrap();
    python
}

/// A kernel that does not compile; different numbers give different kernels.
fn broken(number: usize) -> LoweringRequest {
    let mut request = add(number);
    request.files[0].text = request.files[0].text.replace(&format!("+ {number}"), &format!("+ oops{number}"));
    request
}

/// Such a process was killed, and left its temporary folders.
#[test]
fn a_dropped_session_removes_its_temporary_folders() {
    let mut session = CompilerSession::new(python());
    let mut tells = in_series(add(1));
    tells.files[0].text.insert_str(0, "raise RuntimeError('<' + __file__ + '>')\n");
    let told = format!("{:?}", session.answer(tells).unwrap());
    let place = Path::new(told.split(['<', '>']).nth(1).unwrap()).parent().unwrap().to_owned();
    assert!(place.is_dir(), "{told}");
    let process = session.process().unwrap();
    drop(session);
    let is_left = || place.exists() || Path::new(&format!("/proc/{process}")).exists();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while is_left() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(!is_left(), "{}", place.display());
    assert!(!place.parent().unwrap().exists(), "{}", place.display());
}

#[test]
fn requests_are_answered_after_the_process_is_killed() {
    let mut session = CompilerSession::new(python());
    let started = session.answer(add(0)).unwrap();
    assert!(started.accepted);
    let mut killed = 0;
    // A fixed mix of times: before, shortly after and long after the question.
    for number in 0..200_usize {
        let process = session.process();
        let delay = std::time::Duration::from_micros((number as u64 * 7919) % 30_000);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(delay);
            // Only every third process is killed: after four deaths in a row the service gives up.
            let is_hit = number % 3 == 0;
            if let Some(process) = process.filter(|_| is_hit) {
                #[expect(unsafe_code, reason = "the test kills the process from outside, as a user or the system may")]
                // SAFETY: a signal to a process that this one has started.
                let hit = unsafe { libc::kill(process.cast_signed(), libc::SIGKILL) } == 0;
                return usize::from(hit);
            }
            0
        });
        let is_broken = number % 2 == 1;
        let answer = session.answer(if is_broken { broken(number) } else { add(number) }).unwrap();
        killed += killer.join().unwrap();
        assert_eq!(answer.accepted, !is_broken, "{number}: {answer:?}");
        if is_broken {
            assert!(answer.error.unwrap().message.contains(&format!("oops{number}")));
        }
    }
    println!("killed {killed} times");
    assert!(killed > 20, "{killed}");
    assert_eq!(children(std::process::id()), session.process().into_iter().collect::<Vec<_>>(), "one process is left");
}

/// The running child processes of a process.
fn children(of: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task")).unwrap();
    let read = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()
    };
    tasks.flat_map(|task| read(task).split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<u32>>()).collect()
}

/// Resident memory of a process, in KiB.
fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_hundred_edits_leave_one_process_and_flat_memory() {
    let mut session = CompilerSession::new(python());
    session.answer(add(0)).unwrap();
    let process = session.process().unwrap();
    let before = memory(process);
    for number in 0..100 {
        assert!(session.answer(add(number)).unwrap().accepted);
    }
    let grown = memory(process).saturating_sub(before);
    println!("{before} KiB, {grown} KiB more after 100 questions");
    assert_eq!(session.process(), Some(process));
    assert!(children(process).is_empty());
    assert!(grown < 4096, "{grown} KiB more");
}

#[test]
fn programs_that_hang_or_crash_get_an_answer() {
    let mut session = CompilerSession::new(python());
    let with = |body: &str, top: &str| {
        let mut request = add(0);
        request.files[0].text = format!(
            "{top}\nimport triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, B: tl.constexpr):\n    {body}\n"
        );
        request.seconds = 3.0;
        request
    };
    let hang = session.answer(with("pass", "while True: pass")).unwrap();
    assert!(hang.not_lowerable.unwrap().contains("3"), "a hang has an end");
    let output =
        session.answer(with("pass", "import sys\nfor i in range(100000): print('x' * 1000, file=sys.stderr)")).unwrap();
    assert!(output.accepted || output.not_lowerable.is_some() || output.crashed.is_some(), "{output:?}");
    let dead = session.answer(with("pass", "import os\nos.abort()")).unwrap();
    assert!(dead.crashed.unwrap().contains("signal 6"));
    let exit = session.answer(with("pass", "raise SystemExit(3)")).unwrap();
    assert!(exit.not_lowerable.unwrap().contains("SystemExit"));
    let missing = session.answer(with("pass", "import nothing_of_this_name")).unwrap();
    assert!(missing.not_lowerable.unwrap().contains("nothing_of_this_name"));
    let memory = session.answer(with("pass", "x = bytearray(1 << 40)")).unwrap();
    assert!(memory.not_lowerable.unwrap().contains("MemoryError"));
    assert!(session.answer(add(1)).unwrap().accepted, "and the next question is answered");
}

#[test]
fn an_interpreter_without_triton_says_so_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new(python()).args(["-m", "venv", "--without-pip"]).arg(folder.path()).status();
    assert!(made.unwrap().success());
    let mut session = CompilerSession::new(folder.path().join("bin/python"));
    let why = session.answer(add(0)).unwrap_err();
    assert_eq!(why, "ModuleNotFoundError: No module named 'triton'");
    let mut session = CompilerSession::new(folder.path().join("bin/gone"));
    assert!(session.answer(add(0)).unwrap_err().contains("set `python` in warpsmith.toml"));
}

/// The request for a kernel of an example, with the requested stages.
fn example(text: &str, kernel: &str, device: &str, stages: &[&str]) -> LoweringRequest {
    let source = Source::parse(text);
    let module = Module::build(&source);
    let found = module.kernels.iter().find(|found| found.name == kernel).unwrap();
    let device = CompileTarget::parse(device).unwrap();
    let question = CompileQuestion::of(&source, &module, found, &device).unwrap();
    let mut request = question.request(0, &question.guesses[0]);
    request.full = Some(device.full(stages.iter().map(|&stage| stage.to_owned()).collect()));
    request.types = false;
    request.seconds = 120.0;
    request
}

#[test]
fn a_kernel_is_compiled_down_to_the_machine() {
    let mut session = CompilerSession::new(python());
    let text = include_str!("../examples/matmul.py");
    let mut request = example(text, "matmul_kernel", "cuda:80", &["ttir", "ttgir", "llir", "ptx", "sass", "amdgcn"]);
    let sizes = [("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 32)];
    // A launch tells Triton which arguments are 1 or multiples of 16; without that, loads are not pipelined.
    request.aligned.extend(["M", "N", "K", "stride_am", "stride_bk", "stride_cm"].map(str::to_owned));
    for (name, value) in sizes.into_iter().chain(["stride_ak", "stride_bn", "stride_cn"].map(|name| (name, 1))) {
        request.signature.remove(name);
        request.constexprs.insert(name.to_owned(), json!(value));
    }
    request.options = [("num_warps".to_owned(), json!(8)), ("num_stages".to_owned(), json!(3))].into();
    let answer = session.answer(request.clone()).unwrap();
    assert!(answer.accepted, "{answer:?}");
    let compiled = answer.compiled.unwrap();
    assert_eq!(compiled.failed, None);
    assert!((16..=255).contains(&compiled.registers.unwrap()), "{:?}", compiled.registers);
    assert_eq!((compiled.spills, compiled.stack, compiled.warps), (Some(0), Some(0), 8));
    // At least two buffers of two tiles in half or single precision.
    assert!((2 * 2 * 64 * 32 * 2..=3 * 2 * 64 * 32 * 4).contains(&compiled.shared), "{}", compiled.shared);
    let stages: Vec<&str> = compiled.stages.keys().map(String::as_str).collect();
    assert_eq!(stages, ["llir", "ptx", "sass", "ttgir", "ttir"], "all there are on this target");
    for (stage, part) in [
        ("ttir", "tt.func public @matmul_kernel("),
        ("ttgir", "\"ttg.num-warps\" = 8"),
        ("llir", "target triple = \"nvptx64-nvidia-cuda\""),
        ("ptx", ".visible .entry matmul_kernel("),
        ("sass", ".text.matmul_kernel:"),
    ] {
        let text = compiled.stages[stage].replace("triton_gpu.num-warps", "ttg.num-warps");
        assert!(text.contains(part) || (stage == "llir" && text.contains("define ")), "{stage}: {text}");
    }
    assert!(compiled.stages["sass"].contains("file0.py\", line "), "SASS knows its lines");

    request.constexprs.insert("BLOCK_M".to_owned(), json!(256));
    request.constexprs.insert("BLOCK_N".to_owned(), json!(256));
    request.full = Some(CompileTarget::parse("cuda:80").unwrap().full(Vec::new()));
    request.options.insert("num_stages".to_owned(), json!(8));
    let large = session.answer(request).unwrap();
    assert!(large.accepted);
    let large = large.compiled.unwrap();
    assert!(large.spills.unwrap() > 0 && large.spills <= large.stack, "{large:?}");
    assert!(large.shared > 166_912 && large.stages.is_empty());
    let failed = large.failed.unwrap();
    assert_eq!(failed.stage, "launch");
    let words = format!("out of resource: shared memory, Required: {}, Hardware limit: 166912", large.shared);
    assert!(failed.message.contains(&words), "{}", failed.message);
}

#[test]
fn a_kernel_is_compiled_for_an_amd_device() {
    let mut session = CompilerSession::new(python());
    let text = include_str!("../examples/softmax.py");
    let answer = session.answer(example(text, "softmax_kernel", "hip:gfx942", &["ttgir", "amdgcn", "ptx"])).unwrap();
    let compiled = answer.compiled.unwrap();
    assert_eq!(compiled.failed, None);
    assert!(compiled.registers.unwrap() > 0 && compiled.spills == Some(0), "{compiled:?}");
    assert!(compiled.stages["amdgcn"].contains("gfx942"));
    assert_eq!(compiled.stages.len(), 2);
}

#[test]
fn a_crash_of_the_back_end_keeps_the_verdict_of_the_front_end() {
    let mut session = CompilerSession::new(python());
    assert_eq!(session.answer(add(1)).unwrap().compiled, None, "only when it is asked for");
    let full = Some(FullCompilation { stages: vec!["ttir".to_owned()], shared: None });
    let refused = session.answer(LoweringRequest { full: full.clone(), ..broken(1) }).unwrap();
    assert!(refused.compiled.is_none() && refused.error.is_some());
    // The user's file replaces a later stage of Triton.
    let with = |end: &str| {
        let mut request = LoweringRequest { full: full.clone(), ..add(1) };
        let top = "from triton.backends import backends\ndef end(*_):\n    import os, time\n    ";
        request.files[0].text =
            format!("{top}{end}\nbackends['nvidia'].compiler.make_llir = end\n{}", request.files[0].text);
        request.seconds = 5.0;
        request
    };
    for (end, message) in [
        ("os.abort()", "signal 6: "),
        ("time.sleep(60)", "no answer within 5"),
        ("raise RuntimeError('it does not fit')", "RuntimeError: it does not fit"),
    ] {
        let answer = session.answer(with(end)).unwrap();
        assert!(answer.accepted && answer.crashed.is_none() && answer.not_lowerable.is_none(), "{answer:?}");
        let compiled = answer.compiled.unwrap();
        let failed = compiled.failed.unwrap();
        assert!(failed.stage == "llir" && failed.message.starts_with(message), "{failed:?}");
        assert!(compiled.stages["ttir"].contains("tt.func"), "what there is so far is told");
    }
}
