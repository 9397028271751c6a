//! The queue and the results of surveys: how much of a device kernels take.

use std::collections::VecDeque;

use tower_lsp::gen_lsp_types as lsp;

use compiler::Survey;
use model::analysis::resources::Resources;

use super::bounded_cache::BoundedCache;

/// Number of results that are cached, for edits that are undone.
const REMEMBERED: usize = 256;

/// The queue and the results of surveys.
#[derive(Default)]
pub(crate) struct SurveyQueue {
    pub(crate) waiting: VecDeque<WaitingSurvey>,
    /// Kernels that the user has asked about, by file and name.
    pub(crate) wanted: Vec<(lsp::Uri, String)>,
    /// The results of earlier surveys, by the keys of the surveys.
    pub(crate) known: BoundedCache<u64, Resources, REMEMBERED>,
}

pub(crate) struct WaitingSurvey {
    pub(crate) uri: lsp::Uri,
    pub(crate) kernel: String,
    /// A survey that was interrupted by a more urgent question.
    pub(crate) begun: Option<Box<Survey>>,
}

impl SurveyQueue {
    /// Whether the queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Clears the queue.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.wanted.clear();
    }

    /// Removes a file or notebook from the queue.
    pub(crate) fn forget(&mut self, uri: &lsp::Uri) {
        self.waiting.retain(|waiting| waiting.uri != *uri);
        self.wanted.retain(|(of, _)| of != uri);
    }

    /// Puts an interrupted survey at the front.
    pub(crate) fn put_back(&mut self, uri: lsp::Uri, survey: Box<Survey>) {
        let kernel = survey.kernel().to_owned();
        self.waiting.push_front(WaitingSurvey { uri, kernel, begun: Some(survey) });
    }

    /// Adds a kernel to the queue, at its front or its end, unless it is there already.
    pub(crate) fn add(&mut self, uri: &lsp::Uri, kernel: &str, first: bool) {
        if self.waiting.iter().any(|waiting| waiting.uri == *uri && waiting.kernel == kernel) {
            return;
        }
        let waiting = WaitingSurvey { uri: uri.clone(), kernel: kernel.to_owned(), begun: None };
        if first {
            self.waiting.push_front(waiting);
        } else {
            self.waiting.push_back(waiting);
        }
    }
}
