//! Signatures that are written in comments or were recorded.

use model::analysis::types::dtype::Dtype;
use model::analysis::types::signature::{self, SignatureComment};
use model::analysis::types::{AbstractValue, Const};
use model::kernel::{Module, Param, RecordedArgument, RecordedLaunch};

use super::constant::Constant;
use super::{Given, Givens, GuessOrigin, Launching, integer_word, launch_parameters};

/// The certain signatures of a kernel's launches.
#[derive(Debug, Default)]
pub(super) struct Certain {
    /// Complete signatures.
    pub(super) complete: Vec<(GuessOrigin, Givens)>,
    /// Signatures of which only some parameters are known.
    pub(super) partial: Vec<Givens>,
}

/// The written or recorded facts about one launch.
#[derive(Debug)]
pub(super) struct LaunchEvidence<'a> {
    pub(super) certainty: GuessOrigin,
    /// The known parameters, before configurations and defaults.
    pub(super) known: Givens,
    /// The recorded launch, if it was recorded.
    pub(super) recorded: Option<&'a RecordedLaunch>,
}

pub(super) fn all(module: &Module, launch: &Launching<'_>, text: &str) -> Certain {
    let mut found = Certain::default();
    for LaunchEvidence { certainty, known, .. } in said(module, launch, text) {
        let of_all = |givens: &Givens| givens.len() == launch.kernel.params.len();
        let before = found.complete.len();
        let configured = launch_parameters::configured(module, launch, &known).into_iter().filter(of_all);
        found.complete.extend(configured.map(|givens| (certainty, givens)));
        if found.complete.len() == before {
            found.partial.push(known);
        }
    }
    found
}

/// All written and recorded facts about launches.
pub(super) fn said<'a>(module: &'a Module, launch: &Launching<'_>, text: &str) -> Vec<LaunchEvidence<'a>> {
    let kernel = launch.kernel;
    let mut found = Vec::new();
    if let Some(signature) = signature::of(module, kernel, text) {
        let known = givens(launch, &|param| written(launch, param, &signature));
        found.push(LaunchEvidence { certainty: GuessOrigin::Written, known, recorded: None });
    }
    for recorded in module.recorded().iter().filter(|recorded| recorded.kernel == kernel.name) {
        let known = givens(launch, &|param| seen(launch, param, recorded));
        found.push(LaunchEvidence { certainty: GuessOrigin::Recorded, known, recorded: Some(recorded) });
    }
    found.retain(|said| !said.known.is_empty());
    found
}

/// The parameters for which `given` returns something.
fn givens(launch: &Launching<'_>, given: &dyn Fn(&Param) -> Option<Given>) -> Givens {
    // A type alone does not determine a compile-time parameter.
    let fits = |param: &Param, given: &Given| !(param.constexpr && matches!(given, Given::Type(..)));
    let given = |param: &Param| given(param).filter(|given| fits(param, given));
    launch.kernel.params.iter().filter_map(|param| Some((param.name.clone(), given(param)?))).collect()
}

/// The type or value of a parameter in a comment.
fn written(launch: &Launching<'_>, param: &Param, signature: &SignatureComment) -> Option<Given> {
    let text = signature.text(&param.name)?;
    if let Some((kind, value)) = text.split_once('=')
        && let (Some(number), Ok(value)) = (Dtype::of_signature(kind), value.replace('_', "").parse())
    {
        return launch.integer(param, value, Some(number.signature()));
    }
    let (plain, alignment) = match text.split_once(':') {
        Some((plain, number)) => (plain, number.parse::<u32>().ok()),
        None => (text, None),
    };
    if let Some(pointee) = plain.strip_prefix('*') {
        let (is_const, pointee) = pointee.strip_prefix('k').map_or(("", pointee), |rest| ("k", rest));
        return Some(launch.pointer(param, &format!("{is_const}{}", Dtype::of_signature(pointee)?.signature())));
    }
    if plain.starts_with("tensordesc<") {
        return Some(Given::Type(text.to_owned(), false));
    }
    match (Dtype::of_signature(plain), param.constexpr) {
        (Some(number), true) => return Some(Given::Constant(Constant::dtype(number))),
        (Some(number), false) => {
            let is_aligned = alignment.is_some_and(|by| by % 16 == 0) && launch.may_be_aligned(param);
            return Some(Given::Type(number.signature().to_owned(), is_aligned));
        }
        _ => {}
    }
    let constant = match signature.value(&param.name)? {
        AbstractValue::Const(Const::Object) => Constant::of_text(text)?,
        AbstractValue::Const(value) => Constant::of_const(&value)?,
        _ => return None,
    };
    Some(Given::Constant(constant))
}

/// The type or value of a parameter in a recorded launch.
fn seen(launch: &Launching<'_>, param: &Param, recorded: &RecordedLaunch) -> Option<Given> {
    let constant = |value| Some(Given::Constant(value));
    match recorded.passed(&param.name)? {
        RecordedArgument::Pointer(element) => Some(launch.pointer(param, (*element)?)),
        RecordedArgument::Integer(value) => launch.integer(param, *value, integer_word(*value)),
        RecordedArgument::Bool(value) if param.constexpr => constant(Constant::Bool(*value)),
        RecordedArgument::Bool(_) => Some(Given::Type("i1".to_owned(), false)),
        RecordedArgument::Float(value) if param.constexpr => constant(Constant::float(*value)?),
        RecordedArgument::Float(_) => {
            Some(Given::Type(super::annotated(param).unwrap_or_else(|| "fp32".to_owned()), false))
        }
        RecordedArgument::None => constant(Constant::None),
        RecordedArgument::Other => None,
    }
}
