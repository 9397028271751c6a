//! Tests of correct replies in each protocol.

use super::*;

#[test]
fn streamed_replies_have_text_finish_reason_and_usage() {
    for speech in BOTH {
        let server = Server::start(move |_, _| speech.streamed(&["Hello", ", wörld", "\n"], 21, 4));
        let bench = Bench::new(&speech.settings(&server));
        let mut notes = Notes::default();
        let reply = bench.client.complete(&question(), &mut notes).unwrap();
        let usage = TokenUsage { input: 21, cached: 0, output: 4, estimated: false };
        assert_eq!(reply, ModelReply { text: "Hello, wörld\n".to_owned(), finish: Finish::Stop, usage }, "{speech:?}");
        assert_eq!(notes.deltas.concat(), reply.text);
        assert!(notes.deltas.len() > 1, "{:?}", notes.deltas);
        let spent = bench.account.spent();
        assert_eq!((spent.requests, spent.cost.parts()), (1, 21_000_000 + 40_000_000));
    }
}

#[test]
fn unstreamed_replies_to_streaming_requests_are_accepted() {
    for speech in BOTH {
        let server = Server::start(move |_, _| speech.whole("all of it", 5, 3));
        let reply = Bench::new(&speech.settings(&server)).ask().unwrap();
        assert_eq!((reply.text.as_str(), reply.usage.tokens()), ("all of it", 8), "{speech:?}");
    }
}

#[test]
fn each_protocol_uses_its_own_path_and_headers() {
    for (provider, line, head) in [
        (Provider::Openai, "POST /v1/chat/completions", format!("authorization: bearer {KEY}")),
        (Provider::Anthropic, "POST /v1/messages", format!("x-api-key: {KEY}")),
        (
            Provider::Azure,
            "POST /v1/openai/deployments/m/chat/completions?api-version=2024-10-21",
            format!("api-key: {KEY}"),
        ),
    ] {
        let speech = Speech(provider);
        let server = Server::start(move |_, _| speech.streamed(&["ok"], 1, 1));
        let bench = Bench::new(&speech.settings(&server));
        let request = ModelRequest { temperature: Some(0.25), max_tokens: 2000, ..question() };
        bench.client.complete(&request, &mut ()).unwrap();
        let received = &server.received()[0];
        assert_eq!(received.line, line);
        assert!(received.head.contains(&head), "{}", received.head);
        assert_eq!(received.head.contains("anthropic-version: 2023-06-01"), provider == Provider::Anthropic);
        let limit = if provider == Provider::Azure { "max_completion_tokens" } else { "max_tokens" };
        assert_eq!(received.body[limit], 1000, "the settings bound it");
        assert_eq!(received.body["temperature"], 0.25);
    }
}

#[test]
fn rejected_fields_are_omitted_from_later_requests() {
    let speech = Speech(Provider::Openai);
    let server = Server::start(move |_, received| {
        let refuse = |param: &str| {
            let error = json!({"error": {"message": "Unsupported parameter", "param": param}});
            answer(400, "application/json", &error.to_string())
        };
        match &received.body {
            body if !body["temperature"].is_null() => refuse("temperature"),
            body if !body["max_tokens"].is_null() => refuse("max_tokens"),
            _ => speech.streamed(&["ok"], 1, 1),
        }
    });
    let bench = Bench::new(&ModelSettings { retries: 0, ..speech.settings(&server) });
    let request = ModelRequest { temperature: Some(1.5), ..question() };
    for _ in 0..2 {
        bench.client.complete(&request, &mut ()).unwrap();
    }
    assert_eq!(server.received().len(), 4, "two refusals, then two replies");
    assert_eq!(bench.account.spent().requests, 2);
}

#[test]
fn missing_token_counts_are_estimated_and_marked() {
    let speech = Speech(Provider::Openai);
    let server = Server::start(move |number, _| {
        let mut events = speech.events(&["four"], 0, 0);
        if number == 0 {
            events.pop();
            events.push(format!("data: {}\n\n", json!({"choices": [{"delta": {}, "finish_reason": "length"}]})));
        }
        [stream()].into_iter().chain(events.iter().map(|event| piece(event))).chain([end()]).collect()
    });
    let bench = Bench::new(&speech.settings(&server));
    let sent = (question().system.len() + question().messages[0].text.len()) as u64;
    for finish in [Finish::Length, Finish::Stop] {
        let reply = bench.ask().unwrap();
        assert!(reply.usage.estimated && reply.usage.input >= sent && reply.usage.output == 4, "{reply:?}");
        assert_eq!(reply.finish, finish);
    }
    assert!(bench.account.spent().usage.estimated);
}

#[test]
fn the_models_of_a_provider_are_listed() {
    for speech in BOTH {
        let list = r#"{"data": [{"id": "a"}, {"id": "b\u001b[1m"}]}"#;
        let server = Server::start(move |_, _| answer(200, "application/json", list));
        let _ = rustls::crypto::ring::default_provider().install_default();
        let models = ModelClient::offered(&speech.settings(&server), None).unwrap();
        assert_eq!(models, ["a", "b [1m"]);
        assert_eq!(server.received()[0].line, "GET /v1/models");
    }
}

#[test]
fn incomplete_model_settings_name_the_missing_part() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nothing.pem");
    std::fs::write(&file, "no certificate").unwrap();
    let account = Arc::new(Account::open(&ModelBudget::default(), folder.path()).unwrap());
    let named = || ModelSettings { name: Some("m".to_owned()), ..ModelSettings::default() };
    let reached = || ModelSettings { base_url: Some("http://127.0.0.1:9/v1".to_owned()), ..named() };
    for (settings, expected) in [
        (ModelSettings::default(), "`model.name`"),
        (named(), "`model.base-url`"),
        (ModelSettings { provider: Provider::Scripted, ..named() }, "`model.script`"),
        (ModelSettings { api_key_env: Some("WARPSMITH_NO_SUCH_KEY".to_owned()), ..reached() }, "WARPSMITH_NO_SUCH_KEY"),
        (ModelSettings { ca_file: Some(folder.path().join("gone.pem")), ..reached() }, "cannot be read"),
        (ModelSettings { ca_file: Some(file), ..reached() }, "holds no certificates"),
    ] {
        let error = ModelClient::open(&settings, None, Arc::clone(&account)).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
