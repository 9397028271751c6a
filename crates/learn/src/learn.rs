//! Learning of patterns: failures with the same signature are generalized, or split into smaller groups where no
//! pattern fits.

use std::collections::{BTreeMap, BTreeSet};

use model::api::TritonTarget;
use model::syntax::node_span;
use rules::RuleContext;
use rules::learned::{Pattern, Probe};

use super::compiling_programs::{CompilingPrograms, ParsedPrograms};
use super::failure::{CompileFailure, ErrorSignature};
use super::generalize::{DerivedPattern, FlaggedNode, Generalizer};
use super::oracle::{Oracle, OracleClient};
use super::parsed_files::{Parsed, flags, places};
use super::program::KernelProgram;
use super::synthesize::mixed;
use super::tree_pattern::NodeCondition;
use super::unify::STRONG;

/// The number of independent failures that a rule needs.
pub(super) const INDEPENDENT: usize = 3;
/// The largest number of failures of one signature that are examined.
const MEMBERS: usize = 240;
/// The number of programs known to compile that are checked at each step. The proof checks all of them.
const KNOWN: usize = 8000;
/// The largest number of programs built to disprove a pattern that are kept for the check on other releases.
const TRIALS: usize = 24;
/// The number of traits by which a group of failures can be split, see `Group::trait_of`.
const DIVISIONS: usize = 5;

/// A pattern and the failures from which it was learned.
#[derive(Clone, Debug)]
pub struct LearnedPattern {
    /// The signature that the failures share.
    pub signature: ErrorSignature,
    /// The pattern as a tree-sitter query.
    pub query: String,
    /// Words that every flagged text contains; a text without one of them need not be matched.
    pub(crate) words: Vec<String>,
    pub(crate) shape: super::tree_pattern::TreePattern,
    /// Programs that were built to disprove the pattern, but that it flags rightly: they fail to compile.
    pub(super) trials: Vec<KernelProgram>,
    /// The failures that the pattern flags, as indices into the list of failures.
    pub failures: Vec<usize>,
    /// The number of distinct origins among these failures.
    pub independent: usize,
}

/// Statements that contain other statements. The cause may be inside their body, which patterns do not describe.
const WITH_BODY: &[&str] = &["for_statement", "while_statement", "if_statement", "with_statement", "try_statement"];
/// Node kinds that occur in every kernel. A pattern of such a kind needs a condition, because the kind alone is never
/// the mistake.
const COMMON: &[&str] = &[
    "attribute",
    "call",
    "subscript",
    "identifier",
    "binary_operator",
    "comparison_operator",
    "boolean_operator",
    "unary_operator",
    "not_operator",
    "assignment",
    "augmented_assignment",
    "tuple",
    "return_statement",
    "expression_statement",
];

impl LearnedPattern {
    /// Whether the pattern alone shows the mistake. A pattern that does not is disproved only where many kernels that
    /// compile are known; with few of them it would survive by accident.
    #[must_use]
    pub(crate) fn stands_alone(&self) -> bool {
        let kind = self.shape.parts[0].kind.as_deref().unwrap_or_default();
        let mut conditions = self.shape.present().flat_map(|at| &self.shape.parts[at].conditions);
        let says_what = conditions.any(|condition| matches!(condition, NodeCondition::Holds { .. }));
        !WITH_BODY.contains(&kind) && (says_what || !COMMON.contains(&kind))
    }
}

/// The result of learning.
#[derive(Debug, Default)]
pub struct LearningResult {
    /// The learned patterns.
    pub learned: Vec<LearnedPattern>,
    /// Programs that were found to compile while patterns were tested (counter-examples).
    pub counter: Vec<KernelProgram>,
    /// Signatures that were not examined because the time was up.
    pub left: Vec<ErrorSignature>,
}

