//! Text for signatures and kinds of members.

use model::api::{Member, MemberKind, MemberParameter, TritonTarget, VersionCertainty};
use model::kernel::{Kernel, Param};

/// A parameter as in Python: `mask=None`.
#[must_use]
pub fn parameter(param: &MemberParameter) -> String {
    match &param.default {
        Some(default) => format!("{}={default}", param.name),
        None => param.name.clone(),
    }
}

/// The parameters of a member in parentheses: `(pointer, mask=None)`.
#[must_use]
pub fn parameters(member: &Member) -> String {
    format!("({})", member.params.iter().map(parameter).collect::<Vec<_>>().join(", "))
}

/// The declaration of the member at `path`, as Python.
#[must_use]
pub fn signature(path: &str, member: &Member) -> String {
    match member.kind {
        MemberKind::Builtin | MemberKind::Jit | MemberKind::Function => format!("{path}{}", parameters(member)),
        MemberKind::Class => format!("class {path}{}", parameters(member)),
        MemberKind::Dtype | MemberKind::Module | MemberKind::Value => path.to_owned(),
    }
}

/// The kind of a member in words.
#[must_use]
pub fn kind(member: &Member) -> &'static str {
    match member.kind {
        MemberKind::Builtin => "compiler built-in",
        MemberKind::Jit => "written in Triton",
        MemberKind::Function => "Python function",
        MemberKind::Class => "class",
        MemberKind::Dtype => "dtype",
        MemberKind::Module => "module",
        MemberKind::Value => "value",
    }
}

/// The Triton version of the API table, with a note where the installed version is not known.
#[must_use]
pub fn version(target: TritonTarget) -> String {
    let version = target.table.version;
    match target.certainty {
        VersionCertainty::Known => format!("Triton {version}"),
        _ => format!("Triton {version} (the installed version is unknown)"),
    }
}

/// A parameter as it is written, on one line.
#[must_use]
pub(crate) fn source_param(param: &Param, text: &str) -> String {
    text[param.span.start..param.span.end].split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All parameters as they are written, on one line.
#[must_use]
pub fn source_params(kernel: &Kernel, text: &str) -> String {
    kernel.params.iter().map(|param| source_param(param, text)).collect::<Vec<_>>().join(", ")
}
