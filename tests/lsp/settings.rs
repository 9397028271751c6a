//! Tests of settings: from the editor at start and later, from files, and invalid ones.

use serde_json::{Value, json};

use crate::harness::{BAD, Setup, codes};

/// The file with a second mistake, found by another rule (L003).
fn two_mistakes() -> String {
    BAD.replace("    mask = ", "    for i in range(n):\n        break\n    mask = ")
}

fn select(code: &str) -> Value {
    json!({ "select": [code] })
}

#[test]
fn initialization_options_set_the_settings() {
    for options in
        [json!({ "settings": select("L003") }), select("L003"), json!({ "settings": { "ignore": ["dtype-called"] } })]
    {
        let mut client = Setup::new().options(options).start();
        let document = client.open("a.py", &two_mistakes());
        assert_eq!(codes(&client.published(&document)), ["L003"]);
    }
}

#[test]
fn nothing_is_checked_before_the_editor_has_said_its_settings() {
    let mut client = Setup::new().options(Value::Null).configuration(select("L003")).start();
    let document = client.open("a.py", &two_mistakes());
    assert_eq!(codes(&client.published(&document)), ["L003"]);
    client.assert_silent();
}

#[test]
fn changed_settings_are_asked_for_and_everything_is_checked_again() {
    let mut client = Setup::new().configuration(select("L003")).start();
    let first = client.open("a.py", &two_mistakes());
    let second = client.open("b.py", BAD);
    assert_eq!(codes(&client.published(&first)), ["L003"]);
    assert_eq!(codes(&client.published(&second)), [""; 0]);
    client.set_configuration(select("L002"));
    client.notify("workspace/didChangeConfiguration", json!({ "settings": null }));
    assert_eq!(codes(&client.published(&first)), ["L002"]);
    assert_eq!(codes(&client.published(&second)), ["L002"]);
    // When the editor removes its settings, those of the start apply.
    client.set_configuration(Value::Null);
    client.notify("workspace/didChangeConfiguration", json!({ "settings": null }));
    assert_eq!(codes(&client.published(&first)), ["L002"]);
    client.published(&second);
}

#[test]
fn a_client_that_cannot_be_asked_sends_its_settings() {
    let mut client = Setup::new().start();
    let document = client.open("a.py", &two_mistakes());
    assert_eq!(codes(&client.published(&document)), ["L002"]);
    for settings in [json!({ "warpsmith": select("L003") }), select("L003")] {
        client.notify("workspace/didChangeConfiguration", json!({ "settings": settings }));
        assert_eq!(codes(&client.published(&document)), ["L003"]);
    }
}

#[test]
fn a_change_of_settings_sends_a_diagnostic_refresh_to_pulling_clients() {
    let refresh = json!({ "workspace": { "diagnostics": { "refreshSupport": true } } });
    let mut client = Setup::new().pulls().capabilities(&refresh).configuration(select("L003")).start();
    let document = client.open("a.py", &two_mistakes());
    assert_eq!(codes(&client.pulled(&document)), ["L003"]);
    client.set_configuration(select("L002"));
    client.notify("workspace/didChangeConfiguration", json!({ "settings": null }));
    let request = client.server_message("workspace/diagnostic/refresh");
    client.reply(&request, Value::Null);
    assert_eq!(codes(&client.pulled(&document)), ["L002"]);
}

#[test]
fn invalid_settings_are_reported_once_and_the_previous_ones_are_kept() {
    let mut client = Setup::new().configuration(select("L003")).start();
    let document = client.open("a.py", &two_mistakes());
    client.published(&document);
    client.set_configuration(json!({ "selekt": ["L002"] }));
    for _ in 0..2 {
        client.notify("workspace/didChangeConfiguration", json!({ "settings": null }));
        assert_eq!(codes(&client.published(&document)), ["L003"]);
    }
    let message = client.notification("window/showMessage");
    assert_eq!(message["type"], 2);
    let text = message["message"].as_str().unwrap();
    assert!(text.contains("selekt") && text.contains("`select`"), "{text}");
    client.assert_silent();
}

