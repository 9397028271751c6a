//! The operators of language models: a small step changes a candidate, a large one writes the kernel anew, a repair mends what
//! does not compile.
//!
//! What a model says is the work of a stranger. Of a reply nothing but a text of Python is taken; it goes into the file where the
//! kernel was, is looked at before anything runs it (`llm/screen`), and then judged like every other candidate.

mod alike;
mod ask;
mod asking;
mod consent;
mod excerpt;
mod secrets;
mod transcript;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::tree::Id;
use super::{Observer, Request, Work};
use config::{ModelSettings, Provider};
use excerpt::{Excerpt, Hidden};
pub(crate) use llm::prompt::{Attempt, Operator, Pooled, Templates};
use llm::screen::Objection;
use llm::{Account, Client, Model as _};
use runtime::python::state_folder;
use transcript::Transcript;
use transform::Step;

use alike::skeleton;
pub(super) use asking::Asking;
pub use consent::{recipient, way_to_key};
pub use transcript::{delete_all as delete_transcripts, path as transcript_path};

/// The models of a search, with what they are told.
pub(super) struct Operators {
    models: Vec<Client>,
    account: Arc<Account>,
    templates: Templates,
    settings: ModelSettings,
    transcript: Transcript,
    /// What of the user's file is shown to no model.
    hidden: Hidden,
    /// How many questions there were.
    asked: AtomicUsize,
    /// Set when nobody wants an answer any more.
    over: AtomicBool,
}

/// What a model is asked.
pub(super) struct Question {
    pub(super) operator: Operator,
    /// The place in the tree.
    pub(super) at: Id,
    pub(super) step: Step,
    /// What the candidate is made of: its number and its text.
    pub(super) base: Id,
    text: String,
    /// What of that is shown.
    excerpt: Excerpt,
    /// The file as the user has it, and as far as it is shown.
    users: String,
    original: String,
    /// Kernels that others use, too, with who that is: they stay as they are.
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

/// What came of a question.
pub(super) struct Answer {
    pub(super) operator: Operator,
    pub(super) at: Id,
    pub(super) step: Step,
    pub(super) base: Id,
    /// The model that was asked.
    pub(super) model: String,
    /// How many replies it took.
    pub(super) replies: u32,
    pub(super) came: Came,
}

/// How a question ended.
pub(super) enum Came {
    /// With a candidate.
    Candidate {
        /// The whole file.
        text: String,
        /// What the model said that it changes.
        said: Option<String>,
        /// What is held against it before it runs.
        objections: Vec<Objection>,
    },
    /// With replies of which nothing could be made; why.
    Unusable(String),
    /// With no reply; why, and whether the next question would end alike.
    Failed(String, bool),
    /// Nobody wants it any more.
    Cancelled,
}

impl Operators {
    /// The models that the settings name; `None` where there is none. The user is asked first, if need be.
    ///
    /// # Errors
    /// Why none is asked although one is set, in words.
    pub(super) fn open(
        request: &Request,
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
                Some(editor) => Ok(Client::in_editor(&settings, Arc::clone(editor), account)),
                None => Client::open(&settings, None, account),
            }
        };
        let models: Vec<Client> = named.map(open).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let goes_on = matches!(request.work, Work::GoOn(_));
        let transcript = Transcript::of(&request.workspace, run, goes_on, settings.transcripts);
        let hidden = Hidden::of(&request.text, &shown);
        let (asked, over) = Default::default();
        Ok(Some(Self { models, account, templates, settings, transcript, hidden, asked, over }))
    }

    /// What a model is shown of a text.
    fn shown(&self, text: &str, entry: &str, needed: &[String]) -> Excerpt {
        Excerpt::of(text, entry, needed, self.settings.send, &self.hidden)
    }

    /// Nobody wants an answer any more: whoever waits for one stops within a moment.
    pub(super) fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// What each model has cost in this run, by its name.
    pub(super) fn costs(&self) -> Vec<super::report::ModelCosts> {
        let cost = |(model, spent): (String, llm::Spent)| super::report::ModelCosts {
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

/// The file's name, which says less of the machine than its path.
fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
