//! Tests of the rules by the examples in their documentation, of suppression comments and of the selection of rules.

use std::collections::HashSet;

use model::api::{Table, TritonTarget, Version, VersionCertainty};
use model::kernel::Module;
use model::syntax::{Encoding, Source, Span};

use super::declaration::FAMILIES;
use super::*;

/// A Python block of a rule's documentation.
struct Block<'a> {
    text: &'a str,
    /// `triton=3.1` in the info string of the fence: the block is about that version. Without it, it holds for all.
    version: Option<Version>,
}

/// The headings of second level, with the Python blocks below each.
fn sections(doc: &str) -> Vec<(&str, Vec<Block<'_>>)> {
    let mut sections: Vec<(&str, Vec<Block<'_>>)> = Vec::new();
    let mut open: Option<(usize, Option<Version>, bool)> = None;
    let mut at = 0;
    for line in doc.split_inclusive('\n') {
        let trimmed = line.trim_end();
        if let Some(info) = trimmed.strip_prefix("```") {
            match open.take() {
                Some((start, version, python)) => {
                    let blocks = sections.last_mut().map(|(_, blocks)| blocks).expect("a block stands below a heading");
                    blocks.extend(python.then_some(Block { text: &doc[start..at], version }));
                }
                None => {
                    let mut words = info.split_whitespace();
                    let python = words.next() == Some("python");
                    let version = words.find_map(|word| word.strip_prefix("triton="));
                    open = Some((at + line.len(), version.map(|text| text.parse().unwrap()), python));
                }
            }
        } else if open.is_none()
            && let Some(heading) = trimmed.strip_prefix("## ")
        {
            sections.push((heading, Vec::new()));
        }
        at += line.len();
    }
    assert!(open.is_none(), "a block is not closed");
    sections
}

fn blocks<'a>(doc: &'a str, heading: &str) -> Vec<Block<'a>> {
    sections(doc).into_iter().filter(|(name, _)| *name == heading).flat_map(|(_, blocks)| blocks).collect()
}

impl Block<'_> {
    /// The targets under which the block must hold.
    fn targets(&self) -> Vec<TritonTarget> {
        match self.version {
            Some(version) => vec![TritonTarget::of(version)],
            None => every_target(),
        }
    }

    /// The spans that the carets mark: `# ^^^` is below the flagged line. Carets may begin left of the first column
    /// that a comment can have: then the `#` comes first, and the carets follow in their own columns.
    fn marked(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        let (mut start, mut line_above) = (0, 0);
        for line in self.text.split_inclusive('\n') {
            let carets = line.trim().strip_prefix('#').map(str::trim).filter(|rest| !rest.is_empty());
            if carets.is_some_and(|carets| carets.chars().all(|c| c == '^')) {
                let columns = line.find('^').unwrap()..=line.rfind('^').unwrap();
                spans.push(Span::new(line_above + columns.start(), line_above + columns.end() + 1));
            } else {
                line_above = start;
            }
            start += line.len();
        }
        spans.sort();
        spans
    }
}

/// A target for each version with an API table, and one for an unknown version.
fn every_target() -> Vec<TritonTarget> {
    let known = Table::all().iter().map(|table| TritonTarget { table, certainty: VersionCertainty::Known });
    known.chain([TritonTarget::newest()]).collect()
}

fn findings(text: &str, target: TritonTarget, selection: &Selection) -> Vec<Diagnostic> {
    let source = Source::parse(text);
    let module = Module::build(&source);
    check(&RuleContext::new(&source, &module, target), selection)
}

fn only(code: &str) -> Selection {
    Selection { select: vec![code.to_owned()], ignore: Vec::new() }
}

/// The messages of the findings of one rule, on the newest Triton.
pub(super) fn messages(text: &str, code: &str) -> Vec<String> {
    findings(text, TritonTarget::newest(), &only(code)).into_iter().map(|finding| finding.message).collect()
}

/// `line:column-column` of each span, for readable failures.
fn places(text: &str, spans: impl IntoIterator<Item = Span>) -> Vec<String> {
    let source = Source::parse(text);
    let place = |span: Span| {
        let (start, end) = (source.position(span.start, Encoding::Utf32), source.position(span.end, Encoding::Utf32));
        format!("{}:{}-{} `{}`", start.line + 1, start.column, end.column, source.slice(span))
    };
    spans.into_iter().map(place).collect()
}

fn parses(text: &str) -> bool {
    !Source::parse(text).has_error()
}

