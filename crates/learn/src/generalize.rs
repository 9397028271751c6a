//! Generalization of the shape of some failures to a pattern: a condition is dropped as long as the programs that the
//! wider pattern also flags still fail to compile.

use rustc_hash::FxHashSet as HashSet;

use base::rng::Rng;
use model::api::{Lookup, TritonTarget};
use model::syntax::Span;
use rules::RuleContext;
use rules::learned::{Pattern, Probe};

use super::argument_variants::argument_variants;
use super::compiling_programs::ParsedPrograms;
use super::counterexamples::{VariationBase, formed, shaken, variations};
use super::failure::{CompileFailure, ErrorSignature};
use super::leaf_variants::leaf_variants;
use super::oracle::{Failing, OracleClient, OracleVerdict};
use super::parsed_files::{Parsed, flags};
use super::program::KernelProgram;
use super::surrounding::{alone, around};
use super::tree_pattern::{Generalization, NodeCondition, TreePattern};
use super::unify::{FailingNode, STRONG, unify};
use super::value_variants::is_of_form;

/// The number of programs that are compiled before a step is accepted.
const TRIALS: usize = 10;
/// The number of those programs that must fail with the same error.
const ALIKE: usize = 2;
/// A word that was seen in at least this many forms may be any word.
const FORMS: usize = 3;
/// The number of random counter-example programs that are generated for each example.
const SHAKES: usize = 6;
/// The largest number of flagged programs that are compiled at once.
const MOST_SHOWN: usize = 24;
/// A condition is redundant if at least this many variations were generated and none of them violates it.
const REDUNDANT: usize = 6;
/// The number of times that generalization restarts with the counter-examples found so far.
const ROUNDS: usize = 4;
/// The largest number of failures whose common shape is computed.
const EXAMPLES: usize = 40;

/// The number of enclosing expressions, counted from the place that Triton names, at which a pattern may begin.
const AROUND: usize = 3;
/// The number of failures that are tested in isolation, without the code that uses their values.
const ALONE: usize = 3;

/// A failure with the place that the pattern has to flag.
#[derive(Clone, Debug)]
pub(crate) struct FlaggedNode<'f> {
    pub(crate) failure: &'f CompileFailure,
    pub(crate) parsed: &'f Parsed,
    pub(crate) context: &'f RuleContext<'f>,
    pub(crate) place: Span,
}

/// A pattern that was found.
#[derive(Clone, Debug)]
pub(crate) struct DerivedPattern {
    pub(crate) shape: TreePattern,
    pub(crate) query: String,
    /// Words that every flagged text contains.
    pub(crate) words: Vec<String>,
}

/// The state of one generalization: the compiler, the programs that are known to compile, and the counter-examples
/// found.
pub(crate) struct Generalizer<'g, 'a, 'o> {
    pub(crate) asker: &'g mut OracleClient<'o>,
    pub(crate) sound: &'g ParsedPrograms<'a>,
    pub(crate) target: TritonTarget,
    /// Programs that were found to compile on the way (counter-examples).
    pub(crate) counter: Vec<KernelProgram>,
    /// Programs that were generated on the way and that Triton rejects.
    pub(crate) refused: Vec<KernelProgram>,
    pub(crate) seed: u64,
}

