//! The variants in which a program runs a kernel, one for each configuration of an autotuner, for complete
//! compilations.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::analysis::launches::{LaunchVariant, settings};
use model::analysis::resources::LaunchCertainty;
use model::analysis::tuning::Tuner;
use model::kernel::{Kernel, Module};

use super::configs::{self, Setup};
use super::constant::Constant;
use super::launch_evidence::{self, LaunchEvidence};
use super::{Given, Givens, Guess, Launching, guess, launch_parameters};

/// The greatest number of variants that are compiled.
const MAX: usize = 64;
/// The same limit for guessed parameters, whose results are worth less.
const MAX_GUESSED: usize = 16;
/// The launch options that affect compilation, in the order of the arguments of `triton.Config`.
pub(super) const OPTIONS: [&str; 4] = ["num_warps", "num_stages", "num_ctas", "maxnreg"];

/// A variant in which a program runs a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// The types and values of its parameters.
    pub guess: Guess,
    /// Options of the back end that differ from the defaults.
    pub options: BTreeMap<String, i64>,
    /// The index of the `triton.Config` call that creates it, if any.
    pub config: Option<usize>,
    /// The settings that distinguish it from other variants.
    pub setting: String,
    /// How much of it was guessed.
    pub certainty: LaunchCertainty,
}

/// The variants in which a program runs a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variants {
    /// The variants that are compiled.
    pub all: Vec<Variant>,
    /// The number of further variants that exist or may exist.
    pub left_out: usize,
}

/// The parameters before configurations and launches.
struct Base<'a> {
    certainty: super::GuessOrigin,
    known: Givens,
    /// The recorded launch options, if any.
    options: Option<&'a [(String, i64)]>,
}

impl<'a> Base<'a> {
    fn of(said: LaunchEvidence<'a>) -> Self {
        let options = said.recorded.map(|recorded| recorded.options.as_slice());
        Self { certainty: said.certainty, known: said.known, options }
    }
}

/// The variants of a kernel from written and recorded facts about its launches; empty without any. `stages` is the
/// default of `num_stages` in `triton.Config`.
#[must_use]
pub(crate) fn certain_variants(module: &Module, kernel: &Kernel, text: &str, stages: i64) -> Variants {
    let launch = Launching::of(kernel);
    let said = if kernel.has_error { Vec::new() } else { launch_evidence::said(module, &launch, text) };
    of_bases(module, &launch, said.into_iter().map(Base::of).collect(), stages)
}

/// The variants of a kernel whose other parameters are those of a guess.
#[must_use]
pub(crate) fn guessed_variants(module: &Module, kernel: &Kernel, guess: &Guess, stages: i64) -> Variants {
    let launch = Launching::of(kernel);
    let typed = |(name, word): (&String, &String)| {
        (name.clone(), Given::Type(word.clone(), guess.aligned.iter().any(|aligned| aligned == name)))
    };
    let types = guess.signature.iter().map(typed);
    let values = guess.constexprs.iter().map(|(name, value)| (name.clone(), Given::Constant(value.clone())));
    let base = Base { certainty: super::GuessOrigin::Guessed, known: types.chain(values).collect(), options: None };
    of_bases(module, &launch, vec![base], stages)
}

fn of_bases(module: &Module, launch: &Launching<'_>, bases: Vec<Base<'_>>, stages: i64) -> Variants {
    let kernel = launch.kernel;
    let tuner = Tuner::of(module, kernel);
    let setups = tuner.as_ref().map(|tuner| configs::of(module, kernel, tuner, stages));
    let mut found = Variants::default();
    let mut distinct: Vec<Base<'_>> = Vec::new();
    for mut base in bases {
        if let Some(setups) = &setups {
            let set: BTreeSet<&String> = setups.all.iter().flat_map(|setup| setup.meta.keys()).collect();
            base.known.retain(|name, _| !set.contains(name));
        }
        // For an autotuned kernel, only the parameters that the autotuner does not set count.
        let is_like =
            |other: &Base<'_>| other.known == base.known && (setups.is_some() || other.options == base.options);
        if !distinct.iter().any(is_like) {
            distinct.push(base);
        }
    }
    let shown = differing(&distinct);
    for base in &distinct {
        let label = label(&base.known, &shown);
        match &setups {
            Some(setups) if !setups.all.is_empty() => {
                for setup in &setups.all {
                    found.all.extend(with_setup(module, launch, base, setup, &label));
                }
            }
            _ => found.all.extend(as_launched(module, launch, base, &label)),
        }
    }
    let is_guessed = distinct.iter().all(|base| base.certainty == super::GuessOrigin::Guessed);
    let most = if is_guessed { MAX_GUESSED } else { MAX };
    let unread = setups.map_or(0, |setups| setups.unread);
    found.left_out = unread + found.all.len().saturating_sub(most);
    found.all.truncate(most);
    found
}

