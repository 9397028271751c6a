//! Synthetic kernels: operators, shapes, types and styles, combined at random.

mod families;
mod style;

pub(crate) use families::{FAMILIES, KernelFamily, OPERATORS};
pub(crate) use style::{Style, filled};

use base::rng::Rng;

use super::program::KernelProgram;

const TYPES: &[&str] = &["fp32", "fp16", "bf16"];
const SIZES: &[&str] = &["64", "128", "256", "512", "1024"];
const SMALL: &[&str] = &["16", "32", "64"];

/// A synthetic kernel.
#[derive(Clone, Debug)]
pub struct SyntheticTask {
    /// The index of the task. Failures of one task do not count as independent.
    pub number: usize,
    /// The name of the kernel's family, see `families.rs`.
    pub family: &'static str,
    /// The program with the kernel.
    pub program: KernelProgram,
    /// The style in which the kernel is written.
    pub style: Style,
}

/// Up to `count` tasks; equal seeds give equal tasks.
#[must_use]
pub(crate) fn tasks(count: usize, seed: u64) -> Vec<SyntheticTask> {
    (0..count).filter_map(|number| task(number, &mut Rng::new(mixed(seed, number as u64)))).collect()
}

/// A seed for each number, derived from a common seed.
#[must_use]
pub(crate) fn mixed(seed: u64, number: u64) -> u64 {
    Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.wrapping_mul(0xd1b5_4a32_d192_ed03)).bits()
}

fn task(number: usize, chance: &mut Rng) -> Option<SyntheticTask> {
    // All families are used equally often.
    let family = &FAMILIES[number % FAMILIES.len()];
    let style = Style::draw(chance);
    let program = written(family, &style, chance)?;
    Some(SyntheticTask { number, family: family.name, program, style })
}

fn written(family: &KernelFamily, style: &Style, chance: &mut Rng) -> Option<KernelProgram> {
    let one_of = |choices: &[&'static str], chance: &mut Rng| choices[chance.below(choices.len() as u64) as usize];
    let (element, size, small) = (one_of(TYPES, chance), one_of(SIZES, chance), one_of(SMALL, chance));
    let length = 1 + chance.below(3);
    let chain: Vec<&str> = (0..length).map(|_| one_of(OPERATORS, chance)).collect();
    let chain = chain.join("\n").replace('\n', "\n    ");
    let fill = |template: &str| {
        filled(&template.replace("$CHAIN", &chain), |role| match role {
            "T" => Some(element.to_owned()),
            "SIZE" => Some(size.to_owned()),
            "SMALL" => Some(small.to_owned()),
            _ => style.name(role).map(str::to_owned),
        })
    };
    let (header, before, signature) = (style.header(), fill(family.before)?, fill(family.signature)?);
    let (body, jit) = (fill(family.body)?, style.jit);
    let text = format!("{header}\n\n{before}# warpsmith: signature {signature}\n@{jit}{body}");
    Some(KernelProgram::new(text, style.name("k")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::kernel::Module;
    use model::syntax::Source;

    #[test]
    fn a_seed_gives_the_same_tasks() {
        let texts = |seed| tasks(60, seed).into_iter().map(|task| task.program.text).collect::<Vec<_>>();
        assert_eq!(texts(1).len(), 60);
        assert_eq!(texts(1), texts(1));
        assert_ne!(texts(1), texts(2));
    }

    #[test]
    fn synthetic_kernels_have_a_request_and_no_findings() {
        for task in tasks(FAMILIES.len() * 2, 7) {
            let text = &task.program.text;
            assert!(task.program.request(false).is_some(), "{}: {text}", task.family);
            let source = Source::parse(text.as_str());
            let module = Module::build(&source);
            let context = rules::RuleContext::new(&source, &module, model::api::TritonTarget::newest());
            let select = rules::Selection { select: vec!["L".to_owned()], ignore: Vec::new() };
            assert_eq!(rules::check(&context, &select), [], "{}: {text}", task.family);
        }
    }
}
