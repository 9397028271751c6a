//! A configuration of an autotuned kernel, laid over a guess.

use std::collections::{BTreeMap, HashMap};

use super::Guess;
use super::constant::Constant;
use super::launched::of_top_level;
use crate::kernel::{Kernel, Module};

/// What the `number`th configuration of a kernel, from 1, makes of a guess; and the options that it is launched with.
///
/// # Errors
/// Why there is no such configuration.
pub fn with_config(
    module: &Module,
    kernel: &Kernel,
    guess: &Guess,
    number: usize,
) -> Result<(Guess, BTreeMap<String, i64>), String> {
    let name = &kernel.name;
    let autotune = kernel.autotune.as_ref().ok_or_else(|| format!("`{name}` has no `@triton.autotune`"))?;
    let configs = autotune.configs.as_ref();
    let configs =
        configs.ok_or_else(|| format!("the configurations of `{name}` are not written out in its decorator"))?;
    let config = number.checked_sub(1).and_then(|at| configs.get(at));
    let config = config.ok_or_else(|| format!("`{name}` has {} configurations, counted from 1", configs.len()))?;
    let value = |(name, value): &(String, _)| Some((name.clone(), of_top_level(module, value, &HashMap::new())?));
    let unknown = || format!("what configuration {number} of `{name}` sets is computed where the program runs");
    let mut guess = guess.clone();
    for set in &config.meta {
        let (name, value) = value(set).ok_or_else(unknown)?;
        guess.signature.remove(&name);
        guess.constexprs.insert(name, value);
    }
    let mut options = BTreeMap::new();
    for set in config.options.iter().filter(|(name, _)| name != "pre_hook") {
        match value(set) {
            Some((name, Constant::Int(value))) => _ = options.insert(name, value),
            Some((_, Constant::None)) => {}
            _ => return Err(unknown()),
        }
    }
    Ok((guess, options))
}
