//! `warpsmith/model`: a request with which a search asks a language model of the editor.
//!
//! The client finds the model, asks the user for consent, and answers with the whole text, `{text}`, optionally
//! with `finish` (`stop` or `length`) and the token counts `input` and `output`. The message of an error is shown
//! to the user. After an error with the code of an internal error the search may ask again, after any other it does
//! not. When the search stops, `$/cancelRequest` cancels the request.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tower_lsp::Client;
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::{ErrorCode, Id, Request as Message};
use tower_service::Service as _;

use llm::{EditorModel, Finish, ModelError, ModelRequest, ProviderReply, TokenUsage};

use super::client::ClientSender;

const METHOD: &str = "warpsmith/model";
/// Period of the check whether the search still wants the reply.
const GLANCE: Duration = Duration::from_millis(50);

/// The models of the client.
pub(crate) struct ClientModels(pub(crate) ClientSender);

/// A question to a model that is being sent to the client.
struct PendingModelRequest {
    params: Value,
    reply: mpsc::Sender<Result<ProviderReply, ModelError>>,
    /// Resolves when the search no longer wants the reply.
    over: oneshot::Receiver<()>,
}

/// The client's answer.
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
        request: &ModelRequest,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<ProviderReply, ModelError> {
        let (reply, replied) = mpsc::channel();
        let (wanted, over) = oneshot::channel();
        let asked = PendingModelRequest { params: params(model, request), reply, over };
        self.0.concurrently(|client| ask(client, asked));
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

fn params(model: Option<&str>, request: &ModelRequest) -> Value {
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

/// Asks the client, until it has answered or the search no longer wants the reply.
async fn ask(mut client: Client, asked: PendingModelRequest) {
    let PendingModelRequest { params, reply, over } = asked;
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

fn answer(result: tower_lsp::jsonrpc::Result<Value>) -> Result<ProviderReply, ModelError> {
    let value = result.map_err(|error| {
        let is_lasting = error.code != ErrorCode::InternalError;
        failed(error.message, is_lasting)
    })?;
    let Answered { text, finish, input, output } = serde_json::from_value(value)
        .map_err(|error| failed(format!("the editor's answer to `{METHOD}` is not a valid reply: {error}"), true))?;
    let finish = match finish {
        Ending::Stop => Finish::Stop,
        Ending::Length => Finish::Length,
    };
    let usage = input.zip(output).map(|(input, output)| TokenUsage { input, output, cached: 0, estimated: false });
    Ok(ProviderReply { text, finish, usage })
}
