//! Whether other programs of this user compute on the devices.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use protocol::is_simulated;

use super::devices::at_work;

/// In tests: a file that exists while another program computes, and contains the program's name.
const FAKE_ENV: &str = "WARPSMITH_FAKE_OTHERS";
/// The most ancestors that are examined to find a process's origin.
const DEPTH: usize = 64;

/// The name of a program of this user that computes on a device now and does not belong to Warpsmith. Programs in other
/// containers and of other users are not found.
#[must_use]
pub fn other_gpu_process() -> Option<String> {
    if is_simulated() {
        let name = fs::read_to_string(std::env::var_os(FAKE_ENV)?).ok()?;
        return Some(name.trim().to_owned());
    }
    let user = fs::metadata("/proc/self").ok()?.uid();
    at_work().into_iter().find_map(|id| {
        let is_users = fs::metadata(format!("/proc/{id}")).is_ok_and(|process| process.uid() == user);
        if is_users && computes(id) && !is_own(id) { name(id) } else { None }
    })
}

/// Whether a process has loaded the driver. In a container NVML may report process ids of the host, which are other
/// processes here.
fn computes(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/maps")).is_ok_and(|maps| maps.contains("/libcuda.so"))
}

/// Whether this Warpsmith process, or another one, started a process.
fn is_own(mut id: u32) -> bool {
    let own = std::env::current_exe().unwrap_or_default();
    for _ in 0..DEPTH {
        let program = fs::read_link(format!("/proc/{id}/exe")).unwrap_or_default();
        let is_named = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("warpsmith");
        if program == own || program.file_name().is_some_and(is_named) {
            return true;
        }
        match parent(id) {
            Some(above) if above > 1 => id = above,
            _ => return false,
        }
    }
    false
}

fn parent(id: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

/// `python train.py`
fn name(id: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{id}/cmdline")).ok()?;
    let words: Vec<String> =
        line.split(|&byte| byte == 0).take(2).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let program = Path::new(words.first()?).file_name()?.to_string_lossy().into_owned();
    let script = words.get(1).filter(|word| !word.starts_with('-')).and_then(|word| Path::new(word).file_name());
    Some(script.map_or(program.clone(), |script| format!("{program} {}", script.to_string_lossy())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_processes_are_recognized_by_name_and_ancestry() {
        let own = std::process::id();
        let program = std::env::current_exe().unwrap();
        assert!(name(own).unwrap().starts_with(&*program.file_name().unwrap().to_string_lossy()));
        assert!(is_own(own) && parent(own).is_some());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = child.id();
        let seen = (parent(id), is_own(id));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(seen, (Some(own), true));
        assert!(!is_own(1) && !computes(own));
    }
}
