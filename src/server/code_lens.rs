//! What is shown above a kernel: what it takes of the device, and what the compiler makes of it.

use serde_json::json;
use tower_lsp::gen_lsp_types as lsp;

use super::inspect::INSPECT;
use super::survey::RESOURCES;
use super::unit::Unit;
use crate::analysis::resources::Resources;
use crate::analysis::verdict::{Outcome, Verdict};
use crate::compiler::Device;
use crate::features::resources as words;
use crate::kernel::Kernel;
use crate::syntax::{Encoding, Span};

/// The lenses of a document of a unit whose kernels are compiled for `device`.
pub(super) fn of_document(unit: &Unit, uri: &lsp::Uri, device: &Device, encoding: Encoding) -> Vec<lsp::CodeLens> {
    let own = unit.module.kernels.iter().filter(|kernel| words::is_told(&unit.module, kernel));
    own.filter_map(|kernel| of_kernel(unit, uri, kernel, device, encoding)).flatten().collect()
}

/// The lenses of a kernel, once Triton has said that it compiles.
fn of_kernel(
    unit: &Unit,
    uri: &lsp::Uri,
    kernel: &Kernel,
    device: &Device,
    encoding: Encoding,
) -> Option<Vec<lsp::CodeLens>> {
    let verdict = Verdict::of(kernel)?;
    matches!(verdict.outcome, Outcome::Accepted { .. }).then_some(())?;
    let (part, range) = unit.locate(Span::new(kernel.span.start, kernel.span.start), encoding)?;
    if part.uri != *uri {
        return None;
    }
    let lens = |title: String, command: &str, arguments: serde_json::Value| lsp::CodeLens {
        range,
        command: Some(lsp::Command {
            title,
            command: command.to_owned(),
            arguments: Some(vec![arguments]),
            ..lsp::Command::default()
        }),
        data: None,
    };
    let architecture = device.architecture();
    let known = Resources::of(kernel).filter(|known| known.device == architecture);
    let title = known.map_or_else(|| format!("\u{25b7} resources on {architecture}"), |known| words::headline(&known));
    let of_kernel = json!({ "uri": uri, "kernel": kernel.name });
    let mut lenses = vec![lens(title, RESOURCES, of_kernel)];
    let stages: &[&str] = if device.backend == "cuda" { &["ttgir", "ptx", "sass"] } else { &["ttgir", "amdgcn"] };
    for stage in stages {
        let arguments = json!({ "uri": uri, "kernel": kernel.name, "stage": stage });
        lenses.push(lens(stage.to_uppercase(), INSPECT, arguments));
    }
    Some(lenses)
}
