//! From the shape of some failures to a pattern: what is not needed is left out, as long as programs that would then be flagged,
//! too, go on failing.

use rustc_hash::FxHashSet as HashSet;

use super::cases::{Parsed, Sound, flags};
use super::failure::{Failure, Signature};
use super::oracle::{Asker, Verdict};
use super::program::Program;
use super::shape::{Condition, Shape, Step};
use super::unify::{Example, unify};
use super::vary::{Ground, shaken, variations};
use crate::api::Target;
use crate::chance::Chance;
use crate::rules::Context;
use crate::rules::learned::{Pattern, Probe};
use crate::syntax::Span;

/// So many programs are asked before a step is taken.
const TRIALS: usize = 6;
/// So many of them must fail in the same way.
const ALIKE: usize = 2;
/// A word that was seen in so many forms may be any.
const FORMS: usize = 3;
/// So many programs are looked for that are flagged and compile, for each example.
const SHAKES: usize = 6;
/// What so many other texts do not violate is redundant.
const REDUNDANT: usize = 6;
/// So often it is begun anew with what was found.
const ROUNDS: usize = 4;
/// So many failures are looked at for their common shape.
const EXAMPLES: usize = 40;

/// A failure with the place that a pattern is to flag.
#[derive(Clone, Debug)]
pub(crate) struct Spot<'f> {
    pub(crate) failure: &'f Failure,
    pub(crate) parsed: &'f Parsed,
    pub(crate) context: &'f Context<'f>,
    pub(crate) place: Span,
}

/// A pattern that was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) shape: Shape,
    pub(crate) query: String,
    /// Words without which no text is flagged.
    pub(crate) words: Vec<String>,
}

/// One who generalises, with what it knows to compile.
pub(crate) struct Generalizer<'g, 'a, 'o> {
    pub(crate) asker: &'g mut Asker<'o>,
    pub(crate) sound: &'g Sound<'a>,
    pub(crate) target: Target,
    /// Programs that compile and that were found on the way.
    pub(crate) counter: Vec<Program>,
    pub(crate) seed: u64,
}

