//! Signatures that are written in comments or were recorded.

use model::analysis::types::dtype::Number;
use model::analysis::types::signature::{self, Signature};
use model::analysis::types::{Const, Value};
use model::kernel::{Module, Param, Passed, RecordedLaunch};

use super::constant::Constant;
use super::{Certainty, Given, Givens, Launching, integer_word, launched};

/// The certain signatures of a kernel's launches.
#[derive(Debug, Default)]
pub(super) struct Certain {
    /// Complete signatures.
    pub(super) complete: Vec<(Certainty, Givens)>,
    /// Signatures of which only some parameters are known.
    pub(super) partial: Vec<Givens>,
}

/// The written or recorded facts about one launch.
#[derive(Debug)]
pub(super) struct Said<'a> {
    pub(super) certainty: Certainty,
    /// The known parameters, before configurations and defaults.
    pub(super) known: Givens,
    /// The recorded launch, if it was recorded.
    pub(super) recorded: Option<&'a RecordedLaunch>,
}

pub(super) fn all(module: &Module, launch: &Launching<'_>, text: &str) -> Certain {
    let mut found = Certain::default();
    for Said { certainty, known, .. } in said(module, launch, text) {
        let of_all = |givens: &Givens| givens.len() == launch.kernel.params.len();
        let before = found.complete.len();
        let configured = launched::configured(module, launch, &known).into_iter().filter(of_all);
        found.complete.extend(configured.map(|givens| (certainty, givens)));
        if found.complete.len() == before {
            found.partial.push(known);
        }
    }
    found
}

/// All written and recorded facts about launches.
pub(super) fn said<'a>(module: &'a Module, launch: &Launching<'_>, text: &str) -> Vec<Said<'a>> {
    let kernel = launch.kernel;
    let mut found = Vec::new();
    if let Some(signature) = signature::of(module, kernel, text) {
        let known = givens(launch, &|param| written(launch, param, &signature));
        found.push(Said { certainty: Certainty::Written, known, recorded: None });
    }
    for recorded in module.recorded().iter().filter(|recorded| recorded.kernel == kernel.name) {
        let known = givens(launch, &|param| seen(launch, param, recorded));
        found.push(Said { certainty: Certainty::Recorded, known, recorded: Some(recorded) });
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
fn written(launch: &Launching<'_>, param: &Param, signature: &Signature) -> Option<Given> {
    let text = signature.text(&param.name)?;
    if let Some((kind, value)) = text.split_once('=')
        && let (Some(number), Ok(value)) = (Number::of_signature(kind), value.replace('_', "").parse())
    {
        return launch.integer(param, value, Some(number.signature()));
    }
    let (plain, alignment) = match text.split_once(':') {
        Some((plain, number)) => (plain, number.parse::<u32>().ok()),
        None => (text, None),
    };
    if let Some(pointee) = plain.strip_prefix('*') {
        let (is_const, pointee) = pointee.strip_prefix('k').map_or(("", pointee), |rest| ("k", rest));
        return Some(launch.pointer(param, &format!("{is_const}{}", Number::of_signature(pointee)?.signature())));
    }
    if plain.starts_with("tensordesc<") {
        return Some(Given::Type(text.to_owned(), false));
    }
    match (Number::of_signature(plain), param.constexpr) {
        (Some(number), true) => return Some(Given::Constant(Constant::dtype(number))),
        (Some(number), false) => {
            let is_aligned = alignment.is_some_and(|by| by % 16 == 0) && launch.may_be_aligned(param);
            return Some(Given::Type(number.signature().to_owned(), is_aligned));
        }
        _ => {}
    }
    let constant = match signature.value(&param.name)? {
        Value::Const(Const::Object) => Constant::of_text(text)?,
        Value::Const(value) => Constant::of_const(&value)?,
        _ => return None,
    };
    Some(Given::Constant(constant))
}

/// The type or value of a parameter in a recorded launch.
fn seen(launch: &Launching<'_>, param: &Param, recorded: &RecordedLaunch) -> Option<Given> {
    let constant = |value| Some(Given::Constant(value));
    match recorded.passed(&param.name)? {
        Passed::Pointer(element) => Some(launch.pointer(param, (*element)?)),
        Passed::Integer(value) => launch.integer(param, *value, integer_word(*value)),
        Passed::Bool(value) if param.constexpr => constant(Constant::Bool(*value)),
        Passed::Bool(_) => Some(Given::Type("i1".to_owned(), false)),
        Passed::Float(value) if param.constexpr => constant(Constant::float(*value)?),
        Passed::Float(_) => Some(Given::Type(super::annotated(param).unwrap_or_else(|| "fp32".to_owned()), false)),
        Passed::None => constant(Constant::None),
        Passed::Other => None,
    }
}
