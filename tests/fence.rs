//! Tests of the sandbox: runners cannot leave it, everything they start ends with them, and the next runner works.
//! Needs the interpreter that `cargo xtask test` prepares (`WARPSMITH_TEST_PYTHON`); no GPU.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use protocol::runner::{AuthenticatedReply, ChildRole, ExitCause, Fence, RunnerReply, RunnerRequest, Weights};
use protocol::{Workload, read_frame, write_frame};
use runtime::python::{Child, ChildExit, ComputeDevice, Forker};

const TOKEN: u64 = 42;
/// The time after which a child counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// Imports and helpers for the actions below.
const PREAMBLE: &str = "
import ctypes, errno, os, resource, signal, socket, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(argument) for argument in arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), 'refused')
    return result
";

/// Checks that the action is refused.
const REFUSED: &str = "
try:
    act()
except OSError as error:
    if error.errno not in (errno.EPERM, errno.EACCES, errno.EXDEV):
        raise
else:
    raise RuntimeError('it was let')
";

/// Actions that other processes can do and a sandboxed process cannot, one expression each.
const FORBIDDEN: &[(&str, &str)] = &[
    ("internet socket", "socket.socket()"),
    ("datagram socket", "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)"),
    ("local socket", "socket.socket(socket.AF_UNIX)"),
    ("read a file of the user's", "open(OUTSIDE + '/secret').read()"),
    ("read it by another way", "open(f'/proc/self/root{OUTSIDE}/secret').read()"),
    ("list a folder of the user's", "os.listdir(OUTSIDE)"),
    ("write a new file", "open(OUTSIDE + '/new', 'w')"),
    ("write a file of the workspace", "open(READABLE + '/file', 'r+')"),
    ("truncate a file of the workspace", "os.truncate(READABLE + '/file', 3)"),
    ("write a new file to the workspace", "open(READABLE + '/new', 'w')"),
    ("make a folder", "os.mkdir(READABLE + '/folder')"),
    ("make a link", "os.symlink('/', READABLE + '/link')"),
    ("take a file in", "os.link(OUTSIDE + '/linked', 'linked')"),
    ("rename a file", "os.rename(READABLE + '/renamed', READABLE + '/renamed2')"),
    ("remove a file", "os.unlink(READABLE + '/removed')"),
    ("write to the common temporary folder", "open('/tmp/warpsmith-fence-test', 'w')"),
    ("write to the shared memory", "open('/dev/shm/warpsmith-fence-test', 'w')"),
    ("read another process's environment", "open(f'/proc/{SERVER}/environ').read()"),
    ("read another process's descriptor", "open(f'/proc/{SERVER}/fd/0').read(0), os.readlink(f'/proc/{SERVER}/fd/1')"),
    ("open another process's memory", "open(f'/proc/{FORKER}/mem', 'rb')"),
    ("read another process's memory", "call(310, SERVER, 0, 0, 0, 0, 0)"),
    ("signal the forker", "os.kill(FORKER, 0)"),
    ("signal the server", "os.kill(SERVER, 0)"),
    ("signal the supervisor", "os.kill(os.getppid(), 0)"),
    ("signal by descriptor", "signal.pidfd_send_signal(os.pidfd_open(FORKER), 0)"),
    ("take a descriptor", "call(438, os.pidfd_open(FORKER), 0, 0)"),
    ("limit another process", "resource.prlimit(SERVER, resource.RLIMIT_CORE)"),
    ("slow another process down", "os.setpriority(os.PRIO_PROCESS, SERVER, os.getpriority(os.PRIO_PROCESS, SERVER))"),
    ("slow the user down", "os.setpriority(os.PRIO_USER, 0, 19)"),
    ("pin another process", "os.sched_setaffinity(SERVER, os.sched_getaffinity(SERVER))"),
    ("shared memory that stays", "call(29, 0, 4096, 0o600)"),
    ("message queue", "call(68, 0, 0o600)"),
    ("io_uring", "call(425, 1, ctypes.addressof(ctypes.create_string_buffer(256)))"),
    ("attributes", "os.setxattr(READABLE + '/file', 'user.a', b'a')"),
    ("owner", "os.chown(READABLE + '/file', os.getuid(), os.getgid())"),
    ("keyring", "call(250, 0, -3, 0)"),
    (
        "start a program of its own",
        "[subprocess.run(['cp', '/bin/true', 'own']), subprocess.run(['chmod', '+x', 'own']), subprocess.run(['./own'])]",
    ),
];

