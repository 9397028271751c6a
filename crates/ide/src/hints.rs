//! Inlay hints: facts that the text does not contain, shown between its characters.
//!
//! [`hints`] calls one function for each source of hints.

use std::collections::BTreeSet;

use model::analysis::launches::{certainly_launched, settings};
use model::api::TritonTarget;
use model::kernel::{Kernel, Module, Param};
use model::syntax::Span;

/// The number of values that a hint lists at most.
const SHOWN: usize = 4;

/// An inlay hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The byte offset before which the hint is shown.
    pub offset: usize,
    /// The text of the hint.
    pub label: String,
    /// The explanation that is shown on hover.
    pub tooltip: String,
    /// The kind of fact that the hint shows.
    pub kind: HintKind,
}

/// The kind of fact that a hint shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintKind {
    /// The values that a compile-time parameter gets.
    Value,
    /// The type of a value.
    Type,
}

/// The hints in the span `within` whose kind is `wanted`, in the order of the text.
#[must_use]
pub fn hints(
    module: &Module,
    text: &str,
    target: TritonTarget,
    within: Span,
    wanted: &dyn Fn(HintKind) -> bool,
) -> Vec<Hint> {
    let mut hints = Vec::new();
    for (index, kernel) in module.kernels.iter().enumerate().filter(|(_, kernel)| kernel.def_span.meets(within)) {
        if wanted(HintKind::Value) {
            hints.extend(values(module, kernel));
        }
        if wanted(HintKind::Type) {
            hints.extend(super::types::hints(module, text, target, index));
        }
    }
    hints.retain(|hint| within.touches(hint.offset));
    hints.sort_by_key(|hint| hint.offset);
    hints
}

/// The values that the launches and configurations of the file give the compile-time parameters of `kernel`: ` = 1024`.
fn values(module: &Module, kernel: &Kernel) -> Vec<Hint> {
    if !certainly_launched(module, kernel) {
        return Vec::new();
    }
    let settings = settings(module, kernel);
    let of_param = |param: &Param| {
        let values = settings.iter().map(|setting| setting.value(&param.name).map(|(value, _)| value));
        let values: BTreeSet<i128> = values.collect::<Option<_>>()?;
        let written = param.default.as_ref().and_then(|default| default.as_int());
        let is_written = values.len() == 1 && values.first() == written.as_ref();
        (!values.is_empty() && !is_written).then(|| Hint {
            offset: param.span.end,
            label: label(&values),
            tooltip: format!(
                "What the launches and configurations of `{}` in this file pass for `{}`.",
                kernel.name, param.name
            ),
            kind: HintKind::Value,
        })
    };
    kernel.params.iter().filter(|param| param.constexpr).filter_map(of_param).collect()
}

fn label(values: &BTreeSet<i128>) -> String {
    match values.len() {
        1 => format!(" = {}", values.iter().next().copied().unwrap_or_default()),
        count => {
            let mut shown: Vec<String> = values.iter().take(SHOWN).map(i128::to_string).collect();
            if count > SHOWN {
                shown.push("…".to_owned());
            }
            format!(" ∈ {{{}}}", shown.join(", "))
        }
    }
}