#[test]
fn declarations_are_complete() {
    let (mut codes, mut names) = (HashSet::new(), HashSet::new());
    for rule in all() {
        let Declaration { code, name, summary, since, .. } = rule.declaration;
        assert!(codes.insert(code) && names.insert(name), "{code} {name} is there twice");
        let (letter, digits) = code.split_at(1);
        assert!(FAMILIES.contains(letter), "{code}: no family has this letter");
        assert!(digits.len() == 3 && digits.chars().all(|c| c.is_ascii_digit()), "{code}: a letter and three digits");
        let kebab = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        assert!(name.split('-').all(kebab), "{code}: the name {name} is not in kebab case");
        assert!(!summary.is_empty() && !summary.ends_with('.'), "{code}: the summary has no full stop");
        assert!(since.parse::<Version>().is_ok(), "{code}: since {since}");
    }
    assert!(all().is_sorted_by_key(|rule| rule.declaration.code), "the rules are in the order of their codes");
}

#[test]
fn documentation_has_the_required_headings() {
    for rule in all() {
        let Declaration { code, doc, fixable, .. } = rule.declaration;
        let headings: Vec<&str> = sections(doc).into_iter().map(|(heading, _)| heading).collect();
        assert!(headings.starts_with(&["What it does", "Why is this bad?", "Bad", "Good"]), "{code}: {headings:?}");
        assert_eq!(headings.contains(&"Fix"), fixable, "{code}: `## Fix` if and only if there are fixes");
        assert!(!blocks(doc, "Bad").is_empty() && !blocks(doc, "Good").is_empty(), "{code}: an example of each");
        for block in blocks(doc, "Bad").iter().chain(&blocks(doc, "Good")) {
            assert!(parses(block.text), "{code}: not Python:\n{}", block.text);
        }
    }
}

#[test]
fn bad_examples_are_found_exactly_where_marked() {
    // Triton's own behaviour is tested with Triton, in tests/compiler.rs.
    for rule in all().iter().filter(|rule| rule.declaration.family() != RuleFamily::Compiler) {
        let code = rule.declaration.code;
        for block in blocks(rule.declaration.doc, "Bad") {
            assert!(!block.marked().is_empty(), "{code}: nothing is marked in\n{}", block.text);
            for target in block.targets() {
                let found = findings(block.text, target, &only(code)).into_iter().map(|found| found.span);
                assert_eq!(
                    places(block.text, found),
                    places(block.text, block.marked()),
                    "{code} (found, then marked) on Triton {} in\n{}",
                    target.table.version,
                    block.text
                );
            }
        }
    }
}

#[test]
fn good_examples_are_clean_under_every_rule() {
    for rule in all() {
        for block in blocks(rule.declaration.doc, "Good") {
            for target in block.targets() {
                let found = findings(block.text, target, &Selection::default());
                assert_eq!(found, [], "{} on Triton {}", rule.declaration.code, target.table.version);
            }
        }
    }
}

#[test]
fn code_that_deserves_silence_has_no_finding() {
    const SPEC: &str = include_str!("silence.md");
    let headings: Vec<&str> = sections(SPEC).into_iter().map(|(heading, _)| heading).collect();
    assert!(headings.len() >= 10, "{headings:?}");
    for heading in headings {
        for block in blocks(SPEC, heading) {
            let found = findings(block.text, TritonTarget::newest(), &Selection::default());
            let loud: Vec<_> = found.iter().filter(|found| found.severity != Severity::Hint).collect();
            assert!(loud.is_empty(), "{heading}: {loud:?}");
        }
    }
}

#[test]
fn each_fix_removes_its_finding() {
    for rule in all() {
        let Declaration { code, doc, fixable, .. } = rule.declaration;
        let mut fixes = 0;
        for block in blocks(doc, "Bad") {
            for target in block.targets() {
                let found = findings(block.text, target, &only(code));
                for finding in &found {
                    let Some(fix) = &finding.fix else { continue };
                    fixes += 1;
                    let fixed = fix.apply(block.text);
                    assert!(parses(&fixed), "{code}: the fix breaks\n{fixed}");
                    let left = findings(&fixed, target, &only(code));
                    assert!(left.len() < found.len(), "{code}: `{}` mends nothing in\n{fixed}", fix.title);
                    let alike = |list: &[Diagnostic], text: &str| {
                        let line = |at: &Diagnostic| text[..at.span.start].matches('\n').count();
                        let own = block.text[..finding.span.start].matches('\n').count();
                        list.iter().filter(|other| other.message == finding.message && line(other) == own).count()
                    };
                    assert!(
                        alike(&left, &fixed) < alike(&found, block.text),
                        "{code}: still found after `{}` in\n{fixed}",
                        fix.title
                    );
                }
                let mut text = block.text.to_owned();
                while let Some(fix) = findings(&text, target, &only(code)).into_iter().find_map(|found| found.fix) {
                    text = fix.apply(&text);
                    assert!(text.len() < block.text.len() * 3, "{code}: the fixes do not end in\n{text}");
                }
                let unfixable = found.iter().filter(|finding| finding.fix.is_none()).count();
                assert!(findings(&text, target, &only(code)).len() <= unfixable, "{code}: more than before in\n{text}");
            }
        }
        assert_eq!(fixes > 0, fixable, "{code}: fixable if and only if an example has a fix");
    }
}