/// Actions that may be refused to other processes as well.
const PRIVILEGED: &[(&str, &str)] = &[
    ("trace the forker", "call(101, 16, FORKER, 0, 0)"),
    ("namespace of its own", "call(272, 0x10000000)"),
    ("namespace of a child's own", "call(56, 0x10000000 | 17, 0, 0, 0, 0)"),
    ("mount", "call(165, 0, 0, 0, 0, 0)"),
    ("bpf", "call(321, 0, 0, 0)"),
    ("count another's events", "call(298, 0, 0, 0, 0, 0)"),
    ("userfaultfd", "call(323, 0)"),
    ("clock", "time.clock_settime(time.CLOCK_REALTIME, time.time())"),
    ("shadow file", "open('/etc/shadow').read()"),
    ("kernel log", "call(103, 3, 0, 0)"),
];

struct Bench {
    forker: Forker,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("fence").tempdir().unwrap();
        for part in ["outside", "readable", "scratch", "kernels"] {
            std::fs::create_dir(folder.path().join(part)).unwrap();
        }
        for file in ["outside/secret", "outside/linked", "readable/file", "readable/renamed", "readable/removed"] {
            std::fs::write(folder.path().join(file), "contents").unwrap();
        }
        simulate();
        let forker = Forker::start(&test_python(), &ComputeDevice::Devices, &|| true).unwrap();
        let bench = Self { forker, folder };
        // A file that stays open from the first use on is not a leak.
        assert!(is_loaded(bench.run("").0.as_ref()));
        bench
    }

    fn path(&self, part: &str) -> PathBuf {
        self.folder.path().join(part)
    }

    fn fence(&self) -> Fence {
        Fence {
            scratch: self.path("scratch"),
            kernels: self.path("kernels"),
            readable: vec![self.path("readable")],
            memory: 768 << 20,
            device_memory: 0,
            streams: true,
            results: 0,
            processes: 12,
            output: 1 << 20,
            token: TOKEN,
            compiles: None,
        }
    }

    fn start(&self, code: &str) -> Child {
        let folder = self.path("readable");
        let values = [("OUTSIDE", self.path("outside")), ("READABLE", folder.clone())]
            .map(|(name, path)| format!("{name} = {:?}\n", path.display().to_string()));
        let pids = format!("SERVER = {}\nFORKER = {}\n", std::process::id(), self.forker.pid());
        let mut child = self.forker.spawn(ChildRole::Runner(Box::new(self.fence()))).unwrap();
        let file = folder.join(format!("act{}.py", child.id));
        std::fs::write(&file, format!("{PREAMBLE}{}{pids}def entry(): pass\n{code}\n", values.concat())).unwrap();
        let weights = Weights::default();
        let request = RunnerRequest::Load { file, folder, workload: Box::new(workload()), is_candidate: true, weights };
        // The child may have ended already.
        let _ = write_frame(&mut child.stream, &request);
        child.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        child
    }

    /// Runs the code in a sandboxed child. Returns its reply, and how it ended once its stream was closed.
    fn run(&self, code: &str) -> (Option<RunnerReply>, ChildExit) {
        let mut child = self.start(code);
        let sealed = read_frame::<AuthenticatedReply>(&mut child.stream);
        let reply = sealed.ok().flatten().filter(|sealed| sealed.token == TOKEN).map(|sealed| sealed.reply);
        child.stream.shutdown(std::net::Shutdown::Both).unwrap();
        (reply, child.wait(PATIENCE).unwrap().expect("the child has ended"))
    }

    /// Runs code that ends its process.
    fn end_of(&self, code: &str) -> ChildExit {
        let started = Instant::now();
        let mut child = self.start(code);
        let ended = child.wait(PATIENCE).unwrap().unwrap_or_else(|| panic!("still there: {code}"));
        assert!(started.elapsed() < PATIENCE / 2, "{:?} for {code}", started.elapsed());
        ended
    }

    fn assert_clean(&self, after: &str, descriptors: usize) {
        assert_eq!(self.descriptors(), descriptors, "descriptors of the forker after {after}");
        let pid = self.forker.pid();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        assert_eq!(children, "", "processes below the forker after {after}");
    }

    fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.forker.pid())).unwrap().count()
    }
}

