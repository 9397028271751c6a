//! The sandbox features of the running Linux kernel, and the environment variables that a sandboxed process gets.
//!
//! This crate depends on neither Python nor the server: the worker sets the sandbox up, and the doctor command reports
//! which protections this machine has.
#![expect(unsafe_code, reason = "the kernel is asked by system calls")]

#[cfg(target_os = "linux")]
pub mod filter;
#[cfg(target_os = "linux")]
pub mod process_tree;

/// The oldest usable version of Landlock's ABI, from Linux 5.19. Older versions forbid renaming a file into another
/// folder, which Triton's cache does.
pub const OLDEST_LANDLOCK: u32 = 2;

/// The variables that candidates get. Any other variable may be a secret.
const PASSED: &[&str] = &[
    "CC",
    "CONDA_PREFIX",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "LOGNAME",
    "PATH",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
];

/// Prefixes of the names of variables that candidates get.
const PASSED_FAMILIES: &[&str] = &[
    "CUDA_",
    "HIP_",
    "HSA_",
    "KMP_",
    "LC_",
    "MKL_",
    "NIX_LD",
    "NVIDIA_",
    "OMP_",
    "PYENV_",
    "PYTHON",
    "PYTORCH_",
    "ROCM_",
    "ROCR_",
    "TORCH",
    "TRITON_",
    "WARPSMITH_",
];

/// Parts of names that mark secrets, whatever the prefix.
const SECRET: &[&str] = &["TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "API_KEY", "ACCESS_KEY"];

/// The sandbox features of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinuxFeatures {
    /// The version of Landlock's ABI, which restricts access to files; 0 without Landlock.
    pub landlock: u32,
    /// Whether seccomp filters can refuse system calls.
    pub filter: bool,
    /// Whether a seccomp filter can ask another process about a system call.
    pub asks: bool,
}

impl LinuxFeatures {
    /// The features of the running kernel; none on other systems than Linux.
    #[must_use]
    #[cfg(target_os = "linux")]
    pub fn running() -> Self {
        let landlock = landlock_version();
        // Before Linux 5.5 the supervisor could not let a call continue; a kernel with Landlock is newer than that.
        let asks = landlock > 0 && can_filter(libc::SECCOMP_RET_USER_NOTIF);
        Self { landlock, filter: can_filter(libc::SECCOMP_RET_ERRNO), asks }
    }

    /// The features of the running kernel; none on other systems than Linux.
    #[must_use]
    #[cfg(not(target_os = "linux"))]
    pub fn running() -> Self {
        Self::default()
    }

    /// Whether access to files can be restricted.
    #[must_use]
    pub fn bounds_files(self) -> bool {
        self.landlock >= OLDEST_LANDLOCK
    }

    /// The actions that the sandbox cannot prevent on this kernel, as text.
    #[must_use]
    pub fn missing(self) -> Vec<String> {
        let mut missing = Vec::new();
        if !self.bounds_files() {
            missing.push("it can read and write the user's files (that takes Landlock, on Linux 5.19 or newer)");
        } else if self.landlock < 3 {
            missing.push("it can truncate files that it may read (Linux 6.2 or newer prevents that)");
        }
        if !self.filter {
            missing.push("it can use the network and watch other processes (that takes seccomp filters)");
        }
        if !self.asks {
            missing.push("its processes are only counted periodically (Linux 5.13 or newer checks each start)");
        }
        missing.into_iter().map(str::to_owned).collect()
    }
}

/// Whether a sandboxed process gets the environment variable of this name.
#[must_use]
pub fn passes(name: &str) -> bool {
    let is_known = PASSED.contains(&name) || PASSED_FAMILIES.iter().any(|family| name.starts_with(family));
    is_known && !SECRET.iter().any(|word| name.to_ascii_uppercase().contains(word))
}

#[cfg(target_os = "linux")]
fn landlock_version() -> u32 {
    const ASK_VERSION: u32 = 1;
    // SAFETY: with this flag the kernel takes no pointer.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, ASK_VERSION)
    };
    u32::try_from(version).unwrap_or(0)
}

#[cfg(target_os = "linux")]
fn can_filter(action: u32) -> bool {
    // SAFETY: the kernel reads one number behind the pointer.
    unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0_u32, &raw const action) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_environment_variables_are_not_passed() {
        for name in
            ["PATH", "LC_ALL", "CUDA_VISIBLE_DEVICES", "PYTHONPATH", "TRITON_INTERPRET", protocol::FAKE_DEVICE_ENV]
        {
            assert!(passes(name), "{name}");
        }
        for name in ["AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "SSH_AUTH_SOCK", "TRITON_TOKEN", "DATABASE_URL"] {
            assert!(!passes(name), "{name}");
        }
    }

    #[test]
    fn each_missing_kernel_feature_is_reported_once() {
        let all = LinuxFeatures { landlock: 7, filter: true, asks: true };
        assert!(all.missing().is_empty());
        assert_eq!(LinuxFeatures::default().missing().len(), 3);
        let old = LinuxFeatures { landlock: 2, ..all }.missing();
        assert!(old.len() == 1 && old[0].contains("truncate"), "{old:?}");
        assert!(!LinuxFeatures { landlock: 1, ..all }.bounds_files());
    }
}
