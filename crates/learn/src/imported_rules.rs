//! Rules from other users. They are candidates, whatever state they claim: what was proven elsewhere is not proven
//! here.

use std::path::Path;

use base::clock;
use rules::learned::{LearnedRule, MemoryError, Releases, RuleOrigin, RuleState, TritonError, parse};

/// The maximum length of a sentence in bytes.
const LONGEST: usize = 600;
/// The maximum number of words in a name.
const WORDS: usize = 6;

/// The rules of an imported file.
#[derive(Clone, Debug, Default)]
pub struct ImportedRules {
    /// The rules, as candidates.
    pub rules: Vec<LearnedRule>,
    /// For each line that is not a rule, a message about it.
    pub left_out: Vec<String>,
}

/// The rules of a text: a memory file, or lines `sentence||count`. `file` is the path of the text; patterns that it
/// does not contain are read from files beside it.
///
/// # Errors
/// Returns an error when the text is neither such lines nor a valid memory file.
pub fn imported_rules(file: &Path, text: &str) -> Result<ImportedRules, MemoryError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let origin = RuleOrigin::Imported(name);
    let is_lines =
        text.lines().any(|line| count(line).is_some()) && !text.lines().any(|line| line.starts_with("format ="));
    if is_lines {
        return Ok(of_lines(text, &origin));
    }
    let beside = |name: &str| {
        let folder = file.parent()?;
        std::fs::read_to_string(folder.join(format!("{name}.scm"))).ok()
    };
    let candidate = |rule: LearnedRule| LearnedRule {
        state: RuleState::Candidate,
        origin: origin.clone(),
        covered_by: Vec::new(),
        failures: 0,
        triton: Releases::default(),
        ..rule
    };
    let rules = parse(text, &beside)?.into_iter().map(candidate).collect();
    Ok(ImportedRules { rules, left_out: Vec::new() })
}

/// `sentence||count`
fn count(line: &str) -> Option<(&str, u64)> {
    let (sentence, count) = line.rsplit_once("||")?;
    Some((sentence.trim(), count.trim().parse().ok()?))
}

fn of_lines(text: &str, origin: &RuleOrigin) -> ImportedRules {
    let mut found = ImportedRules::default();
    let today = clock::day(clock::now().as_secs());
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let sentence = count(line).and_then(|(text, count)| Some((sentence(text)?, count)));
        let Some((sentence, met)) = sentence else {
            found.left_out.push(format!("line {} does not have the form `You cannot …||count`", number + 1));
            continue;
        };
        found.rules.push(LearnedRule {
            code: "S501".to_owned(),
            name: name_of(&sentence),
            sentence,
            state: RuleState::Candidate,
            origin: origin.clone(),
            covered_by: Vec::new(),
            failures: 0,
            met,
            first_seen: today.clone(),
            last_seen: today.clone(),
            error: TritonError::default(),
            triton: Releases::default(),
            pattern: String::new(),
            bad: String::new(),
            good: String::new(),
        });
    }
    found
}

/// A sentence in the form of rules: with a full stop, and without braces, which would mean a capture.
fn sentence(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches(['-', '*', ' ']);
    let is_one = text.starts_with("You cannot ") && text.len() <= LONGEST && !text.contains(char::is_control);
    let text = text.replace('{', "(").replace('}', ")");
    is_one.then(|| if text.ends_with('.') { text } else { format!("{text}.") })
}

/// A name from the words of a sentence after "You cannot".
fn name_of(sentence: &str) -> String {
    let lower = sentence.trim_start_matches("You cannot ").to_ascii_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<&str> =
        words.skip_while(|word| !word.starts_with(|c: char| c.is_ascii_lowercase())).take(WORDS).collect();
    if words.is_empty() { "imported".to_owned() } else { words.join("-") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::learned::{Patterns, check, write};

    #[test]
    fn imported_lines_become_candidate_rules() {
        let text = "You cannot use `break` in a loop||12\n\n- You cannot pass {x: 1} to tl.load.||3\nNever do that||4\nno count\n";
        let ImportedRules { rules, left_out } = imported_rules(Path::new("memory.txt"), text).unwrap();
        let found: Vec<_> = rules.iter().map(|rule| (rule.name.as_str(), rule.sentence.as_str(), rule.met)).collect();
        assert_eq!(
            found,
            [
                ("use-break-in-a-loop", "You cannot use `break` in a loop.", 12),
                ("pass-x-1-to-tl-load", "You cannot pass (x: 1) to tl.load.", 3)
            ]
        );
        let lines = [4, 5].map(|line| format!("line {line} does not have the form `You cannot …||count`"));
        assert_eq!(left_out, lines);
        assert!(
            rules.iter().all(|rule| rule.state == RuleState::Candidate && rule.failures == 0 && check(rule).is_ok())
        );
        assert_eq!(rules[0].origin.to_string(), "imported from memory.txt");
    }

    #[test]
    fn imported_rules_lose_their_proof() {
        let mut rule = of_lines("You cannot break||1", &RuleOrigin::Synthesised(1)).rules.remove(0);
        rule.state = RuleState::Promoted;
        rule.pattern = "(break_statement) @here\n".to_owned();
        rule.failures = 9;
        rule.triton.since = Some("3.1.0".parse().unwrap());
        let text = write(&[rule.clone()], Patterns::Inside);
        let rules = imported_rules(Path::new("m.toml"), &text).unwrap().rules;
        assert_eq!((rules[0].state, rules[0].failures, rules[0].met), (RuleState::Candidate, 0, 1));
        assert_eq!((rules[0].triton.since, &rules[0].pattern), (None, &rule.pattern));
        assert!(imported_rules(Path::new("m.toml"), "nonsense").is_err());
    }
}
