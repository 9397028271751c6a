//! The descendants of a process and their resource use, from `/proc`.

use std::collections::HashMap;
use std::fs;

/// The total resource use of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// The number of processes, including zombies.
    pub processes: u64,
    /// The number of their threads.
    pub threads: u64,
    /// Memory that is not backed by files, in bytes.
    pub memory: u64,
}

/// All descendants of `pid`, the nearest first.
#[must_use]
pub fn descendants(pid: i32) -> Vec<i32> {
    if fs::exists(format!("/proc/{pid}/task/{pid}/children")).unwrap_or(false) {
        return below(pid, &|parent| children(parent));
    }
    let family = family();
    below(pid, &|parent| family.get(&parent).cloned().unwrap_or_default())
}

fn below(pid: i32, children: &dyn Fn(i32) -> Vec<i32>) -> Vec<i32> {
    let mut found = children(pid);
    let mut at = 0;
    while let Some(next) = found.get(at).copied() {
        at += 1;
        // A process id may be reused during the search, so each is listed once.
        for child in children(next) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
    }
    found
}

/// The children of all threads of a process.
#[must_use]
pub fn children(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<i32>>()).collect()
}

/// The ids of all processes.
pub fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The children of every process, for a kernel that does not list children.
fn family() -> HashMap<i32, Vec<i32>> {
    let mut family: HashMap<i32, Vec<i32>> = HashMap::new();
    for pid in all() {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        // The program's name is in parentheses and may itself contain parentheses.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        if let Some(parent) = parent {
            family.entry(parent).or_default().push(pid);
        }
    }
    family
}

/// The total resource use of the processes. `inherited` is the memory in bytes that each shares with the process it was
/// forked from; it is subtracted for each that still runs the same program.
#[must_use]
pub fn usage(pids: &[i32], inherited: u64) -> ProcessUsage {
    use std::os::unix::fs::MetadataExt;
    let program = |pid: &str| fs::metadata(format!("/proc/{pid}/exe")).ok().map(|meta| (meta.dev(), meta.ino()));
    let ours = program("self");
    let mut total = ProcessUsage::default();
    for pid in pids {
        let Some(one) = usage_of(*pid) else { continue };
        let shared = if program(&pid.to_string()) == ours { inherited } else { 0 };
        total.processes += 1;
        total.threads += one.threads;
        total.memory += one.memory.saturating_sub(shared);
    }
    total
}

/// The resource use of one process; `None` if it is gone.
#[must_use]
pub fn usage_of(pid: i32) -> Option<ProcessUsage> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = |name: &str| -> Option<u64> {
        status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
    };
    let kilobytes = |name: &str| value(name).unwrap_or(0);
    // A kernel that does not distinguish kinds of memory reports all of it.
    let resident = value("RssAnon:").map_or_else(|| kilobytes("VmRSS:"), |anon| anon + kilobytes("RssShmem:"));
    let memory = (resident + kilobytes("VmSwap:")) * 1024;
    Some(ProcessUsage { processes: 1, threads: value("Threads:").unwrap_or(1), memory })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_found_with_and_without_the_kernels_list() {
        let pid = std::process::id() as i32;
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let number = child.id() as i32;
        assert!(descendants(pid).contains(&number));
        assert!(family()[&pid].contains(&number));
        let usage = usage(&[number, i32::MAX], 0);
        assert_eq!((usage.processes, usage.threads), (1, 1));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descendants(pid).contains(&number));
        assert!(usage_of(pid).unwrap().memory > 0);
    }
}