#[test]
fn settings_of_the_extension_are_ignored_without_a_message() {
    let settings =
        json!({ "select": ["L003"], "server": { "path": "x" }, "trace": { "server": "off" }, "python": null });
    let mut client = Setup::new().configuration(settings).start();
    let document = client.open("a.py", &two_mistakes());
    assert_eq!(codes(&client.published(&document)), ["L003"]);
    client.assert_silent();
}

#[test]
fn settings_of_the_editor_override_those_of_files() {
    let setup = || {
        Setup::new()
            .options(Value::Null)
            .file("warpsmith.toml", "ignore = ['L002']\n")
            .file("inner/pyproject.toml", "[tool.warpsmith]\nignore = ['L003']\nexclude = ['generated/']\n")
    };
    let mut client = setup().start();
    let outer = client.open("a.py", &two_mistakes());
    let inner = client.open("inner/a.py", &two_mistakes());
    let excluded = client.open("inner/generated/a.py", &two_mistakes());
    assert!(!codes(&client.published(&outer)).contains(&"L002"));
    let inner = client.published(&inner);
    assert!(codes(&inner).contains(&"L002") && !codes(&inner).contains(&"L003"));
    assert_eq!(codes(&client.published(&excluded)), [""; 0]);

    let mut client = setup().configuration(json!({ "ignore": [], "select": ["L002"] })).start();
    let document = client.open("a.py", &two_mistakes());
    assert_eq!(codes(&client.published(&document)), ["L002"]);
}

#[test]
fn a_changed_settings_file_is_read_at_the_next_save_or_watch_event() {
    let mut client = Setup::new().start();
    let document = client.open("a.py", BAD);
    assert_eq!(codes(&client.published(&document)), ["L002"]);
    std::fs::write(client.path("warpsmith.toml"), "ignore = ['L002']\nselect = []\n").unwrap();
    client.notify("workspace/didChangeConfiguration", json!({ "settings": { "warpsmith": {} } }));
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    std::fs::write(client.path("warpsmith.toml"), "").unwrap();
    let saved = json!({ "textDocument": { "uri": document.uri } });
    client.notify("textDocument/didSave", saved.clone());
    assert_eq!(codes(&client.published(&document)), ["L002"]);
    // Saving a file without a change in settings does not cause another check.
    client.notify("textDocument/didSave", saved);
    client.assert_silent();

    std::fs::write(client.path("warpsmith.toml"), "ignore = 3\n").unwrap();
    client.notify("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    assert_eq!(codes(&client.published(&document)), ["L002"]);
    let message = client.notification("window/showMessage")["message"].take();
    assert!(message.as_str().unwrap().contains("warpsmith.toml:1"), "{message}");
}

#[test]
fn change_notifications_are_registered_with_clients_that_support_it() {
    let mut client = Setup::new()
        .capabilities(&json!({ "workspace": {
            "didChangeConfiguration": { "dynamicRegistration": true },
            "didChangeWatchedFiles": { "dynamicRegistration": true },
        } }))
        .start();
    let request = client.server_message("client/registerCapability");
    client.reply(&request, Value::Null);
    let registrations = request["params"]["registrations"].as_array().unwrap();
    assert_eq!(registrations[0]["method"], "workspace/didChangeConfiguration");
    assert_eq!(registrations[0]["registerOptions"], json!({ "section": "warpsmith" }));
    assert_eq!(registrations[1]["method"], "workspace/didChangeWatchedFiles");
    assert_eq!(registrations[1]["registerOptions"]["watchers"][0]["globPattern"], "**/warpsmith.toml");
}

#[test]
fn each_workspace_folder_has_its_own_settings() {
    let mut client = Setup::new().configuration(select("L002")).start();
    let document = client.open("a.py", &two_mistakes());
    client.published(&document);
    // The settings of an added folder are requested, too; the harness returns the same ones for all folders.
    client.set_configuration(select("L003"));
    let added = json!([{ "uri": client.uri("inner"), "name": "inner" }]);
    client.notify("workspace/didChangeWorkspaceFolders", json!({ "event": { "added": added, "removed": [] } }));
    assert_eq!(codes(&client.published(&document)), ["L003"]);
    let inner = client.open("inner/a.py", &two_mistakes());
    assert_eq!(codes(&client.published(&inner)), ["L003"]);
}