/// Learns patterns from failures. No pattern flags a program that is known to compile. Once `going` returns false, no
/// further signature is begun.
#[must_use]
pub fn learn(
    oracle: &Oracle,
    failures: &[CompileFailure],
    sound: CompilingPrograms<'_>,
    target: TritonTarget,
    seed: u64,
    going: &(dyn Fn() -> bool + Sync),
) -> LearningResult {
    let mut groups: BTreeMap<ErrorSignature, Vec<usize>> = BTreeMap::new();
    for (at, failure) in failures.iter().enumerate() {
        let signature = ErrorSignature::of(&failure.failing);
        if !signature.template.is_empty() {
            groups.entry(signature).or_default().push(at);
        }
    }
    let mut groups: Vec<(ErrorSignature, Vec<usize>)> = groups.into_iter().collect();
    groups.retain(|(_, members)| independent(failures, members) >= INDEPENDENT);
    // The largest groups come first, so that no worker is left with a large one at the end.
    groups.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
    let found = oracle.share_with(
        &groups,
        || ParsedPrograms::some(sound, target, KNOWN),
        |sound, asker, (signature, members)| {
            if !going() {
                return LearningResult { left: vec![signature.clone()], ..LearningResult::default() };
            }
            let members = varied(failures, members);
            let parsed: Vec<Parsed> = members.iter().map(|at| Parsed::new(&failures[*at].program.text)).collect();
            let contexts: Vec<RuleContext<'_>> = parsed.iter().map(|parsed| parsed.context(target)).collect();
            let failures: Vec<&CompileFailure> = members.iter().map(|at| &failures[*at]).collect();
            let cases = Cases { failures: &failures, parsed: &parsed, contexts: &contexts };
            let all: Vec<usize> = (0..members.len()).collect();
            let mut group = Group { cases, target, signature, seed, lessons: LearningResult::default() };
            group.learn(asker, sound, &all, 0);
            for one in &mut group.lessons.learned {
                one.failures.iter_mut().for_each(|at| *at = members[*at]);
            }
            group.lessons
        },
    );
    let mut lessons = LearningResult::default();
    for one in found {
        lessons.learned.extend(one.learned);
        lessons.counter.extend(one.counter);
        lessons.left.extend(one.left);
    }
    lessons
}

/// The number of distinct origins of some failures.
fn independent(failures: &[CompileFailure], members: &[usize]) -> usize {
    members.iter().map(|at| failures[*at].origin.as_str()).collect::<BTreeSet<_>>().len()
}

/// The failures of one signature with their parsed texts.
#[derive(Clone, Copy)]
struct Cases<'f> {
    failures: &'f [&'f CompileFailure],
    parsed: &'f [Parsed],
    contexts: &'f [RuleContext<'f>],
}

impl Cases<'_> {
    fn independent(&self, members: &[usize]) -> usize {
        members.iter().map(|at| self.failures[*at].origin.as_str()).collect::<BTreeSet<_>>().len()
    }
}

/// At most [`MEMBERS`] of some failures. Failures with a new message or a new text at the place come first.
fn varied(failures: &[CompileFailure], members: &[usize]) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let is_new = |at: &usize| {
        let failure = &failures[*at];
        let place = failure.failing.span.and_then(|span| failure.program.text.get(span.start..span.end));
        seen.insert((failure.failing.message.clone(), place.unwrap_or_default().to_owned()))
    };
    let (mut first, later): (Vec<usize>, Vec<usize>) = members.iter().copied().partition(is_new);
    first.extend(later);
    first.truncate(MEMBERS);
    first.sort_unstable();
    first
}

struct Group<'f> {
    cases: Cases<'f>,
    target: TritonTarget,
    signature: &'f ErrorSignature,
    seed: u64,
    lessons: LearningResult,
}

impl<'f> Group<'f> {
    /// Learns from some of the failures. Failures for which no pattern is found are split by the next trait that
    /// differs.
    fn learn(&mut self, asker: &mut OracleClient<'_>, sound: &ParsedPrograms<'_>, members: &[usize], division: usize) {
        if self.cases.independent(members) < INDEPENDENT {
            return;
        }
        for choice in 0..2 {
            let Some(learned) = self.attempt(asker, sound, members, choice) else { continue };
            let rest: Vec<usize> = members.iter().filter(|at| !learned.failures.contains(at)).copied().collect();
            self.lessons.learned.push(learned);
            if rest.len() < members.len() {
                self.learn(asker, sound, &rest, division);
            }
            return;
        }
        for division in division..DIVISIONS {
            let mut parts: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for &at in members {
                parts.entry(self.trait_of(at, division)).or_default().push(at);
            }
            if parts.len() > 1 {
                for part in parts.values() {
                    self.learn(asker, sound, part, division + 1);
                }
                return;
            }
        }
    }

