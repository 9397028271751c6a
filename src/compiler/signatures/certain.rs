//! What is written down or was recorded.

use super::constant::Constant;
use super::{Certainty, Given, Givens, Launching, integer_word, launched};
use crate::analysis::types::dtype::Number;
use crate::analysis::types::signature::{self, Signature};
use crate::analysis::types::{Const, Value};
use crate::kernel::{Module, Param, Passed, RecordedLaunch};

/// What is known for certain of launches.
#[derive(Debug, Default)]
pub(super) struct Certain {
    /// All of it.
    pub(super) complete: Vec<(Certainty, Givens)>,
    /// Some of it.
    pub(super) partial: Vec<Givens>,
}

pub(super) fn all(module: &Module, launch: &Launching<'_>, text: &str) -> Certain {
    let kernel = launch.kernel;
    let mut found = Certain::default();
    if let Some(signature) = signature::of(module, kernel, text) {
        let given = |param: &Param| written(launch, param, &signature);
        add(module, launch, Certainty::Written, &given, &mut found);
    }
    for recorded in module.recorded().iter().filter(|recorded| recorded.kernel == kernel.name) {
        add(module, launch, Certainty::Recorded, &|param| seen(launch, param, recorded), &mut found);
    }
    found
}

/// Adds what `given` knows, with the configurations and defaults that hold for the rest.
fn add(
    module: &Module,
    launch: &Launching<'_>,
    certainty: Certainty,
    given: &dyn Fn(&Param) -> Option<Given>,
    found: &mut Certain,
) {
    let params = &launch.kernel.params;
    // A type says nothing of a parameter that has a value at compile time.
    let fits = |param: &Param, given: &Given| !(param.constexpr && matches!(given, Given::Type(..)));
    let given = |param: &Param| given(param).filter(|given| fits(param, given));
    let known: Givens = params.iter().filter_map(|param| Some((param.name.clone(), given(param)?))).collect();
    if known.is_empty() {
        return;
    }
    let complete =
        launched::configured(module, launch, &known).into_iter().filter(|givens| givens.len() == params.len());
    let before = found.complete.len();
    found.complete.extend(complete.map(|givens| (certainty, givens)));
    if found.complete.len() == before {
        found.partial.push(known);
    }
}

/// What a comment says of a parameter.
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

/// What a parameter was given when the program ran.
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
