//! The report as a single HTML page.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::markdown::money;
use super::{Report, charts, roofline};

const STYLE: &str = include_str!("page.css");

impl Report {
    /// The report as a single HTML page without external resources.
    #[must_use]
    pub fn html(&self) -> String {
        page(self)
    }

    /// The sections of that page about measurements (calls, bounds, refusals, checks), for pages that draw the rest
    /// themselves.
    #[must_use]
    pub fn sections(&self) -> String {
        sections(self)
    }
}

/// The whole page.
fn page(report: &Report) -> String {
    let title = format!("{} · {}", report.name, report.run);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; meta name="viewport" content="width=device-width"; title { (title) } style { (PreEscaped(STYLE)) } }
            body {
                h1 { code { (report.name) } }
                (head(report))
                (calls(report))
                @if let Some(diff) = &report.diff { h2 { "The change" } (coloured(diff)) }
                h2 { "Best speedup over time" } (PreEscaped(charts::progress(report)))
                (tried(report))
                (refusals(report))
                (models(report))
                (evidence(report))
                (again(report))
            }
        }
    };
    page.into_string()
}

/// The sections of the page without the pictures of the search itself.
fn sections(report: &Report) -> String {
    html! { (calls(report)) (refusals(report)) (models(report)) (evidence(report)) (again(report)) }.into_string()
}

fn again(report: &Report) -> Markup {
    html! {
        h2 { "To run it again" }
        @for command in report.again() { pre { (command) } }
    }
}

fn head(report: &Report) -> Markup {
    html! {
        @match (&report.speedup, &report.summary) {
            (Some(speedup), _) => p { strong { (speedup.label()) } },
            (None, Some(summary)) => p { strong { (summary) } },
            (None, None) => p { "It was stopped before it ended. To resume it: " code { "warpsmith optimize --resume " (report.run) } },
        }
        @if let Some(change) = &report.change { p { (change) } }
        p { (report.environment) "; " (report.date) "; " (format!("{:.0} of {:.0} s", report.seconds, report.budget)) "; " code { (report.file.display().to_string()) } }
    }
}

/// The table of the calls, with their bounds.
fn calls(report: &Report) -> Markup {
    let Some(speedup) = &report.speedup else { return html! {} };
    html! {
        h2 { "Calls" }
        table {
            tr { th { "call" } th { "seen" } th { "before" } th { "after" } th { "faster" } th { "95 %" } th { "of the memory's rate" } }
            @for call in &speedup.calls {
                tr {
                    td { code { (call.call) } }
                    td.number { (call.count) "×" }
                    td.number { (format!("{:.4} ms", call.before_ms)) }
                    td.number { (format!("{:.4} ms", call.after_ms)) }
                    td.number { (format!("{:.2}×", call.ratio)) }
                    td { (format!("{:.2}–{:.2}", call.interval[0], call.interval[1])) }
                    td { @if let Some((before, after)) = call.floor_share { (format!("{:.0} → {:.0} %", 100.0 * before, 100.0 * after)) } }
                }
            }
        }
        p { (speedup.pairs) " interleaved pairs, cold L2. " (speedup.conditions) }
        @if let Some(picture) = charts::bounds(report) { (PreEscaped(picture)) }
        (roofline(report))
    }
}

/// The roofline of original and offer.
fn roofline(report: &Report) -> Markup {
    let Some(picture) = report.speedup.as_ref().and_then(roofline::picture) else { return html! {} };
    html! {
        h2 { "Roofline" }
        (PreEscaped(picture))
        p { "Operations on floats and bytes from and to the memory are counted in the compiled kernels, the bytes by a model of the caches; the roof is the maker's data sheet." }
    }
}

fn coloured(diff: &str) -> Markup {
    html! {
        pre {
            @for line in diff.lines() {
                @match line.as_bytes().first() {
                    Some(b'+') => span.add { (line) },
                    Some(b'-') => span.del { (line) },
                    _ => (line),
                }
                "\n"
            }
        }
    }
}

/// The counts and the tree of candidates.
fn tried(report: &Report) -> Markup {
    let (right, wrong) = (report.count("right"), report.count("wrong"));
    html! {
        h2 { "What was tried" }
        p { (right) " candidates were right, " (wrong) " wrong, " (report.count("uncompiled")) " did not compile." }
        @for (place, count) in report.places() { p { (count) " were judged on " (place) "." } }
        div.scroll { (PreEscaped(charts::tree(report))) }
    }
}

/// The table of refusals.
fn refusals(report: &Report) -> Markup {
    html! {
        @if !report.refusals.is_empty() {
            table {
                tr { th { "refused for" } th { "candidates" } th { "for example" } }
                @for refusal in &report.refusals {
                    tr { td { (refusal.reason) } td.number { (refusal.count) } td { pre { (refusal.example) } } }
                }
            }
        }
    }
}

/// The table of questions to models, and their costs.
fn models(report: &Report) -> Markup {
    if report.asked.is_empty() && report.models.is_empty() {
        return html! {};
    }
    html! {
        h2 { "Language models" }
        table {
            tr { th { "step" } th { "questions" } th { "replies" } th { "candidates" } th { "right" } th { "without a new candidate" } th { "for example" } }
            @for (operator, asked) in &report.asked {
                tr {
                    td { (operator) } td.number { (asked.questions) } td.number { (asked.replies) } td.number { (asked.candidates) }
                    td.number { (asked.right) } td.number { (asked.failed) } td { (asked.why.as_deref().unwrap_or_default()) }
                }
            }
        }
        table {
            tr { th { "model" } th { "requests" } th { "tokens sent" } th { "kept of these" } th { "tokens back" } th { "cost" } }
            @for cost in &report.models {
                tr {
                    td { (cost.model) } td.number { (cost.requests) } td.number { (cost.input) } td.number { (cost.cached) }
                    td.number { (cost.output) } td.number { (money(cost)) }
                }
            }
        }
    }
}

/// The evidence of the confirming measurements.
fn evidence(report: &Report) -> Markup {
    html! {
        @for confirmation in &report.confirmations {
            h2 { "Confirming " (confirmation.change) }
            @if let Some(refused) = &confirmation.refused { pre { (refused) } }
            table {
                @for (name, seen) in &confirmation.checks { tr { td { (name) } td { (seen) } } }
            }
            @for note in &confirmation.notes { p { (note) } }
        }
    }
}
