//! The dialogue of a search with its models: when a model is asked, with which facts, and what happens with the
//! answer.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::secrets::without_folders;
use super::{Answer, Came, Operators, Question, file_name, name, skeleton};
use crate::journal::{Asked, Entry};
use crate::propose::Search;
use crate::resume::Seen;
use crate::run::Run;
use crate::tree::{Fate, Id, ROOT, Step};
use judge::{Reason, title};
pub(crate) use llm::prompt::{Attempt, Operator};
use model::api::Target as Triton;

/// Number of questions in a row without a reply after which no more are asked.
const PATIENCE: usize = 3;
/// Number of replies in a row without a new candidate after which no more are asked, because they only cost.
const FRUITLESS: u32 = 12;
/// Token limit of the learned rules in a prompt.
const RULES: usize = 800;
/// Characters of evidence that a prompt contains.
const EVIDENCE: usize = 1200;

/// The state of the dialogue with the models.
pub(crate) struct Asking {
    operators: Arc<Operators>,
    /// Number of unanswered questions.
    pub(crate) flying: usize,
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
    broken: VecDeque<(Id, String)>,
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

impl Asking {
    pub(crate) fn new(operators: Operators, original: &str) -> Self {
        let seen = HashSet::from([skeleton(original)]);
        let (broken, over, alone) = Default::default();
        let (flying, asked, skilled, failed, fruitless) = Default::default();
        Self { operators: Arc::new(operators), flying, asked, skilled, failed, fruitless, alone, broken, seen, over }
    }

    /// A guard that stops all questions to models when it is dropped, however a search ends.
    pub(crate) fn stops_at_end(&self) -> StopAtEnd {
        StopAtEnd(self.operators())
    }

    pub(crate) fn operators(&self) -> Arc<Operators> {
        Arc::clone(&self.operators)
    }

    /// Whether skills may propose candidates as well.
    pub(crate) fn lets_skills(&self) -> bool {
        self.operators.settings.share < 1.0 || self.over.is_some()
    }

    /// Notes a candidate by a skill, or that the skills have none left.
    pub(crate) fn skilled(&mut self, text: Option<&str>) {
        self.alone = text.is_none();
        if let Some(text) = text {
            self.skilled += 1;
            self.seen.insert(skeleton(text));
        }
    }

    /// Whether a question may be asked now.
    fn may_ask(&self) -> bool {
        let Self { operators, flying, asked, skilled, over, .. } = self;
        let settings = &operators.settings;
        let is_within_share = *asked as f64 <= settings.share * (asked + skilled) as f64;
        let is_due = !self.broken.is_empty() || self.alone || is_within_share;
        over.is_none() && *flying < settings.limits.parallel && is_due
    }