/// A base with one of the autotuner's configurations.
fn with_setup(module: &Module, launch: &Launching<'_>, base: &Base<'_>, setup: &Setup, label: &str) -> Option<Variant> {
    let meta = setup.meta.iter().map(|(name, value)| (name.clone(), Given::Constant(value.clone())));
    let known = base.known.iter().map(|(name, given)| (name.clone(), given.clone())).chain(meta).collect();
    let setting = joined(label, &setup.label);
    // A hook may change the block shape of a descriptor.
    let is_descriptor = |given: &Given| matches!(given, Given::Type(word, _) if word.starts_with("tensordesc"));
    let is_sure = setup.is_sure && !(setup.has_hook && base.known.values().any(is_descriptor));
    let sure = if is_sure { LaunchCertainty::Certain } else { LaunchCertainty::Possible };
    variant(module, launch, base, known, setup.options.clone(), setting, sure, Some(setup.config))
}

/// A base with the options of the launches.
fn as_launched(module: &Module, launch: &Launching<'_>, base: &Base<'_>, label: &str) -> Vec<Variant> {
    let kernel = launch.kernel;
    let is_tuned = kernel.autotune.is_some();
    if let Some(options) = base.options.filter(|_| !is_tuned) {
        let seen = options.iter().filter(|(name, _)| OPTIONS.contains(&name.as_str())).cloned().collect();
        return variant(
            module,
            launch,
            base,
            base.known.clone(),
            seen,
            label.to_owned(),
            LaunchCertainty::Certain,
            None,
        )
        .into_iter()
        .collect();
    }
    let of_launches = settings(module, kernel);
    let all: Vec<Option<BTreeMap<String, i64>>> = of_launches.iter().map(options).collect();
    let are_alike = all.windows(2).all(|pair| pair[0] == pair[1]);
    let mut found: Vec<Variant> = Vec::new();
    for (setting, options) in of_launches.iter().zip(&all).filter(|(setting, _)| !contradicts(setting, base)) {
        let Some(options) = options else { continue };
        let is_sure = !is_tuned && (are_alike || agrees(setting, base, kernel));
        let sure = if is_sure { LaunchCertainty::Certain } else { LaunchCertainty::Possible };
        let label = joined(label, &if are_alike { String::new() } else { listed(options) });
        let new = variant(module, launch, base, base.known.clone(), options.clone(), label, sure, None);
        let is_new = |new: &Variant| found.iter().all(|known| known.options != new.options);
        found.extend(new.filter(is_new));
    }
    if found.is_empty() {
        // No launch is known, so the default options are possible.
        let usual = BTreeMap::new();
        found.extend(variant(
            module,
            launch,
            base,
            base.known.clone(),
            usual,
            label.to_owned(),
            LaunchCertainty::Possible,
            None,
        ));
    }
    found
}

#[expect(clippy::too_many_arguments, reason = "each of them is a part of what is made")]
fn variant(
    module: &Module,
    launch: &Launching<'_>,
    base: &Base<'_>,
    mut known: Givens,
    options: BTreeMap<String, i64>,
    setting: String,
    sure: LaunchCertainty,
    config: Option<usize>,
) -> Option<Variant> {
    let kernel = launch.kernel;
    launch_parameters::fill_defaults(module, launch, &mut known);
    let is_guessed = base.certainty == super::GuessOrigin::Guessed;
    if known.len() != kernel.params.len() {
        return None;
    }
    let is_plain = kernel.plain && kernel.heuristics.as_ref().is_some_and(Vec::is_empty);
    let certainty = match sure {
        _ if is_guessed => LaunchCertainty::Guessed,
        // Decorators around a kernel may set options, too; recorded launches include these.
        LaunchCertainty::Certain if !is_plain && (config.is_some() || base.options.is_none()) => {
            LaunchCertainty::Possible
        }
        sure => sure,
    };
    Some(Variant { guess: guess(base.certainty, known), options, config, setting, certainty })
}

/// The options that a launch certainly has; `None` when one of them is not known.
fn options(setting: &LaunchVariant<'_>) -> Option<BTreeMap<String, i64>> {
    const NONE: i128 = i128::MIN;
    let mut found = BTreeMap::new();
    for name in OPTIONS {
        let (value, _) = setting.option(name, NONE)?;
        if value != NONE {
            found.insert(name.to_owned(), i64::try_from(value).ok()?);
        }
    }
    Some(found)
}

/// The integer that a base gives a parameter.
fn integer(base: &Base<'_>, name: &str) -> Option<i128> {
    match base.known.get(name)? {
        Given::Constant(Constant::Int(value)) => Some(i128::from(*value)),
        _ => None,
    }
}