fn test_python() -> PathBuf {
    std::env::var_os("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`").into()
}

/// The action runs while the file is loaded; the entry only has to exist.
fn workload() -> Workload {
    Workload { file: PathBuf::from("/"), entry: "entry".to_owned(), ..Workload::default() }
}

/// Simulates the device; the sandbox is real.
fn simulate() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    #[expect(unsafe_code, reason = "nothing else reads the environment before the first forker is started")]
    // SAFETY: all tests of this file come here before they do anything else.
    ONCE.call_once(|| unsafe { std::env::set_var("WARPSMITH_FAKE_DEVICE", "toy") });
}

/// Whether this system supports all of the sandbox. Elsewhere there is less to test, and the doctor reports what is
/// missing.
fn is_whole() -> bool {
    fence::LinuxFeatures::running().missing().is_empty()
}

fn is_loaded(reply: Option<&RunnerReply>) -> bool {
    matches!(reply, Some(RunnerReply::Loaded { .. }))
}

fn act(expression: &str) -> String {
    format!("def act():\n    {expression}\n{REFUSED}")
}

#[test]
fn forbidden_acts_are_refused() {
    if !is_whole() {
        return;
    }
    let bench = Bench::new();
    assert_eq!(bench.forker.unfenced(), [""; 0], "this system can be tested only in part");
    let descriptors = bench.descriptors();
    let mut let_through = Vec::new();
    for (name, expression) in FORBIDDEN.iter().chain(PRIVILEGED) {
        let (reply, ended) = bench.run(&act(expression));
        if !is_loaded(reply.as_ref()) {
            let_through.push(format!("{name}: {reply:?}, {ended:?}"));
        }
    }
    assert!(let_through.is_empty(), "{}", let_through.join("\n"));
    bench.assert_clean("forbidden acts", descriptors);
    for (part, count) in [("outside", 2), ("readable", 3 + bench.acts())] {
        assert_eq!(std::fs::read_dir(bench.path(part)).unwrap().count(), count, "{part}");
    }
    // The same actions succeed without a fence, so it is the fence that refuses them.
    for (name, expression) in FORBIDDEN {
        assert!(!bench.is_refused_unfenced(expression), "{name} is refused without a fence as well");
    }
}

impl Bench {
    /// The number of files that this bench wrote.
    fn acts(&self) -> usize {
        let is_act = |name: &std::ffi::OsStr| Path::new(name).extension().is_some_and(|extension| extension == "py");
        std::fs::read_dir(self.path("readable")).unwrap().flatten().filter(|file| is_act(&file.file_name())).count()
    }

    fn is_refused_unfenced(&self, expression: &str) -> bool {
        let (outside, readable) = (self.path("outside"), self.path("readable"));
        let values = format!("OUTSIDE = {outside:?}\nREADABLE = {readable:?}\n");
        let pids = format!("SERVER = {}\nFORKER = {}\n", std::process::id(), self.forker.pid());
        // No other process's priority is changed.
        let harmless = expression.replace("PRIO_USER, 0, 19", "PRIO_USER, 0, 0");
        let mut command = Command::new(test_python());
        command.arg("-c").arg(format!("{PREAMBLE}{values}{pids}{}", act(&harmless))).current_dir(self.path("scratch"));
        let refused = command.output().unwrap().status.success();
        for made in ["/tmp/warpsmith-fence-test", "/dev/shm/warpsmith-fence-test"] {
            let _ = std::fs::remove_file(made);
        }
        refused
    }
}

