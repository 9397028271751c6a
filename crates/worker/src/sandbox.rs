//! The fence around a process that runs a candidate: file access, system calls, resource limits and environment.
#![expect(unsafe_code, reason = "limits and capabilities are set by system calls")]

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use fence::filter::{self, Policy};
use fence::{LinuxFeatures, passes};
use protocol::runner::Fence;

/// The newest Landlock ABI whose access rights this file knows.
const NEWEST: ABI = ABI::V6;
/// The first Landlock ABI that restricts signals.
const SIGNALS_BOUNDED: u32 = 6;
/// The first Landlock ABI with a right for truncation.
const TRUNCATION_BOUNDED: u32 = 3;
/// The most files that a process may have open.
const OPEN_FILES: u64 = 4096;

/// Paths that programs and system libraries read. Of `/etc` only files without secrets are listed, since the fenced
/// process may run as root.
const SYSTEM: &[&str] = &[
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/sbin",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    "/run/opengl-driver",
    "/proc",
    "/sys/bus",
    "/sys/class",
    "/sys/dev",
    "/sys/devices",
    "/sys/fs/cgroup",
    "/sys/kernel/mm",
    "/sys/module",
    "/etc/OpenCL",
    "/etc/alternatives",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/nvidia",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/timezone",
    "/etc/vulkan",
];
/// Device files that every program may use.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "dxg", "kfd", "dri"];

/// The paths that every fenced process may read: the interpreter, its packages and the system libraries.
pub(super) struct Readable(Vec<PathBuf>);

impl Readable {
    /// Asks the interpreter for its own paths and those of its packages.
    pub(super) fn of(py: Python<'_>) -> PyResult<Self> {
        const PLACES: &std::ffi::CStr = c"
import os, site, sys
places = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *sys.path]
places += [os.path.dirname(os.path.realpath(sys.executable)), *site.getsitepackages(), site.getusersitepackages()]
# Packages under development, installed in place.
for name, module in list(sys.modules.items()):
    if name.startswith('__editable__'):
        places += [os.path.dirname(place) for place in getattr(module, 'MAPPING', {}).values()]
for name in ('LD_LIBRARY_PATH', 'CUDA_HOME', 'CUDA_PATH'):
    places += os.environ.get(name, '').split(os.pathsep)
";
        let scope = PyDict::new(py);
        py.run(PLACES, Some(&scope), None)?;
        let places: Vec<PathBuf> = scope.get_item("places")?.map_or(Ok(Vec::new()), |places| places.extract())?;
        let home = std::env::var_os("HOME").map(PathBuf::from);
        // A path entry that contains the user's whole home folder would defeat the fence.
        let is_narrow = |place: &Path| {
            let real = place.canonicalize().unwrap_or_default();
            place.is_absolute()
                && real.parent().is_some()
                && home.as_deref().is_none_or(|home| !home.starts_with(&real))
        };
        let mut readable: Vec<PathBuf> = places.into_iter().filter(|place| is_narrow(place)).collect();
        readable.extend(SYSTEM.iter().map(PathBuf::from));
        readable.sort();
        readable.dedup();
        Ok(Self(readable.into_iter().filter(|place| place.exists()).collect()))
    }
}

/// Puts this process behind the fence, permanently. Returns the descriptor on which starts of processes ask for
/// permission.
///
/// # Errors
/// Returns an error when a part of the fence cannot be put up: no code of a candidate may run here then.
pub(super) fn enter(py: Python<'_>, fence: &Fence, readable: &Readable) -> PyResult<Option<OwnedFd>> {
    let kernel = LinuxFeatures::running();
    for folder in [&fence.scratch, &fence.kernels] {
        std::fs::create_dir_all(folder).map_err(|error| named(folder, &error))?;
    }
    std::env::set_current_dir(&fence.scratch).map_err(|error| named(&fence.scratch, &error))?;
    clean_environment(py, fence)?;
    // Makes the kernel end this process first when memory runs out.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    limit(fence)?;
    if kernel.bounds_files() {
        bound_files(fence, readable).map_err(super::errors::failed)?;
    }
    drop_capabilities(kernel.bounds_files())?;
    if !kernel.filter {
        return Ok(None);
    }
    let policy = Policy {
        asks: kernel.asks && fence.processes > 0,
        signals_bounded: kernel.landlock >= SIGNALS_BOUNDED,
        truncation_bounded: kernel.landlock >= TRUNCATION_BOUNDED,
    };
    // A filter around all of our processes may have a listener already, and only one is possible.
    let listener = filter::install(policy).or_else(|error| match error.raw_os_error() {
        Some(libc::EBUSY | libc::EINVAL) if policy.asks => filter::install(Policy { asks: false, ..policy }),
        _ => Err(error),
    })?;
    Ok(listener)
}

