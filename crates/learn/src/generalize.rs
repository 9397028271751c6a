//! From the shape of some failures to a pattern: what is not needed is left out, as long as programs that would then be flagged,
//! too, go on failing.

use rustc_hash::FxHashSet as HashSet;

use base::rng::Chance;
use model::api::{Lookup, Target};
use model::syntax::Span;
use rules::Context;
use rules::learned::{Pattern, Probe};

use super::around::{alone, around};
use super::cases::{Parsed, flags};
use super::failure::{Failure, Signature};
use super::forms::is_of_form;
use super::oracle::{Asker, Failing, Verdict};
use super::program::Program;
use super::shape::{Condition, Shape, Step};
use super::sound::Witnesses;
use super::unify::{Example, STRONG, unify};
use super::vary::{Ground, formed, shaken, variations};

/// So many programs are asked before a step is taken.
const TRIALS: usize = 10;
/// So many of them must fail in the same way.
const ALIKE: usize = 2;
/// A word that was seen in so many forms may be any.
const FORMS: usize = 3;
/// So many programs are looked for that are flagged and compile, for each example.
const SHAKES: usize = 6;
/// So many programs that a pattern flags are asked at once.
const MOST_SHOWN: usize = 24;
/// What so many other texts do not violate is redundant.
const REDUNDANT: usize = 6;
/// So often it is begun anew with what was found.
const ROUNDS: usize = 4;
/// So many failures are looked at for their common shape.
const EXAMPLES: usize = 40;

/// So far around what Triton names a pattern may begin.
const AROUND: usize = 3;
/// So many failures are looked at by themselves, without what uses their values.
const ALONE: usize = 3;

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
    pub(crate) sound: &'g Witnesses<'a>,
    pub(crate) target: Target,
    /// Programs that compile and that were found on the way.
    pub(crate) counter: Vec<Program>,
    /// Programs that were made on the way and do not.
    pub(crate) refused: Vec<Program>,
    pub(crate) seed: u64,
}