    /// The next operator and its place in the tree: a repair if one is due, else a step.
    fn next(&mut self, search: &mut Search<'_>) -> Option<(Operator, Id, Step, Option<String>)> {
        if let Some((id, why)) = self.broken.pop_front() {
            search.tree.ask(id, Step::Small);
            return Some((Operator::Repair, id, Step::Small, Some(why)));
        }
        let (at, step) = search.place_for_model()?;
        self.asked += 1;
        let operator = if step == Step::Small { Operator::Small } else { Operator::Large };
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

impl Run<'_> {
    /// Whether a model may be asked now.
    pub(crate) fn may_ask(&self) -> bool {
        self.asking.as_ref().is_some_and(Asking::may_ask)
    }

    /// The next question to a model, if one may be asked.
    pub(crate) fn question(&mut self, search: &mut Search<'_>) -> Option<(Arc<Operators>, Question)> {
        let asking = self.asking.as_mut().filter(|asking| asking.may_ask())?;
        let (operator, at, step, mistake) = asking.next(search)?;
        asking.flying += 1;
        let operators = asking.operators();
        let base = if step == Step::Small { at } else { Search::FIRST };
        let text = search.candidate(base).text.clone();
        let environment = self.bench.environment();
        let (entry, kernels) = (self.target.workloads[0].entry.clone(), self.target.kernels.clone());
        let needed = self.target.needed();
        let shown = |text: &str| operators.shown(text, &entry, &needed);
        let excerpt = shown(&text);
        let (pool, branch) = match step {
            Step::Large => (search.pooled(at, |text| shown(text).text), Vec::new()),
            Step::Small => (Vec::new(), self.branch(search, at)),
        };
        // As long as there is only the function that launches no kernel.
        let is_first = self.target.is_new() && step == Step::Large && pool.len() <= 1;
        let operator = if is_first { Operator::Write } else { operator };
        let goal = pool.first().map_or(self.best.unwrap_or(1.0), |fastest| fastest.speedup);
        let rules = environment.triton.parse().map(|triton| self.refusals.advice(&text, Triton::of(triton), RULES));
        let known = |version: &String| !version.is_empty();
        let question = Question {
            operator,
            at,
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
            skills: search.memory.told(),
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
    fn branch(&self, search: &Search<'_>, at: Id) -> Vec<Attempt> {
        let steps = search.tree.branch(at).into_iter().filter(|&id| id != ROOT && id != Search::FIRST);
        let attempt =
            |id: Id| Attempt { change: search.candidate(id).describe(), outcome: self.outcome_of(search, id) };
        steps.map(attempt).collect()
    }

    fn outcome_of(&self, search: &Search<'_>, id: Id) -> String {
        let seen = self.report.candidates.iter().rev().find(|tried| tried.id == id);
        let evidence = seen.and_then(|tried| tried.reason.as_deref()).unwrap_or_default();
        let evidence: String = without_folders(evidence).chars().take(EVIDENCE).collect();
        match search.tree.node(id).fate {
            Some(Fate::Right(speedup)) => format!("right, {speedup:.2}× as fast as the original"),
            Some(Fate::Wrong) => format!("wrong. {evidence}"),
            Some(Fate::Uncompiled) => format!("it was not run. {evidence}"),
            None => "it is being judged".to_owned(),
        }
    }

    /// Facts about a candidate, in sentences.
    fn facts(&self, search: &Search<'_>, base: Id) -> Vec<String> {
        let mut facts = search.memory.facts();
        if let Some(share) = self.floor_of_original {
            facts.push(format!("The memory takes at least {:.0} % of the original's time.", 100.0 * share));
        }
        if base != Search::FIRST {
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
    pub(crate) fn answered(&mut self, search: &mut Search<'_>, answer: Answer) {
        let Answer { operator, at, step, base, model, replies, came } = answer;
        search.answered(at, step);
        let Some(asking) = &mut self.asking else { return };
        asking.flying -= 1;
        let refusing: Vec<String> = match &came {
            Came::Candidate { objections, .. } => {
                objections.iter().filter(|one| one.refuses).map(|one| one.text.clone()).collect()
            }
            _ => Vec::new(),
        };
        let (outcome, said) = match &came {
            Came::Cancelled => {
                // Only the end of the search cancels a question.
                asking.over.get_or_insert_with(|| "it was stopped".to_owned());
                return;
            }
            // Code that is refused may be nested so deeply that its canonical form takes too long.
            Came::Candidate { text, said, .. } if refusing.is_empty() && !asking.seen.insert(skeleton(text)) => {
                ("like an earlier one".to_owned(), said.clone())
            }
            Came::Candidate { said, .. } => ("a candidate".to_owned(), said.clone()),
            Came::Unusable(why) => (format!("unusable: {why}"), None),
            Came::Failed(why, _) => (format!("no reply: {why}"), None),
        };
        match &came {
            Came::Failed(why, is_final) => asking.failed(why.clone(), *is_final),
            _ => asking.failed = 0,
        }
        let proposal = match &came {
            Came::Candidate { text, .. } if outcome == "a candidate" => {
                search.take((at, step), base, text, (name(operator), &model))
            }
            _ => None,
        };
        asking.fruitless = if proposal.is_some() && refusing.is_empty() { 0 } else { asking.fruitless + replies };
        if asking.fruitless >= FRUITLESS && asking.over.is_none() {
            asking.over = Some(format!("nothing came of its last {} replies", asking.fruitless));
        }
        let (seconds, id) = (self.seconds(), proposal.as_ref().map(|proposal| proposal.id));
        let operator = name(operator).to_owned();
        self.note(&Entry::Asked(Asked { seconds, operator, model, replies, outcome, said, id }));
        let Some(proposal) = proposal else { return };
        self.note(&Entry::Made(search.made(proposal.id)));
        if refusing.is_empty() {
            return self.again.push_back(proposal);
        }
        let evidence = refusing.join("; ");
        self.refused.entry(Reason::Screen).or_insert((0, evidence.clone())).0 += 1;
        self.screened += 1;
        self.came(proposal.id, Fate::Uncompiled, Some((Reason::Screen, evidence)), Seen::default());
        self.in_vain += 1;
        search.finish(proposal.id, Fate::Uncompiled);
        search.tree.close(proposal.id);
    }

    /// Queues a candidate that does not compile for repair, if a model wrote it and repairs are left.
    pub(crate) fn may_be_mended(&mut self, search: &Search<'_>, id: Id, evidence: &str) {
        let Some(asking) = &mut self.asking else { return };
        if search.is_by_model(id) && search.repairs(id) < asking.operators.settings.repairs {
            asking.broken.push_back((id, without_folders(evidence).chars().take(EVIDENCE).collect()));
        }
    }

    /// Writes the costs of the models since the run began or was continued to the journal.
    pub(crate) fn note_costs(&mut self) {
        let models = self.asking.as_ref().map(|asking| asking.operators.costs()).unwrap_or_default();
        if !models.is_empty() {
            self.note(&Entry::Costs { models });
        }
    }

    /// Cancels all questions.
    pub(crate) fn stop_asking(&self) {
        if let Some(asking) = &self.asking {
            asking.operators.stop();
        }
    }

    /// The part of the summary about models: their costs, and why none is asked.
    pub(crate) fn of_models(&self) -> String {
        let mut text = String::new();
        if let Some(asking) = &self.asking {
            let costs = asking.operators.costs();
            let dollars: f64 = costs.iter().map(|cost| cost.dollars).sum();
            let tokens: u64 = costs.iter().map(|cost| cost.input + cost.output).sum();
            let requests: u64 = costs.iter().map(|cost| cost.requests).sum();
            let money = if dollars > 0.0 { format!(", ${dollars:.4}") } else { String::new() };
            text += &format!(" {} was asked {requests} times ({tokens} tokens{money}).", asking.operators.names());
        }
        let why = self.asking.as_ref().and_then(|asking| asking.over.as_ref()).or(self.unasked.as_ref());
        if let Some(why) = why {
            let end = if why.ends_with('.') { "" } else { "." };
            text += &format!(
                " The language model was not asked{}: {why}{end}",
                if self.asking.is_some() { " further" } else { "" }
            );
        }
        text
    }
}
