//! Proof of patterns: a pattern becomes a rule when its failures fail again on the releases at hand, and it flags no
//! program that compiles.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use model::api::{TritonTarget, Version};
use rules::learned::{LearnedRule, Pattern, Releases, RuleOrigin, RuleState, TritonError};

use super::built_in_findings::{flagged_by, is_flagged};
use super::compiling_programs::{CompilingPrograms, ParsedPrograms};
use super::failure::{CompileFailure, ErrorSignature};
use super::learn::{INDEPENDENT, LearnedPattern};
use super::oracle::{Oracle, OracleClient, OracleVerdict};
use super::parsed_files::{Parsed, flags};
use super::program::KernelProgram;
use super::reduce::{ReducedPair, reduced};
use super::rule_assessment::program_of;
use super::rule_text::{name, sentence};

/// The number of failures of a rule that are compiled with each release.
const SHOWN: usize = 20;
/// The number of programs known to compile that are compiled with each further release.
const ELSEWHERE: usize = 600;
/// The number of failures of a rule that are checked with the built-in rules.
const COMPARED: usize = 24;

/// Removes patterns that add nothing. Of two patterns that flag the same failures, the one that flags more is kept.
#[must_use]
pub fn merged(
    oracle: &Oracle,
    learned: Vec<LearnedPattern>,
    failures: &[CompileFailure],
    target: TritonTarget,
) -> Vec<LearnedPattern> {
    let mut by_template: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, failure) in failures.iter().enumerate() {
        by_template.entry(ErrorSignature::of(&failure.failing).template).or_default().push(at);
    }
    let flagged: Vec<BTreeSet<usize>> = oracle.parallel(&learned, |_, one| {
        let Ok(pattern) = Pattern::compile(&one.query) else { return BTreeSet::new() };
        let alike = by_template.get(&one.signature.template).into_iter().flatten();
        let is_flagged = |at: &&usize| {
            let failure = &failures[**at];
            let has_words = one.words.iter().all(|word| failure.program.text.contains(word.as_str()));
            let parsed = Parsed::new(&failure.program.text);
            has_words && flags(&pattern, &parsed.context(target), failure.failing.span)
        };
        alike.filter(is_flagged).copied().collect()
    });
    let mut order: Vec<usize> = (0..learned.len()).collect();
    // Of two patterns that flag equally many failures, the one with the shorter query is the more general one.
    order.sort_by_key(|at| (std::cmp::Reverse(flagged[*at].len()), learned[*at].query.len(), *at));
    let mut covered: BTreeSet<usize> = BTreeSet::new();
    let mut kept: Vec<LearnedPattern> = Vec::new();
    for at in order {
        let new: Vec<usize> = flagged[at].difference(&covered).copied().collect();
        let origins: BTreeSet<&str> = new.iter().map(|at| failures[*at].origin.as_str()).collect();
        if origins.len() < INDEPENDENT {
            continue;
        }
        covered.extend(&flagged[at]);
        let mut one = learned[at].clone();
        one.failures = flagged[at].iter().copied().collect();
        let all: BTreeSet<&str> = one.failures.iter().map(|at| failures[*at].origin.as_str()).collect();
        one.independent = all.len();
        // Triton may report one mistake with different messages; the message with the most failures is enough.
        if kept.iter().all(|other| other.query != one.query) {
            kept.push(one);
        }
    }
    kept.sort_by(|a, b| (&a.signature.template, &a.query).cmp(&(&b.signature.template, &b.query)));
    kept
}

/// The evidence against which patterns are proven.
#[derive(Debug)]
pub struct ProofContext<'o> {
    /// The oracle of the release from which the failures come.
    pub oracle: &'o Oracle,
    /// Oracles of further releases.
    pub others: &'o [Oracle],
    /// Programs that compile, which no rule may flag.
    pub sound: CompilingPrograms<'o>,
    /// Further programs, compiled with each release; those that it accepts must not be flagged.
    pub programs: &'o [KernelProgram],
    /// Published files, which are taken to compile unless Triton says otherwise.
    pub published: &'o [Parsed],
    /// The date that becomes the first and last day on which the rule was seen.
    pub today: String,
    /// The origin that is written into the rules.
    pub origin: RuleOrigin,
}

