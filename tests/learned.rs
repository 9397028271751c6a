//! Tests of the predicates of patterns on programs with the verdicts of nine Triton releases: what a certain predicate
//! flags is never accepted.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

#[path = "common/snippets.rs"]
mod data;
#[path = "common/packages.rs"]
mod packages;

use std::path::{Path, PathBuf};

use data::{program, snippets, verdicts};
use model::api::TritonTarget;
use model::kernel::Module;
use model::syntax::{Source, Span};
use rules::learned::Pattern;
use rules::{RuleContext, Selection};

/// Patterns with one or two predicates each for programs that every release rejects, with the least number of
/// rejections (one for each program and release) that they must match.
const REFUSED: &[(&str, usize)] = &[
    ("((attribute) @here (#unknown-member? @here))", 1022),
    ("(keyword_argument name: (identifier) @here (#unknown-keyword? @here))", 231),
    ("((identifier) @here (#undefined? @here))", 90),
    (
        "(call function: (_) @here (#api? @here \"builtins.sum\" \"builtins.abs\" \"builtins.sorted\" \"builtins.pow\"))",
        54,
    ),
    ("((call) @here (#too-many-arguments? @here))", 54),
    ("((call) @here (#missing-argument? @here))", 199),
    ("((binary_operator left: (_) @a right: (_) @b) @here (#not-broadcast? @a @b))", 63),
    (
        "(call function: (_) @f arguments: (argument_list . (_) @start . (_) @here) (#api? @f \"tl.arange\") (#value? @start \"0\") \
         (#not-power-of-two? @here))",
        36,
    ),
    (
        "(call function: (_) @f arguments: (argument_list (_) @here) (#api? @f \"tl.arange\") (#not-constexpr? @here))",
        108,
    ),
    (
        "(call function: (_) @f arguments: (argument_list . (_) @here) (#api? @f \"tl.load\" \"tl.store\") \
         (#not-kind? @here \"pointer\" \"block-pointer\"))",
        87,
    ),
    (
        "(call function: (_) @f arguments: (argument_list . (_) @here) (#api? @f \"tl.dot\") (#rank? @here \"0\" \"1\"))",
        18,
    ),
    (
        "(call function: (_) @f arguments: (argument_list . (_) @here) (#api? @f \"tl.trans\") (#rank? @here \"0\" \"1\"))",
        9,
    ),
    ("(subscript value: (_) @here subscript: (_) @at (#kind? @here \"pointer\") (#kind? @at \"int\"))", 1),
];

#[test]
fn patterns_of_certain_errors_match_no_accepted_program() {
    let patterns: Vec<Pattern> = REFUSED.iter().map(|(text, _)| Pattern::compile(text).unwrap()).collect();
    let mut counts = vec![0; patterns.len()];
    let (mut rejected, mut flagged, mut wrong) = (0, 0, Vec::new());
    for set in ["frontend_snippets", "frontend_more"] {
        for snippet in snippets(set) {
            let text = program(&snippet);
            let source = Source::parse(text.as_str());
            let module = Module::build(&source);
            for (version, verdict) in verdicts(&snippet) {
                let is_accepted = verdict["ok"] == true;
                let context = RuleContext::new(&source, &module, TritonTarget::of(version.parse().unwrap()));
                let mut is_flagged = false;
                for (at, pattern) in patterns.iter().enumerate() {
                    let found = pattern.matches(&context);
                    is_flagged |= !found.is_empty();
                    counts[at] += usize::from(!found.is_empty() && !is_accepted);
                    wrong.extend(found.iter().filter(|_| is_accepted).map(|span| {
                        let place = source.slice(*span);
                        format!("{} on {version}: `{place}` by {}", snippet["id"], REFUSED[at].0)
                    }));
                }
                rejected += usize::from(!is_accepted);
                flagged += usize::from(is_flagged && !is_accepted);
            }
        }
    }
    println!("{flagged} of {rejected} rejections are matched");
    for ((pattern, least), count) in REFUSED.iter().zip(&counts) {
        println!("{count:6}  {pattern}");
        assert!(count >= least, "{count}: {pattern}");
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}

/// In published kernels, the same patterns match only places that built-in language rules, whose findings there are
/// audited, report as errors.
#[test]
fn patterns_of_certain_errors_match_published_kernels_only_at_known_errors() {
    let patterns: Vec<Pattern> = REFUSED.iter().map(|(text, _)| Pattern::compile(text).unwrap()).collect();
    let (mut kernels, mut stray) = (0, Vec::new());
    for (name, version) in [("liger-kernel", "0.8.5"), ("fla-core", "0.6.0")] {
        for path in python_files(&packages::package(name, version)) {
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            if !text.contains("triton") {
                continue;
            }
            let source = Source::parse(text);
            let module = Module::build(&source);
            kernels += module.kernels.len();
            for target in [TritonTarget::newest(), TritonTarget::of("3.6.0".parse().unwrap())] {
                let context = RuleContext::new(&source, &module, target).at(Some(&path));
                let spans: Vec<_> = patterns
                    .iter()
                    .enumerate()
                    .flat_map(|(at, it)| it.matches(&context).into_iter().map(move |span| (at, span)))
                    .collect();
                if spans.is_empty() || context.is_for_other_compiler() {
                    continue;
                }
                let errors = rules::check(&context, &Selection { select: vec!["L".to_owned()], ignore: Vec::new() });
                let line = |offset: usize| source.lines().line_of(offset);
                let is_known = |span: Span| {
                    errors
                        .iter()
                        .any(|error| (line(error.span.start)..=line(error.span.end)).contains(&line(span.start)))
                };
                stray.extend(spans.into_iter().filter(|(_, span)| !is_known(*span)).map(|(at, span)| {
                    format!("{}:{} `{}` {}", path.display(), line(span.start) + 1, source.slice(span), REFUSED[at].0)
                }));
            }
        }
    }
    println!("{kernels} kernels");
    assert!(stray.is_empty(), "{}\n{}", stray.len(), stray.join("\n"));
}

fn python_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "py") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
