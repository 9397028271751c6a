//! Errors of rules that Triton disproved, kept on this machine so that they can be reported and mended.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::python::state_folder;

/// The file keeps so many bytes; the oldest entries go first.
const LIMIT: usize = 1 << 20;
/// So much of a kernel is kept.
const LONGEST: usize = 1 << 16;

/// An error of a rule in a kernel that Triton compiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FalseAlarm {
    /// The code of the rule.
    pub rule: String,
    /// What it said.
    pub message: String,
    /// The text of the kernel, and nothing else of its file.
    pub kernel: String,
    /// The version of Triton that compiles it.
    pub triton: String,
    /// The version of Warpsmith.
    pub warpsmith: String,
    /// The day (UTC), as `2026-11-21`.
    pub date: String,
}

impl FalseAlarm {
    /// What a rule said of a kernel, today.
    #[must_use]
    pub fn new(rule: &str, message: &str, kernel: &str, triton: &str) -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self {
            rule: rule.to_owned(),
            message: message.to_owned(),
            kernel: kernel[..kernel.floor_char_boundary(LONGEST)].to_owned(),
            triton: triton.to_owned(),
            warpsmith: env!("CARGO_PKG_VERSION").to_owned(),
            date: day(seconds),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.rule, &self.kernel) == (&other.rule, &other.kernel)
    }

    /// Adds it to a file, unless the rule has said so of the same kernel before. Returns whether it was added.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn store(&self, path: &Path) -> io::Result<bool> {
        let text = read(path)?;
        if entries(&text).any(|known| known.is_same(self)) {
            return Ok(false);
        }
        let line = serde_json::to_string(self)? + "\n";
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        if text.len() + line.len() <= LIMIT && (text.is_empty() || text.ends_with('\n')) {
            private(path)?.write_all(line.as_bytes())?;
            return Ok(true);
        }
        let mut lines: Vec<&str> = text.lines().chain([line.trim_end()]).collect();
        let mut size: usize = lines.iter().map(|line| line.len() + 1).sum();
        while size > LIMIT {
            size -= lines.remove(0).len() + 1;
        }
        let mut whole = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
        lines.iter().try_for_each(|line| writeln!(whole, "{line}"))?;
        whole.persist(path)?;
        Ok(true)
    }
}

/// Where they are kept.
#[must_use]
pub fn false_alarms_path() -> PathBuf {
    state_folder().join("false-alarms.jsonl")
}

/// Those in a file; what cannot be read is left out.
#[must_use]
pub fn false_alarms(path: &Path) -> Vec<FalseAlarm> {
    entries(&read(path).unwrap_or_default()).collect()
}

fn entries(text: &str) -> impl Iterator<Item = FalseAlarm> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}

fn read(path: &Path) -> io::Result<String> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// A file to add to, which only the user may read: it holds code.
fn private(path: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The day of a time in seconds since 1970.
fn day(seconds: u64) -> String {
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut days) = (1970, seconds / 86_400);
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}", month + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_counts_once_for_a_rule() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/false-alarms.jsonl");
        assert_eq!(false_alarms(&path), []);
        let alarm = |rule, kernel| FalseAlarm::new(rule, "no\nway", kernel, "3.6.0");
        assert!(alarm("L002", "def k(): pass").store(&path).unwrap());
        assert!(!alarm("L002", "def k(): pass").store(&path).unwrap());
        assert!(alarm("L003", "def k(): pass").store(&path).unwrap());
        assert!(alarm("L002", "def k(): return").store(&path).unwrap());
        let stored = false_alarms(&path);
        assert_eq!(stored.len(), 3);
        assert_eq!(stored[0], alarm("L002", "def k(): pass"));
        assert_eq!((stored[0].triton.as_str(), stored[0].warpsmith.as_str()), ("3.6.0", env!("CARGO_PKG_VERSION")));
    }

    #[test]
    fn the_file_stays_small_and_the_newest_stay_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("false-alarms.jsonl");
        let alarm = |number: usize| FalseAlarm::new("L002", "no", &format!("{number}{}", "é".repeat(40_000)), "3.6.0");
        for number in 0..20 {
            assert!(alarm(number).store(&path).unwrap());
        }
        assert!(fs::metadata(&path).unwrap().len() <= LIMIT as u64);
        let stored = false_alarms(&path);
        assert!((10..20).contains(&stored.len()), "{}", stored.len());
        assert_eq!(stored.last(), Some(&alarm(19)));
        assert!(stored.iter().all(|alarm| alarm.kernel.len() <= LONGEST));
    }

    #[test]
    fn what_is_broken_is_left_out_and_stays_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("false-alarms.jsonl");
        fs::write(&path, b"{\"rule\": \xff").unwrap();
        let alarm = FalseAlarm::new("L002", "no", "def k(): pass", "3.6.0");
        assert!(alarm.store(&path).unwrap());
        assert_eq!(false_alarms(&path), [alarm]);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_may_read_them() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("false-alarms.jsonl");
        FalseAlarm::new("L002", "no", "def k(): pass", "3.6.0").store(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (1_709_251_199, "2024-02-29"),
            (1_735_689_599, "2024-12-31"),
            (1_795_219_200, "2026-11-21"),
        ] {
            assert_eq!(day(seconds), expected);
        }
    }
}
