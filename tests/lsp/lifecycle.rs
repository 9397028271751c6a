//! Tests of the server's life, from the first request to the end of the process.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use judge::{Device, Devices};
use warpsmith::server::Tools;

use crate::harness::{BAD, Setup, machine};

#[test]
fn initialize_returns_the_server_name_and_capabilities() {
    let client = Setup::new().start();
    let result = &client.initialize_result;
    assert_eq!(result["serverInfo"], json!({ "name": "warpsmith", "version": env!("CARGO_PKG_VERSION") }));
    let capabilities = &result["capabilities"];
    assert_eq!(capabilities["textDocumentSync"]["change"], 2);
    assert_eq!(capabilities["textDocumentSync"]["openClose"], true);
    assert_eq!(
        capabilities["codeActionProvider"]["codeActionKinds"],
        json!(["quickfix", "refactor.rewrite", "warpsmith.inspect", "warpsmith.record"])
    );
    assert_eq!(
        capabilities["executeCommandProvider"]["commands"],
        json!([
            "warpsmith.optimize",
            "warpsmith.cancel",
            "warpsmith.resources",
            "warpsmith.report",
            "warpsmith.inspect",
            "warpsmith.record",
            "warpsmith.memory.mute",
            "warpsmith.memory.dispute",
            "warpsmith.memory.reproducer"
        ])
    );
    assert_eq!(
        capabilities["notebookDocumentSync"]["notebookSelector"],
        json!([{ "cells": [{ "language": "python" }] }])
    );
    assert_eq!(capabilities["hoverProvider"], true);
    // Clients that pull diagnostics are offered them; to all others they are pushed.
    assert_eq!(capabilities.get("diagnosticProvider"), None);
    let client = Setup::new().pulls().start();
    assert_eq!(client.initialize_result["capabilities"]["diagnosticProvider"]["workspaceDiagnostics"], false);
}

#[test]
fn columns_are_bytes_where_the_client_can_count_them() {
    for (offered, chosen) in [
        (json!(["utf-16", "utf-8"]), "utf-8"),
        (json!(["utf-32", "utf-16"]), "utf-16"),
        (json!(["utf-16"]), "utf-16"),
        (json!([]), "utf-16"),
    ] {
        let capabilities = json!({ "general": { "positionEncodings": offered } });
        let client = Setup::new().capabilities(&capabilities).start();
        assert_eq!(client.initialize_result["capabilities"]["positionEncoding"], chosen, "{offered}");
    }
    let client = Setup::new().start();
    assert_eq!(client.initialize_result["capabilities"]["positionEncoding"], "utf-16");
}

#[test]
fn nothing_is_answered_before_initialize() {
    let mut client = Setup::new().start_uninitialized();
    let (code, _) = client.request_error("textDocument/hover", json!({}));
    assert_eq!(code, -32002);
    // A notification before `initialize` is dropped.
    client.open("early.py", BAD);
    let params = client.initialize_params();
    client.request("initialize", params.clone());
    client.notify("initialized", json!({}));
    let (code, _) = client.request_error("initialize", params);
    assert_eq!(code, -32600);
    client.assert_silent();
}

#[test]
fn ends_with_0_after_shutdown_and_exit_and_answers_nothing_in_between() {
    let mut client = Setup::new().start();
    client.request("shutdown", Value::Null);
    let (code, _) = client.request_error("textDocument/hover", json!({}));
    assert_eq!(code, -32600);
    client.notify("exit", Value::Null);
    assert_eq!(client.ended(), Some(0));
}

#[test]
fn ends_with_1_after_exit_alone() {
    let mut client = Setup::new().start();
    client.notify("exit", Value::Null);
    assert_eq!(client.ended(), Some(1));
}

#[test]
fn ends_when_its_input_ends() {
    let mut client = Setup::new().start();
    client.hang_up();
    assert_eq!(client.ended(), Some(1));
    let mut client = Setup::new().start_uninitialized();
    client.write_raw(b"Content-Length: 10\r\n\r\n{\"js");
    client.hang_up();
    assert_eq!(client.ended(), Some(1));
}

#[cfg(unix)]
#[test]
fn ends_when_the_editor_dies_without_closing_the_pipe() {
    let mut editor = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let mut client = Setup::new().process_id(editor.id()).start();
    client.assert_silent();
    editor.kill().unwrap();
    editor.wait().unwrap();
    let since = Instant::now();
    assert_eq!(client.ended(), Some(1));
    assert!(since.elapsed() < Duration::from_secs(20));
}

#[test]
fn unknown_requests_are_refused_and_unknown_notifications_ignored() {
    let mut client = Setup::new().start();
    let (code, message) =
        client.request_error("textDocument/foldingRange", json!({ "textDocument": { "uri": "file:///a" } }));
    assert_eq!((code, message.as_str()), (-32601, "Method not found"));
    client.notify("warpsmith/nothing", json!({ "a": 1 }));
    client.notify("$/nothing", json!({ "a": 1 }));
    client.notify("$/setTrace", json!({ "value": "verbose" }));
    client.notify("window/workDoneProgress/cancel", json!({ "token": "no such job" }));
    client.notify("$/cancelRequest", json!({ "id": 4711 }));
    client.assert_silent();
}

#[test]
fn nothing_but_the_protocol_goes_to_standard_output_and_logs_go_to_standard_error() {
    let mut client = Setup::new().start();
    let document = client.open("a.py", BAD);
    client.published(&document);
    client.wait_for_log("a client is there");
}

/// Looking for devices takes a moment, so a client that shows the status is notified when they are known.
#[test]
fn the_status_names_the_device_or_why_there_is_none() {
    let named = |name: &str| Device { name: name.to_owned(), capability: (9, 0), uuid: String::new() };
    let two = Devices::Found(vec![named("Test GPU"), named("Test GPU")]);
    for (devices, expected) in [
        (Devices::Found(vec![named("Test GPU")]), json!({ "name": "Test GPU", "message": null })),
        (two, json!({ "name": "2 × Test GPU", "message": null })),
        (Devices::Missing("no driver".to_owned()), json!({ "name": null, "message": "no driver" })),
    ] {
        let tools = Tools { devices: Arc::new(move || devices.clone()), ..machine() };
        let options = json!({ "settings": { "select": ["L002"] }, "status": true });
        let mut client = Setup::new().options(options).tools(tools).start();
        let is_known = |message: &Value| {
            message["method"] == "warpsmith/status"
                && message["params"]["device"] != json!({ "name": null, "message": null })
        };
        let told = client.wait("the device", is_known)["params"]["device"].take();
        assert_eq!(told, expected);
        assert_eq!(client.request("warpsmith/status", json!({}))["device"], expected);
        client.stop_ignoring("warpsmith/status");
    }
}

/// Candidates are judged in the pool, whatever devices this machine has. In an untrusted folder nothing is judged.
#[test]
fn the_status_names_the_pool_that_is_set() {
    for trusted in [true, false] {
        let settings = json!({ "evaluator": { "pool": "ray://gpubox:10001" } });
        let options = json!({ "settings": settings, "workspaceTrusted": trusted });
        let mut client = Setup::new().options(options).start();
        let name = client.request("warpsmith/status", json!({}))["device"]["name"].take();
        assert_eq!(name == "the pool at ray://gpubox:10001", trusted, "{name}");
    }
}
