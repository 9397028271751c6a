//! Rules from failures: those of one signature are compared, generalised, and divided where they have nothing in common.

use std::collections::{BTreeMap, BTreeSet};

use model::api::Target;
use model::syntax::node_span;
use rules::Context;
use rules::learned::{Pattern, Probe};

use super::cases::{Parsed, flags, places};
use super::failure::{Failure, Signature};
use super::generalize::{Found, Generalizer, Spot};
use super::oracle::{Asker, Oracle};
use super::program::Program;
use super::shape::Condition;
use super::sound::{Sound, Witnesses};
use super::synthesize::mixed;
use super::unify::STRONG;

/// So many independent failures make a rule.
pub(super) const INDEPENDENT: usize = 3;
/// Of one signature not more failures are looked at.
const MEMBERS: usize = 240;
/// So many programs that compile are asked at each step; all of them are when it comes to the proof.
const KNOWN: usize = 8000;
/// So many programs that were built to disprove a pattern are shown to other releases.
const TRIALS: usize = 24;
/// So often a group is divided.
const DIVISIONS: usize = 5;

/// A pattern, and the failures that it was learned from.
#[derive(Clone, Debug)]
pub struct Learned {
    /// What the failures have in common.
    pub signature: Signature,
    /// The pattern.
    pub query: String,
    /// Words without which no text is flagged.
    pub(crate) words: Vec<String>,
    pub(crate) shape: super::shape::Shape,
    /// Programs that were built to disprove it, are flagged, and fail.
    pub(super) trials: Vec<Program>,
    /// The failures that it flags, by number.
    pub failures: Vec<usize>,
    /// How many of them are independent.
    pub independent: usize,
}

/// What holds other statements: the cause may be among them, where no pattern looks.
const WITH_BODY: &[&str] = &["for_statement", "while_statement", "if_statement", "with_statement", "try_statement"];
/// What stands in every kernel, and is wrong for something else than its kind.
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

impl Learned {
    /// Whether it says what is wrong. Of many kernels that compile some would disprove it else; where there are few, nothing does.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        let kind = self.shape.parts[0].kind.as_deref().unwrap_or_default();
        let mut conditions = self.shape.present().flat_map(|at| &self.shape.parts[at].conditions);
        let says_what = conditions.any(|condition| matches!(condition, Condition::Holds { .. }));
        !WITH_BODY.contains(&kind) && (says_what || !COMMON.contains(&kind))
    }
}

/// What learning found.
#[derive(Debug, Default)]
pub struct Lessons {
    /// The patterns.
    pub learned: Vec<Learned>,
    /// Programs that compile and that were found on the way.
    pub counter: Vec<Program>,
    /// What was not begun, since the time was over.
    pub left: Vec<Signature>,
}

/// Learns from failures; nothing that it flags is among what compiles. No further signature is begun once `going` says no.
#[must_use]
pub fn learn(
    oracle: &Oracle,
    failures: &[Failure],
    sound: Sound<'_>,
    target: Target,
    seed: u64,
    going: &(dyn Fn() -> bool + Sync),
) -> Lessons {
    let mut groups: BTreeMap<Signature, Vec<usize>> = BTreeMap::new();
    for (at, failure) in failures.iter().enumerate() {
        let signature = Signature::of(&failure.failing);
        if !signature.template.is_empty() {
            groups.entry(signature).or_default().push(at);
        }
    }
    let mut groups: Vec<(Signature, Vec<usize>)> = groups.into_iter().collect();
    groups.retain(|(_, members)| independent(failures, members) >= INDEPENDENT);
    // The large ones first: nobody waits for one that was begun last.
    groups.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
    let found = oracle.share_with(
        &groups,
        || Witnesses::some(sound, target, KNOWN),
        |sound, asker, (signature, members)| {
            if !going() {
                return Lessons { left: vec![signature.clone()], ..Lessons::default() };
            }
            let members = varied(failures, members);
            let parsed: Vec<Parsed> = members.iter().map(|at| Parsed::new(&failures[*at].program.text)).collect();
            let contexts: Vec<Context<'_>> = parsed.iter().map(|parsed| parsed.context(target)).collect();
            let failures: Vec<&Failure> = members.iter().map(|at| &failures[*at]).collect();
            let cases = Cases { failures: &failures, parsed: &parsed, contexts: &contexts };
            let all: Vec<usize> = (0..members.len()).collect();
            let mut group = Group { cases, target, signature, seed, lessons: Lessons::default() };
            group.learn(asker, sound, &all, 0);
            for one in &mut group.lessons.learned {
                one.failures.iter_mut().for_each(|at| *at = members[*at]);
            }
            group.lessons
        },
    );
    let mut lessons = Lessons::default();
    for one in found {
        lessons.learned.extend(one.learned);
        lessons.counter.extend(one.counter);
        lessons.left.extend(one.left);
    }
    lessons
}