    fn attempt(
        &mut self,
        asker: &mut OracleClient<'_>,
        sound: &ParsedPrograms<'_>,
        members: &[usize],
        choice: usize,
    ) -> Option<LearnedPattern> {
        let Cases { failures: _, parsed, contexts } = self.cases;
        let mut spots: Vec<FlaggedNode<'f>> = Vec::new();
        let mut seen = BTreeSet::new();
        let (mut first, mut later) = (Vec::new(), Vec::new());
        for &at in members {
            let failure = self.cases.failures[at];
            let Some(&place) = places(failure).get(choice) else { continue };
            let text = failure.program.text.get(place.start..place.end).unwrap_or_default();
            // Different texts come first: they show best which parts do not matter.
            let is_new = seen.insert(text.to_owned());
            (if is_new { &mut first } else { &mut later }).push(FlaggedNode {
                failure,
                parsed: &parsed[at],
                context: &contexts[at],
                place,
            });
        }
        spots.append(&mut first);
        spots.append(&mut later);
        if spots.is_empty() {
            return None;
        }
        let seed = mixed(self.seed, members[0] as u64);
        let counter = std::mem::take(&mut self.lessons.counter);
        let refused = Vec::new();
        let mut generalizer = Generalizer { asker, sound, target: self.target, counter, refused, seed };
        let found = generalizer.pattern(&spots);
        self.lessons.counter = generalizer.counter;
        let refused = generalizer.refused;
        self.learned(found?, members, refused)
    }

    fn learned(
        &self,
        found: DerivedPattern,
        members: &[usize],
        mut trials: Vec<KernelProgram>,
    ) -> Option<LearnedPattern> {
        let pattern = Pattern::compile(&found.query).ok()?;
        trials.sort();
        trials.dedup();
        trials.retain(|program| !pattern.matches(&Parsed::new(&program.text).context(self.target)).is_empty());
        let stride = trials.len().div_ceil(TRIALS).max(1);
        let trials: Vec<KernelProgram> = trials.into_iter().step_by(stride).collect();
        let is_flagged =
            |at: &&usize| flags(&pattern, &self.cases.contexts[**at], self.cases.failures[**at].failing.span);
        let flagged: Vec<usize> = members.iter().filter(is_flagged).copied().collect();
        let independent = self.cases.independent(&flagged);
        (independent >= INDEPENDENT).then(|| LearnedPattern {
            signature: self.signature.clone(),
            query: found.query,
            words: found.words,
            shape: found.shape,
            trials,
            failures: flagged,
            independent,
        })
    }

    /// The trait by which failures of one signature are split: 0 the node kind and the predicates that hold, 1 the
    /// function, operator or attribute, 2 the shape of the syntax tree, 3 the message, otherwise the text.
    fn trait_of(&self, at: usize, number: usize) -> String {
        let (failure, parsed) = (self.cases.failures[at], &self.cases.parsed[at]);
        let place = places(failure).into_iter().next();
        let node = place.and_then(|place| {
            let root = parsed.source.root_at(place.start)?;
            root.named_descendant_for_byte_range(place.start, place.end)
        });
        let Some(node) = node else { return failure.failing.message.clone() };
        let text = |node: tree_sitter::Node<'_>| parsed.source.slice(node_span(node)).to_owned();
        match number {
            0 => format!("{} {}", node.kind(), strong(&self.cases.contexts[at], node)),
            1 => {
                let head = ["function", "operator", "operators", "attribute"];
                let head = head.iter().find_map(|field| node.child_by_field_name(field));
                // Only the last name, because a file may import the language under any name.
                head.map_or_else(String::new, |head| {
                    let text = text(head);
                    text.rsplit('.').next().unwrap_or(&text).to_owned()
                })
            }
            2 => looks(node, 3),
            3 => failure.failing.message.clone(),
            _ => text(node),
        }
    }
}

/// Those predicates that are mistakes by themselves (`STRONG`) and hold of a node, separated by blanks.
fn strong(context: &RuleContext<'_>, node: tree_sitter::Node<'_>) -> String {
    let span = node_span(node);
    let Some(index) = context.module.kernels.iter().rposition(|kernel| kernel.def_span.contains(span)) else {
        return String::new();
    };
    let probe = Probe::new(context, index);
    let held: Vec<&str> = STRONG.iter().copied().filter(|predicate| probe.holds(predicate, &[node], &[])).collect();
    held.join(" ")
}

/// The kinds of a node and of its named descendants down to a depth, as an S-expression.
fn looks(node: tree_sitter::Node<'_>, depth: usize) -> String {
    if depth == 0 {
        return String::new();
    }
    let mut cursor = node.walk();
    let children: Vec<String> = node.named_children(&mut cursor).map(|child| looks(child, depth - 1)).collect();
    format!("({} {})", node.kind(), children.join(" "))
}
