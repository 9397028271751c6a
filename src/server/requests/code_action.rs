//! The request `textDocument/codeAction`: quick fixes, suppressions, and actions that run a command.

use serde_json::json;
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use model::kernel::HostFunction;
use rules::learned::is_learned;
use search::{OptimizeScope, PastRun, RunState};

use crate::server::action_request::{ActionRequest, Readiness, action, argument, launched_by, scope_name};
use crate::server::commands::report::REPORT;
use crate::server::commands::{inspect, optimize, record, rule_memory};
use crate::server::diagnostics::{self, DiagnosticData};
use crate::server::jobs::CANCEL;
use crate::server::owner::Owner;
use crate::server::{suppression, to_lsp};

/// The kinds of code actions that the server announces.
pub(crate) fn kinds() -> Vec<lsp::CodeActionKind> {
    vec![lsp::CodeActionKind::QuickFix, lsp::CodeActionKind::RefactorRewrite, inspect::kind(), record::kind()]
}

/// Whether the client wants actions of this kind.
fn wanted(kind: &lsp::CodeActionKind, only: Option<&[lsp::CodeActionKind]>) -> bool {
    let kind = String::from(kind.clone());
    only.is_none_or(|only| {
        only.iter().any(|wanted| {
            let wanted = String::from(wanted.clone());
            wanted.is_empty() || kind == wanted || kind.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with('.'))
        })
    })
}

/// Answers the request.
pub(crate) fn handle(owner: &mut Owner, params: lsp::CodeActionParams) -> Result<Option<Vec<lsp::CodeActionResponse>>> {
    Ok(Some(owner.code_actions(&params)))
}

impl Owner {
    /// The actions for a range.
    fn code_actions(&mut self, params: &lsp::CodeActionParams) -> Vec<lsp::CodeActionResponse> {
        let uri = &params.text_document.uri;
        let only = params.context.only.as_deref();
        if !self.capabilities.code_actions {
            return Vec::new();
        }
        let Some(unit) = self.documents.unit(uri) else { return Vec::new() };
        let capabilities = self.capabilities.clone();
        let place =
            ActionRequest { unit: &unit, uri, range: params.range, encoding: self.encoding, client: &capabilities };
        let mut actions = Vec::new();
        if wanted(&lsp::CodeActionKind::QuickFix, only) {
            let known = place.known_diagnostics(&params.context).unwrap_or_else(|| {
                self.checked(uri);
                place.own_diagnostics()
            });
            actions.extend(place.quick_fixes(&known));
        }
        if wanted(&lsp::CodeActionKind::RefactorRewrite, only)
            && let Some(subject) = place.subject()
        {
            let readiness = self.readiness(&unit, &subject);
            let last = self.last_run(&unit, &subject);
            actions.extend(place.optimize(&subject, readiness, last.as_ref()));
            actions.extend(last.map(|last| place.report(&last.run)));
        } else if wanted(&lsp::CodeActionKind::RefactorRewrite, only) {
            actions.extend(self.write_action(&place));
        }
        if wanted(&inspect::kind(), only) {
            actions.extend(self.inspect_actions(&place));
        }
        if wanted(&record::kind(), only) {
            actions.extend(self.record_actions(&place));
        }
        actions.into_iter().map(lsp::CodeActionResponse::CodeAction).collect()
    }
}

