//! The request `textDocument/codeLens`. The lenses above a kernel show the resources that it uses, open the output of
//! the compiler, and start a search, which is also offered above functions that launch kernels.

use serde_json::{Value, json};
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use compiler::CompileTarget;
use ide::resources as words;
use model::analysis::resources::Resources;
use model::analysis::verdict::{FrontEndOutcome, FrontEndVerdict};
use model::kernel::Kernel;
use model::syntax::{Encoding, Span};
use search::{OptimizeScope, RunState};

use crate::server::action_request::{self, Readiness};
use crate::server::commands::inspect::INSPECT;
use crate::server::commands::optimize::OPTIMIZE;
use crate::server::commands::report::REPORT;
use crate::server::commands::resources::RESOURCES;
use crate::server::jobs::CANCEL;
use crate::server::owner::Owner;
use crate::server::unit::Unit;

/// Answers the request.
pub(crate) fn handle(owner: &mut Owner, params: lsp::CodeLensParams) -> Result<Option<Vec<lsp::CodeLens>>> {
    let uri = &params.text_document.uri;
    let Some(unit) = owner.documents.unit(uri) else { return Ok(None) };
    if !owner.resolved(&unit).settings.code_lens.enabled {
        return Ok(None);
    }
    // Resources may make a long line, which would hide the lenses behind it, so they come last.
    let mut lenses = owner.search_lenses(&unit, uri);
    if let Some(device) = owner.surveyed_for(&unit) {
        lenses.extend(of_document(&unit, uri, &device, owner.encoding));
    }
    Ok(Some(lenses))
}

/// The lenses of one document of a unit whose kernels are compiled for `device`.
fn of_document(unit: &Unit, uri: &lsp::Uri, device: &CompileTarget, encoding: Encoding) -> Vec<lsp::CodeLens> {
    let own = unit.module.kernels.iter().filter(|kernel| words::is_reported(&unit.module, kernel));
    own.filter_map(|kernel| of_kernel(unit, uri, kernel, device, encoding)).flatten().collect()
}

/// The lenses of a kernel that Triton has compiled.
fn of_kernel(
    unit: &Unit,
    uri: &lsp::Uri,
    kernel: &Kernel,
    device: &CompileTarget,
    encoding: Encoding,
) -> Option<Vec<lsp::CodeLens>> {
    let verdict = FrontEndVerdict::of(kernel)?;
    matches!(verdict.outcome, FrontEndOutcome::Accepted { .. }).then_some(())?;
    let range = range_at(unit, uri, kernel.span.start, encoding)?;
    let architecture = device.architecture();
    let known = Resources::of(kernel).filter(|known| known.device == architecture);
    let title = known.map_or_else(|| format!("\u{25b7} resources on {architecture}"), |known| words::headline(&known));
    let of_kernel = json!({ "uri": uri, "kernel": kernel.name });
    let mut lenses = vec![lens(range, title, RESOURCES, of_kernel)];
    let stages: &[&str] = if device.backend == "cuda" { &["ttgir", "ptx", "sass"] } else { &["ttgir", "amdgcn"] };
    for stage in stages {
        let arguments = json!({ "uri": uri, "kernel": kernel.name, "stage": stage });
        lenses.push(lens(range, stage.to_uppercase(), INSPECT, arguments));
    }
    Some(lenses)
}

impl Owner {
    /// The lenses that optimize kernels, above each kernel and above the functions that launch them; none where
    /// that is impossible.
    fn search_lenses(&mut self, unit: &Unit, uri: &lsp::Uri) -> Vec<lsp::CodeLens> {
        let module = &unit.module;
        let kernels = module.kernels.iter().filter(|kernel| !action_request::is_helper(module, &kernel.name));
        let kernels = kernels.map(|kernel| (kernel.span.start, OptimizeScope::Kernel(kernel.name.clone()), true));
        let hosts = module.hosts.iter().enumerate();
        let hosts =
            hosts.filter_map(|(at, host)| Some((host.span.start, action_request::launched_by(module, at)?, false)));
        let mut lenses = Vec::new();
        for (at, subject, is_kernel) in kernels.chain(hosts) {
            if let Some(range) = range_at(unit, uri, at, self.encoding) {
                lenses.extend(self.search_lenses_of(unit, &subject, is_kernel, range));
            }
        }
        lenses
    }

    /// The lenses at one kernel or function. A function that launches a single kernel has fewer, because the kernel
    /// has the others.
    fn search_lenses_of(
        &mut self,
        unit: &Unit,
        subject: &OptimizeScope,
        is_kernel: bool,
        range: lsp::Range,
    ) -> Vec<lsp::CodeLens> {
        let elsewhere = match subject {
            OptimizeScope::Kernel(name) if !is_kernel => Some(format!("`{name}`")),
            _ => None,
        };
        let is_own = elsewhere.is_none();
        let what = elsewhere.unwrap_or_else(|| action_request::scope_name(subject));
        let argument = action_request::argument(unit, subject);
        let mut lenses = match self.readiness(unit, subject) {
            Readiness::Ready => vec![lens(range, format!("\u{25b7} Optimize {what}"), OPTIMIZE, argument.clone())],
            Readiness::Running(job) => {
                return vec![lens(range, format!("\u{25fc} Stop optimizing {what}"), CANCEL, json!({ "job": job }))];
            }
            Readiness::Not(_) => return Vec::new(),
        };
        let Some(last) = self.last_run(unit, subject).filter(|_| is_own) else { return lenses };
        if last.state == RunState::Stopped {
            let mut argument = argument;
            argument["run"] = json!(last.run);
            lenses.push(lens(range, "Resume".to_owned(), OPTIMIZE, argument));
        }
        lenses.push(lens(range, "Last report".to_owned(), REPORT, json!({ "uri": unit.uri, "run": last.run })));
        lenses
    }
}

/// The range in this document of an offset in the unit.
fn range_at(unit: &Unit, uri: &lsp::Uri, at: usize, encoding: Encoding) -> Option<lsp::Range> {
    let (part, range) = unit.locate(Span::new(at, at), encoding)?;
    (part.uri == *uri).then_some(range)
}

fn lens(range: lsp::Range, title: String, command: &str, argument: Value) -> lsp::CodeLens {
    let (command, arguments) = (command.to_owned(), Some(vec![argument]));
    lsp::CodeLens {
        range,
        command: Some(lsp::Command { title, command, arguments, ..lsp::Command::default() }),
        data: None,
    }
}