impl Generalizer<'_, '_, '_> {
    /// The most general pattern that holds for all of the spots and for nothing that compiles, as far as is known.
    pub(crate) fn pattern<'s>(&mut self, spots: &'s [Spot<'s>]) -> Option<Found> {
        let spots = &spots[..spots.len().min(EXAMPLES)];
        let mut probes = Vec::new();
        for spot in spots {
            let holds = |kernel: &model::kernel::Kernel| {
                kernel.def_span.start <= spot.place.start && spot.place.end <= kernel.def_span.end
            };
            let index = spot.context.module.kernels.iter().rposition(holds)?;
            probes.push(Probe::new(spot.context, index));
        }
        let grounds: Vec<Ground<'_>> =
            spots.iter().map(|spot| Ground::new(&spot.failure.program, spot.parsed)).collect();
        let mut examples = Vec::new();
        for (probe, spot) in probes.iter().zip(spots) {
            let root = spot.parsed.source.root_at(spot.place.start)?;
            let node = root.named_descendant_for_byte_range(spot.place.start, spot.place.end)?;
            // Arguments say little without what is called.
            let node = if node.kind() == "argument_list" { node.parent()? } else { node };
            if !probe.is_compiled(node) {
                return None;
            }
            examples.push(Example { text: spot.parsed.source.text(), probe, node });
        }
        for _ in 0..AROUND {
            let first = unify(&examples)?;
            if let Some(found) = self.unrefuted(&first, &grounds, spots) {
                return Some(found);
            }
            // What compiles by itself is wrong for what is around it.
            if !self.compiles_alone(&first, &grounds) {
                return None;
            }
            for example in &mut examples {
                example.node = around(example.node)?;
            }
        }
        None
    }

    /// The most general pattern below a shape that no program was found for which it flags and which compiles.
    fn unrefuted(&mut self, first: &Shape, grounds: &[Ground<'_>], spots: &[Spot<'_>]) -> Option<Found> {
        for round in 0..ROUNDS {
            let found = self.narrowed(first, grounds, spots)?;
            let before = self.counter.len();
            self.look_for_counter_examples(&found, grounds, round);
            if self.counter.len() == before {
                return Some(found);
            }
        }
        None
    }

    /// Whether what is flagged compiles where nothing uses it.
    fn compiles_alone(&mut self, shape: &Shape, grounds: &[Ground<'_>]) -> bool {
        let spans = &shape.parts[0].spans;
        let mut alone = grounds.iter().zip(spans).take(ALONE).flat_map(|(ground, span)| alone(ground, *span));
        alone.any(|program| self.asker.verdict(&program).is_accepted())
    }

    fn narrowed(&mut self, first: &Shape, grounds: &[Ground<'_>], spots: &[Spot<'_>]) -> Option<Found> {
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
                    && self.is_harmless(&shape, step, (&pattern, &wider), (grounds, spots))
                    && (!each || self.is_sound(&wider, &words(&next)))
                {
                    (shape, pattern) = (next, wider);
                }
            }
            if each || self.is_sound(&pattern, &words(&shape)) {
                let found = Found { query: shape.query(), words: words(&shape), shape };
                return says_enough(&found.shape, self.target).then_some(found);
            }
        }
        None
    }

    /// Whether a pattern flags nothing that compiles.
    fn is_sound(&mut self, pattern: &Pattern, words: &[String]) -> bool {
        let flags_one = |program: &Program| {
            let parsed = Parsed::new(&program.text);
            !pattern.matches(&parsed.context(self.target)).is_empty()
        };
        !self.counter.iter().any(flags_one) && self.sound.first_hit(pattern, words, self.asker).is_none()
    }

    /// Whether what is flagged after a step, and was not before, fails as well.
    fn is_harmless(
        &mut self,
        shape: &Shape,
        step: Step,
        (narrow, wide): (&Pattern, &Pattern),
        (grounds, spots): (&[Ground<'_>], &[Spot<'_>]),
    ) -> bool {
        if says_nothing(shape, step) {
            return true;
        }
        if is_needed(shape, step) {
            return false;
        }
        let mut trials: Vec<(Program, usize)> = Vec::new();
        let mut tested = 0;
        for (number, ground) in grounds.iter().enumerate().take(2) {
            let variations = variations(shape, step, ground, number);
            tested += variations.len();
            let new = variations.into_iter().filter(|program| {
                let parsed = Parsed::new(&program.text);
                let context = parsed.context(self.target);
                !wide.matches(&context).is_empty() && narrow.matches(&context).is_empty()
            });
            // Those of the first example leave room for others.
            let room = (TRIALS * (number + 1) / 2).saturating_sub(trials.len());
            trials.extend(new.take(room).map(|program| (program, number)));
        }
        // What nothing violates is implied by the rest.
        if trials.is_empty() && tested >= REDUNDANT && matches!(step, Step::Condition(..) | Step::Open(_)) {
            return true;
        }
        let (mut alike, mut other) = (0, 0);
        for (program, number) in trials {
            match self.asker.verdict(&program) {
                Verdict::Accepted => {
                    self.counter.push(program);
                    return false;
                }
                Verdict::Refused(failing) if is_of_form(&program.text, failing.span) => {}
                Verdict::Refused(failing) => {
                    let is_alike = is_alike(&failing, &spots[number].failure.failing);
                    *(if is_alike { &mut alike } else { &mut other }) += 1;
                    self.refused.push(program);
                }
                Verdict::Unknown => {}
            }
        }
        // What fails for another reason is nothing that the pattern is about.
        alike >= ALIKE && other == 0 || has_many_forms(shape, step)
    }

    fn look_for_counter_examples(&mut self, found: &Found, grounds: &[Ground<'_>], round: usize) {
        let Ok(pattern) = Pattern::compile(&found.query) else { return };
        let mut chance = Chance::new(self.seed ^ (round as u64 + 1));
        for (number, ground) in grounds.iter().enumerate().take(ALONE) {
            let mut programs = shaken(&found.shape, ground, number, SHAKES, &mut chance);
            if let Some(span) = found.shape.parts[0].spans.get(number) {
                programs.extend(alone(ground, *span));
            }
            self.show(&pattern, programs);
            // What no condition can say, such as what a pointer points to, is varied, too.
            self.show(&pattern, formed(&found.shape, ground, number));
        }
    }

    /// Asks what compiles of those programs that a pattern flags.
    fn show(&mut self, pattern: &Pattern, programs: Vec<Program>) {
        let mut asked = 0;
        for program in programs {
            let parsed = Parsed::new(&program.text);
            if asked == MOST_SHOWN || pattern.matches(&parsed.context(self.target)).is_empty() {
                continue;
            }
            asked += 1;
            match self.asker.verdict(&program) {
                Verdict::Accepted => self.counter.push(program),
                Verdict::Refused(failing) if is_of_form(&program.text, failing.span) => {}
                Verdict::Refused(_) => self.refused.push(program),
                Verdict::Unknown => {}
            }
        }
    }
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

/// Whether a pattern would say too little without a condition: what function is called, or, of a compile-time value that may be anything, of
/// what kind it is.
fn is_needed(shape: &Shape, step: Step) -> bool {
    let Step::Condition(at, number) = step else {
        // How many there are in a tuple matters.
        let is_tuple = |at: usize| matches!(shape.parts[at].kind.as_deref(), Some("tuple" | "list" | "pattern_list"));
        return matches!(step, Step::Unclose(at) if is_tuple(at));
    };
    let conditions = &shape.parts[at].conditions;
    let has_constexpr = || conditions.iter().any(|one| is_predicate(one, "constexpr"));
    match conditions.get(number) {
        Some(condition) if is_predicate(condition, "api") => !has_many_forms(shape, step),
        Some(condition) if is_predicate(condition, "kind") => has_constexpr(),
        // One number says nothing about others.
        Some(Condition::Text(words)) => {
            let is_number = |word: &String| word.starts_with(|c: char| c.is_ascii_digit() || c == '.');
            words.len() < FORMS && words.iter().all(is_number)
        }
        _ => false,
    }
}

fn is_predicate(condition: &Condition, name: &str) -> bool {
    matches!(condition, Condition::Holds { predicate, .. } if *predicate == name)
}

fn is_kind(condition: &Condition, name: &str) -> bool {
    matches!(condition, Condition::Holds { predicate: "kind", words, .. } if words.iter().all(|word| word == name))
}

fn about(part: &super::shape::Part, at: usize) -> bool {
    let is_about =
        |condition: &Condition| matches!(condition, Condition::Holds { other: Some(other), .. } if *other == at);
    !part.is_gone && part.conditions.iter().any(is_about)
}

/// Whether a word was seen in many forms, and something else says what is wrong with all of them.
fn has_many_forms(shape: &Shape, step: Step) -> bool {
    let Step::Condition(at, number) = step else { return false };
    let conditions = &shape.parts[at].conditions;
    let is_telling = |condition: &Condition| matches!(condition, Condition::Holds { predicate, .. } if STRONG.contains(predicate) || *predicate == "unknown-keyword");
    let count = match conditions.get(number) {
        Some(Condition::Text(words)) => words.len(),
        Some(Condition::Holds { predicate: "api", words, .. }) => words.len(),
        _ => 0,
    };
    count >= FORMS && conditions.iter().any(is_telling)
}

/// Whether two errors are of one kind. A missing attribute must be the same one: without its name, that says next to nothing.
fn is_alike(one: &Failing, other: &Failing) -> bool {
    let last = |failing: &Failing| failing.message.rsplit('\'').nth(1).map(str::to_owned);
    let signature = Signature::of(one);
    signature == Signature::of(other) && (!signature.template.contains("no attribute") || last(one) == last(other))
}

/// Whether a shape says what is wrong: not each call of what Triton offers, and not each use of a name.
fn says_enough(shape: &Shape, target: Target) -> bool {
    let root = &shape.parts[0];
    let conditions: Vec<&Condition> = shape.present().flat_map(|at| &shape.parts[at].conditions).collect();
    let is_offered = |path: &String| {
        let full = path.replacen("tl.", "triton.language.", 1);
        matches!(target.lookup(&full), Lookup::Found(_))
    };
    let is_of_anything = |at: usize| {
        let conditions = &shape.parts[at].conditions;
        let has = |name| conditions.iter().any(|one| is_predicate(one, name));
        has("constexpr") && !has("kind") && !conditions.iter().any(|one| matches!(one, Condition::Text(_)))
    };
    if shape.present().any(is_of_anything) {
        return false;
    }
    match root.kind.as_deref() {
        // Triton knows some of what `with` may be given, and named tuples have attributes.
        Some("with_statement") => conditions.iter().any(|condition| is_telling(condition)),
        Some("attribute") if conditions.iter().all(|condition| is_kind(condition, "tuple")) => false,
        Some("call") => {
            let is_api = |condition: &&Condition| is_predicate(condition, "api");
            let is_by_itself = conditions.iter().any(|condition| is_telling(condition));
            let mut others = conditions.iter().filter(|condition| !is_api(condition));
            let are_offered = conditions
                .iter()
                .filter(|condition| is_api(condition))
                .any(|condition| matches!(condition, Condition::Holds { words, .. } if words.iter().any(is_offered)));
            is_by_itself || conditions.iter().any(is_api) && (others.next().is_some() || !are_offered)
        }
        Some("identifier") => !conditions.iter().all(|condition| matches!(condition, Condition::Text(_))),
        _ => true,
    }
}

/// Whether a condition says by itself what is wrong.
fn is_telling(condition: &Condition) -> bool {
    matches!(condition, Condition::Holds { predicate, .. } if STRONG.contains(predicate) || *predicate == "unknown-keyword")
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