fn named(path: &Path, error: &io::Error) -> PyErr {
    super::errors::failed(format!("{}: {error}", path.display()))
}

/// Removes the variables that candidates may not see from Python's and C's copies of the environment.
fn clean_environment(py: Python<'_>, fence: &Fence) -> PyResult<()> {
    let environ = py.import("os")?.getattr("environ")?;
    let kept: Vec<(String, String)> = environ
        .call_method0("copy")?
        .call_method0("items")?
        .try_iter()?
        .map(|item| item?.extract())
        .collect::<PyResult<_>>()?;
    environ.call_method0("clear")?;
    // SAFETY: this process has one thread, and nothing of it keeps pointers into the environment.
    unsafe { libc::clearenv() };
    for (name, value) in kept.iter().filter(|(name, _)| passes(name)) {
        environ.set_item(name, value)?;
    }
    let own = [("HOME", &fence.scratch), ("TMPDIR", &fence.scratch), ("TRITON_CACHE_DIR", &fence.kernels)];
    for (name, folder) in own {
        environ.set_item(name, folder.as_os_str())?;
    }
    // A pool of compilers needs semaphores, which are files outside of the fence.
    environ.set_item("TORCHINDUCTOR_COMPILE_THREADS", "1")?;
    // Python may have determined and kept the folder before.
    py.import("tempfile")?.setattr("tempdir", py.None())
}

fn limit(fence: &Fence) -> io::Result<()> {
    set_limit(libc::RLIMIT_CORE, 0)?;
    set_limit(libc::RLIMIT_NOFILE, OPEN_FILES)?;
    if fence.output > 0 { set_limit(libc::RLIMIT_FSIZE, fence.output) } else { Ok(()) }
}

/// Lowers a resource limit; a limit that is lower already stays.
fn set_limit(which: libc::__rlimit_resource_t, most: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointers are of a local.
    unsafe {
        if libc::getrlimit(which, &raw mut limit) == 0 {
            limit = libc::rlimit { rlim_cur: limit.rlim_max.min(most), rlim_max: limit.rlim_max.min(most) };
            if libc::setrlimit(which, &raw const limit) == 0 {
                return Ok(());
            }
        }
    }
    Err(io::Error::last_os_error())
}

fn bound_files(fence: &Fence, readable: &Readable) -> Result<(), Box<dyn std::error::Error>> {
    let read = AccessFs::from_read(NEWEST);
    // Written files are data: libraries among them can be loaded, programs cannot be executed.
    let write = (AccessFs::from_all(NEWEST) & !AccessFs::Execute)
        & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock | AccessFs::IoctlDev);
    let device = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    for place in readable.0.iter().chain(&fence.readable).filter(|place| place.exists()) {
        rules = allow(rules, place, read)?;
    }
    for folder in [&fence.scratch, &fence.kernels] {
        rules = allow(rules, folder, write)?;
    }
    for place in devices() {
        rules = allow(rules, &place, device)?;
    }
    match rules.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err("the kernel did not take the rules".into()),
        _ => Ok(()),
    }
}

fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, Box<dyn std::error::Error>> {
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    let opened = PathFd::new(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(rules.add_rule(PathBeneath::new(opened, access))?)
}

/// Device files that a process on the GPU opens. The folder itself is not listed, since it also contains disks.
fn devices() -> Vec<PathBuf> {
    let nodes = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let is_used = |name: &str| DEVICES.contains(&name) || name.starts_with("nvidia");
    nodes.filter(|node| node.file_name().to_str().is_some_and(is_used)).map(|node| node.path()).collect()
}

/// Drops root's capabilities, except for reading other users' files where the fence restricts file access.
fn drop_capabilities(files_are_bounded: bool) -> io::Result<()> {
    const VERSION: u32 = 0x2008_0522;
    const OVERRIDE_OWNERS: u32 = 1 << 1;
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Sets {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let header = Header { version: VERSION, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: the structures are those that the kernel's headers declare for this version.
    unsafe {
        if libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let kept = if files_are_bounded { sets[0].permitted & OVERRIDE_OWNERS } else { 0 };
        sets = [Sets { effective: kept, permitted: kept, inheritable: 0 }, Sets::default()];
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
