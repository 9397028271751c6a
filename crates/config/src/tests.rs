use std::path::Path;

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn error(name: &str, text: &str, expected: &Expect) {
    let folder = folder(&[(name, text)]);
    let error = load(folder.path(), &[]).unwrap_err().to_string();
    expected.assert_eq(&error.replace(&format!("{}/", folder.path().display()), ""));
}

#[test]
fn only_the_nearest_settings_file_applies() {
    let folder = folder(&[
        ("warpsmith.toml", "ignore = ['L']"),
        ("a/pyproject.toml", "[project]\nname = 'x'"),
        ("b/pyproject.toml", "[tool.warpsmith]\nexclude = ['gen']\n[tool.warpsmith.optimize]\nbudget = 5"),
        ("b/c/kernel.py", ""),
        ("d/warpsmith.toml", ""),
    ]);
    let of = |path: &str| load(&folder.path().join(path), &[]).unwrap();
    let file = |path: &str| Some(folder.path().join(path));
    assert_eq!((of("a").path, of("a").settings.ignore), (file("warpsmith.toml"), vec!["L".to_owned()]));
    let kernel = of("b/c/kernel.py");
    assert_eq!(kernel.path, file("b/pyproject.toml"));
    assert_eq!((kernel.settings.exclude, kernel.settings.optimize.budget), (vec!["gen".to_owned()], 5.0));
    assert!(kernel.settings.ignore.is_empty());
    assert_eq!(of("d"), LoadedSettings { settings: Settings::default(), path: file("d/warpsmith.toml") });
    assert_eq!(of("b/not/there.py").path, file("b/pyproject.toml"));
}

#[test]
fn paths_with_parent_components_are_normalized() {
    let folder = folder(&[("a/warpsmith.toml", "ignore = ['L']"), ("b/kernel.py", "")]);
    assert_eq!(load(&folder.path().join("a/../b/kernel.py"), &[]), Ok(LoadedSettings::default()));
    assert_eq!(load(&folder.path().join("b/../a"), &[]).unwrap().path, Some(folder.path().join("a/warpsmith.toml")));
}

#[test]
fn errors_for_unknown_keys_have_position_and_suggestion() {
    error(
        "warpsmith.toml",
        "\nselct = []\n",
        &expect!["warpsmith.toml:2:1: unknown key `selct`; did you mean `select`?"],
    );
    error(
        "pyproject.toml",
        "[tool.warpsmith.optimize]\n# é\nbugdet = 3\n",
        &expect!["pyproject.toml:3:1: unknown key `optimize.bugdet`; did you mean `budget`?"],
    );
    error(
        "warpsmith.toml",
        "[model]\nbanana = 1",
        &expect![
            "warpsmith.toml:2:1: unknown key `model.banana`; known here: `provider`, `name`, `also`, `share`, `send`, `temperatures`, `prompt-tokens`, `prompts`, `corrections`, `repairs`, `transcripts`, `base-url`, `api-key-env`, `key-command`, `api-version`, `script`, `ca-file`, `max-tokens`, `retries`, `timeouts`, `limits`, `prices`, `budget`"
        ],
    );
    error(
        "pyproject.toml",
        "[tool.warpsmit]\nselect = []",
        &expect!["pyproject.toml:1:7: unknown table `tool.warpsmit`; did you mean `tool.warpsmith`?"],
    );
}

#[test]
fn errors_for_wrong_values_have_position_and_expected_type() {
    error("warpsmith.toml", "select = 'L'", &expect!["warpsmith.toml:1:10: `select` must be a list, not a text"]);
    error(
        "warpsmith.toml",
        "ignore = ['é', 3]",
        &expect!["warpsmith.toml:1:16: `ignore.1` must be a text, not a whole number"],
    );
    error(
        "warpsmith.toml",
        "[optimize]\nbudget = '1m'",
        &expect!["warpsmith.toml:2:10: `optimize.budget` must be a number, not a text"],
    );
    error(
        "warpsmith.toml",
        "[optimize]\nbudget = 0",
        &expect!["warpsmith.toml:2:10: `optimize.budget` must be at least 1"],
    );
    error(
        "warpsmith.toml",
        "optimize.parallel = -1",
        &expect!["warpsmith.toml:1:21: `optimize.parallel` must be at least 0"],
    );
    error(
        "warpsmith.toml",
        "model.base-url = 'localhost:80'",
        &expect!["warpsmith.toml:1:18: `model.base-url` must be an address such as `http://localhost:11434/v1`"],
    );
    error("warpsmith.toml", "select = [", &expect!["warpsmith.toml:1:11: unclosed array, expected `]`"]);
}

