//! One question to a model, with corrections until the reply is a usable candidate.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use super::excerpt::definition;
use super::secrets::secret;
use super::{CandidateReply, CandidateRequest, Operators, ReplyOutcome, name};
use crate::operators::transcript::TranscriptContext;
pub(crate) use llm::prompt::{Operator, PromptContext};
pub(crate) use llm::reply::{ReplyError, diagnosis, small_step, whole_file};
use llm::screen::screen;
use llm::{ChatMessage, ChatRole, Finish, Model, ModelError, ModelReply, ModelRequest, ReplyObserver};
use model::syntax::normal_form;

/// Bytes of an unusable reply that are shown to the model again.
const SHOWN_AGAIN: usize = 16_000;

/// A watcher that cancels a request when the search no longer wants the reply.
struct Wanted<'a>(&'a Operators);

impl ReplyObserver for Wanted<'_> {
    fn cancelled(&self) -> bool {
        self.0.over.load(Ordering::Relaxed)
    }
}

impl Operators {
    /// Asks a model, and asks again with the defect when a reply cannot be used. Blocks for as long as the model
    /// takes.
    ///
    /// An answer is returned even if the conversation panics, because the search waits for it.
    pub(crate) fn ask(&self, question: &CandidateRequest) -> CandidateReply {
        // Models alternate, and each model cycles through the temperatures.
        let turn = self.asked.fetch_add(1, Ordering::Relaxed);
        let model = &self.models[turn % self.models.len()];
        let temperatures = &self.settings.temperatures;
        let temperature = temperatures.get((turn / self.models.len()) % temperatures.len().max(1)).copied();
        let mut replies = 0;
        let came = catch_unwind(AssertUnwindSafe(|| self.converse(question, model, temperature, &mut replies)));
        let fault = || ReplyOutcome::Failed("asking broke off: this is a fault of warpsmith's".to_owned(), true);
        let came = came.unwrap_or_else(|_| fault());
        let CandidateRequest { operator, node: at, step, base, .. } = *question;
        CandidateReply { operator, node: at, step, base, model: model.name().to_owned(), replies, outcome: came }
    }

    fn converse(
        &self,
        question: &CandidateRequest,
        model: &dyn Model,
        temperature: Option<f64>,
        replies: &mut u32,
    ) -> ReplyOutcome {
        let prompt = match self.templates.render(question.operator, &question.context(), self.settings.prompt_tokens) {
            Ok(prompt) => prompt,
            Err(error) => return ReplyOutcome::Failed(error.to_string(), true),
        };
        if let Some((_, what)) = secret(&prompt.user) {
            return ReplyOutcome::Failed(format!("what would be sent has what looks like {what}"), true);
        }
        let first = ModelRequest::of(prompt.system, prompt.user);
        let mut request = ModelRequest { temperature, ..first };
        let version = self.templates.version();
        let (operator, node) = (name(question.operator), question.node);
        let about = TranscriptContext { operator, node, model: model.name(), prompts: &version };
        loop {
            let reply = match model.complete(&request, &mut Wanted(self)) {
                Ok(reply) => reply,
                Err(ModelError::Cancelled) => return ReplyOutcome::Cancelled,
                Err(error) => {
                    self.transcript.note(about, &request, Err(error.to_string()));
                    return ReplyOutcome::Failed(error.to_string(), is_final(&error));
                }
            };
            *replies += 1;
            self.transcript.note(about, &request, Ok(&reply));
            let why = match question.candidate(&reply) {
                Ok(text) => {
                    // The comparison is with the user's file, so that nothing in an earlier refused candidate
                    // counts as accepted.
                    let objections = screen(&question.users, &text);
                    return ReplyOutcome::Candidate { text, said: diagnosis(&reply.text), objections };
                }
                Err(why) => why,
            };
            if *replies > self.settings.corrections || reply.finish == Finish::Refused {
                return ReplyOutcome::Unusable(why);
            }
            again(&mut request, &reply, &why);
        }
    }
}

/// Continues the conversation with the reply and its defect.
fn again(request: &mut ModelRequest, reply: &ModelReply, why: &str) {
    // Only the latest correction is kept; earlier ones would make each request longer than the one before.
    request.messages.truncate(1);
    let end = reply.text.floor_char_boundary(SHOWN_AGAIN.min(reply.text.len()));
    let shown = if reply.text.is_empty() { "(nothing)" } else { &reply.text[..end] };
    request.messages.push(ChatMessage { role: ChatRole::Assistant, text: shown.to_owned() });
    let text = format!("This reply cannot be used: {why}\n\nAnswer the same request once more, in full.");
    request.messages.push(ChatMessage { role: ChatRole::User, text });
}

/// Whether the next question would fail for the same reason.
fn is_final(error: &ModelError) -> bool {
    match error {
        ModelError::Settings(_) | ModelError::Key(_) | ModelError::Budget(_) | ModelError::Store(_) => true,
        ModelError::Script(_) | ModelError::Cancelled => true,
        ModelError::Editor { is_lasting, .. } => *is_lasting,
        // The request was retried already as often as the settings allow.
        ModelError::Refused { status, .. } => *status != 429 && *status < 500,
        ModelError::Failed(_) | ModelError::Unreachable(_) | ModelError::Broken(_) => false,
        ModelError::Slow { .. } | ModelError::Garbage(_) | ModelError::TooLong(_) => false,
    }
}

impl CandidateRequest {
    fn context(&self) -> PromptContext<'_> {
        PromptContext {
            file_name: &self.file_name,
            kernels: &self.kernels,
            entry: &self.entry,
            workload: self.workload.clone(),
            device: &self.device,
            triton: &self.triton,
            torch: self.torch.as_deref(),
            original: &self.original,
            base: &self.excerpt.text,
            branch: self.branch.clone(),
            pool: self.pool.clone(),
            facts: self.facts.clone(),
            skills: self.skills.clone(),
            rules: self.rules.clone(),
            goal: self.goal,
            mistake: self.mistake.as_deref(),
        }
    }

    /// The whole file after a reply, or the reason why the reply cannot be used.
    fn candidate(&self, reply: &ModelReply) -> Result<String, String> {
        match &reply.finish {
            Finish::Stop | Finish::Other(_) => {}
            Finish::Length => return Err("it was cut off at the greatest length of a reply; be shorter".to_owned()),
            Finish::Refused => return Err("the model or its provider refused to answer".to_owned()),
        }
        let made = self.made(&reply.text).map_err(|error| error.to_string())?;
        if let Some(name) = self.excerpt.clash(&self.text, &made) {
            return Err(format!(
                "`{name}` is defined elsewhere in the file, in what you are not shown; take another name"
            ));
        }
        let text = self.excerpt.splice(&self.text, &made);
        if normal_form(&text) == normal_form(&self.text) {
            return Err("it changes nothing".to_owned());
        }
        for (kernel, who) in &self.shared {
            let form = |text: &str| definition(text, kernel).map(normal_form);
            if form(&text) != form(&self.users) {
                return Err(format!("`{kernel}` must not change, since {who} uses it, too; write another kernel"));
            }
        }
        Ok(text)
    }

    fn made(&self, reply: &str) -> Result<String, ReplyError> {
        if self.operator == Operator::Small {
            return small_step(reply, &self.excerpt.text);
        }
        // Kernels may be renamed, the called function may not.
        whole_file(reply, &[&self.entry])
    }
}