impl Generalizer<'_, '_, '_> {
    /// The most general pattern that flags all of the spots and no program that is known to compile.
    pub(crate) fn pattern<'s>(&mut self, spots: &'s [FlaggedNode<'s>]) -> Option<DerivedPattern> {
        let spots = &spots[..spots.len().min(EXAMPLES)];
        let mut probes = Vec::new();
        for spot in spots {
            let holds = |kernel: &model::kernel::Kernel| {
                kernel.def_span.start <= spot.place.start && spot.place.end <= kernel.def_span.end
            };
            let index = spot.context.module.kernels.iter().rposition(holds)?;
            probes.push(Probe::new(spot.context, index));
        }
        let grounds: Vec<VariationBase<'_>> =
            spots.iter().map(|spot| VariationBase::new(&spot.failure.program, spot.parsed)).collect();
        let mut examples = Vec::new();
        for (probe, spot) in probes.iter().zip(spots) {
            let root = spot.parsed.source.root_at(spot.place.start)?;
            let node = root.named_descendant_for_byte_range(spot.place.start, spot.place.end)?;
            // Arguments say little without the function that is called.
            let node = if node.kind() == "argument_list" { node.parent()? } else { node };
            if !probe.is_compiled(node) {
                return None;
            }
            examples.push(FailingNode { text: spot.parsed.source.text(), probe, node });
        }
        for _ in 0..AROUND {
            let first = unify(&examples)?;
            if let Some(found) = self.unrefuted(&first, &grounds, spots) {
                return Some(found);
            }
            // A place that compiles in isolation is wrong only in its context, so the enclosing expression is tried.
            if !self.compiles_alone(&first, &grounds) {
                return None;
            }
            for example in &mut examples {
                example.node = around(example.node)?;
            }
        }
        None
    }

    /// The most general pattern below a shape for which no counter-example was found.
    fn unrefuted(
        &mut self,
        first: &TreePattern,
        grounds: &[VariationBase<'_>],
        spots: &[FlaggedNode<'_>],
    ) -> Option<DerivedPattern> {
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

    /// Whether the flagged expressions compile in isolation, without code that uses their values.
    fn compiles_alone(&mut self, shape: &TreePattern, grounds: &[VariationBase<'_>]) -> bool {
        let spans = &shape.parts[0].spans;
        let mut alone = grounds.iter().zip(spans).take(ALONE).flat_map(|(ground, span)| alone(ground, *span));
        alone.any(|program| self.asker.verdict(&program).is_accepted())
    }

    fn narrowed(
        &mut self,
        first: &TreePattern,
        grounds: &[VariationBase<'_>],
        spots: &[FlaggedNode<'_>],
    ) -> Option<DerivedPattern> {
        let pattern = Pattern::compile(&first.query()).ok()?;
        let matches_all = |pattern: &Pattern| spots.iter().all(|spot| flags(pattern, spot.context, Some(spot.place)));
        if !matches_all(&pattern) || !self.is_sound(&pattern, &words(first)) {
            return None;
        }
        // The check against known programs comes last, because it seldom rejects what the variations allowed. If it
        // does, the second pass runs it after each step.
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
                let found = DerivedPattern { query: shape.query(), words: words(&shape), shape };
                return says_enough(&found.shape, self.target).then_some(found);
            }
        }
        None
    }

    /// Whether a pattern flags no program that is known to compile.
    fn is_sound(&mut self, pattern: &Pattern, words: &[String]) -> bool {
        let flags_one = |program: &KernelProgram| {
            let parsed = Parsed::new(&program.text);
            !pattern.matches(&parsed.context(self.target)).is_empty()
        };
        !self.counter.iter().any(flags_one) && self.sound.first_hit(pattern, words, self.asker).is_none()
    }

    /// Whether the programs that a step newly flags fail to compile as well.
    fn is_harmless(
        &mut self,
        shape: &TreePattern,
        step: Generalization,
        (narrow, wide): (&Pattern, &Pattern),
        (grounds, spots): (&[VariationBase<'_>], &[FlaggedNode<'_>]),
    ) -> bool {
        if says_nothing(shape, step) {
            return true;
        }
        if is_needed(shape, step) {
            return false;
        }
        let mut trials: Vec<(KernelProgram, usize)> = Vec::new();
        let mut tested = 0;
        for (number, ground) in grounds.iter().enumerate().take(2) {
            let variations = variations(shape, step, ground, number);
            tested += variations.len();
            let new = variations.into_iter().filter(|program| {
                let parsed = Parsed::new(&program.text);
                let context = parsed.context(self.target);
                !wide.matches(&context).is_empty() && narrow.matches(&context).is_empty()
            });
            // The variations of the first example leave room for those of the second.
            let room = (TRIALS * (number + 1) / 2).saturating_sub(trials.len());
            trials.extend(new.take(room).map(|program| (program, number)));
        }
        // A condition that no variation violates is implied by the others.
        if trials.is_empty()
            && tested >= REDUNDANT
            && matches!(step, Generalization::Condition(..) | Generalization::Open(_))
        {
            return true;
        }
        let (mut alike, mut other) = (0, 0);
        for (program, number) in trials {
            match self.asker.verdict(&program) {
                OracleVerdict::Accepted => {
                    self.counter.push(program);
                    return false;
                }
                OracleVerdict::Refused(failing) if is_of_form(&program.text, failing.span) => {}
                OracleVerdict::Refused(failing) => {
                    let is_alike = is_alike(&failing, &spots[number].failure.failing);
                    *(if is_alike { &mut alike } else { &mut other }) += 1;
                    self.refused.push(program);
                }
                OracleVerdict::Unknown => {}
            }
        }
        // A program that fails for another reason is outside the subject of the pattern.
        alike >= ALIKE && other == 0 || has_many_forms(shape, step)
    }

    fn look_for_counter_examples(&mut self, found: &DerivedPattern, grounds: &[VariationBase<'_>], round: usize) {
        let Ok(pattern) = Pattern::compile(&found.query) else { return };
        let mut chance = Rng::new(self.seed ^ (round as u64 + 1));
        for (number, ground) in grounds.iter().enumerate().take(ALONE) {
            let mut programs = shaken(&found.shape, ground, number, SHAKES, &mut chance);
            let place = found.shape.parts[0].spans.get(number).copied();
            programs.extend(place.into_iter().flat_map(|place| alone(ground, place)));
            self.show(&pattern, programs);
            self.show(&pattern, place.map(|place| leaf_variants(ground, place)).unwrap_or_default());
            self.show(&pattern, argument_variants(ground));
            // Also varies what no condition can express, such as the element type of a pointer.
            self.show(&pattern, formed(&found.shape, ground, number));
        }
    }

    /// Compiles those programs that a pattern flags, and sorts them into counter-examples and rejected programs.
    fn show(&mut self, pattern: &Pattern, programs: Vec<KernelProgram>) {
        let mut asked = 0;
        for program in programs {
            let parsed = Parsed::new(&program.text);
            if asked == MOST_SHOWN || pattern.matches(&parsed.context(self.target)).is_empty() {
                continue;
            }
            asked += 1;
            match self.asker.verdict(&program) {
                OracleVerdict::Accepted => self.counter.push(program),
                OracleVerdict::Refused(failing) if is_of_form(&program.text, failing.span) => {}
                OracleVerdict::Refused(_) => self.refused.push(program),
                OracleVerdict::Unknown => {}
            }
        }
    }
}

/// A key that identifies a step even after other conditions were removed.
fn key(shape: &TreePattern, step: Generalization) -> String {
    match step {
        Generalization::Condition(at, number) => format!("{at} {:?}", shape.parts[at].conditions.get(number)),
        other => format!("{other:?}"),
    }
}

/// Whether removing a part changes nothing, because any node already matches it.
fn says_nothing(shape: &TreePattern, step: Generalization) -> bool {
    let Generalization::Remove(at) = step else { return false };
    let part = &shape.parts[at];
    let is_open = part.kind.is_none() && part.conditions.is_empty() && part.children.is_empty();
    is_open && part.field.is_some() && !shape.parts.iter().any(|part| about(part, at))
}

/// Whether a pattern would be too vague without a condition: which function is called or, for a compile-time value that
/// may be anything, of which kind it is.
fn is_needed(shape: &TreePattern, step: Generalization) -> bool {
    let Generalization::Condition(at, number) = step else {
        // The number of elements of a tuple matters.
        let is_tuple = |at: usize| matches!(shape.parts[at].kind.as_deref(), Some("tuple" | "list" | "pattern_list"));
        return matches!(step, Generalization::Unclose(at) if is_tuple(at));
    };
    let conditions = &shape.parts[at].conditions;
    let has_constexpr = || conditions.iter().any(|one| is_predicate(one, "constexpr"));
    match conditions.get(number) {
        Some(condition) if is_predicate(condition, "api") => !has_many_forms(shape, step),
        Some(condition) if is_predicate(condition, "kind") => has_constexpr(),
        // A rule about one number says nothing about other numbers.
        Some(NodeCondition::Text(words)) => {
            let is_number = |word: &String| word.starts_with(|c: char| c.is_ascii_digit() || c == '.');
            words.len() < FORMS && words.iter().all(is_number)
        }
        _ => false,
    }
}

fn is_predicate(condition: &NodeCondition, name: &str) -> bool {
    matches!(condition, NodeCondition::Holds { predicate, .. } if *predicate == name)
}

fn is_kind(condition: &NodeCondition, name: &str) -> bool {
    matches!(condition, NodeCondition::Holds { predicate: "kind", words, .. } if words.iter().all(|word| word == name))
}

fn about(part: &super::tree_pattern::PatternNode, at: usize) -> bool {
    let is_about = |condition: &NodeCondition| matches!(condition, NodeCondition::Holds { other: Some(other), .. } if *other == at);
    !part.is_gone && part.conditions.iter().any(is_about)
}

/// Whether a word was seen in many forms while another condition says what is wrong with all of them.
fn has_many_forms(shape: &TreePattern, step: Generalization) -> bool {
    let Generalization::Condition(at, number) = step else { return false };
    let conditions = &shape.parts[at].conditions;
    let is_telling = |condition: &NodeCondition| matches!(condition, NodeCondition::Holds { predicate, .. } if STRONG.contains(predicate) || *predicate == "unknown-keyword");
    let count = match conditions.get(number) {
        Some(NodeCondition::Text(words)) => words.len(),
        Some(NodeCondition::Holds { predicate: "api", words, .. }) => words.len(),
        _ => 0,
    };
    count >= FORMS && conditions.iter().any(is_telling)
}

/// Whether two errors have the same signature. A missing attribute must also have the same name, because without it the
/// message says next to nothing.
fn is_alike(one: &Failing, other: &Failing) -> bool {
    let last = |failing: &Failing| failing.message.rsplit('\'').nth(1).map(str::to_owned);
    let signature = ErrorSignature::of(one);
    signature == ErrorSignature::of(other) && (!signature.template.contains("no attribute") || last(one) == last(other))
}

/// Whether a shape is specific enough to be a rule: it must not flag every call of a function that Triton offers or
/// every use of a name.
fn says_enough(shape: &TreePattern, target: TritonTarget) -> bool {
    let root = &shape.parts[0];
    let conditions: Vec<&NodeCondition> = shape.present().flat_map(|at| &shape.parts[at].conditions).collect();
    let is_offered = |path: &String| {
        let full = path.replacen("tl.", "triton.language.", 1);
        matches!(target.lookup(&full), Lookup::Found(_))
    };
    let is_of_anything = |at: usize| {
        let conditions = &shape.parts[at].conditions;
        let has = |name| conditions.iter().any(|one| is_predicate(one, name));
        has("constexpr") && !has("kind") && !conditions.iter().any(|one| matches!(one, NodeCondition::Text(_)))
    };
    if shape.present().any(is_of_anything) {
        return false;
    }
    match root.kind.as_deref() {
        // Triton supports some arguments of `with`, and named tuples have attributes.
        Some("with_statement") => conditions.iter().any(|condition| is_telling(condition)),
        Some("attribute") if conditions.iter().all(|condition| is_kind(condition, "tuple")) => false,
        Some("call") => {
            let is_api = |condition: &&NodeCondition| is_predicate(condition, "api");
            let is_by_itself = conditions.iter().any(|condition| is_telling(condition));
            let mut others = conditions.iter().filter(|condition| !is_api(condition));
            let are_offered = conditions.iter().filter(|condition| is_api(condition)).any(
                |condition| matches!(condition, NodeCondition::Holds { words, .. } if words.iter().any(is_offered)),
            );
            is_by_itself || conditions.iter().any(is_api) && (others.next().is_some() || !are_offered)
        }
        Some("identifier") => !conditions.iter().all(|condition| matches!(condition, NodeCondition::Text(_))),
        _ => true,
    }
}

/// Whether a condition by itself says what is wrong.
fn is_telling(condition: &NodeCondition) -> bool {
    matches!(condition, NodeCondition::Holds { predicate, .. } if STRONG.contains(predicate) || *predicate == "unknown-keyword")
}

/// Words that occur in every text that the shape flags.
fn words(shape: &TreePattern) -> Vec<String> {
    let mut words = Vec::new();
    for at in shape.present() {
        for condition in &shape.parts[at].conditions {
            match condition {
                NodeCondition::Text(texts) if texts.len() == 1 => words.push(texts[0].clone()),
                NodeCondition::Holds { predicate: "api", words: paths, .. } if paths.len() == 1 => {
                    words.extend(paths[0].rsplit('.').next().map(str::to_owned));
                }
                _ => {}
            }
        }
    }
    words
}
