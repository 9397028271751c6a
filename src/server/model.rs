//! `warpsmith/model`: a language model of the editor is asked, for a search.
//!
//! The client finds the model, asks the user whether it may be used, and answers with the whole text, `{text}`, to which `finish`
//! (`stop` or `length`) and the tokens, `input` and `output`, may be added. An error's message is shown to the user; one with the code
//! of an internal error may pass, with any other no more is asked. When the search stops, `$/cancelRequest` takes the question back.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::{ErrorCode, Id, Request as Message};
use tower_service::Service as _;

use llm::{Answer, EditorModel, Finish, ModelError, Request, Usage};

use super::client::{Call, Calls};

const METHOD: &str = "warpsmith/model";
/// So often it is looked whether the search still wants the reply.
const GLANCE: Duration = Duration::from_millis(50);

/// The models of the client.
pub(super) struct ClientModels(pub(super) Calls);

/// A question to a model, on its way to the client.
pub(super) struct Asked {
    params: Value,
    reply: mpsc::Sender<Result<Answer, ModelError>>,
    /// Comes to an end when nobody wants the reply any more.
    over: oneshot::Receiver<()>,
}

/// What the client answers.
#[derive(Deserialize)]
struct Answered {
    text: String,
    #[serde(default)]
    finish: Ending,
    input: Option<u64>,
    output: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Ending {
    #[default]
    Stop,
    Length,
}

impl EditorModel for ClientModels {
    fn complete(
        &self,
        model: Option<&str>,
        request: &Request,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Answer, ModelError> {
        let (reply, replied) = mpsc::channel();
        let (wanted, over) = oneshot::channel();
        self.0.send(Call::AskModel(Asked { params: params(model, request), reply, over }));
        let answer = loop {
            match replied.recv_timeout(GLANCE) {
                Ok(answer) => break answer,
                Err(RecvTimeoutError::Timeout) if cancelled() => break Err(ModelError::Cancelled),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Err(failed("the editor is gone", true)),
            }
        };
        drop(wanted);
        answer
    }
}

fn params(model: Option<&str>, request: &Request) -> Value {
    let messages: Vec<Value> =
        request.messages.iter().map(|part| json!({ "role": part.role.name(), "text": part.text })).collect();
    json!({
        "model": model,
        "system": request.system,
        "messages": messages,
        "temperature": request.temperature,
        "maxTokens": request.max_tokens,
        "stop": request.stop,
    })
}

fn failed(why: impl Into<String>, is_lasting: bool) -> ModelError {
    ModelError::Editor { why: why.into(), is_lasting }
}

/// Asks the client, until it has answered or nobody wants that any more.
pub(super) async fn ask(mut client: tower_lsp::Client, asked: Asked) {
    let Asked { params, reply, over } = asked;
    let id = client.next_request_id();
    let message = Message::build(METHOD).id(id.clone()).params(params).finish();
    tokio::select! {
        response = client.call(message) => {
            let result = response.ok().flatten().map(|response| response.into_parts().1);
            // The search may have been stopped meanwhile.
            let _ = reply.send(result.map_or_else(|| Err(failed("the editor is gone", true)), answer));
        }
        _ = over => {
            if let Id::Number(number) = id {
                let number = i32::try_from(number).unwrap_or_default();
                client.send_notification::<lsp::CancelNotification>(lsp::CancelParams::new(lsp::Id::Int(number))).await;
            }
        }
    }
}

fn answer(result: tower_lsp::jsonrpc::Result<Value>) -> Result<Answer, ModelError> {
    let value = result.map_err(|error| {
        let is_lasting = error.code != ErrorCode::InternalError;
        failed(error.message, is_lasting)
    })?;
    let Answered { text, finish, input, output } = serde_json::from_value(value)
        .map_err(|error| failed(format!("what the editor answers to `{METHOD}` is no reply: {error}"), true))?;
    let finish = match finish {
        Ending::Stop => Finish::Stop,
        Ending::Length => Finish::Length,
    };
    let usage = input.zip(output).map(|(input, output)| Usage { input, output, cached: 0, estimated: false });
    Ok(Answer { text, finish, usage })
}
