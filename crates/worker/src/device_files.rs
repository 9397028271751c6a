//! Device files: a process that uses one device is denied access to the files of the others.
//!
//! When a process starts, the driver examines each device that the process can open, one process after the other for
//! the whole machine. With four devices it creates 3.2 contexts per second, and 5 where the other devices are closed to
//! the process (`docs/results/pool.md`).

use std::path::{Path, PathBuf};

use landlock::{AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr};

use protocol::NODE_ENV;

const FOLDER: &str = "/dev";
/// The prefix of a device file's name, before its number.
const DEVICE: &str = "nvidia";

/// Denies this process access to the files of all other devices, permanently, if the forker knows the device. Where the
/// system cannot do that, the driver takes longer, and nothing else changes.
pub(super) fn close_others() {
    if let Some(own) = std::env::var(NODE_ENV).ok().and_then(|own| own.parse().ok()) {
        close_but(Some(own));
    }
}

/// Denies access to the files of all devices, as [`close_others`] does.
pub(super) fn close_all() {
    close_but(None);
}

fn close_but(own: Option<u32>) {
    let folder = Path::new(FOLDER);
    if entries(folder).iter().any(|node| is_other(node, own)) {
        let _ = open_all_but_others(folder, own);
    }
}

fn open_all_but_others(folder: &Path, own: Option<u32>) -> Result<(), Box<dyn std::error::Error>> {
    let access = AccessFs::ReadFile | AccessFs::WriteFile;
    let rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(access)?;
    let mut rules = rules.create()?;
    let outside = folder.ancestors().filter_map(|inner| Some((inner, inner.parent()?)));
    let outside = outside.flat_map(|(inner, outer)| entries(outer).into_iter().filter(move |place| place != inner));
    for place in outside.chain(entries(folder).into_iter().filter(|node| !is_other(node, own))) {
        // A link without a target cannot be opened in any case.
        if let Ok(opened) = PathFd::new(&place) {
            rules = rules.add_rule(PathBeneath::new(opened, access))?;
        }
    }
    rules.restrict_self()?;
    Ok(())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Whether a path is a device file, and not that of `own`.
fn is_other(node: &Path, own: Option<u32>) -> bool {
    let name = node.file_name().and_then(|name| name.to_str());
    let number = name.and_then(|name| name.strip_prefix(DEVICE)).and_then(|number| number.parse::<u32>().ok());
    number.is_some() && number != own
}

#[cfg(test)]
mod tests {
    use super::*;
    use fence::LinuxFeatures;

    #[test]
    fn the_files_of_other_devices_are_known_by_their_numbers() {
        for (name, is_expected) in [
            ("nvidia0", true),
            ("nvidia12", true),
            ("nvidia1", false),
            ("nvidiactl", false),
            ("nvidia-uvm", false),
            ("null", false),
        ] {
            assert_eq!(is_other(&Path::new(FOLDER).join(name), Some(1)), is_expected, "{name}");
            let is_any = is_expected || name == "nvidia1";
            assert_eq!(is_other(&Path::new(FOLDER).join(name), None), is_any, "{name}");
        }
    }

    #[test]
    fn nothing_but_the_files_of_other_devices_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let [own, other, beside] = ["nvidia1", "nvidia2", "nvidiactl"].map(|name| folder.path().join(name));
        for node in [&own, &other, &beside] {
            std::fs::write(node, "device").unwrap();
        }
        let opens = |path: &Path| std::fs::OpenOptions::new().read(true).write(true).open(path).is_ok();
        // A Landlock rule set applies to its thread permanently, so the test uses a thread of its own.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(opens(&other));
                open_all_but_others(folder.path(), Some(1)).unwrap();
                assert!(opens(&own) && opens(&beside));
                assert!(std::fs::read("/proc/self/stat").is_ok() && opens(Path::new("/dev/null")));
                assert_eq!(opens(&other), !LinuxFeatures::running().bounds_files());
            });
        });
        assert!(opens(&other));
    }
}