const CONTINUES: &str = "import triton

@triton.jit
def k(x, n):
    for i in range(n):
        continue
";

/// The remains of the single finding in [`CONTINUES`] when `comment` is put at the end of its line, `above` above it
/// and `first` at the top of the file.
fn left(first: &str, above: &str, comment: &str) -> usize {
    let text =
        format!("{first}{}", CONTINUES.replace("        continue", &format!("{above}        continue{comment}")));
    assert!(parses(&text), "{text}");
    findings(&text, TritonTarget::newest(), &Selection::default()).len()
}

#[test]
fn suppressions_work_at_the_line_end_and_on_the_line_above() {
    assert_eq!(left("", "", ""), 1);
    for comment in [
        "# warpsmith: ignore",
        "# warpsmith: ignore[L003]",
        "#warpsmith:ignore[L003]",
        "# warpsmith: ignore[l003]",
        "# warpsmith: ignore[break-or-continue]",
        "# warpsmith: ignore[M001, L003]",
        "# warpsmith: ignore[ break-or-continue , M001 ]",
        "# warpsmith: ignore[M001] # warpsmith: ignore[L003]",
        "# noqa # warpsmith: ignore[L003] because",
        "# warpsmith: ignore[L003] # fmt: skip",
    ] {
        assert_eq!(left("", "", &format!("  {comment}")), 0, "at the end of the line: {comment}");
        assert_eq!(left("", &format!("        {comment}\n"), ""), 0, "above: {comment}");
        assert_eq!(left("", &format!("    {comment}\n\n        # why\n"), ""), 0, "further above: {comment}");
    }
}

#[test]
fn suppressions_ignore_other_codes_lines_and_words() {
    for comment in [
        "# warpsmith: ignore[L00]",
        "# warpsmith: ignore[L004]",
        "# warpsmith: ignore[]",
        "# warpsmith: ignore[M001, break]",
        "# warpsmith: ignored",
        "# warpsmith: ignore-files",
        "# warpsmith: ignore L003",
        "# see `# warpsmith: ignore`",
        "# warpsmith: ignore[L003",
        "# Warpsmith ignores",
    ] {
        assert_eq!(left("", "", &format!("  {comment}")), 1, "{comment}");
    }
    assert_eq!(left("", "        i += 1  # warpsmith: ignore\n", ""), 1, "at the end of another line of code");
    assert_eq!(left("", "        # warpsmith: ignore\n        i += 1\n", ""), 1, "above another line of code");
}

#[test]
fn a_suppression_after_a_carriage_return_is_on_its_own_line() {
    assert_eq!(left("", "        # why\r# warpsmith: ignore\n", ""), 0);
}

#[test]
fn a_mention_in_a_string_suppresses_nothing() {
    assert_eq!(left("", "        '# warpsmith: ignore'\n", ""), 1);
    assert_eq!(left("", "        '''\n        # warpsmith: ignore\n        '''\n", ""), 1);
    assert_eq!(left("'''\n# warpsmith: ignore-file\n'''\n", "", ""), 1);
    assert_eq!(left("", "", "; '# warpsmith: ignore[L003]'"), 1);
}

#[test]
fn ignore_file_covers_the_file() {
    assert_eq!(left("# warpsmith: ignore-file\n", "", ""), 0);
    assert_eq!(left("# warpsmith: ignore-file[L003]\n", "", ""), 0);
    assert_eq!(left("# warpsmith: ignore-file[M001]\n", "", ""), 1);
    assert_eq!(left("x = 1  # warpsmith: ignore-file[L003, M001]\n", "", ""), 0);
    assert_eq!(left("", "", "\n# warpsmith: ignore-file\n"), 0);
}