/// How many of some failures are independent of each other.
fn independent(failures: &[Failure], members: &[usize]) -> usize {
    members.iter().map(|at| failures[*at].origin.as_str()).collect::<BTreeSet<_>>().len()
}

/// The failures of a group, parsed.
#[derive(Clone, Copy)]
struct Cases<'f> {
    failures: &'f [&'f Failure],
    parsed: &'f [Parsed],
    contexts: &'f [Context<'f>],
}

impl Cases<'_> {
    fn independent(&self, members: &[usize]) -> usize {
        members.iter().map(|at| self.failures[*at].origin.as_str()).collect::<BTreeSet<_>>().len()
    }
}

/// Not more than [`MEMBERS`] of some failures: different places first.
fn varied(failures: &[Failure], members: &[usize]) -> Vec<usize> {
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
    target: Target,
    signature: &'f Signature,
    seed: u64,
    lessons: Lessons,
}

impl<'f> Group<'f> {
    /// Learns from some of the failures; what no pattern holds for is divided by what tells them apart.
    fn learn(&mut self, asker: &mut Asker<'_>, sound: &Witnesses<'_>, members: &[usize], division: usize) {
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
        asker: &mut Asker<'_>,
        sound: &Witnesses<'_>,
        members: &[usize],
        choice: usize,
    ) -> Option<Learned> {
        let Cases { failures: _, parsed, contexts } = self.cases;
        let mut spots: Vec<Spot<'f>> = Vec::new();
        let mut seen = BTreeSet::new();
        let (mut first, mut later) = (Vec::new(), Vec::new());
        for &at in members {
            let failure = self.cases.failures[at];
            let Some(&place) = places(failure).get(choice) else { continue };
            let text = failure.program.text.get(place.start..place.end).unwrap_or_default();
            // Different ones first: they tell most of what does not matter.
            let is_new = seen.insert(text.to_owned());
            (if is_new { &mut first } else { &mut later }).push(Spot {
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

    fn learned(&self, found: Found, members: &[usize], mut trials: Vec<Program>) -> Option<Learned> {
        let pattern = Pattern::compile(&found.query).ok()?;
        trials.sort();
        trials.dedup();
        trials.retain(|program| !pattern.matches(&Parsed::new(&program.text).context(self.target)).is_empty());
        let stride = trials.len().div_ceil(TRIALS).max(1);
        let trials: Vec<Program> = trials.into_iter().step_by(stride).collect();
        let is_flagged =
            |at: &&usize| flags(&pattern, &self.cases.contexts[**at], self.cases.failures[**at].failing.span);
        let flagged: Vec<usize> = members.iter().filter(is_flagged).copied().collect();
        let independent = self.cases.independent(&flagged);
        (independent >= INDEPENDENT).then(|| Learned {
            signature: self.signature.clone(),
            query: found.query,
            words: found.words,
            shape: found.shape,
            trials,
            failures: flagged,
            independent,
        })
    }

    /// What failures of one signature are told apart by: the kind of what is flagged, what is called, how that looks, the message, the text.
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
                // Under whatever name the language is known.
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

/// What of that which is wrong by itself holds of a node.
fn strong(context: &Context<'_>, node: tree_sitter::Node<'_>) -> String {
    let span = node_span(node);
    let Some(index) = context.module.kernels.iter().rposition(|kernel| kernel.def_span.contains(span)) else {
        return String::new();
    };
    let probe = Probe::new(context, index);
    let held: Vec<&str> = STRONG.iter().copied().filter(|predicate| probe.holds(predicate, &[node], &[])).collect();
    held.join(" ")
}

/// The kinds of a node and of what is in it.
fn looks(node: tree_sitter::Node<'_>, depth: usize) -> String {
    if depth == 0 {
        return String::new();
    }
    let mut cursor = node.walk();
    let children: Vec<String> = node.named_children(&mut cursor).map(|child| looks(child, depth - 1)).collect();
    format!("({} {})", node.kind(), children.join(" "))
}
