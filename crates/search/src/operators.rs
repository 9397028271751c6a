//! The operators of language models: a small step changes a candidate, a large step rewrites the kernel, a repair
//! fixes one that does not compile, and a new kernel is written for a function without one.
//!
//! A model's reply is untrusted. Only Python source is taken from it; the source replaces the kernel in the file,
//! is screened before anything runs it (`llm/screen`), and is then judged like every other candidate.

mod consent;
mod duplicates;
mod excerpt;
mod model_request;
mod model_scheduler;
mod secrets;
pub(super) mod transcript;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::observer::Observer;
use super::request::{SearchAction, SearchRequest};
use super::tree::CandidateId;
use config::{ModelSettings, Provider};
use excerpt::{Excerpt, Hidden};
pub(crate) use llm::prompt::{Attempt, Operator, Pooled, Templates};
use llm::screen::Objection;
use llm::{Account, Model as _, ModelClient};
use runtime::python::state_folder;
use transcript::Transcript;
use transform::StepSize;

pub use consent::{key_source, recipient};
use duplicates::skeleton;
pub(super) use model_scheduler::ModelScheduler;
pub use transcript::{delete_all as delete_transcripts, path as transcript_path};

/// The models of a search, with their prompts and transcript.
pub(super) struct Operators {
    models: Vec<ModelClient>,
    account: Arc<Account>,
    templates: Templates,
    settings: ModelSettings,
    transcript: Transcript,
    /// The parts of the user's file that are shown to no model.
    hidden: Hidden,
    /// Number of questions so far.
    asked: AtomicUsize,
    /// Set when the search no longer wants answers.
    over: AtomicBool,
}

/// A question to a model, with all facts of its prompt.
pub(super) struct CandidateRequest {
    pub(super) operator: Operator,
    /// The node from which the step is made.
    pub(super) node: CandidateId,
    pub(super) step: StepSize,
    /// The base of the candidate: its node and its text.
    pub(super) base: CandidateId,
    text: String,
    /// The part of the base that is shown.
    excerpt: Excerpt,
    /// The user's file, and its excerpt.
    users: String,
    original: String,
    /// Kernels that are used elsewhere, with their users; they must not be changed.
    shared: Vec<(String, String)>,
    file_name: String,
    kernels: Vec<String>,
    entry: String,
    workload: Vec<String>,
    device: String,
    triton: String,
    torch: Option<String>,
    branch: Vec<Attempt>,
    pool: Vec<Pooled>,
    facts: Vec<String>,
    skills: Vec<String>,
    rules: Vec<String>,
    goal: f64,
    mistake: Option<String>,
}

/// The answer to a question.
pub(super) struct CandidateReply {
    pub(super) operator: Operator,
    pub(super) node: CandidateId,
    pub(super) step: StepSize,
    pub(super) base: CandidateId,
    /// The name of the model that was asked.
    pub(super) model: String,
    /// Number of replies that it took.
    pub(super) replies: u32,
    pub(super) outcome: ReplyOutcome,
}

/// The result of a question.
pub(super) enum ReplyOutcome {
    /// A candidate.
    Candidate {
        /// The text of the whole file.
        text: String,
        /// The model's explanation of its change.
        said: Option<String>,
        /// The objections of the screen, before the candidate runs.
        objections: Vec<Objection>,
    },
    /// No reply was usable; the text is the reason.
    Unusable(String),
    /// There was no reply; the reason, and whether the next question would fail as well.
    Failed(String, bool),
    /// The search no longer wanted the answer.
    Cancelled,
}

impl Operators {
    /// Opens the models of the settings, after the user's consent where needed; `None` where the settings name
    /// none.
    ///
    /// # Errors
    /// Returns the reason why no model is asked although one is set, as a sentence for the user.
    pub(super) fn open(
        request: &SearchRequest,
        (entry, kernels): (&str, &[String]),
        run: &str,
        observer: &dyn Observer,
    ) -> Result<Option<Self>, String> {
        let settings = request.settings.model.clone();
        if !settings.is_asked() || !request.settings.optimize.rewrites {
            return Ok(None);
        }
        let shown = Excerpt::of(&request.text, entry, kernels, settings.send, &Hidden::default());
        consent::consent(request, &shown, observer)?;
        let templates = match &settings.prompts {
            Some(folder) => Templates::with_overrides(folder).map_err(|error| error.to_string())?,
            None => Templates::shipped(),
        };
        let account = Account::open(&settings.budget, &state_folder()).map_err(|error| error.to_string())?;
        let account = Arc::new(account);
        let named = std::iter::once(settings.name.clone()).chain(settings.also.iter().cloned().map(Some));
        let editor = (settings.provider == Provider::Editor).then(|| observer.editor_model()).flatten();
        let open = |name| {
            let (settings, account) = (ModelSettings { name, ..settings.clone() }, Arc::clone(&account));
            match &editor {
                Some(editor) => Ok(ModelClient::in_editor(&settings, Arc::clone(editor), account)),
                None => ModelClient::open(&settings, None, account),
            }
        };
        let models: Vec<ModelClient> = named.map(open).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let goes_on = matches!(request.work, SearchAction::GoOn(_));
        let transcript = Transcript::of(&request.workspace, run, goes_on, settings.transcripts);
        let hidden = Hidden::of(&request.text, &shown);
        let (asked, over) = Default::default();
        Ok(Some(Self { models, account, templates, settings, transcript, hidden, asked, over }))
    }

    /// The excerpt of a text that a model is shown.
    fn shown(&self, text: &str, entry: &str, needed: &[String]) -> Excerpt {
        Excerpt::of(text, entry, needed, self.settings.send, &self.hidden)
    }

    /// Cancels all questions; threads that wait for an answer stop soon.
    pub(super) fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// The costs of each model in this run, by its name.
    pub(super) fn costs(&self) -> Vec<super::model_costs::ModelCosts> {
        let cost = |(model, spent): (String, llm::RunSpending)| super::model_costs::ModelCosts {
            model,
            requests: spent.requests,
            input: spent.usage.input,
            cached: spent.usage.cached,
            output: spent.usage.output,
            dollars: spent.cost.as_dollars(),
            estimated: spent.usage.estimated,
        };
        self.account.spent_on().into_iter().map(cost).collect()
    }

    fn names(&self) -> String {
        self.models.iter().map(|model| model.name().to_owned()).collect::<Vec<_>>().join(", ")
    }
}

/// The name of an operator in reports.
pub(super) fn name(operator: Operator) -> &'static str {
    match operator {
        Operator::Small => "small",
        Operator::Large => "large",
        Operator::Repair => "repair",
        Operator::Write => "write",
    }
}

/// The file's name without its folder, which would reveal more about the machine.
fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