/// Legitimate actions of programs still work.
#[test]
fn honest_work_is_let_through() {
    const HONEST: &[(&str, &str)] = &[
        ("scratch", "open('a', 'w').write('a'); os.rename('a', 'b'); os.makedirs('c/d'); os.rename('b', 'c/d/b')"),
        ("temporary files", "import tempfile; tempfile.NamedTemporaryFile().write(b'a'); tempfile.mkdtemp()"),
        ("copies with their modes", "import shutil; shutil.copy2(READABLE + '/file', 'copy')"),
        ("kernels", "folder = os.environ['TRITON_CACHE_DIR']; open(folder + '/k', 'w').write('k')"),
        ("workspace", "assert open(READABLE + '/file').read() == 'contents'"),
        ("home", "assert os.path.samefile(os.path.expanduser('~'), '.'); os.mkdir(os.path.expanduser('~/.cache'))"),
        (
            "programs",
            "p = subprocess.run(['sh', '-c', 'ls /usr | cat'], capture_output=True); assert p.stdout and p.returncode == 0, p",
        ),
        ("ending its own", "p = subprocess.Popen(['sleep', '60']); p.kill(); assert p.wait() == -9"),
        ("threads", "t = threading.Thread(target=print); t.start(); t.join()"),
        ("pair", "a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'"),
        ("event loop", "import asyncio; asyncio.run(asyncio.sleep(0))"),
        ("callbacks", "ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1)()"),
        ("devices", "open('/dev/null', 'w').write('a'); os.urandom(1); open('/dev/urandom', 'rb').read(1)"),
        ("packages", "import torch, json, sqlite3; assert torch.ones(1000, 1000).sum() == 1e6"),
        ("names", "import getpass; getpass.getuser()"),
        (
            "no secrets",
            "assert 'CARGO_MANIFEST_DIR' not in os.environ\nlibc.getenv.restype = ctypes.c_char_p\n\
             assert libc.getenv(b'CARGO_MANIFEST_DIR') is None and libc.getenv(b'PATH')\n\
             assert b'CARGO_MANIFEST_DIR' not in open('/proc/self/environ', 'rb').read()",
        ),
        ("few descriptors", "assert sorted(int(fd) for fd in os.listdir('/proc/self/fd'))[:4] == [0, 1, 2, 3], 'fds'"),
        (
            "large files",
            "try:\n    open('big', 'wb').write(bytes(1 << 21))\nexcept OSError as error:\n    assert error.errno == errno.EFBIG\nelse:\n    assert False",
        ),
    ];
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let bench = Bench::new();
    for (name, code) in HONEST {
        let (reply, ended) = bench.run(code);
        assert!(is_loaded(reply.as_ref()), "{name}: {reply:?} {ended:?}");
        assert_eq!(ended.cause, ExitCause::Status(0), "{name}: {}", ended.output);
    }
    let (reply, ended) = bench.run("os.chmod(READABLE + '/file', 0o777); os.utime(READABLE + '/file', (1, 1))");
    assert_eq!((is_loaded(reply.as_ref()), ended.cause), (true, ExitCause::Status(0)), "{reply:?}");
    let meta = std::fs::metadata(bench.path("readable/file")).unwrap();
    assert_ne!(std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777, 0o777);
    assert!(meta.modified().unwrap().elapsed().unwrap() < PATIENCE * 10);
    let (_, ended) = bench.run("print('said', 'ä' * 5000, end='!'); os.write(2, b'\\xff and'); os.system('echo done')");
    assert!(ended.output.ends_with("\u{fffd} anddone\n"), "{ended:?}");
    assert_eq!(ended.output.chars().count(), 4000);
}

