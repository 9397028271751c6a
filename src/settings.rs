//! Settings with all their checks: those of the types in `config`, and those of the crates that use the settings.

use std::path::Path;

use compiler::CompileTarget;
use config::{Check, CompilerSettings, LoadedSettings, Settings, SettingsError, nearest};
use model::api::Version;
use rules::Selection;
use runtime::pool::check_address;
use serde_json::Value;

/// The checks that only the crates above `config` can make.
const CHECKS: &[Check] = &[
    Check { key: &["select"], check: check_selector },
    Check { key: &["ignore"], check: check_selector },
    Check { key: &["triton-version"], check: check_version },
    Check { key: &["compiler", "target"], check: check_target },
    Check { key: &["evaluator", "pool"], check: check_pool },
];

/// Loads the settings that hold for `start`, a file or a folder.
///
/// # Errors
/// As for [`config::load`].
pub fn load(start: &Path) -> Result<LoadedSettings, SettingsError> {
    config::load(start, CHECKS)
}

/// `file` with the settings that an editor sent laid over it, key by key.
///
/// # Errors
/// As for [`config::merge`].
pub fn merge(file: &Settings, client: &Value) -> Result<Settings, SettingsError> {
    config::merge(file, client, CHECKS)
}

/// The rules that the settings select.
#[must_use]
pub fn selection(settings: &Settings) -> Selection {
    Selection { select: settings.select.clone(), ignore: settings.ignore.clone() }
}

/// The device that kernels are compiled for, when one is named.
#[must_use]
pub fn device(settings: &CompilerSettings) -> Option<CompileTarget> {
    // Settings that were loaded name a device that exists.
    CompileTarget::parse(settings.target.as_ref()?)
}

/// Checks that every entry names a rule, a family or a prefix of codes.
///
/// # Errors
/// A sentence that names the entry and the nearest rule.
pub fn check_selectors<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    entries.into_iter().try_for_each(check_selector)
}

fn check_selector(entry: &str) -> Result<(), String> {
    let one = Selection { select: vec![entry.to_owned()], ignore: Vec::new() };
    // A family may have no rules in this version.
    let is_family = matches!(entry, "L" | "M" | "N" | "H" | "P" | "S" | "C");
    if is_family || one.unknown().is_empty() {
        return Ok(());
    }
    let known = rules::all().iter().flat_map(|rule| [rule.declaration.name, rule.declaration.code]);
    Err(match nearest(entry, known) {
        Some(name) => format!("unknown rule `{entry}`; did you mean `{name}`?"),
        None => format!("unknown rule `{entry}`; `warpsmith rules` lists the rules"),
    })
}

fn check_version(text: &str) -> Result<(), String> {
    text.parse::<Version>().map(drop).map_err(|error| error.to_string())
}

fn check_target(text: &str) -> Result<(), String> {
    text.parse::<CompileTarget>().map(drop).map_err(|message| format!("`compiler.target`: {message}"))
}

fn check_pool(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    check_address(text).map_err(|message| format!("`evaluator.pool` {message}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::{Expect, expect};
    use judge::CandidateLimits;

    use super::*;

    fn read(text: &str) -> Result<LoadedSettings, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("warpsmith.toml"), text).unwrap();
        load(folder.path()).map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
    }

    fn error(text: &str, expected: &Expect) {
        expected.assert_eq(&read(text).unwrap_err());
    }

    #[test]
    fn errors_of_setting_checks_have_position_and_expected_value() {
        error(
            "triton-version = 'new'",
            &expect!["warpsmith.toml:1:18: `new` is not a version of Triton; write it like `3.6.0` or `3.6`"],
        );
        error(
            "[compiler]\ntarget = 'sm_90'",
            &expect!["warpsmith.toml:2:10: `compiler.target`: `sm_90` is not a device; did you mean `cuda:90`?"],
        );
        error(
            "[evaluator]\npool = 'gpubox'",
            &expect!["warpsmith.toml:2:8: `evaluator.pool` must be `auto`, or an address such as `ray://gpubox:10001`"],
        );
        assert!(read("[evaluator]\npool = ''").is_ok() && read("[evaluator]\npool = 'auto'").is_ok());
    }

    #[test]
    fn unknown_rules_are_errors() {
        error(
            "select = ['unknown-membr']",
            &expect!["warpsmith.toml:1:11: unknown rule `unknown-membr`; did you mean `unknown-member`?"],
        );
        error(
            "ignore = ['L', 'Q']",
            &expect!["warpsmith.toml:1:16: unknown rule `Q`; `warpsmith rules` lists the rules"],
        );
    }

    #[test]
    fn limits_are_those_of_the_judge_unless_set() {
        let of = |text: &str| read(text).map(|loaded| CandidateLimits::from(&loaded.settings.evaluator.limits));
        assert_eq!(of(""), Ok(CandidateLimits::default()));
        let set = "[evaluator.limits]\nload = 1.5\ncall = 1e300\nmemory = 512\ndevice-memory = 100\noutput = 2\nprocesses = 9";
        let expected = CandidateLimits {
            load: Duration::from_millis(1500),
            call: Duration::from_secs(86_400),
            memory: 512 << 20,
            device_memory: 100 << 20,
            output: 2 << 20,
            processes: 9,
            ..CandidateLimits::default()
        };
        assert_eq!(of(set), Ok(expected));
        for text in ["load = 0", "processes = 1", "output = -1", "speed = 2"] {
            assert!(of(&format!("[evaluator.limits]\n{text}")).is_err(), "{text}");
        }
    }
}
