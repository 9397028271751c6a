//! The learned rules that a command line names.

use anyhow::bail;

use config::nearest;
use rules::learned::{LearnedRule, LearnedRules};

/// The rules with these codes or names.
///
/// # Errors
/// A sentence with the first word that names no rule, and the nearest rule.
pub(super) fn found<'m>(memory: &'m LearnedRules, which: &[String]) -> anyhow::Result<Vec<&'m LearnedRule>> {
    let mut rules = Vec::new();
    for word in which {
        let Some(rule) = memory.find(word) else {
            let known = memory.rules().flat_map(|rule| [rule.name.as_str(), rule.code.as_str()]);
            match nearest(word, known) {
                Some(name) => bail!("there is no learned rule `{word}`; did you mean `{name}`?"),
                None => bail!("there is no learned rule `{word}`; `warpsmith memory list` lists them"),
            }
        };
        rules.push(rule);
    }
    Ok(rules)
}