#[test]
fn a_broken_pyproject_is_not_ours_to_report() {
    let folder = folder(&[("pyproject.toml", "[project")]);
    assert_eq!(load(folder.path(), &[]), Ok(LoadedSettings::default()));
}

#[test]
fn relative_interpreters_are_relative_to_the_file() {
    let folder =
        folder(&[("warpsmith.toml", "python = '.venv/bin/python'"), ("a/warpsmith.toml", "python = 'python3.12'")]);
    let python = |path: &Path| load(path, &[]).unwrap().settings.python.unwrap();
    assert_eq!(python(folder.path()), folder.path().join(".venv/bin/python"));
    assert_eq!(python(&folder.path().join("a")), Path::new("python3.12"));
}

#[test]
fn an_editor_overrides_the_file_key_by_key() {
    let file = Settings { ignore: vec!["L001".into()], triton_version: Some("3.4.0".into()), ..Settings::default() };
    let client = json!({"tritonVersion": "3.6.0", "optimize": {"budget": 5}, "optimize.seed": 7, "python": null});
    let merged = merge(&file, &client, &[]).unwrap();
    assert_eq!(merged.ignore, ["L001"]);
    assert_eq!(merged.triton_version.as_deref(), Some("3.6.0"));
    assert_eq!((merged.optimize.budget, merged.optimize.seed, merged.python), (5.0, 7, None));
    assert_eq!(merge(&file, &json!(null), &[]), Ok(file.clone()));
    let error = merge(&file, &json!({"optimise": {}}), &[]).unwrap_err().to_string();
    assert_eq!(error, "settings of the editor: unknown key `optimise`; did you mean `optimize`?");
}

#[test]
fn excludes_are_relative_to_the_file() {
    let folder = folder(&[("warpsmith.toml", "exclude = ['generated/', '/top.py', '*_pb2.py']")]);
    let excludes = Excludes::new(&load(folder.path(), &[]).unwrap(), folder.path()).unwrap();
    let covered = |path: &str| excludes.cover(&folder.path().join(path), false);
    assert!(covered("generated/deep/x.py") && covered("top.py") && covered("a/b_pb2.py"));
    assert!(!covered("a/top.py") && !covered("x.py"));
    assert!(!excludes.cover(Path::new("/elsewhere/top.py"), false));
}

#[test]
fn the_default_file_spells_out_the_defaults() {
    let folder = folder(&[("warpsmith.toml", &default_toml())]);
    assert_eq!(load(folder.path(), &[]).unwrap().settings, Settings::default());
    for key in ["triton-version", "python", "name", "base-url", "api-key-env", "script", "ca-file"] {
        assert!(default_toml().contains(&format!("\n# {key} = \"")), "{key}");
    }
    let with_optional = default_toml().replace("\n# triton-version", "\ntriton-version");
    std::fs::write(folder.path().join("warpsmith.toml"), with_optional).unwrap();
    assert_eq!(load(folder.path(), &[]).unwrap().settings.triton_version.as_deref(), Some("3.6.0"));
}

#[test]
fn failed_checks_of_other_crates_have_the_settings_position() {
    let even = |text: &str| if text.len().is_multiple_of(2) { Ok(()) } else { Err(format!("`{text}` is odd")) };
    let checks = [Check { key: &["ignore"], check: even }, Check { key: &["model", "name"], check: even }];
    let of = |text: &str| {
        let folder = folder(&[("warpsmith.toml", text)]);
        let found = load(folder.path(), &checks).map_err(|error| (error.place, error.message));
        found.map(drop)
    };
    assert_eq!(of("ignore = ['ab', 'abcd']\n[model]\nname = 'ab'"), Ok(()));
    assert_eq!(of("ignore = ['ab', 'abc']"), Err((Some((1, 17)), "`abc` is odd".to_owned())));
    assert_eq!(of("[model]\nname = 'é'"), Ok(()), "two bytes");
    assert_eq!(of("[model]\nname = 'a'"), Err((Some((2, 8)), "`a` is odd".to_owned())));
    let merged = merge(&Settings::default(), &json!({"ignore": ["a"]}), &checks).unwrap_err();
    assert_eq!(merged.message, "`a` is odd");
}
