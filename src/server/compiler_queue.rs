//! The state of the compiler tier: what waits to be asked, the process that is asked, and results.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tower_lsp::gen_lsp_types as lsp;

use compiler::protocol::LoweringRequest;
use compiler::{PendingQuestion, QuestionResult, Service, ServiceStatus, Survey};

use super::bounded_cache::BoundedCache;
use super::idle_timer::IdleTimer;
use super::interpreters::Interpreter;
use super::pending_inspection::{Inspections, PendingInspection};
use super::survey_queue::SurveyQueue;

/// Number of results that are cached, for edits that are undone.
const REMEMBERED: usize = 512;

/// The state of the compiler tier: its verdicts, its queues and its process.
#[derive(Default)]
pub(crate) struct CompilerQueue {
    pub(crate) service: Option<Service>,
    /// The interpreter that the process runs.
    pub(crate) of: Option<Interpreter>,
    pub(crate) timer: Option<IdleTimer>,
    /// Files and notebooks that were edited since the last quiet moment.
    pub(crate) edited: Vec<lsp::Uri>,
    /// Kernels to ask about, by file and name.
    pub(crate) waiting: VecDeque<(lsp::Uri, String)>,
    /// Inspections that a request waits for. The verdicts of the front end come first.
    pub(crate) inspections: Inspections,
    /// Surveys, which run when nothing else is to be asked.
    pub(crate) surveys: SurveyQueue,
    pub(crate) asked: Option<Asked>,
    /// The number of the last question.
    pub(crate) last: u64,
    /// The results of earlier questions, by the keys of the questions.
    pub(crate) known: BoundedCache<u64, QuestionResult, REMEMBERED>,
    /// Idle time before the tier asks, from the settings of the file that was checked last.
    pub(crate) delay: Option<Duration>,
}

/// A question under way.
pub(crate) struct Asked {
    pub(crate) uri: lsp::Uri,
    pub(crate) what: CompilerJob,
}

/// The question that the process is working on.
pub(crate) enum CompilerJob {
    /// Whether the front end accepts a kernel.
    Trial(Box<PendingQuestion>),
    /// The resources that a kernel takes on a device.
    Survey(Box<Survey>),
    /// The output of the compiler's stages for a kernel.
    Inspection(Box<PendingInspection>),
}

impl CompilerJob {
    /// The next request of this work, under the number `id`.
    pub(crate) fn request(&self, id: u64) -> Option<LoweringRequest> {
        match self {
            Self::Trial(trial) => trial.request(id),
            Self::Survey(survey) => survey.request(id),
            Self::Inspection(inspecting) => inspecting.request(id),
        }
    }
}

impl CompilerQueue {
    /// Whether a question is being answered.
    pub(crate) fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Clears the queues of questions.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.surveys.clear();
    }

    /// The interpreter that is unfit to compile, and the reason.
    pub(crate) fn unfit(&self) -> Option<(PathBuf, String)> {
        let service = self.service.as_ref()?;
        let ServiceStatus::Unfit(reason) = service.status() else { return None };
        Some((service.python().to_owned(), reason.lines().next().unwrap_or_default().to_owned()))
    }

    /// Puts this kernel at the front of the queue.
    pub(crate) fn first(&mut self, uri: lsp::Uri, kernel: String) {
        self.waiting.push_front((uri, kernel));
    }

    /// The Triton version of the interpreter that is asked.
    pub(crate) fn triton(&self) -> String {
        match self.service.as_ref().map(Service::status) {
            Some(ServiceStatus::Ready { triton }) => triton.clone(),
            _ => String::new(),
        }
    }

    /// Puts the question under way back into its queue, unless it is for a verdict.
    pub(crate) fn pause(&mut self) {
        match self.asked.take() {
            Some(Asked { uri, what: CompilerJob::Survey(survey), .. }) => self.surveys.put_back(uri, survey),
            Some(Asked { uri, what: CompilerJob::Inspection(inspecting), .. }) => {
                self.inspections.push_front((uri, inspecting));
            }
            Some(Asked { what: CompilerJob::Trial(_), .. }) | None => {}
        }
    }

    /// Answers the waiting inspections of an interpreter with the reason why it cannot be asked.
    pub(crate) fn refuse_inspections(&mut self, python: &Path, reason: &str) {
        let (gone, left) = std::mem::take(&mut self.inspections).into_iter().partition(|(_, it)| it.python() == python);
        self.inspections = left;
        let gone: Inspections = gone;
        for (_, inspecting) in gone {
            inspecting.refuse(format!("Triton cannot be used in {} ({reason})", python.display()));
        }
    }

    /// Whether a question waits in a queue.
    pub(crate) fn has_more(&self) -> bool {
        !(self.waiting.is_empty() && self.inspections.is_empty() && self.surveys.is_empty())
    }
}
