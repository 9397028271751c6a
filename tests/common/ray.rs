//! A real Ray cluster with several nodes on this machine, with simulated devices.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::judging::{Project, test_python};

/// The version of Ray that the pool is tested with.
const RAY: &str = "ray[client]==2.60.0";

/// An interpreter with Ray and the packages of the test's Python, created on first use (a download of 80 MB).
pub(crate) fn pool_python() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../pool-venv");
    let (python, stamp) = (folder.join("bin/python"), folder.join("installed"));
    // Tests run in parallel, in separate processes.
    let lock = File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == RAY) {
        return python;
    }
    let run = |program: &Path, args: &[&str]| {
        let ran = Command::new(program).args(args).output().unwrap();
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    let packages = |python: &Path| run(python, &["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]);
    run(&test_python(), &["-m", "venv", folder.to_str().unwrap()]);
    run(&python, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", RAY]);
    std::fs::write(Path::new(packages(&python).trim()).join("judging.pth"), packages(&test_python())).unwrap();
    std::fs::write(stamp, RAY).unwrap();
    python
}

pub(crate) struct Cluster {
    process: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// The address for Ray's own protocol.
    pub(crate) address: String,
    /// The address for Ray's client.
    pub(crate) client_address: String,
    _folder: tempfile::TempDir,
}

impl Cluster {
    /// A cluster with a node that has one device for each of these models.
    pub(crate) fn start(models: &[&str]) -> Self {
        Self::start_with(models, &[])
    }

    /// Ray reads these variables.
    pub(crate) fn start_with(models: &[&str], variables: &[(&str, &str)]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // The folder's path must be short, because Ray's socket paths are long already.
        let folder = tempfile::Builder::new().prefix("r").tempdir_in("/tmp").unwrap();
        let mut process = Command::new(pool_python())
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pool/cluster.py"))
            .arg(port.to_string())
            .args(models)
            .env("RAY_TMPDIR", folder.path())
            .env("XDG_CACHE_HOME", folder.path().join("cache"))
            .env("WARPSMITH_FAKE_DEVICE", "toy")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(folder.path().join("said")).unwrap())
            .spawn()
            .unwrap();
        let (stdin, mut stdout) = (process.stdin.take(), BufReader::new(process.stdout.take().unwrap()));
        let mut address = String::new();
        stdout.read_line(&mut address).unwrap();
        let said = std::fs::read_to_string(folder.path().join("said")).unwrap();
        assert!(address.contains(':'), "no cluster: {said}");
        let (address, client_address) = (address.trim().to_owned(), format!("ray://127.0.0.1:{port}"));
        Self { process, stdin, stdout, address, client_address, _folder: folder }
    }

    /// Disturbs a node with `cut`, `mend` or `kill`, or all of them with `restart`.
    pub(crate) fn tell(&mut self, what: &str, node: usize) {
        writeln!(self.stdin.as_mut().unwrap(), "{what} {node}").unwrap();
        let mut done = String::new();
        self.stdout.read_line(&mut done).unwrap();
        assert_eq!(done, "done\n");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The process ends at the end of its input.
        self.stdin = None;
        let deadline = Instant::now() + Duration::from_secs(30);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A command that runs the program in the project's folder, without a GPU of its own, with a Python that has Ray.
pub(crate) fn without_gpu(project: &Project, args: &[&str]) -> Command {
    let mut command = project.command(args);
    command
        .env_remove("WARPSMITH_FAKE_DEVICE")
        .env("CUDA_VISIBLE_DEVICES", "")
        .env("VIRTUAL_ENV", pool_python().parent().and_then(Path::parent).unwrap())
        // The same value as in the cluster: addresses of this machine stay local.
        .env("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0");
    command
}

/// Configures the project to be judged in a pool. Beside other tests a cluster of two processors needs longer for its
/// start than the default allows.
pub(crate) fn judge_in(project: &Project, address: &str, more: &str) {
    project.write("warpsmith.toml", &format!("[evaluator]\npool = {address:?}\nstart = 400\n{more}\n"));
}