#[test]
fn a_comment_covers_a_finding_of_several_lines_at_either_end() {
    let file = |first: &str, middle: &str, last: &str| {
        let text = format!(
            "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x):\n    y = tl.int32({first}\n        x,{middle}\n    ){last}\n"
        );
        findings(&text, TritonTarget::newest(), &only("L002")).len()
    };
    assert_eq!(file("", "", ""), 1);
    assert_eq!(file("  # warpsmith: ignore[L002]", "", ""), 0);
    assert_eq!(file("", "", "  # warpsmith: ignore[L002]"), 0);
    assert_eq!(file("", "  # warpsmith: ignore[L002]", ""), 1);
}

/// M003: a mask of rows and columns does not show that an access along the columns alone lacks one.
#[test]
fn an_access_along_one_axis_does_not_lack_a_mask_of_two() {
    let found = |loaded: &str| {
        let text = format!(
            "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(b, y, m, n, BM: tl.constexpr, BN: tl.constexpr):\n    \
             rows = tl.program_id(0) * BM + tl.arange(0, BM)\n    cols = tl.arange(0, BN)\n    mask = (rows[:, None] < m) & (cols[None, :] \
             < n)\n    v = {loaded}\n    tl.store(y + rows[:, None] * n + cols[None, :], v, mask=rows[:, None] < m)\n\n\ndef run(b, y, m, \
             n):\n    k[(triton.cdiv(m, 16),)](b, y, m, n, BM=16, BN=64)\n"
        );
        messages(&text, "M003").len()
    };
    assert_eq!(found("tl.load(b + cols)[None, :]"), 0);
    assert_eq!(found("tl.load(b + rows[:, None] * n + cols[None, :])"), 1);
}

#[test]
fn selections_take_codes_prefixes_and_names() {
    let codes = |select: &[&str], ignore: &[&str]| {
        let own = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        let selection = Selection { select: own(select), ignore: own(ignore) };
        let included =
            all().iter().filter(|rule| selection.includes(&rule.declaration)).map(|rule| rule.declaration.code);
        included.filter(|code| ["L002", "L003", "M001"].contains(code)).collect::<Vec<_>>()
    };
    assert_eq!(codes(&[], &[]), ["L002", "L003", "M001"]);
    assert_eq!(codes(&["all"], &[]), ["L002", "L003", "M001"]);
    assert_eq!(codes(&["L"], &[]), ["L002", "L003"]);
    assert_eq!(codes(&["l003"], &[]), ["L003"]);
    assert_eq!(codes(&["L00"], &["L003"]), ["L002"]);
    assert_eq!(codes(&[], &["L"]), ["M001"]);
    assert_eq!(codes(&["M", "L003"], &["L"]), ["L003", "M001"]);
    assert_eq!(codes(&["L"], &["L"]), [""; 0]);
    assert_eq!(codes(&["all"], &["break-or-continue"]), ["L002", "M001"]);
    assert_eq!(codes(&["break-or-continue"], &["L"]), ["L003"]);
    assert_eq!(codes(&["break-or-continue"], &["L003"]), ["L003"], "a name is as exact as its code");
    assert_eq!(codes(&["L003"], &["break-or-continue"]), [""; 0], "on a tie `ignore` decides");
    assert_eq!(codes(&["M001"], &["all"]), ["M001"]);
    assert_eq!(codes(&["break"], &[]), [""; 0], "half a name is no name");
}

#[test]
fn selections_report_unknown_entries() {
    let selection = Selection {
        select: ["L", "s", "all", "L9", "break-or-continue"].map(str::to_owned).into(),
        ignore: ["", "nonsense", "M001", "X"].map(str::to_owned).into(),
    };
    assert_eq!(selection.unknown(), ["L9", "", "nonsense", "X"], "a family without rules is known");
}

#[test]
fn rules_are_found_by_code_and_name() {
    assert_eq!(find("l003").unwrap().declaration.name, "break-or-continue");
    assert_eq!(find("break-or-continue").unwrap().declaration.code, "L003");
    assert!(find("L").is_none());
}

#[test]
fn a_helper_may_get_a_tile_for_a_parameter_annotated_as_constexpr() {
    let text = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef h(x, o: tl.constexpr, n: tl.constexpr):\n    \
                m = o < n\n    return tl.load(x + o[:, None], mask=m[:, None])\n\n@triton.jit\ndef k(x, y, n):\n    \
                tl.store(y, tl.sum(h(x, tl.arange(0, 16), n)))\n";
    assert!(parses(text));
    for target in every_target() {
        assert_eq!(findings(text, target, &only("L")), [], "{}", target.table.version);
    }
}