/// The result of a proof.
#[derive(Debug)]
pub(super) enum ProofResult {
    /// The pattern is proven, and this is its rule.
    Rule(Box<LearnedRule>),
    /// The pattern is refuted; the text gives the reason.
    Refuted(String),
}

impl ProofContext<'_> {
    /// Proves each pattern. The rules get consecutive codes from `first` on, in the order of the patterns.
    #[must_use]
    pub(super) fn prove(
        &self,
        learned: &[LearnedPattern],
        failures: &[CompileFailure],
        first: u32,
    ) -> Vec<ProofResult> {
        let target = self.target(self.oracle);
        let published = CompilingPrograms { known: self.published, unasked: &[] };
        let mut proofs = self.oracle.share_with(
            learned,
            || (ParsedPrograms::new(self.sound, target), ParsedPrograms::new(published, target)),
            |(sound, published), asker, one| self.examined(one, failures, (sound, published), asker),
        );
        let mut names: BTreeMap<String, u32> = BTreeMap::new();
        let mut code = first;
        for proof in &mut proofs {
            let ProofResult::Rule(rule) = proof else { continue };
            rule.code = format!("S{code:03}");
            code += 1;
            let count = names.entry(rule.name.clone()).or_insert(0);
            *count += 1;
            if *count > 1 {
                rule.name = format!("{}-{count}", rule.name);
            }
        }
        self.dated(&mut proofs, learned, failures);
        proofs
    }

    /// The rules of the patterns that are proven.
    #[must_use]
    pub fn rules(&self, learned: &[LearnedPattern], failures: &[CompileFailure], first: u32) -> Vec<LearnedRule> {
        let proofs = self.prove(learned, failures, first).into_iter();
        proofs.filter_map(|proof| if let ProofResult::Rule(rule) = proof { Some(*rule) } else { None }).collect()
    }

    fn target(&self, oracle: &Oracle) -> TritonTarget {
        oracle.release().parse::<Version>().map_or_else(|_| TritonTarget::newest(), TritonTarget::of)
    }

    fn examined(
        &self,
        one: &LearnedPattern,
        failures: &[CompileFailure],
        (sound, published): (&ParsedPrograms<'_>, &ParsedPrograms<'_>),
        asker: &mut OracleClient<'_>,
    ) -> ProofResult {
        let Ok(pattern) = Pattern::compile(&one.query) else {
            return ProofResult::Refuted("its query is wrong".to_owned());
        };
        if let Some(text) = sound.first_hit(&pattern, &one.words, asker) {
            return ProofResult::Refuted(format!("it flags what compiles:\n{text}"));
        }
        let target = self.target(self.oracle);
        for (at, span) in published.all_hits(&pattern, &one.words) {
            let file = &self.published[at];
            let is_known =
                asker.refuses(file, span, &one.signature) || !asker.takes(file, span) && is_flagged(file, span, target);
            if !is_known {
                let line = file.source.lines().line_of(span.start) + 1;
                return ProofResult::Refuted(format!("it flags {}:{line}", file.name));
            }
        }
        let example = &failures[one.failures[0]];
        let keeps = |program: &KernelProgram| {
            let parsed = Parsed::new(&program.text);
            !pattern.matches(&parsed.context(target)).is_empty()
        };
        let example = super::delta_debugging::smallest(example, asker);
        let pair = reduced(asker, &example.program, example.passing.as_ref(), &one.signature, &keeps);
        let Some(good) = self.good(&pair, &pattern, target) else {
            return ProofResult::Refuted("nothing near its example compiles".to_owned());
        };
        ProofResult::Rule(Box::new(LearnedRule {
            code: String::new(),
            name: name(&one.shape, &one.signature.template),
            sentence: sentence(&one.shape, &failures_first_text(one, failures)),
            state: RuleState::Promoted,
            origin: self.origin.clone(),
            covered_by: covered_by(one, failures, target),
            failures: u32::try_from(one.independent).unwrap_or(u32::MAX),
            met: one.failures.len() as u64,
            first_seen: self.today.clone(),
            last_seen: self.today.clone(),
            error: TritonError { kind: one.signature.kind.clone(), message: one.signature.template.clone() },
            triton: Releases::default(),
            pattern: one.query.clone(),
            bad: pair.bad.text,
            good,
        }))
    }

    /// The passing program of a pair, if the pattern does not flag it.
    fn good(&self, pair: &ReducedPair, pattern: &Pattern, target: TritonTarget) -> Option<String> {
        let good = pair.good.as_ref()?;
        let parsed = Parsed::new(&good.text);
        pattern.matches(&parsed.context(target)).is_empty().then(|| good.text.clone())
    }

    /// Determines on which releases each rule holds: its failures fail there, and it flags no program that compiles
    /// there.
    fn dated(&self, proofs: &mut [ProofResult], learned: &[LearnedPattern], failures: &[CompileFailure]) {
        let mut results: Vec<BTreeMap<Version, bool>> = vec![BTreeMap::new(); learned.len()];
        for oracle in std::iter::once(self.oracle).chain(self.others) {
            let Ok(version) = oracle.release().parse::<Version>() else { continue };
            let target = TritonTarget::of(version);
            let stride = self.sound.known.len().div_ceil(ELSEWHERE).max(1);
            let some = self.sound.known.iter().step_by(stride);
            let mut programs: Vec<KernelProgram> = some.filter_map(|file| program_of(file.source.text())).collect();
            programs.extend(self.programs.iter().cloned());
            // On the release of the failures, this is already known.
            let is_other = oracle.release() != self.oracle.release();
            let accepted = if is_other { oracle.accepted(&programs) } else { Vec::new() };
            let unasked = if is_other { self.sound.unasked } else { &[] };
            let sound = CompilingPrograms { known: &accepted, unasked };
            let work: Vec<(&ProofResult, &LearnedPattern)> = proofs.iter().zip(learned).collect();
            let holds = oracle.share_with(
                &work,
                || ParsedPrograms::new(sound, target),
                |sound, asker, (proof, one)| {
                    let ProofResult::Rule(rule) = proof else { return None };
                    fails_there(rule, one, failures, (asker, sound, target))
                },
            );
            for (known, holds) in results.iter_mut().zip(holds) {
                known.extend(holds.map(|holds| (version, holds)));
            }
        }
        let own = self.oracle.release().parse::<Version>().ok();
        for (proof, known) in proofs.iter_mut().zip(results) {
            let ProofResult::Rule(rule) = proof else { continue };
            rule.triton = releases(&known, own);
            if rule.triton.since.is_none() {
                *proof = ProofResult::Refuted("its failures do not fail again".to_owned());
            }
        }
    }
}

