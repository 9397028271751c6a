//! What is known and not written, to be shown between the text.
//!
//! Each source of hints is a function of the file that is named in [`hints`].

use std::collections::BTreeSet;

use model::analysis::launches::{certainly_launched, settings};
use model::api::Target;
use model::kernel::{Kernel, Module, Param};
use model::syntax::Span;

/// More values than this are not all shown.
const SHOWN: usize = 4;

/// A hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The byte before which it is shown.
    pub offset: usize,
    /// Its text.
    pub label: String,
    /// What is to be known about it.
    pub tooltip: String,
    /// What it says.
    pub kind: HintKind,
}

/// What a hint says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintKind {
    /// The values that a compile-time parameter gets.
    Value,
    /// The type of a value.
    Type,
}

/// The hints of a file that stand in `within` and are of a kind that is `wanted`, in the order of the text.
#[must_use]
pub fn hints(
    module: &Module,
    text: &str,
    target: Target,
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