impl ActionRequest<'_> {
    /// The diagnostics that the client sent along, if they are of the present text; their data contains the fixes.
    fn known_diagnostics(&self, context: &lsp::CodeActionContext) -> Option<Vec<(lsp::Diagnostic, DiagnosticData)>> {
        let version = self.unit.part(self.uri)?.version;
        let ours = context.diagnostics.iter().filter(|item| item.source.as_deref() == Some(diagnostics::SOURCE));
        let known: Vec<_> = ours.map(|item| Some((item.clone(), data(item)?))).collect::<Option<_>>()?;
        (!known.is_empty() && known.iter().all(|(_, data)| data.version == version)).then_some(known)
    }

    /// The unit's findings that touch the place.
    fn own_diagnostics(&self) -> Vec<(lsp::Diagnostic, DiagnosticData)> {
        let touches =
            |item: &lsp::Diagnostic| (item.range.start <= self.range.end) && (self.range.start <= item.range.end);
        diagnostics::of_document(self.unit, self.uri, self.client, self.encoding)
            .into_iter()
            .filter(touches)
            .filter_map(|item| data(&item).map(|data| (item, data)))
            .collect()
    }

    /// The fixes of the diagnostics, then the suppressions.
    fn quick_fixes(&self, diagnostics: &[(lsp::Diagnostic, DiagnosticData)]) -> Vec<lsp::CodeAction> {
        let fixes: Vec<_> = diagnostics.iter().filter_map(|(item, data)| Some((item, data.fix.as_ref()?))).collect();
        let is_only_one = fixes.len() == 1;
        let mut actions: Vec<_> = fixes
            .into_iter()
            .map(|(item, fix)| lsp::CodeAction {
                title: fix.title.clone(),
                kind: Some(lsp::CodeActionKind::QuickFix),
                diagnostics: Some(vec![item.clone()]),
                is_preferred: is_only_one.then_some(true),
                edit: Some(to_lsp::workspace_edit(self.client, &fix.uri, fix.version, fix.edits.clone())),
                ..lsp::CodeAction::default()
            })
            .collect();
        actions.extend(diagnostics.iter().flat_map(|(item, _)| self.of_memory(item)));
        for (item, _) in diagnostics {
            let suppression = self.suppression(item);
            // One comment covers all findings of a rule on its line.
            actions.extend(suppression.filter(|action| !actions.iter().any(|known| known.edit == action.edit)));
        }
        actions
    }

    /// Actions for a finding of a learned rule.
    fn of_memory(&self, item: &lsp::Diagnostic) -> Vec<lsp::CodeAction> {
        let Some(lsp::Code::String(code)) = item.code.as_ref().filter(|code| is_learned_code(code)) else {
            return Vec::new();
        };
        let span = self.unit.span(self.uri, item.range, self.encoding);
        let kernel = span.and_then(|span| self.unit.module.kernel_at(span.start));
        let dispute = kernel.map(|kernel| {
            let argument = json!({ "uri": self.unit.uri, "kernel": kernel.name, "code": code });
            action("This is wrong: check with Triton".to_owned(), rule_memory::DISPUTE, argument)
        });
        let of_rule = |title: String, command| action(title, command, json!({ "code": code }));
        let reproducer = of_rule(format!("Show what {code} was learned from"), rule_memory::REPRODUCER);
        let mute = of_rule(format!("Mute {code} everywhere"), rule_memory::MUTE);
        let kind = || Some(lsp::CodeActionKind::QuickFix);
        let all = [reproducer].into_iter().chain(dispute).chain([mute]);
        all.map(|action| lsp::CodeAction { kind: kind(), diagnostics: Some(vec![item.clone()]), ..action }).collect()
    }

    fn suppression(&self, item: &lsp::Diagnostic) -> Option<lsp::CodeAction> {
        let Some(lsp::Code::String(code)) = &item.code else { return None };
        let span = self.unit.span(self.uri, item.range, self.encoding)?;
        let edit = suppression::edit(&self.unit.source, span, code)?;
        let (part, edits) = to_lsp::edits(self.unit, &[edit], self.encoding)?;
        Some(lsp::CodeAction {
            title: format!("Ignore {code} on this line"),
            kind: Some(lsp::CodeActionKind::QuickFix),
            diagnostics: Some(vec![item.clone()]),
            edit: Some(to_lsp::workspace_edit(self.client, &part.uri, part.version, edits)),
            ..lsp::CodeAction::default()
        })
    }

    /// The part of the file to optimize: a kernel, or all kernels that the function around the place launches.
    fn subject(&self) -> Option<OptimizeScope> {
        if let Some(kernel) = self.kernel() {
            return Some(OptimizeScope::Kernel(kernel.name.clone()));
        }
        let module = &self.unit.module;
        let place = self.unit.span(self.uri, self.range, self.encoding)?;
        let innermost = |(_, host): &(usize, &HostFunction)| host.span.end - host.span.start;
        let (index, _) =
            module.hosts.iter().enumerate().filter(|(_, host)| host.span.meets(place)).min_by_key(innermost)?;
        launched_by(module, index)
    }

    /// Actions to optimize something, to stop or continue a search, or a disabled action with the reason.
    fn optimize(&self, subject: &OptimizeScope, readiness: Readiness, last: Option<&PastRun>) -> Vec<lsp::CodeAction> {
        let (what, argument) = (scope_name(subject), argument(self.unit, subject));
        let optimize = format!("Optimize {what}");
        match readiness {
            Readiness::Ready => {
                let with = |title: String, more: &[(&str, serde_json::Value)]| {
                    let mut argument = argument.clone();
                    more.iter().for_each(|(key, value)| argument[key] = value.clone());
                    action(title, optimize::OPTIMIZE, argument)
                };
                let of_last = last.map(|past| match past.state {
                    RunState::Stopped => with(format!("Resume optimizing {what}"), &[("run", json!(past.run))]),
                    RunState::Over | RunState::Running => with(
                        format!("Measure {what} against what it was before the last search"),
                        &[("run", json!(past.run)), ("measure", json!(true))],
                    ),
                });
                let ask = with(format!("{optimize} with settings…"), &[("ask", json!(true))]);
                let plain = action(optimize, optimize::OPTIMIZE, argument.clone());
                [plain].into_iter().chain(of_last).chain([ask]).collect()
            }
            Readiness::Running(job) => {
                vec![action(format!("Stop optimizing {what}"), CANCEL, json!({ "job": job }))]
            }
            Readiness::Not(reason) => self.disabled(optimize, reason).into_iter().collect(),
        }
    }

    /// The action that opens the report of a run.
    fn report(&self, run: &str) -> lsp::CodeAction {
        action("Show the report of the last search".to_owned(), REPORT, json!({ "uri": self.unit.uri, "run": run }))
    }
}

fn is_learned_code(code: &lsp::Code) -> bool {
    matches!(code, lsp::Code::String(code) if is_learned(code))
}

fn data(item: &lsp::Diagnostic) -> Option<DiagnosticData> {
    serde_json::from_value(item.data.clone()?).ok()
}