/// Triton compiles for a real target inside the sandbox: neither compiling nor assembling needs a device.
#[test]
fn triton_compiles_behind_the_fence() {
    let bench = Bench::new();
    let kernel = "
import triton, triton.language as tl
@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)
";
    std::fs::write(bench.path("readable/kernel.py"), kernel).unwrap();
    let code = "
import triton.experimental.gluon.nvidia.hopper
os.environ['TRITON_INTERPRET'] = '0'
sys.path.insert(0, READABLE)
import kernel, triton
from triton.backends.compiler import GPUTarget
source = triton.compiler.ASTSource(fn=kernel.scale, signature={'x': '*fp32', 'n': 'i32', 'BLOCK': 'constexpr'}, constexprs={'BLOCK': 128})
compiled = triton.compile(source, target=GPUTarget('cuda', 90, 32))
assert compiled.asm['cubin'][:4] == b'\\x7fELF'
assert any(name.endswith('.cubin') for _, _, names in os.walk(os.environ['TRITON_CACHE_DIR']) for name in names)
";
    let (reply, ended) = bench.run(code);
    assert!(is_loaded(reply.as_ref()), "{reply:?} {}", ended.output);
}

#[test]
fn a_runner_beyond_a_limit_is_ended() {
    if !is_whole() {
        return;
    }
    const PASSED: &[(&str, ExitCause)] = &[
        ("while True: os.fork()", ExitCause::ProcessLimit),
        ("subprocess.run(['sh', '-c', 'b() { b | b & }; b; sleep 60'])", ExitCause::ProcessLimit),
        ("while True:\n    if os.fork() == 0: os.setsid()", ExitCause::ProcessLimit),
        ("while True: threading.Thread(target=time.sleep, args=(100,)).start()", ExitCause::ProcessLimit),
        ("hoard = []\nwhile True: hoard.append(bytearray(b'x') * (1 << 22))", ExitCause::MemoryLimit),
        (
            "subprocess.run([sys.executable, '-c', 'hoard = []\\nwhile True: hoard.append(bytes([1]) * (1 << 20))'])\ntime.sleep(60)",
            ExitCause::MemoryLimit,
        ),
        ("while True: print('x' * 1000)", ExitCause::OutputLimit),
        ("try:\n    while True: os.write(1, b'x' * 1000)\nexcept OSError:\n    time.sleep(60)", ExitCause::OutputLimit),
        ("os.execvp('yes', ['yes'])", ExitCause::OutputLimit),
    ];
    let bench = Bench::new();
    let descriptors = bench.descriptors();
    for (code, how) in PASSED {
        let ended = bench.end_of(code);
        assert_eq!(ended.cause, *how, "{code}: {}", ended.output);
        bench.assert_clean(code, descriptors);
        assert!(is_loaded(bench.run("").0.as_ref()), "after {code}");
    }
}