impl Generalizer<'_, '_, '_> {
    /// The most general pattern that holds for all of the spots and for nothing that compiles, as far as is known.
    pub(crate) fn pattern<'s>(&mut self, spots: &'s [Spot<'s>]) -> Option<Found> {
        let spots = &spots[..spots.len().min(EXAMPLES)];
        let mut probes = Vec::new();
        for spot in spots {
            let holds = |kernel: &crate::kernel::Kernel| {
                kernel.def_span.start <= spot.place.start && spot.place.end <= kernel.def_span.end
            };
            let index = spot.context.module.kernels.iter().rposition(holds)?;
            probes.push(Probe::new(spot.context, index));
        }
        let mut examples = Vec::new();
        for (probe, spot) in probes.iter().zip(spots) {
            let root = spot.parsed.source.root_at(spot.place.start)?;
            let node = root.named_descendant_for_byte_range(spot.place.start, spot.place.end)?;
            if !probe.is_compiled(node) {
                return None;
            }
            examples.push(Example { text: spot.parsed.source.text(), probe, node });
        }
        let first = unify(&examples)?;
        let ground = |spot: &'s Spot<'s>| Ground { program: &spot.failure.program, parsed: spot.parsed };
        let grounds: Vec<Ground<'_>> = spots.iter().map(ground).collect();
        let signature = Signature::of(&spots.first()?.failure.failing);
        for round in 0..ROUNDS {
            let found = self.narrowed(&first, &grounds, spots, &signature)?;
            let before = self.counter.len();
            self.look_for_counter_examples(&found, &grounds, round);
            if self.counter.len() == before {
                return Some(found);
            }
        }
        None
    }

    fn narrowed(
        &mut self,
        first: &Shape,
        grounds: &[Ground<'_>],
        spots: &[Spot<'_>],
        signature: &Signature,
    ) -> Option<Found> {
        let pattern = Pattern::compile(&first.query()).ok()?;
        let matches_all = |pattern: &Pattern| spots.iter().all(|spot| flags(pattern, spot.context, Some(spot.place)));
        if !matches_all(&pattern) || !self.is_sound(&pattern, &words(first)) {
            return None;
        }
        // What compiles is asked at the end: it seldom objects to what went well with the variations.
        for each in [false, true] {
            let (mut shape, mut pattern) = (first.clone(), Pattern::compile(&first.query()).ok()?);
            let mut tried: HashSet<String> = HashSet::default();
            while let Some(step) = shape.steps().into_iter().find(|step| !tried.contains(&key(&shape, *step))) {
                tried.insert(key(&shape, step));
                let Some(next) = shape.after(step) else { continue };
                let Ok(wider) = Pattern::compile(&next.query()) else { continue };
                if matches_all(&wider)
                    && self.is_harmless(&shape, step, (&pattern, &wider), grounds, signature)
                    && (!each || self.is_sound(&wider, &words(&next)))
                {
                    (shape, pattern) = (next, wider);
                }
            }
            if each || self.is_sound(&pattern, &words(&shape)) {
                return Some(Found { query: shape.query(), words: words(&shape), shape });
            }
        }
        None
    }

    /// Whether a pattern flags nothing that compiles.
    fn is_sound(&self, pattern: &Pattern, words: &[String]) -> bool {
        let flags_one = |program: &Program| {
            let parsed = Parsed::new(&program.text);
            !pattern.matches(&parsed.context(self.target)).is_empty()
        };
        !self.counter.iter().any(flags_one) && self.sound.first_hit(pattern, words).is_none()
    }

    /// Whether what is flagged after a step, and was not before, fails as well.
    fn is_harmless(
        &mut self,
        shape: &Shape,
        step: Step,
        (narrow, wide): (&Pattern, &Pattern),
        grounds: &[Ground<'_>],
        signature: &Signature,
    ) -> bool {
        if says_nothing(shape, step) {
            return true;
        }
        let mut trials: Vec<Program> = Vec::new();
        let mut tested = 0;
        for (number, ground) in grounds.iter().enumerate().take(2) {
            let variations = spread(variations(shape, step, ground, number));
            tested += variations.len();
            let new = variations.into_iter().filter(|program| {
                let parsed = Parsed::new(&program.text);
                let context = parsed.context(self.target);
                !wide.matches(&context).is_empty() && narrow.matches(&context).is_empty()
            });
            // Those of the first example leave room for others.
            let room = (TRIALS * (number + 1) / 2).saturating_sub(trials.len());
            trials.extend(new.take(room));
        }
        // What nothing violates is implied by the rest.
        if trials.is_empty() && tested >= REDUNDANT && matches!(step, Step::Condition(..) | Step::Open(_)) {
            return true;
        }
        let mut alike = 0;
        for program in trials {
            match self.asker.verdict(&program) {
                Verdict::Accepted => {
                    self.counter.push(program);
                    return false;
                }
                Verdict::Refused(failing) => alike += usize::from(Signature::of(&failing) == *signature),
                Verdict::Unknown => {}
            }
        }
        alike >= ALIKE || has_many_forms(shape, step)
    }

    fn look_for_counter_examples(&mut self, found: &Found, grounds: &[Ground<'_>], round: usize) {
        let Ok(pattern) = Pattern::compile(&found.query) else { return };
        let mut chance = Chance::new(self.seed ^ (round as u64 + 1));
        for (number, ground) in grounds.iter().enumerate().take(3) {
            for program in shaken(&found.shape, ground, number, SHAKES, &mut chance) {
                let parsed = Parsed::new(&program.text);
                let is_flagged = !pattern.matches(&parsed.context(self.target)).is_empty();
                if is_flagged && self.asker.verdict(&program).is_accepted() {
                    self.counter.push(program);
                }
            }
        }
    }
}

/// At most so many texts are looked at for one step and example.
const LOOKS: usize = 8;

/// Some of the texts, in an order in which neighbours, which are alike, are apart.
fn spread(mut all: Vec<Program>) -> Vec<Program> {
    let stride = all.len().div_ceil(LOOKS).max(1);
    let mut order: Vec<(usize, Program)> =
        all.drain(..).enumerate().map(|(at, program)| (at % stride, program)).collect();
    order.sort_by_key(|(phase, _)| *phase);
    order.into_iter().map(|(_, program)| program).take(LOOKS).collect()
}

/// What tells a step from others, whatever was left out meanwhile.
fn key(shape: &Shape, step: Step) -> String {
    match step {
        Step::Condition(at, number) => format!("{at} {:?}", shape.parts[at].conditions.get(number)),
        other => format!("{other:?}"),
    }
}

/// Whether the part is anything already.
fn says_nothing(shape: &Shape, step: Step) -> bool {
    let Step::Remove(at) = step else { return false };
    let part = &shape.parts[at];
    let is_open = part.kind.is_none() && part.conditions.is_empty() && part.children.is_empty();
    is_open && part.field.is_some() && !shape.parts.iter().any(|part| about(part, at))
}

fn about(part: &super::shape::Part, at: usize) -> bool {
    let is_about =
        |condition: &Condition| matches!(condition, Condition::Holds { other: Some(other), .. } if *other == at);
    !part.is_gone && part.conditions.iter().any(is_about)
}

fn has_many_forms(shape: &Shape, step: Step) -> bool {
    let Step::Condition(at, number) = step else { return false };
    match shape.parts[at].conditions.get(number) {
        Some(Condition::Text(words)) => words.len() >= FORMS,
        Some(Condition::Holds { predicate: "api", words, .. }) => words.len() >= FORMS,
        _ => false,
    }
}

/// Words that stand in every text that the shape flags.
fn words(shape: &Shape) -> Vec<String> {
    let mut words = Vec::new();
    for at in shape.present() {
        for condition in &shape.parts[at].conditions {
            match condition {
                Condition::Text(texts) if texts.len() == 1 => words.push(texts[0].clone()),
                Condition::Holds { predicate: "api", words: paths, .. } if paths.len() == 1 => {
                    words.extend(paths[0].rsplit('.').next().map(str::to_owned));
                }
                _ => {}
            }
        }
    }
    words
}
