//! `cargo xtask generate`: the files that are generated from the code. They are checked in, and a test fails when one
//! is stale.
//!
//! Also a module of `tests/tidy.rs`, so that a plain `cargo test` notices what is stale.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rules::learned::{LearnedRule, LearnedRules, RuleState};
use warpsmith::cli;

use crate::{picture, vscode};

/// The action on the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileMode {
    /// Writes the stale files.
    Write,
    /// Fails with the names of the stale files.
    Check,
}

/// The folder whose files are all generated.
const PAGES: &str = "docs/src/rules";
/// The manifest of the extension for VS Code, some of which is generated.
const MANIFEST: &str = "editors/vscode/package.json";
/// The package for Mason, which contains the version.
const MASON: &str = "editors/nvim/mason/package.yaml";
/// The style of a report, both in the extension and in the page that `warpsmith report` writes.
const STYLE: &str = "editors/vscode/media/report.css";
const PAGE_STYLE: &str = "crates/search/src/report/page.css";
/// The command whose output is the README's picture. The version is named so that it is the same on every machine.
const PICTURED: [&str; 6] = ["check", "examples/mistakes.py", "--triton-version", "3.6.0", "--color", "always"];

pub(crate) fn run(root: &Path, mode: FileMode) -> anyhow::Result<()> {
    let wanted = files(root)?;
    let mut stale: Vec<PathBuf> =
        wanted.iter().filter(|(path, text)| !is_fresh(&root.join(path), text)).map(|(path, _)| path.clone()).collect();
    for entry in std::fs::read_dir(root.join(PAGES)).into_iter().flatten() {
        let path = Path::new(PAGES).join(entry?.file_name());
        if !wanted.contains_key(&path) {
            stale.push(path);
        }
    }
    if mode == FileMode::Check {
        let names: Vec<_> = stale.iter().map(|path| path.display().to_string()).collect();
        if !names.is_empty() {
            bail!("stale: {}; run `cargo xtask generate`", names.join(", "));
        }
        return Ok(());
    }
    for path in stale {
        let full = root.join(&path);
        match wanted.get(&path) {
            Some(text) => {
                if let Some(folder) = full.parent() {
                    std::fs::create_dir_all(folder)?;
                }
                std::fs::write(&full, text)?;
                eprintln!("wrote {}", path.display());
            }
            None => {
                std::fs::remove_file(&full)?;
                eprintln!("removed {}", path.display());
            }
        }
    }
    Ok(())
}

fn is_fresh(path: &Path, text: &str) -> bool {
    std::fs::read_to_string(path).is_ok_and(|found| found == text)
}

/// Every generated file with its text.
fn files(root: &Path) -> anyhow::Result<BTreeMap<PathBuf, String>> {
    let mut files = BTreeMap::new();
    let mut add = |path: &str, text: String| files.insert(PathBuf::from(path), text);
    add("config/schema.json", format!("{:#}\n", config::schema()));
    add("config/default.toml", config::default_toml());
    let manifest = std::fs::read_to_string(root.join(MANIFEST)).context(MANIFEST)?;
    let version = &*version(root)?;
    add(MANIFEST, vscode::manifest(&manifest, &config::schema(), version)?);
    add("editors/nvim/lua/warpsmith/version.lua", neovim_version(version));
    add(MASON, mason_package(&std::fs::read_to_string(root.join(MASON)).context(MASON)?, version));
    add(STYLE, std::fs::read_to_string(root.join(PAGE_STYLE)).context(PAGE_STYLE)?);
    add("docs/src/rules.md", rule_list());
    add("docs/src/settings.md", settings_page());
    add("docs/src/skills.md", skills_page());
    // The pages are part of the crate's documentation, to which the links of findings lead.
    let signatures = std::fs::read_to_string(root.join("docs/src/signatures.md")).context("docs/src/signatures.md")?;
    let learned = LearnedRules::shipped().rules().filter(|rule| rule.is_shown()).map(LearnedRule::page);
    let pages = rules::all().iter().map(|rule| rule.declaration.page()).chain(learned).chain([signatures]);
    let pages: Vec<String> = pages.collect();
    // In the crate's documentation the rules and this page are one page.
    add("crates/rules/src/pages.md", pages.join("\n").replace("](../signatures.md)", "](#signatures)"));
    for rule in rules::all() {
        let page = format!("{PAGES}/{}.md", rule.declaration.name);
        add(&page, rule.declaration.page());
    }
    add("docs/src/SUMMARY.md", with_block(&root.join("docs/src/SUMMARY.md"), "rules", &summary_lines())?);
    add("docs/src/memory.md", with_block(&root.join("docs/src/memory.md"), "learned", &learned_table())?);
    add("README.md", with_block(&root.join("README.md"), "rules", &rule_table("docs/src/rules"))?);
    let output = cli::capture(&PICTURED)?;
    let (path, title) = (PICTURED[1], format!("warpsmith {}", PICTURED[..2].join(" ")));
    let shown = picture::until_third_finding(&output).with_context(|| format!("{path} shows no finding"))?;
    add("docs/src/images/check.svg", picture::draw(&title, shown));
    Ok(files)
}