#[test]
fn processes_of_a_runner_end_with_the_runner() {
    if !is_whole() {
        return;
    }
    let acts = [
        ("os._exit(0)", ExitCause::Status(0)),
        ("os._exit(7)", ExitCause::Status(7)),
        ("os.abort()", ExitCause::Signal(libc::SIGABRT)),
        ("ctypes.string_at(0)", ExitCause::Signal(libc::SIGSEGV)),
        ("os.kill(os.getpid(), signal.SIGTERM)", ExitCause::Signal(libc::SIGTERM)),
        ("os.kill(0, signal.SIGKILL)", ExitCause::Signal(libc::SIGKILL)),
        ("libc.syscall(ctypes.c_long(0x40000000 | 39))", ExitCause::Signal(libc::SIGSYS)),
        (
            "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(1000)\n    os._exit(0)\nos._exit(3)",
            ExitCause::Status(3),
        ),
        (
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsubprocess.Popen(['sleep', '1000'], start_new_session=True)\nos._exit(0)",
            ExitCause::Status(0),
        ),
        (
            "libc.prctl(36, 1)\nsubprocess.Popen(['sh', '-c', 'sleep 1000 & sleep 1000'])\nos._exit(0)",
            ExitCause::Status(0),
        ),
    ];
    let bench = Bench::new();
    let descriptors = bench.descriptors();
    for (code, how) in acts {
        let ended = bench.end_of(code);
        assert_eq!(ended.cause, how, "{code}: {}", ended.output);
        bench.assert_clean(code, descriptors);
    }
    // These actions never end by themselves.
    let stays = [
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "os.closerange(0, 1 << 16)\ntime.sleep(1000)",
        "for fd in range(100):\n    try: os.write(fd, b'{\"token\": 42}' * 100)\n    except OSError: pass\ntime.sleep(1000)",
        "if os.fork() == 0:\n    os.setsid()\n    os.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(1000)",
    ];
    for code in stays {
        let mut child = bench.start(code);
        assert_eq!(child.wait(Duration::from_millis(300)).unwrap(), None, "{code}");
        child.kill();
        assert_eq!(child.wait(PATIENCE).unwrap().unwrap().cause, ExitCause::Killed, "{code}");
        bench.assert_clean(code, descriptors);
    }
    let (reply, _) = bench.run("os.closerange(0, 1 << 16)");
    assert_eq!(reply, None);
    drop(bench.start("time.sleep(1000)"));
    assert!(is_loaded(bench.run("").0.as_ref()));
    let deadline = Instant::now() + PATIENCE;
    while bench.descriptors() != descriptors && Instant::now() < deadline {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    bench.assert_clean("a dropped child", descriptors);
}

#[test]
fn many_threads_spawn_at_once_and_nothing_outlives_the_forker() {
    let bench = Bench::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let (reply, ended) = bench.run("import triton");
                    assert_eq!((is_loaded(reply.as_ref()), ended.cause), (true, ExitCause::Status(0)), "{reply:?}");
                }
            });
        }
    });
    let mut child =
        bench.start("if os.fork() == 0: os.setsid()\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(1000)");
    assert_eq!(child.wait(Duration::from_millis(500)).unwrap(), None);
    let pid = std::fs::read_to_string(bench.path("scratch/pid")).unwrap();
    let is_there = || Path::new(&format!("/proc/{pid}")).exists();
    assert!(is_there());
    // The system does the same when memory runs out; the supervisors notice the end.
    let killed = Command::new("kill").args(["-KILL", &bench.forker.pid().to_string()]).status().unwrap();
    assert!(killed.success());
    assert!(child.wait(PATIENCE).is_err());
    let deadline = Instant::now() + PATIENCE;
    while is_there() && Instant::now() < deadline {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    assert!(!is_there());
    assert!(bench.forker.spawn(ChildRole::Comparer).is_err());
}

/// A measurement: `cargo nextest run --test fence --run-ignored only --no-capture`.
#[test]
#[ignore = "it measures and says nothing of right or wrong"]
fn measure_start_and_end_of_a_runner() {
    let bench = Bench::new();
    let (mut loaded, mut ended) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let started = Instant::now();
        let mut child = bench.start("");
        read_frame::<AuthenticatedReply>(&mut child.stream).unwrap().unwrap();
        loaded.push(started.elapsed().as_secs_f64() * 1e3);
        child.stream.shutdown(std::net::Shutdown::Both).unwrap();
        child.wait(PATIENCE).unwrap().unwrap();
        ended.push(started.elapsed().as_secs_f64() * 1e3);
    }
    for (name, times) in [("loaded", &mut loaded), ("ended", &mut ended)] {
        times.sort_by(f64::total_cmp);
        println!("{name}: median {:.1} ms, {:.1} to {:.1}, n=20", times[10], times[0], times[19]);
    }
}
