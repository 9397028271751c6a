//! Tests of malformed messages.

use serde_json::json;

use crate::harness::{BAD, Client, Setup};

/// Asserts that the server still works.
fn assert_alive(client: &mut Client) {
    let document = client.open("alive.py", BAD);
    assert_eq!(client.published(&document).len(), 1);
    client.close(&document);
    let cleared = client.notification("textDocument/publishDiagnostics");
    assert_eq!(cleared, json!({ "uri": document.uri, "diagnostics": [] }));
    client.assert_silent();
}

#[test]
fn a_body_that_is_not_a_message_gets_a_parse_error() {
    for body in [
        "{\"jsonrpc\": \"2.0\", \"method\":",
        "[1, 2",
        "[]",
        "{}",
        "\u{0}",
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"shutdown\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"shutdown\"}",
    ] {
        let mut client = Setup::new().start();
        client.write_raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
        let answer = client.wait("an error", |message| message["id"].is_null() && message.get("error").is_some());
        assert_eq!(answer["error"]["code"], -32700, "{body}");
        assert_alive(&mut client);
    }
}

#[test]
fn bytes_outside_utf_8_and_invalid_headers_get_a_parse_error() {
    for bytes in [
        &b"Content-Length: 4\r\n\r\n\xff\xfe\xfd\xfc"[..],
        b"Content-Length: minus one\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 99999999999999999999999\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ] {
        let mut client = Setup::new().start();
        client.write_raw(bytes);
        let answer = client.wait("an error", |message| message["id"].is_null() && message.get("error").is_some());
        assert_eq!(answer["error"]["code"], -32700);
        assert_alive(&mut client);
    }
}

#[test]
fn unusual_headers_are_understood() {
    let mut client = Setup::new().start();
    let body = r#"{"jsonrpc":"2.0","id":99,"method":"test/nothing"}"#;
    let header = "content-type: application/vscode-jsonrpc; charset=utf-8\r\nX-Extra: 1\r\nCONTENT-LENGTH:";
    client.write_raw(format!("{header}{}\r\n\r\n{body}", body.len()).as_bytes());
    assert_eq!(client.answer(99).unwrap_err()["code"], -32601);
    assert_alive(&mut client);
}

#[test]
fn parameters_of_another_shape_are_refused() {
    let mut client = Setup::new().start();
    for params in [json!(null), json!({}), json!([1, 2]), json!({ "textDocument": 3, "position": "here" })] {
        let (code, _) = client.request_error("textDocument/hover", params);
        assert_eq!(code, -32602);
    }
    client.notify("textDocument/didOpen", json!({ "textDocument": "a.py" }));
    client.notify("textDocument/didChange", json!([]));
    let (code, message) = client.request_error("workspace/executeCommand", json!({ "command": "rm -rf" }));
    assert_eq!((code, message.as_str()), (-32602, "there is no command `rm -rf`"));
    for command in ["warpsmith.optimize", "warpsmith.cancel", "warpsmith.record"] {
        for arguments in [json!([]), json!([1]), json!([{ "uri": 3 }])] {
            let params = json!({ "command": command, "arguments": arguments });
            let (code, _) = client.request_error("workspace/executeCommand", params);
            assert_eq!(code, -32602);
        }
    }
    assert_alive(&mut client);
}

#[test]
fn ids_may_be_texts_and_notifications_of_requests_are_no_requests() {
    let mut client = Setup::new().start();
    client.send(&json!({ "jsonrpc": "2.0", "id": "a", "method": "test/nothing" }));
    client.wait("the answer", |message| message["id"] == "a");
    // A request without an id gets no answer.
    client.notify("textDocument/hover", json!({}));
    // An answer without a request.
    client.send(&json!({ "jsonrpc": "2.0", "id": 12345, "result": null }));
    assert_alive(&mut client);
}
