//! Tests of language models in the program: settings, proxies, and keys in the environment.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

#[path = "common/folder.rs"]
#[expect(dead_code, reason = "not every test needs all of it")]
mod folder;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use folder::Folder;

const KEY: &str = "sk-planted-5c0ffee5deadbeef42";

/// Answers one request. Returns the port, and later the first line and the rest of the request.
fn server(status: &'static str, body: String) -> (u16, JoinHandle<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut first, mut rest, mut length) = (String::new(), String::new(), 0);
        reader.read_line(&mut first).unwrap();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line.trim().is_empty() {
                break;
            }
            let line = line.to_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            rest.push_str(&line);
        }
        let mut sent = vec![0; length];
        reader.read_exact(&mut sent).unwrap();
        let size = body.len();
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n");
        write!(stream, "{head}content-length: {size}\r\n\r\n{body}").unwrap();
        (first.trim().to_owned(), rest)
    });
    (port, thread)
}

fn reply() -> String {
    let usage = r#"{"prompt_tokens":9,"completion_tokens":1}"#;
    format!(r#"{{"choices":[{{"message":{{"content":"ready"}},"finish_reason":"stop"}}],"usage":{usage}}}"#)
}

/// All files below a folder.
fn contents(folder: &std::path::Path, out: &mut Vec<u8>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            contents(&entry.path(), out);
        } else {
            out.extend(std::fs::read(entry.path()).unwrap());
        }
    }
}

#[test]
fn the_doctor_asks_through_the_proxy_of_the_environment() {
    let (port, thread) = server("200 OK", reply());
    let folder = Folder::new(&[(
        "warpsmith.toml",
        "[model]\nname = 'm'\nbase-url = 'http://models.invalid/v1'\napi-key-env = 'PLANTED_KEY'\n",
    )]);
    let ran = folder.run_with(&["doctor", "--model", "--send"], |command| {
        command.env("http_proxy", format!("http://127.0.0.1:{port}")).env("PLANTED_KEY", KEY).env_remove("no_proxy");
        command.env("SSL_CERT_FILE", "/gone").env("SSL_CERT_DIR", "/gone");
    });
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    assert!(ran.out.contains("Language model  works: m at http://models.invalid/v1: it answered in "), "{}", ran.out);
    assert!(ran.out.contains("with 10 tokens") && ran.out.contains("unencrypted"), "{}", ran.out);
    let (first, rest) = thread.join().unwrap();
    assert_eq!(first, "POST http://models.invalid/v1/chat/completions HTTP/1.1");
    assert!(rest.contains(&format!("authorization: bearer {KEY}")), "{rest}");
}