fn failures_first_text(one: &LearnedPattern, failures: &[CompileFailure]) -> String {
    let first = one.shape.parts[0].spans[0];
    let fits = |at: &&usize| {
        let text = &failures[**at].program.text;
        one.shape.parts.iter().all(|part| text.get(part.spans[0].start..part.spans[0].end).is_some())
            && failures[**at].failing.span == Some(first)
    };
    let found = one.failures.iter().find(fits).or(one.failures.first());
    found.map(|at| failures[*at].program.text.clone()).unwrap_or_default()
}

/// Whether a rule holds on a release: it flags its example, the release rejects its failures, and the release accepts
/// nothing that it flags. `None` when that cannot be decided.
fn fails_there(
    rule: &LearnedRule,
    one: &LearnedPattern,
    failures: &[CompileFailure],
    (asker, sound, target): (&mut OracleClient<'_>, &ParsedPrograms<'_>, TritonTarget),
) -> Option<bool> {
    let pattern = Pattern::compile(&rule.pattern).ok()?;
    if !asker.verdict(&program_of(&rule.good)?).is_accepted() {
        return None;
    }
    let is_shown = !pattern.matches(&Parsed::new(&rule.bad).context(target)).is_empty();
    if !is_shown || !matches!(asker.verdict(&program_of(&rule.bad)?), OracleVerdict::Refused(_)) {
        return Some(false);
    }
    let stride = one.failures.len().div_ceil(SHOWN).max(1);
    let shown = one.failures.iter().step_by(stride).map(|at| &failures[*at].program);
    for program in shown.chain(&one.trials) {
        let parsed = Parsed::new(&program.text);
        let is_flagged = !pattern.matches(&parsed.context(target)).is_empty();
        if is_flagged && asker.verdict(program).is_accepted() {
            return Some(false);
        }
    }
    Some(sound.first_hit(&pattern, &one.words, asker).is_none())
}

