//! The report in Markdown, for a pull request.

use std::fmt::Write;

use super::Report;
use crate::model_costs::ModelCosts;

/// The costs of a model: `$0.0123`, with a `≤` where tokens are estimated, because the estimate is rather too high.
pub(super) fn money(cost: &ModelCosts) -> String {
    let most = if cost.estimated { "≤ " } else { "" };
    if cost.dollars > 0.0 { format!("{most}${:.4}", cost.dollars) } else { String::new() }
}

impl Report {
    /// The report in Markdown, without pictures.
    #[must_use]
    pub fn markdown(&self) -> String {
        text(self)
    }
}

/// The whole report.
fn text(report: &Report) -> String {
    let mut out = format!("# `{}`: run `{}`\n\n", report.name, report.run);
    let summary = report
        .summary
        .as_deref()
        .unwrap_or("It was stopped before it ended; `warpsmith optimize --resume` resumes it.");
    let _ = writeln!(out, "{summary}\n");
    let _ =
        writeln!(out, "{}; {}; {:.0} of {:.0} s.\n", report.environment, report.date, report.seconds, report.budget);
    if let Some(speedup) = &report.speedup {
        out += "| call | seen | before | after | faster | 95 % |\n|---|---:|---:|---:|---:|---|\n";
        for call in &speedup.calls {
            let [low, high] = call.interval;
            let (before, after, ratio) = (call.before_ms, call.after_ms, call.ratio);
            let _ = writeln!(
                out,
                "| `{}` | {}× | {before:.4} ms | {after:.4} ms | {ratio:.2}× | {low:.2}–{high:.2} |",
                call.call, call.count
            );
        }
        out.push('\n');
    }
    if let Some(diff) = &report.diff {
        let _ = writeln!(out, "```diff\n{diff}```\n");
    }
    let (right, wrong, uncompiled) = (report.count("right"), report.count("wrong"), report.count("uncompiled"));
    let _ = writeln!(out, "{right} candidates were right, {wrong} wrong, {uncompiled} did not compile.");
    for (place, count) in report.places() {
        let _ = writeln!(out, "- {count} were judged on {place}.");
    }
    let stages: Vec<String> = report.stages().iter().map(|(name, seconds)| format!("{name} {seconds:.2} s")).collect();
    if !stages.is_empty() {
        let _ = writeln!(out, "- Judging one took at the median: {}.", stages.join(", "));
    }
    for refusal in &report.refusals {
        let first = refusal.example.lines().next().unwrap_or_default();
        let _ = writeln!(out, "- {} ({}): {first}", refusal.reason, refusal.count);
    }
    for confirmation in &report.confirmations {
        let what = if confirmation.speedup.is_some() { "what is offered" } else { confirmation.change.as_str() };
        for note in &confirmation.notes {
            let _ = writeln!(out, "- Of {what}: {note}");
        }
    }
    for (operator, asked) in &report.asked {
        let (questions, candidates, right) = (asked.questions, asked.candidates, asked.right);
        let _ = writeln!(
            out,
            "- Model, {operator} steps: {questions} questions, {candidates} candidates, {right} of them right."
        );
    }
    if !report.models.is_empty() {
        out += "\n| model | requests | tokens sent | tokens back | cost |\n|---|---:|---:|---:|---:|\n";
        for cost in &report.models {
            let ModelCosts { model, requests, input, output, .. } = cost;
            let _ = writeln!(out, "| {model} | {requests} | {input} | {output} | {} |", money(cost));
        }
    }
    let [optimize, show] = report.again();
    let _ = writeln!(out, "\nTo run it again: `{optimize}`; to see it: `{show}`.");
    out
}
