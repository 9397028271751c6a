//! The tools of NVIDIA's `compute-sanitizer`, and their reports.

use std::collections::BTreeMap;
use std::time::Duration;

/// The time limit of one run where no budget is given.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// The kinds of errors that the checker found, each with its first report; or why it did not finish.
pub(super) type ToolReport = Result<BTreeMap<String, String>, String>;

/// The tools of the checker that are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// `memcheck`: accesses outside of allocated memory.
    Memory,
    /// `racecheck`: hazards in shared memory. Triton's own reductions contain some harmless ones, where several threads
    /// write the same value.
    Races,
}

impl Tool {
    pub(super) const ALL: [Self; 2] = [Self::Memory, Self::Races];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memcheck",
            Self::Races => "racecheck",
        }
    }

    /// The name in a verdict.
    pub(super) fn said(self) -> String {
        format!("compute-sanitizer, {}", self.name())
    }

    /// Parses a report; `None` if it is incomplete.
    pub(super) fn read(self, report: &str) -> Option<BTreeMap<String, String>> {
        let lines: Vec<&str> = report.lines().filter_map(|line| line.strip_prefix("=========")).collect();
        let end = match self {
            Self::Memory => " ERROR SUMMARY:",
            Self::Races => " RACECHECK SUMMARY:",
        };
        if !lines.iter().any(|line| line.starts_with(end)) {
            return None;
        }
        let mut found = BTreeMap::new();
        for (at, line) in lines.iter().enumerate() {
            if let Some(kind) = self.kind(line.trim_start()) {
                let more: Vec<&str> = lines[at + 1..].iter().take(2).map(|line| line.trim()).collect();
                found.entry(kind).or_insert_with(|| format!("{} {}", line.trim(), more.join(" ")).trim().to_owned());
            }
        }
        Some(found)
    }

    /// The kind of the error whose report begins with this line.
    fn kind(self, line: &str) -> Option<String> {
        match self {
            // `Invalid __global__ write of size 4 bytes`
            Self::Memory if line.starts_with("Invalid __") || line.starts_with("Misaligned ") => {
                Some(line.split(" of size").next().unwrap_or(line).to_owned())
            }
            Self::Races
                if line.starts_with("Error: ") && (line.contains("Race reported") || line.contains("hazard")) =>
            {
                Some("hazards in shared memory".to_owned())
            }
            _ => None,
        }
    }
}