/// Whether a launch passes another value for one of the parameters.
fn contradicts(setting: &LaunchVariant<'_>, base: &Base<'_>) -> bool {
    base.known.keys().any(|name| match (setting.value(name), integer(base, name)) {
        (Some((passed, _)), Some(known)) => passed != known,
        _ => false,
    })
}

/// Whether a launch certainly passes the same values for all compile-time parameters.
fn agrees(setting: &LaunchVariant<'_>, base: &Base<'_>, kernel: &Kernel) -> bool {
    kernel.params.iter().filter(|param| param.constexpr).all(|param| {
        let passed = setting.value(&param.name).map(|(value, _)| value);
        passed.is_some() && passed == integer(base, &param.name)
    })
}

/// The parameters in which bases differ.
fn differing(bases: &[Base<'_>]) -> Vec<String> {
    let Some((first, rest)) = bases.split_first() else { return Vec::new() };
    let names: BTreeSet<&String> = bases.iter().flat_map(|base| base.known.keys()).collect();
    let differs = |name: &&String| rest.iter().any(|base| base.known.get(*name) != first.known.get(*name));
    names.into_iter().filter(differs).cloned().collect()
}

fn label(known: &Givens, shown: &[String]) -> String {
    let one = |name: &String| {
        Some(match known.get(name)? {
            Given::Type(word, _) => format!("{name}: {word}"),
            Given::Constant(value) => format!("{name}={}", configs::text(value)),
        })
    };
    shown.iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

fn listed(options: &BTreeMap<String, i64>) -> String {
    options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}

fn joined(one: &str, other: &str) -> String {
    [one, other].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Values of names, as comprehensions bind them.
pub(super) type ConstantBindings = HashMap<String, Constant>;

#[cfg(test)]
mod tests {
    use super::*;
    use model::kernel::{RecordedArgument, RecordedLaunch};
    use model::syntax::Source;

    fn module_of(text: &str) -> (String, Module) {
        let text = format!("import triton\nimport triton.language as tl\n\n\n{text}");
        let module = Module::build(&Source::parse(text.as_str()));
        (text, module)
    }

    /// Setting, options, `B` and certainty of each variant from written or recorded facts.
    fn found(text: &str) -> Vec<String> {
        let (text, module) = module_of(text);
        shown(&certain_variants(&module, module.kernel("k").unwrap(), &text, 3))
    }

    fn shown(variants: &Variants) -> Vec<String> {
        let one = |variant: &Variant| {
            let value = variant.guess.constexprs.get("B").map_or_else(String::new, configs::text);
            format!("{} | {} | {value} | {:?}", variant.setting, listed(&variant.options), variant.certainty)
        };
        variants.all.iter().map(one).collect()
    }

    const KERNEL: &str = "@triton.jit\ndef k(x, B: tl.constexpr):\n    tl.store(x + tl.arange(0, B), 0)\n";

    fn tuned(configs: &str) -> Vec<String> {
        found(&format!("# warpsmith: signature x=*fp32\n@triton.autotune({configs}, key=[])\n{KERNEL}"))
    }

    #[test]
    fn each_configuration_becomes_a_variant() {
        assert_eq!(
            tuned("[triton.Config({'B': 64}), triton.Config({'B': 128}, num_warps=8, num_stages=5, maxnreg=64)]"),
            [
                "B=64 | num_stages=3, num_warps=4 | 64 | Certain",
                "B=128, num_warps=8, num_stages=5, maxnreg=64 | maxnreg=64, num_stages=5, num_warps=8 | 128 | Certain"
            ]
        );
        assert_eq!(
            tuned("[triton.Config({'B': b * 2}, num_warps=w) for b, w in [(32, 4), (64, 8)]]"),
            [
                "B=64, num_warps=4 | num_stages=3, num_warps=4 | 64 | Certain",
                "B=128, num_warps=8 | num_stages=3, num_warps=8 | 128 | Certain"
            ]
        );
        let many = tuned("[triton.Config({'B': 2**b}, num_warps=w) for b in range(4, 8) for w in [4, 8]]");
        assert_eq!(
            (many.len(), many[7].as_str()),
            (8, "B=128, num_warps=8 | num_stages=3, num_warps=8 | 128 | Certain")
        );
    }

    #[test]
    fn variants_that_may_be_skipped_are_only_possible() {
        for configs in [
            "[triton.Config({'B': b}) for b in [64] if b > x]",
            "[triton.Config({'B': 64})], prune_configs_by={'early_config_prune': f}",
            "[triton.Config({'B': 64})] if x else []",
            "[triton.Config({'B': 64}, num_consumer_groups=2)]",
        ] {
            assert_eq!(tuned(configs), ["B=64 | num_stages=3, num_warps=4 | 64 | Possible"], "{configs}");
        }
        let heuristic = "# warpsmith: signature x=*fp32 E=True\n@triton.autotune([triton.Config({'B': 64})], key=[])\n\
            @triton.heuristics({'E': lambda a: True})\n@triton.jit\ndef k(x, E, B: tl.constexpr): pass\n";
        assert_eq!(found(heuristic), ["B=64 | num_stages=3, num_warps=4 | 64 | Possible"]);
        assert_eq!(tuned("[triton.Config({'B': f()})]"), [""; 0], "nobody knows B");
    }

    #[test]
    fn without_an_autotuner_launch_options_come_from_the_launches() {
        let with = |launches: &str| {
            found(&format!("# warpsmith: signature x=*fp32 B=64\n{KERNEL}\n\ndef run(x, n):\n{launches}"))
        };
        assert_eq!(with("    k[(1,)](x, B=n, num_warps=8)\n"), [" | num_warps=8 | 64 | Certain"]);
        assert_eq!(with("    k[(1,)](x, B=64)\n    k[(2,)](x, B=n)\n"), [" |  | 64 | Certain"]);
        assert_eq!(with("    k[(1,)](x, B=64, num_warps=n)\n"), [" |  | 64 | Possible"]);
        // The launch with four stages has another value of B.
        assert_eq!(
            with("    k[(1,)](x, B=64, num_stages=2)\n    k[(2,)](x, B=128, num_stages=4)\n"),
            ["num_stages=2 | num_stages=2 | 64 | Certain"]
        );
        assert_eq!(
            with("    k[(1,)](x, B=64, num_stages=2)\n    k[(2,)](x, B=n, num_stages=4)\n"),
            ["num_stages=2 | num_stages=2 | 64 | Certain", "num_stages=4 | num_stages=4 | 64 | Possible"]
        );
        assert_eq!(with("    pass\n"), [" |  | 64 | Possible"], "it may be launched elsewhere in another way");
        let heuristic = format!(
            "# warpsmith: signature x=*fp32 B=64\n@triton.heuristics({{'num_warps': lambda a: 8}})\n{KERNEL}\n\ndef run(x):\n    k[(1,)](x, B=64)\n"
        );
        assert_eq!(found(&heuristic), [" |  | 64 | Possible"]);
    }

    #[test]
    fn variants_of_recorded_launches_are_certain() {
        let (text, mut module) = module_of(KERNEL);
        let launch = |pointer, block, options: &[(&str, i64)]| RecordedLaunch {
            kernel: "k".to_owned(),
            arguments: vec![
                ("x".to_owned(), RecordedArgument::Pointer(Some(pointer))),
                ("B".to_owned(), RecordedArgument::Integer(block)),
            ],
            grid: vec![1],
            options: options.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        };
        module.observe([launch("fp16", 64, &[("num_warps", 8)]), launch("fp32", 64, &[])].into());
        let all = certain_variants(&module, &module.kernels[0], &text, 3);
        assert_eq!(shown(&all), ["x: *fp16 | num_warps=8 | 64 | Certain", "x: *fp32 |  | 64 | Certain"]);
    }

    #[test]
    fn recorded_launches_of_an_autotuner_are_not_counted_twice() {
        let (text, mut module) = module_of(&format!(
            "@triton.autotune([triton.Config({{'B': 64}}), triton.Config({{'B': 128}})], key=[])\n{KERNEL}"
        ));
        let launch = |block| RecordedLaunch {
            kernel: "k".to_owned(),
            arguments: vec![
                ("x".to_owned(), RecordedArgument::Pointer(Some("fp16"))),
                ("B".to_owned(), RecordedArgument::Integer(block)),
            ],
            grid: vec![1],
            options: vec![("num_warps".to_owned(), 4)],
        };
        module.observe([launch(64), launch(128)].into());
        let all = certain_variants(&module, &module.kernels[0], &text, 3);
        assert_eq!(all.all.iter().map(|one| one.setting.as_str()).collect::<Vec<_>>(), ["B=64", "B=128"]);
    }

    #[test]
    fn variants_of_guesses_stay_guessed_and_are_limited_in_number() {
        let tuned = format!(
            "@triton.autotune([triton.Config({{'B': 64}}, num_warps=w) for w in range(1, 101)], key=[])\n{KERNEL}"
        );
        assert_eq!(found(&format!("# warpsmith: signature x=*fp16\n{tuned}")).len(), 64);
        let (text, module) = module_of(&tuned);
        let kernel = &module.kernels[0];
        assert_eq!(certain_variants(&module, kernel, &text, 3), Variants::default());
        let guess = &super::super::guesses(&module, kernel, &text)[0];
        let all = guessed_variants(&module, kernel, guess, 2);
        assert_eq!((all.all.len(), all.left_out), (16, 84));
        assert!(all.all.iter().all(|one| one.certainty == LaunchCertainty::Guessed && one.options["num_stages"] == 2));
    }
}
