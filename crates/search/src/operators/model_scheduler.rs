//! The dialogue of a search with its models: when a model is asked, with which facts, and what happens with the
//! answer.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::secrets::without_folders;
use super::{CandidateReply, CandidateRequest, Operators, ReplyOutcome, file_name, name, skeleton};
use crate::journal::{JournalEntry, ModelQuery};
use crate::propose::SearchState;
use crate::resume::ResumedCandidate;
use crate::run::SearchRun;
use crate::tree::{CandidateId, CandidateResult, ROOT, StepSize};
use judge::{Reason, title};
pub(crate) use llm::prompt::{Attempt, Operator};
use model::api::TritonTarget;

/// Number of questions in a row without a reply after which no more are asked.
const PATIENCE: usize = 3;
/// Number of replies in a row without a new candidate after which no more are asked, because they only cost.
const FRUITLESS: u32 = 12;
/// Token limit of the learned rules in a prompt.
const RULES: usize = 800;
/// Characters of evidence that a prompt contains.
const EVIDENCE: usize = 1200;

/// The state of the dialogue with the models.
pub(crate) struct ModelScheduler {
    operators: Arc<Operators>,
    /// Number of unanswered questions.
    pub(crate) in_flight: usize,
    /// Number of questions so far, without repairs, and number of candidates by skills.
    asked: usize,
    skilled: usize,
    /// Number of failed questions in a row.
    failed: usize,
    /// Number of fruitless replies in a row.
    fruitless: u32,
    /// Whether the skills have no proposal left.
    alone: bool,
    /// Candidates to be repaired, with their defects.
    broken: VecDeque<(CandidateId, String)>,
    /// The canonical forms of all candidates so far.
    seen: HashSet<String>,
    /// The reason why no model is asked any more.
    over: Option<String>,
}

/// Stops all questions to models when it is dropped.
pub(crate) struct StopAtEnd(Arc<Operators>);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl ModelScheduler {
    pub(crate) fn new(operators: Operators, original: &str) -> Self {
        let seen = HashSet::from([skeleton(original)]);
        let (broken, over, alone) = Default::default();
        let (in_flight, asked, skilled, failed, fruitless) = Default::default();
        Self { operators: Arc::new(operators), in_flight, asked, skilled, failed, fruitless, alone, broken, seen, over }
    }

    /// A guard that stops all questions to models when it is dropped, however a search ends.
    pub(crate) fn stops_at_end(&self) -> StopAtEnd {
        StopAtEnd(self.operators())
    }

    pub(crate) fn operators(&self) -> Arc<Operators> {
        Arc::clone(&self.operators)
    }

    /// Whether skills may propose candidates as well.
    pub(crate) fn is_skill_next(&self) -> bool {
        self.operators.settings.share < 1.0 || self.over.is_some()
    }

    /// Notes a candidate by a skill, or that the skills have none left.
    pub(crate) fn note_skill_result(&mut self, text: Option<&str>) {
        self.alone = text.is_none();
        if let Some(text) = text {
            self.skilled += 1;
            self.seen.insert(skeleton(text));
        }
    }

    /// Whether a question may be asked now.
    fn may_ask(&self) -> bool {
        let Self { operators, in_flight: flying, asked, skilled, over, .. } = self;
        let settings = &operators.settings;
        let is_within_share = *asked as f64 <= settings.share * (asked + skilled) as f64;
        let is_due = !self.broken.is_empty() || self.alone || is_within_share;
        over.is_none() && *flying < settings.limits.parallel && is_due
    }

    /// The next operator and its place in the tree: a repair if one is due, else a step.
    fn next(&mut self, search: &mut SearchState<'_>) -> Option<(Operator, CandidateId, StepSize, Option<String>)> {
        if let Some((id, why)) = self.broken.pop_front() {
            search.tree.ask(id, StepSize::Small);
            return Some((Operator::Repair, id, StepSize::Small, Some(why)));
        }
        let (at, step) = search.place_for_model()?;
        self.asked += 1;
        let operator = if step == StepSize::Small { Operator::Small } else { Operator::Large };
        Some((operator, at, step, None))
    }

    fn failed(&mut self, why: String, is_final: bool) {
        self.failed += 1;
        if is_final || self.failed >= PATIENCE {
            tracing::warn!(why, "no model is asked any more");
            self.over = Some(why);
        }
    }
}