/// The version of the whole repository.
fn version(root: &Path) -> anyhow::Result<String> {
    let package = std::fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml")?;
    let version = package.lines().find_map(|line| line.strip_prefix("version = "));
    Ok(version.context("Cargo.toml has no version")?.trim_matches('"').to_owned())
}

fn neovim_version(version: &str) -> String {
    format!(
        "-- Written by `cargo xtask generate`: the version of the server that this plugin is made for.\nreturn \"{version}\"\n"
    )
}

/// The package with this version of the server.
fn mason_package(text: &str, version: &str) -> String {
    let crate_id = "  id: pkg:cargo/warpsmith@";
    let line = |line: &str| {
        if line.starts_with(crate_id) { format!("{crate_id}{version}\n") } else { format!("{line}\n") }
    };
    text.lines().map(line).collect()
}

/// The text of `path` with the part between the markers of `name` replaced by `block`.
fn with_block(path: &Path, name: &str, block: &str) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let (begin, end) = (format!("<!-- {name}: generated -->\n"), format!("<!-- {name}: end -->"));
    let split = text.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let (before, after) = split.with_context(|| format!("{} lacks `{}`", path.display(), begin.trim()))?;
    Ok(format!("{before}{begin}{block}{end}{after}"))
}

fn rule_list() -> String {
    format!(
        "# Rules\n\nEach rule has a code and a name; settings, `--select`, `--ignore` and comments take either.\n\
         `warpsmith explain CODE` shows a page in the terminal.\n\n{}",
        rule_table("rules")
    )
}

fn rule_table(pages: &str) -> String {
    let mut out = "| code | name | severity | fix | finds |\n|---|---|---|---|---|\n".to_owned();
    for rule in rules::all() {
        let it = &rule.declaration;
        let fix = if it.fixable { "yes" } else { "" };
        let summary = it.summary.replace('|', "\\|");
        let _ = writeln!(
            out,
            "| {} | [{name}]({pages}/{name}.md) | {} | {fix} | {summary} |",
            it.code,
            it.severity,
            name = it.name
        );
    }
    out
}

fn learned_table() -> String {
    let mut out = "| code | sentence | Triton | failures | shown |\n|---|---|---|---|---|\n".to_owned();
    for rule in LearnedRules::shipped().rules() {
        let shown = match (rule.state, rule.covered_by.is_empty()) {
            (RuleState::Promoted, true) => "yes".to_owned(),
            (RuleState::Promoted, false) => format!("by {}", rule.covered_by.join(", ")),
            (state, _) => state.name().to_owned(),
        };
        let sentence = rule.plain_sentence().replace('|', "\\|");
        let _ = writeln!(out, "| {} | {sentence} | {} | {} | {shown} |", rule.code, rule.triton.range(), rule.failures);
    }
    out
}

fn summary_lines() -> String {
    let line =
        |rule: &&rules::Rule| format!("  - [{0} {1}](rules/{1}.md)\n", rule.declaration.code, rule.declaration.name);
    rules::all().iter().map(line).collect()
}

fn skills_page() -> String {
    let mut out = "# Skills\n\nWhat a search can do with a kernel, without a language model. A small step changes one thing of a candidate; a large one \
                   builds it\notherwise, or draws all numbers anew. None of them is taken to be right or faster: that is measured.\n\n\
                   | skill | step | what it does |\n|---|---|---|\n"
        .to_owned();
    for skill in search::skills() {
        let step = if skill.is_large { "large" } else { "small" };
        let _ = writeln!(out, "| `{}` | {step} | {} |", skill.name, skill.about.replace('|', "\\|"));
    }
    out + "\nWhich of them are tried first is learned: how much faster each made kernels of a class (`product`, `attention`, `reduction`, \
           `scan`,\n`pointwise`) whose time is bounded by the same (`memory`, `launch` or other `work`; `compute` or\n`latency` where the machine has NVIDIA's `ncu` and lets it count), on which device. That is kept for each \
           user, beside\nthe false alarms. `warpsmith skills` shows it, `warpsmith skills --forget` forgets it, and with `optimize.learn = false` \
           nothing is\nlearned or used. A search still looks at what it sees itself: four tries of its own count as much as all that is known.\n"
}

fn settings_page() -> String {
    format!(
        "# Settings\n\n\
         Settings live in `warpsmith.toml`, or in `pyproject.toml` below `[tool.warpsmith]`. The nearest such file at or\n\
         above a Python file counts, alone: files further up are not merged in. Unknown keys, wrong types and unknown\n\
         rules are errors that name the line. What an editor sends is laid over the file, key by key.\n\n\
         `config/schema.json` describes the file to editors that complete TOML.\n\n\
         ```toml\n{}```\n",
        config::default_toml()
    )
}