/// The contiguous range of releases around `own` on which a rule holds.
fn releases(known: &BTreeMap<Version, bool>, own: Option<Version>) -> Releases {
    let mut releases = Releases { tried: known.keys().copied().collect(), ..Releases::default() };
    let all: Vec<(Version, bool)> = known.iter().map(|(version, holds)| (*version, *holds)).collect();
    let Some(at) = all.iter().position(|(version, holds)| Some(*version) == own && *holds) else { return releases };
    let first = all[..at].iter().rposition(|(_, holds)| !holds).map_or(0, |before| before + 1);
    let end = all[at..].iter().position(|(_, holds)| !holds).map_or(all.len(), |length| at + length);
    releases.since = Some(all[first].0);
    releases.until = (end < all.len()).then(|| all[end - 1].0);
    releases
}

/// The codes of built-in rules that flag the places of all examined failures of a rule; empty when one failure is
/// flagged by none.
fn covered_by(one: &LearnedPattern, failures: &[CompileFailure], target: TritonTarget) -> Vec<String> {
    let mut codes: BTreeSet<&str> = BTreeSet::new();
    let stride = one.failures.len().div_ceil(COMPARED).max(1);
    for at in one.failures.iter().step_by(stride) {
        let there = flagged_by(&failures[*at], target);
        if there.is_empty() {
            return Vec::new();
        }
        codes.extend(there);
    }
    codes.into_iter().map(str::to_owned).collect()
}

/// The Python files below some folders that contain Triton kernels, sorted by path.
#[must_use]
pub(super) fn published(folders: &[std::path::PathBuf]) -> Vec<Parsed> {
    let mut files: Vec<std::path::PathBuf> = Vec::new();
    for folder in folders {
        let walk = ignore::WalkBuilder::new(folder).standard_filters(false).build();
        let paths = walk.flatten().map(ignore::DirEntry::into_path);
        files.extend(paths.filter(|path| path.extension().is_some_and(|extension| extension == "py")));
    }
    files.sort();
    let parsed = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).ok()?;
        let is_candidate =
            text.contains("triton") && !model::analysis::dialect::names_other_compiler(&text) && !is_elsewhere(path);
        let parsed = is_candidate.then(|| Parsed::named(&text, path.display().to_string()))?;
        (!parsed.module.kernels.is_empty()).then_some(parsed)
    };
    files.iter().filter_map(parsed).collect()
}

/// Splits files into those whose comment gives a signature to compile them with, as programs, and the others.
#[must_use]
pub(super) fn programs(files: Vec<Parsed>) -> (Vec<KernelProgram>, Vec<Parsed>) {
    let (with, without): (Vec<Parsed>, Vec<Parsed>) =
        files.into_iter().partition(|file| file.source.text().contains("# warpsmith: signature"));
    (with.iter().filter_map(|file| program_of(file.source.text())).collect(), without)
}

/// Whether the path of a file says that it is written for another compiler.
fn is_elsewhere(path: &Path) -> bool {
    path.iter().rev().take(4).filter_map(|part| part.to_str()).any(model::analysis::dialect::names_other_compiler)
}
