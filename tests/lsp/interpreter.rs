//! Tests of the choice of the interpreter, of changes to it, and of the state that the client receives.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Client, Document, Setup, codes};

/// A kernel that Triton rejects and that no rule flags.
const KERNEL: &str = "import triton\nimport triton.language as tl\n\n\n# warpsmith: signature x=*fp16 B=64\n@triton.jit\ndef k(x, B: \
    tl.constexpr):\n    i = tl.arange(0, B)\n    tl.store(x + i, tl.load(x + i, eviction_policy='never'))\n";

fn python() -> PathBuf {
    std::env::var_os("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`").into()
}

/// A new, empty environment.
fn venv(folder: &Path) {
    let made = Command::new(python()).args(["-m", "venv", "--without-pip"]).arg(folder).status();
    assert!(made.unwrap().success());
}

fn packages(folder: &Path) -> PathBuf {
    let code = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let output = Command::new(folder.join("bin/python")).args(["-c", code]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().into()
}

/// Installs parts of Triton in an environment, as links to the test's Triton.
fn install(folder: &Path, parts: &[&str]) {
    let code = "import importlib.metadata as m; print(m.distribution('triton')._path)";
    let output = Command::new(python()).args(["-c", code]).output().unwrap();
    let info = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    let info_name = info.file_name().unwrap().to_str().unwrap();
    for name in parts.iter().map(|part| if *part == "info" { info_name } else { part }) {
        std::os::unix::fs::symlink(info.with_file_name(name), packages(folder).join(name)).unwrap();
    }
}

fn uninstall(folder: &Path) {
    for entry in std::fs::read_dir(packages(folder)).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("triton") {
            std::fs::remove_file(path).unwrap();
        }
    }
}

fn setup(settings: Value) -> Setup {
    let mut all = json!({ "select": ["C"], "compiler": { "delay": 1 } });
    all.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    Setup::new().hears_of_missing_triton().options(json!({ "settings": all }))
}

fn saved(client: &mut Client, document: &Document) {
    client.notify("textDocument/didSave", json!({ "textDocument": { "uri": document.uri } }));
}

fn state(client: &mut Client) -> Value {
    client.request("warpsmith/status", json!({}))["compiler"].take()
}

/// Waits until the client receives this state.
fn told(client: &mut Client, state: &str) -> Value {
    let is_wanted =
        |message: &Value| message["method"] == "warpsmith/status" && message["params"]["compiler"]["state"] == state;
    client.wait(&format!("status {state}"), is_wanted)["params"]["compiler"].take()
}

#[test]
fn installing_and_removing_triton_is_noticed_when_a_file_is_saved() {
    // The setting names the environment, so that a Triton elsewhere on the machine does not matter.
    let mut client = setup(json!({ "python": ".venv" })).start();
    let folder = client.path(".venv");
    venv(&folder);
    let document = client.open("k.py", KERNEL);
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    let message = client.notification("window/showMessage");
    let text = message["message"].as_str().unwrap();
    assert!(text.contains(".venv/bin/python has no Triton; install it there") && !text.contains('\n'), "{text}");
    assert_eq!(message["type"], 3);
    let status = state(&mut client);
    assert_eq!((&status["state"], &status["triton"]), (&json!("unfit"), &Value::Null));
    assert!(text.ends_with(status["message"].as_str().unwrap()), "{status}");

    install(&folder, &["info", "triton"]);
    saved(&mut client, &document);
    let mut found = client.published(&document);
    while codes(&found) != ["C001"] {
        found = client.published(&document);
    }
    let status = state(&mut client);
    assert_eq!((&status["state"], &status["message"]), (&json!("ready"), &Value::Null));
    assert!(status["triton"].as_str().unwrap().starts_with('3'), "{status}");
    assert!(status["python"].as_str().unwrap().ends_with(".venv/bin/python"), "{status}");

    uninstall(&folder);
    saved(&mut client, &document);
    let mut found = client.published(&document);
    while codes(&found) != [""; 0] {
        found = client.published(&document);
    }
    assert_eq!(state(&mut client)["state"], "unfit");
    client.assert_silent();
}

#[test]
fn an_installed_version_of_triton_selects_its_table_of_names() {
    let text = KERNEL.replace("tl.load(x + i, eviction_policy='never')", "tl.make_tensor_descriptor(x, [B], [1], [B])");
    let mut client =
        setup(json!({ "select": ["unknown-member"], "python": ".venv", "compiler": { "enabled": false } })).start();
    let folder = client.path(".venv");
    venv(&folder);
    let info = |version: &str| packages(&folder).join(format!("triton-{version}.dist-info"));
    std::fs::create_dir(info("3.1.0")).unwrap();
    let document = client.open("k.py", &text);
    assert_eq!(client.published(&document).len(), 1);
    std::fs::rename(info("3.1.0"), info("3.6.0")).unwrap();
    saved(&mut client, &document);
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    client.assert_silent();
}

#[test]
fn installing_triton_is_noticed_by_an_edit_some_seconds_later() {
    let mut client = setup(json!({ "python": ".venv" })).start();
    let folder = client.path(".venv");
    venv(&folder);
    let mut document = client.open("k.py", KERNEL);
    client.published(&document);
    client.notification("window/showMessage");
    install(&folder, &["info", "triton"]);
    std::thread::sleep(std::time::Duration::from_millis(3100));
    client.replace(&mut document, "import triton\n", "import triton\n\n");
    while codes(&client.published(&document)) != ["C001"] {}
}