/// The key appears neither in the output, nor in the most detailed log, nor in any file.
#[test]
fn the_api_key_is_not_in_output_logs_or_files_after_a_401() {
    let (port, thread) = server("401 Unauthorized", format!(r#"{{"error":{{"message":"bad key {KEY}"}}}}"#));
    let folder = Folder::new(&[(
        "warpsmith.toml",
        &format!(
            "[model]\nname = 'm'\nprovider = 'anthropic'\nbase-url = 'http://127.0.0.1:{port}'\nkey-command = ['/bin/sh', '-c', 'echo $PLANTED_KEY']\n"
        ),
    )]);
    let ran = folder.run_with(&["doctor", "--model", "--send"], |command| {
        command.env("PLANTED_KEY", KEY).env("WARPSMITH_LOG", "trace").env("no_proxy", "*");
    });
    let (first, rest) = thread.join().unwrap();
    assert_eq!(first, "POST /v1/messages HTTP/1.1");
    assert!(rest.contains(&format!("x-api-key: {KEY}")), "{rest}");
    assert!(ran.code == 1 && ran.out.contains("answered 401: bad key [key]; is the key"), "{}", ran.out);
    assert!(ran.err.contains("TRACE"), "the log is on");
    let mut all = (ran.out + &ran.err).into_bytes();
    contents(folder.path(), &mut all);
    assert!(!String::from_utf8_lossy(&all).contains(&KEY[3..]));
}

/// Before the user has agreed, no command of the settings is run and nothing is sent.
#[test]
fn the_doctor_sends_nothing_to_the_model_without_consent() {
    let folder = Folder::new(&[(
        "warpsmith.toml",
        "[model]\nname = 'm\\u001b[2K'\nbase-url = 'http://127.0.0.1:9'\nkey-command = ['/bin/sh', '-c', 'touch ran']\n"
            .replace('\'', "\"")
            .as_str(),
    )]);
    let ran = folder.run(&["doctor", "--model"]);
    assert!(ran.code == 1 && ran.out.contains("nothing was sent, since you did not agree"), "{}", ran.out);
    assert!(ran.err.contains("http://127.0.0.1:9") && ran.err.contains("touch ran"), "{}", ran.err);
    assert!(!ran.err.contains('\u{1b}'), "{:?}", ran.err);
    assert!(!folder.path().join("ran").exists());
}

#[test]
fn the_doctor_names_the_package_of_missing_certificates() {
    let folder = Folder::new(&[("warpsmith.toml", "[model]\nname = 'm'\nbase-url = 'https://models.invalid/v1'\n")]);
    let ran = folder.run_with(&["doctor", "--model", "--send"], |command| {
        command.env("SSL_CERT_FILE", "/gone").env("SSL_CERT_DIR", "/gone");
    });
    assert!(ran.code == 1 && ran.out.contains("`ca-certificates`"), "{}", ran.out);
}

/// Each request reserves about 400 tokens and uses ten; the budget has room for one at a time, and for three in total.
#[test]
fn processes_share_the_budget_of_a_day() {
    let settings = "[model]\nprovider = 'scripted'\nscript = 'replies.toml'\n[model.budget]\nday-tokens = 410\n";
    let reply = "[[reply]]\ntext = 'ready'\ninput = 7\noutput = 3\ndelay = 0.3\n";
    let folder = Folder::new(&[("warpsmith.toml", settings), ("replies.toml", reply)]);
    let start = |_| {
        folder.command(&["doctor", "--model", "--send"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..6).map(start).collect();
    let outputs =
        children.into_iter().map(|child| String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap());
    let (answered, refused): (Vec<String>, _) = outputs.partition(|output| output.contains("it answered in "));
    assert!(
        !refused.is_empty() && refused.iter().all(|output| output.contains("`model.budget.day-tokens` is used up"))
    );
    assert!((1..=3).contains(&answered.len()), "{answered:?}");
}

#[test]
fn a_scripted_model_needs_no_network() {
    let folder = Folder::new(&[
        ("warpsmith.toml", "[model]\nprovider = 'scripted'\nscript = 'replies.toml'\n[model.prices]\noutput = 1000\n"),
        ("replies.toml", "[[reply]]\ntext = 'ready'\ninput = 7\noutput = 3\n"),
    ]);
    let ran = folder.run(&["doctor", "--model", "--send"]);
    assert!(ran.code == 0 && ran.out.contains("with 10 tokens for $0.0030"), "{}", ran.out);
    folder.write("warpsmith.toml", b"[model]\nprovider = 'scripted'\nscript = 'gone.toml'\n");
    let ran = folder.run(&["doctor", "--model", "--send"]);
    assert!(ran.code == 1 && ran.out.contains("gone.toml, the `model.script`, cannot be read"), "{}", ran.out);
    folder.write("warpsmith.toml", b"[model]\nprovider = 'editor'\nname = 'm'\n");
    let ran = folder.run(&["doctor", "--model"]);
    let expected = "m of the editor: `model.provider = \"editor\"` works in an editor only";
    assert!(ran.code == 1 && ran.out.contains(expected), "{}", ran.out);
    folder.write("warpsmith.toml", b"[model]\nprovider = 'gemini'\n");
    let ran = folder.run(&["doctor"]);
    let expected =
        "warpsmith.toml:2:12: `model.provider` must be one of `openai`, `azure`, `anthropic`, `editor`, `scripted`";
    assert!(ran.out.contains(expected), "{}", ran.out);
}
