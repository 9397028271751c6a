//! The fence around a process that runs a candidate: files, system calls, limits, environment.
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
use fence::{Kernel, passes};
use protocol::runner::Fence;

/// The newest Landlock whose rights are known here.
const NEWEST: ABI = ABI::V6;
/// Since this version, signals stay inside the fence.
const SIGNALS_BOUNDED: u32 = 6;
/// Since this version, truncation is a right.
const TRUNCATION_BOUNDED: u32 = 3;
/// Open files that a process may have.
const OPEN_FILES: u64 = 4096;

/// What programs and libraries of the system read. Of `/etc` only what holds no secrets: the fenced process may be root's.
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
/// Devices that anybody uses.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "dxg", "kfd", "dri"];

/// What every fenced process may read: the interpreter, its packages and the system's libraries.
pub(super) struct Readable(Vec<PathBuf>);

impl Readable {
    /// Asks the interpreter where it and its packages are.
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
        // A path entry that is the user's whole home would open everything that the fence is there for.
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

/// Fences this process in, for good. Returns the descriptor on which the starts of processes are asked about.
///
/// # Errors
/// What could not be done: then nothing of a candidate's may run here.
pub(super) fn enter(py: Python<'_>, fence: &Fence, readable: &Readable) -> PyResult<Option<OwnedFd>> {
    let kernel = Kernel::running();
    for folder in [&fence.scratch, &fence.kernels] {
        std::fs::create_dir_all(folder).map_err(|error| named(folder, &error))?;
    }
    std::env::set_current_dir(&fence.scratch).map_err(|error| named(&fence.scratch, &error))?;
    clean_environment(py, fence)?;
    // Whatever memory runs out of, this process is the one to go.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    limit(fence)?;
    if kernel.bounds_files() {
        bound_files(fence, readable).map_err(super::failed)?;
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
    // Another filter around all of us may be asked already; there is one such place only.
    let listener = filter::put_up(policy).or_else(|error| match error.raw_os_error() {
        Some(libc::EBUSY | libc::EINVAL) if policy.asks => filter::put_up(Policy { asks: false, ..policy }),
        _ => Err(error),
    })?;
    Ok(listener)
}

fn named(path: &Path, error: &io::Error) -> PyErr {
    super::failed(format!("{}: {error}", path.display()))
}

/// Leaves what candidates may see, in Python's copy of the environment and in C's.
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
    // Its pool of compilers needs semaphores, which are files outside of the fence.
    environ.set_item("TORCHINDUCTOR_COMPILE_THREADS", "1")?;
    // It may have been asked for and kept before.
    py.import("tempfile")?.setattr("tempdir", py.None())
}

fn limit(fence: &Fence) -> io::Result<()> {
    set_limit(libc::RLIMIT_CORE, 0)?;
    set_limit(libc::RLIMIT_NOFILE, OPEN_FILES)?;
    if fence.output > 0 { set_limit(libc::RLIMIT_FSIZE, fence.output) } else { Ok(()) }
}

/// Lowers a limit; one that is lower already stays.
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
    // Written files are data: libraries among them can be loaded, programs cannot be started.
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

/// Nodes that a process on the device opens; not the folder, in which there are disks as well.
fn devices() -> Vec<PathBuf> {
    let nodes = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let is_used = |name: &str| DEVICES.contains(&name) || name.starts_with("nvidia");
    nodes.filter(|node| node.file_name().to_str().is_some_and(is_used)).map(|node| node.path()).collect()
}

/// Gives up what root may do, except reading other users' files where the fence names them.
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