#[test]
fn twenty_edits_with_an_unfit_interpreter_give_one_message() {
    for installed in [false, true] {
        let mut client = setup(json!({ "python": ".venv" })).start();
        let folder = client.path(".venv");
        venv(&folder);
        if installed {
            // The environment has Triton's metadata, but Triton cannot be imported.
            install(&folder, &["info"]);
        }
        let mut document = client.open("k.py", KERNEL);
        let mut messages = Vec::new();
        for number in 0..20 {
            assert_eq!(codes(&client.published(&document)), [""; 0]);
            if number == 0 {
                messages.push(client.notification("window/showMessage"));
            }
            client.replace(&mut document, "arange(0, B)", "arange(0, B )");
            client.published(&document);
            client.replace(&mut document, "arange(0, B )", "arange(0, B)");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        client.published(&document);
        let text = messages[0]["message"].as_str().unwrap();
        let piece = if installed { "(ModuleNotFoundError: No module named 'triton')" } else { "has no Triton" };
        assert!(text.contains(piece), "{text}");
        assert_eq!(state(&mut client)["state"], "unfit");
        let warnings = client.log().lines().filter(|line| line.contains("WARN")).count();
        assert_eq!(warnings, 0, "{}", client.log());
        client.assert_silent();
        if installed {
            // The missing package is installed now.
            install(&folder, &["triton"]);
            saved(&mut client, &document);
            while codes(&client.published(&document)) != ["C001"] {}
        }
    }
}

#[test]
fn the_editors_interpreter_is_used_unless_the_project_names_one() {
    let settings = |python: &str| json!({ "select": ["C"], "compiler": { "delay": 1 }, "interpreter": python });
    let with = python().to_string_lossy().into_owned();
    let mut client = Setup::new().hears_of_missing_triton().options(Value::Null).configuration(settings(&with)).start();
    let document = client.open("k.py", KERNEL);
    while codes(&client.published(&document)) != ["C001"] {}
    assert_eq!(state(&mut client)["python"], json!(with));
    // The project's own setting takes precedence.
    venv(&client.path("empty"));
    std::fs::write(client.path("warpsmith.toml"), "python = 'empty/bin/python'\n").unwrap();
    saved(&mut client, &document);
    while codes(&client.published(&document)) != [""; 0] {}
    let text = client.notification("window/showMessage")["message"].take();
    assert!(text.as_str().unwrap().contains("empty/bin/python has no Triton"), "{text}");
    std::fs::write(client.path("warpsmith.toml"), "").unwrap();
    client.set_configuration(settings("nowhere/python"));
    client.notify("workspace/didChangeConfiguration", json!({ "settings": null }));
    client.set_configuration(settings(&with));
    client.notify("workspace/didChangeConfiguration", json!({ "settings": null }));
    while codes(&client.published(&document)) != ["C001"] {}
    client.stop_ignoring("textDocument/publishDiagnostics");
}

#[test]
fn the_status_is_sent_only_to_clients_that_support_it() {
    let settings = json!({ "select": ["C"], "python": python(), "compiler": { "delay": 1 } });
    for options in [
        Setup::new().options(json!({ "settings": settings, "status": true })),
        Setup::new().options(json!({ "settings": settings })).capabilities(&json!({
            "experimental": { "warpsmithStatus": true }
        })),
    ] {
        let mut client = options.start();
        // The interpreter and the device are found in any order.
        let mut status = client.notification("warpsmith/status");
        while status["compiler"]["triton"].is_null() || status["device"] == json!({ "name": null, "message": null }) {
            status = client.notification("warpsmith/status");
        }
        assert_eq!(status["compiler"]["state"], "idle");
        assert!(status["compiler"]["triton"].as_str().unwrap().starts_with('3'), "{status}");
        let document = client.open("k.py", KERNEL);
        for state in ["starting", "compiling", "ready"] {
            told(&mut client, state);
        }
        while codes(&client.published(&document)) != ["C001"] {}
        client.assert_silent();
    }
    let mut client = Setup::new().options(json!({ "settings": settings })).start();
    let document = client.open("k.py", KERNEL);
    while codes(&client.published(&document)) != ["C001"] {}
    assert_eq!(state(&mut client)["state"], "ready");
    client.assert_silent();
}

#[test]
fn the_process_keeps_to_its_share_of_the_cores() {
    let all = allowed_to("self");
    for (cores, used) in [(1, 1), (0, (all / 2).max(1)), (all + 1, all)] {
        assert_eq!(allowed_to_worker(cores), used, "of {all} cores, set to {cores}");
    }
}

/// The number of cores that the worker process may use when the setting is `cores`.
fn allowed_to_worker(cores: usize) -> usize {
    let settings = json!({ "select": ["C"], "python": python(), "compiler": { "delay": 1, "cores": cores } });
    let mut client = Setup::new().options(json!({ "settings": settings })).start();
    let document = client.open("k.py", KERNEL);
    while codes(&client.published(&document)) != ["C001"] {}
    let worker = client.children().into_iter().find(|id| {
        std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default().contains("warpsmith_compiler")
    });
    allowed_to(&worker.unwrap().to_string())
}

/// The number of cores that a process may use.
fn allowed_to(process: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:")).unwrap();
    let digits = allowed.chars().filter_map(|digit| digit.to_digit(16));
    digits.map(|digit| digit.count_ones() as usize).sum()
}
