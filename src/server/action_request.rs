//! A request for code actions at a place, and what the actions have in common.

use serde_json::{Value, json};
use tower_lsp::gen_lsp_types as lsp;

use model::kernel::{Kernel, Module};
use model::syntax::Encoding;
use search::OptimizeScope;

use super::client_features::ClientFeatures;
use super::unit::Unit;

/// A request for code actions at a place in a document.
pub(crate) struct ActionRequest<'a> {
    /// The unit that the document belongs to.
    pub(crate) unit: &'a Unit,
    /// The address of the document.
    pub(crate) uri: &'a lsp::Uri,
    /// The selection, or the cursor.
    pub(crate) range: lsp::Range,
    /// The unit of columns.
    pub(crate) encoding: Encoding,
    /// The client's capabilities.
    pub(crate) client: &'a ClientFeatures,
}

/// Whether a kernel can be optimized now.
pub(crate) enum Readiness {
    /// It can.
    Ready,
    /// The job with this name is optimizing it already.
    Running(String),
    /// It cannot; the text is the reason.
    Not(String),
}

impl ActionRequest<'_> {
    /// The kernel that contains the place or whose launch is there; `None` when there are several.
    pub(crate) fn kernel(&self) -> Option<&Kernel> {
        let module = &self.unit.module;
        let place = self.unit.span(self.uri, self.range, self.encoding)?;
        let launched = module.launches.iter().filter(|launch| launch.span.meets(place));
        let launched = launched.filter_map(|launch| launch.kernel.as_deref());
        let defined =
            module.kernels.iter().filter(|kernel| kernel.span.meets(place)).map(|kernel| kernel.name.as_str());
        let mut names: Vec<&str> = launched.chain(defined).collect();
        names.dedup();
        let [name] = names[..] else { return None };
        module.kernel(name).filter(|_| !is_helper(module, name))
    }

    /// A disabled action with the reason, for clients that show such actions.
    pub(crate) fn disabled(&self, title: String, reason: String) -> Option<lsp::CodeAction> {
        self.client.disabled_actions.then(|| lsp::CodeAction {
            title,
            kind: Some(lsp::CodeActionKind::RefactorRewrite),
            disabled: Some(lsp::CodeActionDisabled { reason }),
            ..lsp::CodeAction::default()
        })
    }
}

/// Whether a kernel is called only by other kernels.
pub(crate) fn is_helper(module: &Module, name: &str) -> bool {
    module.called_in_kernels().contains(name) && module.launches_of(name).next().is_none()
}

/// The kernels of its file that a function launches: a single kernel as such, several as the function.
pub(crate) fn launched_by(module: &Module, host: usize) -> Option<OptimizeScope> {
    let launched = module.launches.iter().filter(|launch| launch.host == Some(host));
    let mut kernels: Vec<&str> = launched.filter_map(|launch| launch.kernel.as_deref()).collect();
    kernels.retain(|name| module.kernel(name).is_some());
    kernels.sort_unstable();
    kernels.dedup();
    match kernels[..] {
        [] => None,
        [kernel] => Some(OptimizeScope::Kernel(kernel.to_owned())),
        _ => Some(OptimizeScope::Function(module.hosts[host].qualname.clone())),
    }
}

/// The subject of an action's title.
pub(crate) fn scope_name(subject: &OptimizeScope) -> String {
    match subject {
        OptimizeScope::Function(name) => format!("the kernels of `{name}`"),
        _ => "this kernel".to_owned(),
    }
}

/// The argument of the command that optimizes it.
pub(crate) fn argument(unit: &Unit, subject: &OptimizeScope) -> Value {
    match subject {
        OptimizeScope::Function(name) => json!({ "uri": unit.uri, "function": name }),
        _ => json!({ "uri": unit.uri, "kernel": subject.name() }),
    }
}

/// A code action that runs a command.
pub(crate) fn action(title: String, command: &str, argument: Value) -> lsp::CodeAction {
    let (command, arguments) = (command.to_owned(), Some(vec![argument]));
    lsp::CodeAction {
        title: title.clone(),
        kind: Some(lsp::CodeActionKind::RefactorRewrite),
        command: Some(lsp::Command { title, tooltip: None, command, arguments }),
        ..lsp::CodeAction::default()
    }
}
