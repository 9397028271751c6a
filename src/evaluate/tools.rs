//! NVIDIA's own tools: where they are, and running one around a process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::baseline::Undecided;
use super::bench::Bench;
use crate::protocol::runner::{Role, Watched};
use crate::python::Ended;

const GLANCE: Duration = Duration::from_millis(50);

/// Where a tool is, if it is on this machine: on the path, beside CUDA, or among the packages of `python`.
pub(super) fn installed(name: &str, python: Option<&Path>) -> Option<PathBuf> {
    let mut places: Vec<PathBuf> = std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        places.extend(std::env::var_os(variable).map(PathBuf::from));
    }
    let inside = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        all.sort();
        all
    };
    let is_cuda = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("cuda"));
    places.extend(inside(Path::new("/usr/local")).into_iter().filter(is_cuda));
    if let Some(prefix) = python.and_then(|python| python.parent()?.parent()) {
        for library in inside(&prefix.join("lib")) {
            places.extend(inside(&library.join("site-packages/nvidia")));
        }
    }
    let named = |place: PathBuf| [place.join(name), place.join("bin").join(name), place.join(name).join(name)];
    places.into_iter().flat_map(named).find(|path| path.is_file())
}

impl Bench {
    /// Runs a process under a tool, beside others that use the device, and says how it ended; `None` where it took longer than it may.
    pub(super) fn watch(
        &self,
        watched: Watched,
        limit: Duration,
        is_unwanted: &dyn Fn() -> bool,
    ) -> Result<Option<Ended>, Undecided> {
        let _shared = self.shared();
        let mut child = self.forker.spawn(Role::Watched(Box::new(watched)))?;
        let deadline = Instant::now() + limit;
        loop {
            if let Some(ended) = child.wait(GLANCE)? {
                return Ok(Some(ended));
            }
            if is_unwanted() {
                return Err(Undecided("stopped".to_owned()));
            }
            if Instant::now() > deadline {
                child.kill();
                return Ok(None);
            }
        }
    }
}
