//! Cache hints (`eviction_policy`, `cache_modifier`) of single loads and stores.

use base::rng::Rng;
use model::kernel::ast::{Arg, Call, walk_expressions};
use model::syntax::Span;
use rules::Edit;

use crate::candidate::Change;
use crate::proposal::Proposal;
use crate::skill::Skill;
use crate::step::StepSize;
use crate::subject::Subject;

/// The maximum number of loads, and of stores, that are changed.
const MOST: usize = 8;

/// An access in words, and the hints to try.
struct Access {
    name: &'static str,
    /// The number of leading arguments that may be positional.
    positions: usize,
    hints: &'static [(&'static str, &'static str)],
}

const POLICY: &str = "eviction_policy";
const MODIFIER: &str = "cache_modifier";

const ACCESSES: [Access; 2] = [
    Access { name: "load", positions: 5, hints: &[(POLICY, "evict_first"), (POLICY, "evict_last"), (MODIFIER, ".cg")] },
    Access { name: "store", positions: 4, hints: &[(POLICY, "evict_first"), (MODIFIER, ".cs"), (MODIFIER, ".cg")] },
];

/// Sets the cache hint of one `tl.load` or `tl.store`, or removes it; the kernel computes the same. Data that is read
/// once need not replace data that others read again (`evict_first`, or `.cg`: bypasses L1), data that all programs
/// read may stay (`evict_last`), and written data is rarely read soon (`.cs`).
pub(super) struct Eviction;

impl Skill for Eviction {
    fn name(&self) -> &'static str {
        "eviction"
    }

    fn about(&self) -> &'static str {
        "`eviction_policy` or `cache_modifier` for one load or store, or none where there is one."
    }

    fn step(&self) -> StepSize {
        StepSize::Small
    }

    fn is_fine(&self) -> bool {
        true
    }

    fn keeps_contract(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        ACCESSES.iter().flat_map(|access| turns(subject, access)).collect()
    }
}

fn turns(subject: &Subject<'_>, access: &Access) -> Vec<Proposal> {
    let mut calls = Vec::new();
    walk_expressions(&subject.kernel.body, &mut |expr| {
        let name = expr.as_call().and_then(|call| subject.candidate.module.language_member(subject.kernel, &call.func));
        if name.as_deref() == Some(access.name) {
            calls.extend(expr.as_call());
        }
    });
    let mut turns = Vec::new();
    for (at, call) in calls.into_iter().enumerate().take(MOST) {
        let turn = |what: &str, edit: Edit| Proposal {
            kind: format!("{what} {}", access.name),
            edits: vec![edit],
            changes: vec![Change::Structure(format!("{what} for {} {}", access.name, at + 1))],
        };
        let given = |keyword: &str| call.args.iter().position(|arg| is_keyword(arg, keyword));
        let said: Vec<(&str, usize)> =
            [POLICY, MODIFIER].into_iter().filter_map(|keyword| Some((keyword, given(keyword)?))).collect();
        for (keyword, place) in &said {
            turns.extend(without(subject, call, *place).map(|edit| turn(&format!("no {keyword}"), edit)));
        }
        let is_open =
            call.has_star() || call.args.iter().filter(|arg| arg.keyword.is_none()).count() > access.positions;
        let Some(last) = call.args.last().filter(|_| said.is_empty() && !is_open && given("volatile").is_none()) else {
            continue;
        };
        for (keyword, value) in access.hints {
            let end = Span::new(last.span.end, last.span.end);
            turns.push(turn(value, Edit { span: end, text: format!(", {keyword}=\"{value}\"") }));
        }
    }
    turns
}

fn is_keyword(arg: &Arg, name: &str) -> bool {
    arg.keyword.as_ref().is_some_and(|(keyword, _)| keyword == name)
}