impl SearchRun<'_> {
    /// Whether a model may be asked now.
    pub(crate) fn may_ask(&self) -> bool {
        self.models.as_ref().is_some_and(ModelScheduler::may_ask)
    }

    /// The next question to a model, if one may be asked.
    pub(crate) fn question(&mut self, search: &mut SearchState<'_>) -> Option<(Arc<Operators>, CandidateRequest)> {
        let asking = self.models.as_mut().filter(|asking| asking.may_ask())?;
        let (operator, at, step, mistake) = asking.next(search)?;
        asking.in_flight += 1;
        let operators = asking.operators();
        let base = if step == StepSize::Small { at } else { SearchState::FIRST };
        let text = search.candidate(base).text.clone();
        let environment = self.bench.environment();
        let (entry, kernels) = (self.target.workloads[0].entry.clone(), self.target.kernels.clone());
        let needed = self.target.needed();
        let shown = |text: &str| operators.shown(text, &entry, &needed);
        let excerpt = shown(&text);
        let (pool, branch) = match step {
            StepSize::Large => (search.pooled(at, |text| shown(text).text), Vec::new()),
            StepSize::Small => (Vec::new(), self.branch(search, at)),
        };
        // As long as there is only the function that launches no kernel.
        let is_first = self.target.is_new() && step == StepSize::Large && pool.len() <= 1;
        let operator = if is_first { Operator::Write } else { operator };
        let goal = pool.first().map_or(self.best.unwrap_or(1.0), |fastest| fastest.speedup);
        let rules =
            environment.triton.parse().map(|triton| self.refusals.advice(&text, TritonTarget::of(triton), RULES));
        let known = |version: &String| !version.is_empty();
        let question = CandidateRequest {
            operator,
            node: at,
            step,
            base,
            excerpt,
            users: self.request.text.clone(),
            original: shown(&self.request.text).text,
            shared: self.target.shared.clone().into_iter().collect(),
            file_name: file_name(&self.request.file),
            workload: self
                .target
                .workloads
                .iter()
                .map(|call| format!("{} ({} times)", title(call), call.count.max(1)))
                .collect(),
            device: environment.device.clone(),
            triton: environment.triton.clone(),
            torch: Some(environment.torch.clone()).filter(known),
            branch,
            pool,
            facts: self.facts(search, base),
            skills: search.memory.sentences(),
            rules: rules.unwrap_or_default(),
            goal,
            mistake,
            text,
            kernels: kernels.clone(),
            entry: entry.clone(),
        };
        Some((operators, question))
    }

    /// The changes and results of the small steps on a branch, the oldest first.
    fn branch(&self, search: &SearchState<'_>, at: CandidateId) -> Vec<Attempt> {
        let steps = search.tree.branch(at).into_iter().filter(|&id| id != ROOT && id != SearchState::FIRST);
        let attempt =
            |id: CandidateId| Attempt { change: search.candidate(id).describe(), outcome: self.outcome_of(search, id) };
        steps.map(attempt).collect()
    }

    fn outcome_of(&self, search: &SearchState<'_>, id: CandidateId) -> String {
        let seen = self.report.candidates.iter().rev().find(|tried| tried.id == id);
        let evidence = seen.and_then(|tried| tried.reason.as_deref()).unwrap_or_default();
        let evidence: String = without_folders(evidence).chars().take(EVIDENCE).collect();
        match search.tree.node(id).result {
            Some(CandidateResult::Right(speedup)) => format!("right, {speedup:.2}× as fast as the original"),
            Some(CandidateResult::Wrong) => format!("wrong. {evidence}"),
            Some(CandidateResult::Uncompiled) => format!("it was not run. {evidence}"),
            None => "it is being judged".to_owned(),
        }
    }

    /// Facts about a candidate, in sentences.
    fn facts(&self, search: &SearchState<'_>, base: CandidateId) -> Vec<String> {
        let mut facts = search.memory.facts();
        if let Some(share) = self.floor_of_original {
            facts.push(format!("The memory takes at least {:.0} % of the original's time.", 100.0 * share));
        }
        if base != SearchState::FIRST {
            facts.push(format!("So far: {}.", search.candidate(base).describe()));
            facts.push(format!("Verdict: {}.", self.outcome_of(search, base).trim_end_matches('.')));
        }
        for (call, (milliseconds, ratio)) in
            self.target.workloads.iter().zip(search.calls.get(&base).into_iter().flatten())
        {
            facts.push(format!("{}: {milliseconds:.4} ms originally, {ratio:.2}× as fast now.", title(call)));
        }
        facts
    }

    /// Handles a model's answer. A candidate to be judged is judged next.
    pub(crate) fn take_reply(&mut self, search: &mut SearchState<'_>, answer: CandidateReply) {
        let CandidateReply { operator, node: at, step, base, model, replies, outcome: came } = answer;
        search.answered(at, step);
        let Some(asking) = &mut self.models else { return };
        asking.in_flight -= 1;
        let refusing: Vec<String> = match &came {
            ReplyOutcome::Candidate { objections, .. } => {
                objections.iter().filter(|one| one.refuses).map(|one| one.text.clone()).collect()
            }
            _ => Vec::new(),
        };
        let (outcome, said) = match &came {
            ReplyOutcome::Cancelled => {
                // Only the end of the search cancels a question.
                asking.over.get_or_insert_with(|| "it was stopped".to_owned());
                return;
            }
            // Code that is refused may be nested so deeply that its canonical form takes too long.
            ReplyOutcome::Candidate { text, said, .. }
                if refusing.is_empty() && !asking.seen.insert(skeleton(text)) =>
            {
                ("like an earlier one".to_owned(), said.clone())
            }
            ReplyOutcome::Candidate { said, .. } => ("a candidate".to_owned(), said.clone()),
            ReplyOutcome::Unusable(why) => (format!("unusable: {why}"), None),
            ReplyOutcome::Failed(why, _) => (format!("no reply: {why}"), None),
        };
        match &came {
            ReplyOutcome::Failed(why, is_final) => asking.failed(why.clone(), *is_final),
            _ => asking.failed = 0,
        }
        let proposal = match &came {
            ReplyOutcome::Candidate { text, .. } if outcome == "a candidate" => {
                search.take((at, step), base, text, (name(operator), &model))
            }
            _ => None,
        };
        asking.fruitless = if proposal.is_some() && refusing.is_empty() { 0 } else { asking.fruitless + replies };
        if asking.fruitless >= FRUITLESS && asking.over.is_none() {
            asking.over = Some(format!("its last {} replies gave no new candidate", asking.fruitless));
        }
        let (seconds, id) = (self.seconds(), proposal.as_ref().map(|proposal| proposal.id));
        let operator = name(operator).to_owned();
        self.record(&JournalEntry::Asked(ModelQuery {
            seconds,
            operator,
            model,
            replies,
            outcome,
            explanation: said,
            id,
        }));
        let Some(proposal) = proposal else { return };
        self.record(&JournalEntry::Made(search.made_record(proposal.id)));
        if refusing.is_empty() {
            return self.queued.push_back(proposal);
        }
        let evidence = refusing.join("; ");
        self.refused.entry(Reason::Screen).or_insert((0, evidence.clone())).0 += 1;
        self.screened += 1;
        self.record_judged(
            proposal.id,
            CandidateResult::Uncompiled,
            Some((Reason::Screen, evidence)),
            ResumedCandidate::default(),
        );
        self.since_improvement += 1;
        search.finish(proposal.id, CandidateResult::Uncompiled);
        search.tree.close(proposal.id);
    }

    /// Queues a candidate that does not compile for repair, if a model wrote it and repairs are left.
    pub(crate) fn queue_repair(&mut self, search: &SearchState<'_>, id: CandidateId, evidence: &str) {
        let Some(asking) = &mut self.models else { return };
        if search.is_by_model(id) && search.repairs(id) < asking.operators.settings.repairs {
            asking.broken.push_back((id, without_folders(evidence).chars().take(EVIDENCE).collect()));
        }
    }

    /// Writes the costs of the models since the run began or was continued to the journal.
    pub(crate) fn record_costs(&mut self) {
        let models = self.models.as_ref().map(|asking| asking.operators.costs()).unwrap_or_default();
        if !models.is_empty() {
            self.record(&JournalEntry::Costs { models });
        }
    }

    /// Cancels all questions.
    pub(crate) fn stop_asking(&self) {
        if let Some(asking) = &self.models {
            asking.operators.stop();
        }
    }

    /// The part of the summary about models: their costs, and why none is asked.
    pub(crate) fn of_models(&self) -> String {
        let mut text = String::new();
        if let Some(asking) = &self.models {
            let costs = asking.operators.costs();
            let dollars: f64 = costs.iter().map(|cost| cost.dollars).sum();
            let tokens: u64 = costs.iter().map(|cost| cost.input + cost.output).sum();
            let requests: u64 = costs.iter().map(|cost| cost.requests).sum();
            let money = if dollars > 0.0 { format!(", ${dollars:.4}") } else { String::new() };
            text += &format!(" {} was asked {requests} times ({tokens} tokens{money}).", asking.operators.names());
        }
        let why = self.models.as_ref().and_then(|asking| asking.over.as_ref()).or(self.unasked.as_ref());
        if let Some(why) = why {
            let end = if why.ends_with('.') { "" } else { "." };
            text += &format!(
                " The language model was not asked{}: {why}{end}",
                if self.models.is_some() { " further" } else { "" }
            );
        }
        text
    }
}