/// Removes an argument with the comma before it, unless a comment is in between.
fn without(subject: &Subject<'_>, call: &Call, place: usize) -> Option<Edit> {
    let start = call.args.get(place.checked_sub(1)?)?.span.end;
    let span = Span::new(start, call.args[place].span.end);
    let is_plain = !subject.candidate.text.get(start..span.end)?.contains('#');
    is_plain.then(|| Edit { span, text: String::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Candidate;
    use protocol::Workload;
    use rules::apply_edits;

    /// The description of each proposal, and the changed line.
    fn turned(body: &str) -> Vec<(String, String)> {
        let text = format!(
            "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x, y, n):\n{body}\ndef run(x):\n    k[(1,)](x, x, 7)\n"
        );
        let candidate = Candidate::original(&text);
        let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
        let subject = Subject::new(&candidate, &text, "k", &workload).unwrap();
        let turns = Eviction.turns(&subject, &mut Rng::new(1));
        let said = |turn: Proposal| {
            let new = apply_edits(&text, &turn.edits);
            let start = text.find("def k").unwrap();
            let end = new.find("\ndef run").unwrap();
            let body = new[start..end].split_once('\n').unwrap().1.to_owned();
            let Change::Structure(what) = &turn.changes[0] else { unreachable!() };
            (format!("{}: {what}", turn.kind), body)
        };
        turns.into_iter().map(said).collect()
    }

    fn pairs(found: &[(String, String)]) -> Vec<(&str, &str)> {
        found.iter().map(|(what, text)| (what.as_str(), text.as_str())).collect()
    }

    #[test]
    fn each_proposal_hints_one_load_or_store() {
        let found = turned("    tl.store(y, tl.load(x, mask=n > 1))  # both");
        let expected = [
            (
                "evict_first load: evict_first for load 1",
                "    tl.store(y, tl.load(x, mask=n > 1, eviction_policy=\"evict_first\"))  # both",
            ),
            (
                "evict_last load: evict_last for load 1",
                "    tl.store(y, tl.load(x, mask=n > 1, eviction_policy=\"evict_last\"))  # both",
            ),
            (".cg load: .cg for load 1", "    tl.store(y, tl.load(x, mask=n > 1, cache_modifier=\".cg\"))  # both"),
            (
                "evict_first store: evict_first for store 1",
                "    tl.store(y, tl.load(x, mask=n > 1), eviction_policy=\"evict_first\")  # both",
            ),
            (".cs store: .cs for store 1", "    tl.store(y, tl.load(x, mask=n > 1), cache_modifier=\".cs\")  # both"),
            (".cg store: .cg for store 1", "    tl.store(y, tl.load(x, mask=n > 1), cache_modifier=\".cg\")  # both"),
        ];
        assert_eq!(pairs(&found), expected);
    }

    #[test]
    fn an_existing_hint_is_removed_and_never_combined() {
        let found = turned("    v = tl.load(\n        x,\n        eviction_policy=\"evict_last\",\n    )");
        assert_eq!(
            pairs(&found),
            [("no eviction_policy load: no eviction_policy for load 1", "    v = tl.load(\n        x,\n    )")]
        );
        let found = turned("    v = tl.load(x, cache_modifier='.ca', mask=n > 1)");
        assert_eq!(
            pairs(&found),
            [("no cache_modifier load: no cache_modifier for load 1", "    v = tl.load(x, mask=n > 1)")]
        );
    }

    #[test]
    fn accesses_are_numbered_in_source_order_up_to_a_limit() {
        let body = "    v = tl.load(x)\n".repeat(MOST + 2);
        let found = turned(&body);
        assert_eq!(found.len(), 3 * MOST);
        assert_eq!(found[5].0, ".cg load: .cg for load 2");
        assert_eq!(
            found[5].1,
            body.replacen("(x)\n    v = tl.load(x)", "(x)\n    v = tl.load(x, cache_modifier=\".cg\")", 1)
        );
    }

    #[test]
    fn unknown_arguments_and_special_loads_get_no_hint() {
        for body in [
            "    v = tl.load(*[x])",
            "    v = tl.load(x, **{})",
            "    v = tl.load(x, None, None, (), \"\", \".cg\")",
            "    v = tl.load(x, volatile=True)",
            "    tl.store(x, 1.0, None, (), \".cs\")",
            "    v = tl.load(eviction_policy=\"evict_last\", pointer=x)",
            "    v = tl.load(x,  # all\n        eviction_policy=\"evict_last\")",
            "    v = load(x)",
            "    v = tl.atomic_add(x, 1.0)",
        ] {
            assert_eq!(turned(body), [], "{body}");
        }
    }
}
